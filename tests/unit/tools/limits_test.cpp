// The programs where the machine gives no more: memory, room for files, a standard output that takes nothing. An exit
// code of ops.md §14 and a sentence, never a signal, and nothing left behind.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "frontend/io/npz.h"

namespace fusejit {
namespace {

namespace fs = std::filesystem;

std::string program(const std::string& name) { return std::string(FUSEJIT_BINARY_DIR) + "/bin/" + name; }

class Limits : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("fusejit_limits_{}", getpid());
    fs::create_directories(folder_);
    text("g.fj",
         "graph @g(%x: f32[64,64]) {\n  %0 = exp(%x) : f32[64,64]\n  %1 = softmax(%0) {dim=1} : f32[64,64]\n"
         "  return %1\n}\n");
    io::NamedArray x{"x", DType::f32, {64, 64}, std::vector<std::byte>(64 * 64 * 4)};
    io::write_npz(path("x.npz"), std::vector<io::NamedArray>{x});
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void text(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  // In the test's folder, in a shell. Its exit code, 1000 + n for signal n; what it says is in error().
  int run(const std::string& command) {
    const int status =
        std::system(fmt::format("cd {} && bash -c 'ulimit -c 0; {}' 2> stderr", folder_.string(), command).c_str());
    std::ifstream in(path("stderr"));
    error_ = {std::istreambuf_iterator<char>(in), {}};
    if (WIFSIGNALED(status)) return 1000 + WTERMSIG(status);
    return WEXITSTATUS(status) > 128 ? 1000 + WEXITSTATUS(status) - 128 : WEXITSTATUS(status);
  }
  const std::string& error() const { return error_; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    return names;
  }

  fs::path folder_;
  std::string error_;
};

TEST_F(Limits, AStandardOutputThatTakesNothingIsExit5) {
  const std::pair<const char*, const char*> commands[] = {
      {"fusejit", "doctor"},
      {"fusejit", "doctor --json"},
      {"fusejit", "--help"},
      {"fusejit-dump", "list"},
      {"fusejit-dump", "run g.fj --inputs x.npz"},
      {"fusejit-dump", "--help"},
      {"fusejit-dump", "show g.fj"},
      {"train_convnet", "--help"},
  };
  for (const auto& [name, arguments] : commands) {
    if (!fs::exists(program(name))) continue;
    EXPECT_EQ(run(fmt::format("{} {} > /dev/full", program(name), arguments)), 5) << name << " " << arguments;
    EXPECT_NE(error().find("standard output cannot be written"), std::string::npos) << error();
  }
}

TEST_F(Limits, OnTheSizeOfFilesLeaveNothingBehind) {
  if (!fs::exists(program("fusejit-dump"))) GTEST_SKIP() << "fusejit-dump is not built";
  const std::size_t before = files().size() + 1;  // and stderr
  EXPECT_EQ(run(fmt::format("ulimit -f 4; {} run g.fj --inputs x.npz --outputs out.npz > /dev/null",
                            program("fusejit-dump"))),
            5);
  EXPECT_NE(error().find("out.npz: cannot be written: File too large"), std::string::npos) << error();
  EXPECT_EQ(files().size(), before);
  EXPECT_FALSE(fs::exists(path("out.npz")));
  EXPECT_EQ(run(fmt::format("ulimit -f 1; {} list --help > out.txt", program("fusejit-dump"))), 0) << "it is short";
  EXPECT_EQ(run(fmt::format("ulimit -f 1; {} source g.fj --stage llvm > out.txt", program("fusejit-dump"))), 5);
}

// Wherever memory ends: while a graph is read, in LLVM, when code is linked, while it runs.
TEST_F(Limits, OnMemoryAreExit6) {
  if (!fs::exists(program("fusejit-dump"))) GTEST_SKIP() << "fusejit-dump is not built";
  const std::string command = program("fusejit-dump") + " run g.fj --inputs x.npz > /dev/null";
  const auto with_kib = [&](long kib) { return run(fmt::format("ulimit -v {}; {}", kib, command)); };
  // The loader and what runs before main() are out of reach.
  const auto starts = [&](long kib) {
    return run(fmt::format("ulimit -v {}; {} --help > /dev/null", kib, program("fusejit-dump"))) == 0;
  };
  long enough = 16 << 10, too_little = 0;  // to start at all, the loader needs some
  while (enough < 4 << 20 && with_kib(enough) != 0) too_little = enough, enough *= 2;
  ASSERT_EQ(with_kib(enough), 0) << error();
  while (enough - too_little > 64) {
    const long middle = (enough + too_little) / 2;
    (with_kib(middle) == 0 ? enough : too_little) = middle;
  }
  int failed = 0;
  for (long kib = enough; starts(kib); kib -= 40) {
    const int code = with_kib(kib);
    EXPECT_TRUE(code == 0 || code == 6) << code << " with " << kib << " KiB: " << error();
    failed += code == 6;
  }
  EXPECT_GT(failed, 3);
}

// A zip of one deflated member that claims so many bytes; its stream ends after `content`.
std::string bomb(const std::string& name, const std::string& content, std::uint32_t claimed) {
  std::string packed(content.size() + 200, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_SYNC_FLUSH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  packed.resize(claimed / 1000);  // as small as a real one could be
  std::string zip;
  const auto put = [&zip](std::uint64_t v, int width) {
    for (int i = 0; i < width; ++i) zip.push_back(static_cast<char>(v >> (8 * i) & 0xff));
  };
  put(0x04034b50, 4), put(20, 2), put(0, 2), put(8, 2), put(0, 4), put(0, 4);
  put(packed.size(), 4), put(claimed, 4), put(name.size(), 2), put(0, 2);
  zip += name + packed;
  const std::size_t directory = zip.size();
  put(0x02014b50, 4), put(20, 2), put(20, 2), put(0, 2), put(8, 2), put(0, 4), put(0, 4);
  put(packed.size(), 4), put(claimed, 4), put(name.size(), 2);
  put(0, 2), put(0, 2), put(0, 2), put(0, 2), put(0, 4), put(0, 4);
  zip += name;
  const std::size_t size = zip.size() - directory;
  put(0x06054b50, 4), put(0, 4), put(1, 2), put(1, 2), put(size, 4), put(directory, 4), put(0, 2);
  return zip;
}

// The header alone says that it is not what the graph takes, and nothing else of it could even be inflated.
TEST_F(Limits, AreNotReachedByWhatAnArrayClaims) {
  if (!fs::exists(program("fusejit-dump"))) GTEST_SKIP() << "fusejit-dump is not built";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (400000000,), }";
  header.resize(117, ' ');
  header += '\n';
  text("bomb.npz", bomb("x.npy", std::string("\x93NUMPY\1\0\x76\0", 10) + header, 1600000128));
  EXPECT_EQ(run(program("fusejit-dump") + " run g.fj --inputs bomb.npz"), 2);
  EXPECT_EQ(error(), "fusejit-dump: error: bomb.npz: array 'x' is f32[400000000], the parameter is f32[64,64]\n");
  EXPECT_EQ(run(program("fusejit-dump") + " run g.fj --inputs x.npz --check bomb.npz"), 2);
  text("out.npz", bomb("out0.npy", std::string("\x93NUMPY\1\0\x76\0", 10) + header, 1600000128));
  EXPECT_EQ(run(program("fusejit-dump") + " run g.fj --inputs x.npz --check out.npz"), 2);
  EXPECT_EQ(error(), "fusejit-dump: error: out.npz: array 'out0' is f32[400000000], the result is f32[64,64]\n");
}

}  // namespace
}  // namespace fusejit
