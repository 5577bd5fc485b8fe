// fusejit-dump run as a user meets it: files in, files out, exit codes and the first line of stderr (ops.md §13, §14).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/io/files.h"
#include "frontend/io/npz.h"
#include "ir/base/scalar.h"
#include "runtime/devices.h"
#include "tests/unit/tools/program.h"

namespace fusejit {
namespace {

namespace fs = std::filesystem;
using io::NamedArray;

struct RunOutcome {
  int code = -1;  // -1: a signal
  std::string error_line;
};

class DumpRun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kFusejitDump)) GTEST_SKIP() << kFusejitDump << " is not built";
    folder_ = fs::temp_directory_path() / ("fusejit_dump_run_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    text(
        "g.fj",
        "graph @g(%x: f32[2,3], %s: f32[]) {\n  %0 = mul(%x, %s) : f32[2,3]\n  %1 = sum(%0) : f32[]\n  return %1\n}\n");
    io::write_npz(path("in.npz"), std::vector<NamedArray>{f32("x", {2, 3}, {1, 2, 3, 4, 5, 6}), f32("s", {}, {2})});
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void text(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }

  static NamedArray f32(const std::string& name, Shape shape, const std::vector<float>& values) {
    NamedArray array{name, DType::f32, shape, std::vector<std::byte>(values.size() * 4)};
    for (std::size_t i = 0; i < values.size(); ++i)
      ir::store_element(array.bytes.data(), DType::f32, static_cast<std::int64_t>(i), ir::Scalar::of(values[i]));
    return array;
  }
  static float element(const NamedArray& array, std::int64_t i) {
    return ir::load_element(array.bytes.data(), DType::f32, i).f32();
  }

  // Words beginning with '$' are files of the test's folder.
  RunOutcome dump(const std::string& arguments) const {
    std::istringstream words("run " + arguments);
    std::string command = kFusejitDump, word;
    while (words >> word) command += " '" + (word[0] == '$' ? path(word.substr(1)) : word) + "'";
    command += " > " + path("stdout") + " 2> " + path("stderr");
    const int status = std::system(command.c_str());
    RunOutcome outcome;
    if (WIFEXITED(status) && WEXITSTATUS(status) < 126) outcome.code = WEXITSTATUS(status);
    std::ifstream in(path("stderr"));
    std::getline(in, outcome.error_line);
    return outcome;
  }

  fs::path folder_;
};

TEST_F(DumpRun, WritesResultsAndGradients) {
  ASSERT_EQ(dump("$g.fj --inputs $in.npz --outputs $out.npz --grad x,s").code, 0);
  const auto arrays = io::read_npz(path("out.npz"));
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].name, "out0");
  EXPECT_EQ(element(arrays[0], 0), 42);
  EXPECT_EQ(arrays[1].name, "d_x");
  EXPECT_EQ(arrays[1].shape, Shape({2, 3}));
  EXPECT_EQ(element(arrays[1], 5), 2);
  EXPECT_EQ(arrays[2].name, "d_s");
  EXPECT_EQ(element(arrays[2], 0), 21);
}

TEST_F(DumpRun, TakesACotangent) {
  io::write_npz(path("in.npz"), std::vector<NamedArray>{f32("x", {2, 3}, {1, 2, 3, 4, 5, 6}), f32("s", {}, {2}),
                                                        f32("d_out0", {}, {10})});
  ASSERT_EQ(dump("$g.fj --inputs $in.npz --outputs $out.npz --grad s").code, 0);
  EXPECT_EQ(element(io::read_npz(path("out.npz"))[1], 0), 210);
}

TEST_F(DumpRun, LayoutIsNotSeenInFiles) {
  text("n.fj", "graph @n(%x: f32[1,2,1,3]:nhwc) {\n  %0 = neg(%x) : f32[1,2,1,3]:nhwc\n  return %0, %x\n}\n");
  io::write_npz(path("in.npz"), std::vector<NamedArray>{f32("x", {1, 2, 1, 3}, {1, 2, 3, 4, 5, 6})});
  ASSERT_EQ(dump("$n.fj --inputs $in.npz --outputs $out.npz").code, 0);
  const auto arrays = io::read_npz(path("out.npz"));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(element(arrays[0], i), -(i + 1));
    EXPECT_EQ(element(arrays[1], i), i + 1);
  }
}

TEST_F(DumpRun, Bf16TravelsAsItsBits) {
  text("b.fj", "graph @b(%x: bf16[2]) {\n  %0 = add(%x, %x) : bf16[2]\n  return %0\n}\n");
  NamedArray x{"x.bf16", DType::bf16, {2}, std::vector<std::byte>(4)};
  for (int i = 0; i < 2; ++i)
    ir::store_element(x.bytes.data(), DType::bf16, i, ir::cast(ir::Scalar::of(1.5f), DType::bf16));
  io::write_npz(path("in.npz"), std::vector<NamedArray>{x});
  ASSERT_EQ(dump("$b.fj --inputs $in.npz --outputs $out.npz").code, 0);
  const auto arrays = io::read_npz(path("out.npz"));
  EXPECT_EQ(arrays[0].name, "out0.bf16");
  EXPECT_EQ(ir::load_element(arrays[0].bytes.data(), DType::bf16, 1).as_double(), 3);
}

TEST_F(DumpRun, CheckComparesValuesNanAndInf) {
  text("c.fj", "graph @c(%x: f32[3]) {\n  %0 = mul(%x, 1) : f32[3]\n  return %0\n}\n");
  const float nan = std::nanf(""), inf = INFINITY;
  io::write_npz(path("in.npz"), std::vector<NamedArray>{f32("x", {3}, {1, nan, inf})});
  const auto check = [&](const std::vector<float>& want) {
    io::write_npz(path("want.npz"), std::vector<NamedArray>{f32("out0", {3}, want)});
    return dump("$c.fj --inputs $in.npz --check $want.npz --rtol 0.01 --atol 0").code;
  };
  EXPECT_EQ(check({1.005f, nan, inf}), 0);
  EXPECT_EQ(check({1.1f, nan, inf}), 3);
  EXPECT_EQ(check({1, 0, inf}), 3);
  EXPECT_EQ(check({1, nan, -inf}), 3);
  EXPECT_EQ(check({1, nan, nan}), 3);
}

struct RunFailure {
  const char* arguments;
  int code;
  std::string error;  // how the first line of stderr ends
};

TEST_F(DumpRun, EveryMistakeHasItsCodeAndSentence) {
  text("bad.fj", "graph @g(%x: f32[2]) {\n  %0 = relu(%x, %x) : f32[2]\n  return %0\n}\n");
  text("none.fj", "graph @g() {\n  %0 = full() {shape=[2], value=3} : f32[2]\n  return %0\n}\n");
  text("huge.fj",
       "graph @g() {\n  %0 = full() {shape=[1099511627776], value=3} : f32[1099511627776]\n  return %0\n}\n");
  text("int.fj", "graph @g(%x: i32[]) {\n  return %x\n}\n");
  text("b.fj", "graph @b(%x: bf16[2]) {\n  return %x\n}\n");
  io::write_npz(path("wide.npz"), std::vector<NamedArray>{f32("x", {2}, {1, 2})});
  text("cut.npz", "PK\x03\x04");
  text("foreign", "no zip");
  io::write_npz(path("few.npz"), std::vector<NamedArray>{f32("x", {2, 3}, {1, 2, 3, 4, 5, 6})});
  io::write_npz(path("many.npz"),
                std::vector<NamedArray>{f32("x", {2, 3}, {1, 2, 3, 4, 5, 6}), f32("s", {}, {1}), f32("t", {}, {1})});
  io::write_npz(path("shape.npz"), std::vector<NamedArray>{f32("x", {3, 2}, {1, 2, 3, 4, 5, 6}), f32("s", {}, {1})});
  const RunFailure cases[] = {
      {"$none.fj", 0, ""},
      {"", 1, "graph is required"},
      {"$g.fj --inputs", 1, "--inputs: 1 required TEXT missing"},
      {"$g.fj --nonsense", 1, "The following argument was not expected: --nonsense"},
      {"$g.fj --inputs $in.npz --grad x,", 1, "--grad x,: a name is empty"},
      {"$g.fj --inputs $in.npz --device gpu", 1, "--device gpu: a device is cpu or cuda:0"},
      {"$g.fj --inputs $in.npz --rtol -1", 1, ""},
      {"$g.fj --inputs $in.npz --outputs ''", 1, "--outputs: the name of a file is empty"},
      {"$bad.fj", 2, "bad.fj:2:8: error: relu: takes 1 operand, 2 were given"},
      {"$in.npz", 2, "in.npz:1:1: error: expected 'graph' but found 'PK'"},
      {"$g.fj", 2, "there is no array 'x' for parameter %x: f32[2,3]"},
      {"$g.fj --inputs $few.npz", 2, "few.npz: there is no array 's' for parameter %s: f32[]"},
      {"$g.fj --inputs $many.npz", 2, "many.npz: array 't' belongs to no parameter of graph @g"},
      {"$b.fj --inputs $wide.npz", 2,
       "array 'x': parameter %x is bf16[2], its bits are expected in a u2 array 'x.bf16'"},
      {"$g.fj --inputs $shape.npz", 2, "shape.npz: array 'x' is f32[3,2], the parameter is f32[2,3]"},
      {"$g.fj --inputs $cut.npz", 2, ""},
      {"$g.fj --inputs $g.fj", 2,
       "named tensors are kept in files that end in .safetensors or .npz (PyTorch reads both), not in .fj"},
      {"$g.fj --inputs $foreign", 2, "is not a zip file, or is cut off"},
      {"$g.fj --inputs $in.npz --grad y", 2, "the graph has no parameter named y"},
      {"$g.fj --inputs $in.npz --grad x,x", 2, "x is named twice"},
      {"$int.fj --grad x", 2, "only floating-point values have a gradient, this one is i32[]"},
      {"$g.fj --inputs $in.npz --check $few.npz", 2, "few.npz: there is no array 'out0'"},
      {"$missing.fj", 5, "cannot be opened: No such file or directory"},
      {"$g.fj --inputs $missing.npz", 5, "cannot be opened: No such file or directory"},
      {"$g.fj --inputs $in.npz --outputs $no/such/folder.npz", 5, "cannot be written: No such file or directory"},
      {"/dev/zero", 5, "/dev/zero: is a device, not a file"},
      {"$g.fj --inputs /dev/zero", 5, "/dev/zero: is a device, not a file"},
      {"$g.fj --inputs $in.npz --outputs /", 5, "/: is a directory, not a file"},
      {"$g.fj --inputs $in.npz --device cuda:1023", 6, runtime::why_unavailable(Device("cuda:1023"))},
      {"$huge.fj", 6, "needs 4398046511104 bytes"},
  };
  for (const RunFailure& c : cases) {
    const RunOutcome outcome = dump(c.arguments);
    EXPECT_EQ(outcome.code, c.code) << c.arguments << "\n" << outcome.error_line;
    EXPECT_TRUE(outcome.error_line.ends_with(c.error)) << c.arguments << "\n" << outcome.error_line;
    if (c.code != 0 && c.error.find(": error: ") == std::string_view::npos) {
      EXPECT_TRUE(outcome.error_line.starts_with("fusejit-dump: error: ")) << outcome.error_line;
    }
  }
}

TEST_F(DumpRun, FailureLeavesNoPartialOutput) {
  text("cut.fj", "graph @g(%x: f32[2,3], %s: f32[]) {\n  %0 = mul(%x, %s) : f32[2,3]\n  retur");
  EXPECT_EQ(dump("$cut.fj --inputs $in.npz --outputs $out.npz").code, 2);
  EXPECT_FALSE(fs::exists(path("out.npz")));
}

TEST_F(DumpRun, AFullStandardOutputIsAnError) {
  const std::string command = fmt::format("{} run {} --inputs {} --outputs {} > /dev/full 2> {}", kFusejitDump,
                                          path("g.fj"), path("in.npz"), path("out.npz"), path("stderr"));
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 5);
  EXPECT_EQ(io::read_npz(path("out.npz")).size(), 1u) << "the results are there nevertheless";
}

}  // namespace
}  // namespace fusejit
