// Damaged, hostile, foreign and missing files given to the programs: the exit code says whose fault it is (ops.md §14),
// the first line of stderr where and what, nothing is written, and the next call works.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

namespace fusejit {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;  // -1: a signal
  std::string error_line;
};

const std::string kGraph =
    "graph @step(%x: f32[2,3,4,4], %w: f32[5,3,3,3], %b: f32[5]) {\n"
    "  %0 = conv2d(%x, %w) {stride=[1,1], padding=[1,1,1,1], dilation=[1,1], groups=1} : f32[2,5,4,4]\n"
    "  %1 = bias_add(%0, %b) : f32[2,5,4,4]\n"
    "  %2 = relu(%1) : f32[2,5,4,4]\n"
    "  return %2\n"
    "}\n";

class BadFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fusejit_bad_files_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  static std::string program(const std::string& name) { return std::string(FUSEJIT_BINARY_DIR) + "/bin/" + name; }
  // Words beginning with '$' are files of the test's folder.
  Outcome run(const std::string& name, const std::string& arguments) const {
    std::istringstream words(arguments);
    std::string command = program(name), word;
    while (words >> word) command += " '" + (word[0] == '$' ? path(word.substr(1)) : word) + "'";
    command += " > /dev/null 2> " + path("stderr");
    const int status = std::system(command.c_str());
    Outcome outcome;
    if (WIFEXITED(status) && WEXITSTATUS(status) < 126) outcome.code = WEXITSTATUS(status);
    std::ifstream in(path("stderr"));
    std::getline(in, outcome.error_line);
    return outcome;
  }
  fs::path folder_;
};

TEST_F(BadFiles, GraphsCutAnywhere) {
  if (!fs::exists(program("fusejit-dump"))) GTEST_SKIP() << "fusejit-dump is not built";
  const std::regex place(".*cut\\.fj:[0-9]+:[0-9]+: error: .+");
  for (std::size_t length = 0; length + 2 < kGraph.size(); length += 11) {
    write("cut.fj", kGraph.substr(0, length));
    for (const char* command : {"run", "show"}) {
      const Outcome outcome = run("fusejit-dump", std::string(command) + " $cut.fj");
      EXPECT_EQ(outcome.code, 2) << command << ", cut to " << length << ": " << outcome.error_line;
      EXPECT_TRUE(std::regex_match(outcome.error_line, place)) << outcome.error_line;
    }
  }
}

TEST_F(BadFiles, GraphsThatAreHostile) {
  if (!fs::exists(program("fusejit-dump"))) GTEST_SKIP() << "fusejit-dump is not built";
  const auto replaced = [](const std::string& what, const std::string& by) {
    std::string text = kGraph;
    return text.replace(text.find(what), what.size(), by);
  };
  const struct {
    const char* name;
    std::string text, error;  // how the first line goes on after the file's name
  } cases[] = {
      {"nested brackets", "graph @g(" + std::string(200000, '('), ":1:10: error: "},
      {"nested lists", replaced("[1,1,1,1]", std::string(200000, '[')), ":2:"},
      {"a number without end", replaced("groups=1", "groups=" + std::string(100000, '9')), ":2:"},
      {"a number beyond i64", replaced("groups=1", "groups=9223372036854775808"), ":2:"},
      {"an exponent", replaced("groups=1", "groups=1e999"), ":2:"},
      {"an extent beyond i64", replaced("f32[2,3,4,4]", "f32[99999999999999999999,3,4,4]"), ":1:"},
      {"too many elements", replaced("f32[2,3,4,4]", "f32[4000000000,4000000000,4000000000,4]"), ":1:"},
      {"a negative extent", replaced("f32[2,3,4,4]", "f32[-2,3,4,4]"), ":1:"},
      {"too many dims", replaced("f32[2,3,4,4]", "f32[1,1,1,1,1,1,1,1,1]"), ":1:"},
      {"a name without end", replaced("%b: ", "%" + std::string(300, 'b') + ": "), ":1:"},
      {"other channels", replaced("f32[5,3,3,3]", "f32[5,9,3,3]"),
       ":2:8: error: conv2d: weight has 9 input channels, x has 3 (x: f32[2,3,4,4], w: f32[5,9,3,3])"},
      {"a kernel larger than the padded input", replaced("f32[5,3,3,3]", "f32[5,3,7,3]"), ":2:8: error: conv2d: "},
      {"another result type", replaced("%2 = relu(%1) : f32[2,5,4,4]", "%2 = relu(%1) : f32[2,5,4,5]"), ":4:"},
      {"an unknown op", replaced("relu", "rely"), ":4:8: error: "},
      {"an unknown attribute", replaced("groups=1", "group=1"), ":2:"},
      {"a repeated attribute", replaced("groups=1", "stride=[1,1]"), ":2:"},
      {"a value used before it is there", replaced("bias_add(%0", "bias_add(%2"), ":3:"},
      {"a value defined twice", replaced("%1 = bias_add", "%0 = bias_add"), ":3:"},
      {"an axis out of range", replaced("relu(%1)", "softmax(%1) {dim=4}"), ":4:8: error: softmax: "},
      {"bytes", std::string("\0\xff\xfe\x80graph", 9), ":1:1: error: "},
      {"nothing", "", ":1:1: error: "},
  };
  for (const auto& c : cases) {
    write("hostile.fj", c.text);
    const Outcome outcome = run("fusejit-dump", "run $hostile.fj --outputs $out.npz");
    EXPECT_EQ(outcome.code, 2) << c.name << ": " << outcome.error_line.substr(0, 300);
    EXPECT_TRUE(outcome.error_line.starts_with(path("hostile.fj") + c.error))
        << c.name << ": " << outcome.error_line.substr(0, 300);
    EXPECT_LT(outcome.error_line.size(), 2000u) << c.name;
    EXPECT_FALSE(fs::exists(path("out.npz"))) << c.name;
  }
}

// Files of 28 x 28 images; `magic` and `extent` may lie.
std::string images(int count, int extent = 28, char magic = '\x08') {
  std::string text{'\0', '\0', magic, '\x03', '\0', '\0', '\0', static_cast<char>(count)};
  for (int i = 0; i < 2; ++i) text += std::string{'\0', '\0', '\0', static_cast<char>(extent)};
  return text + std::string(static_cast<std::size_t>(count * extent * extent), '\x40');
}
std::string labels(int count) {
  std::string text{'\0', '\0', '\x08', '\x01', '\0', '\0', '\0', static_cast<char>(count)};
  for (int i = 0; i < count; ++i) text += static_cast<char>(i % 10);
  return text;
}

TEST_F(BadFiles, ImagesForTraining) {
  if (!fs::exists(program("train_convnet"))) GTEST_SKIP() << "train_convnet is not built";
  const auto put = [&](const std::string& train_images, const std::string& train_labels) {
    for (const char* split : {"train", "t10k"}) {
      write(std::string(split) + "-images-idx3-ubyte", train_images);
      write(std::string(split) + "-labels-idx1-ubyte", train_labels);
    }
  };
  const auto outcome = [&](const std::string& more = "") {
    return run("train_convnet",
               "--data " + folder_.string() + " --epochs 1 --batch 4 --measure 0 --png $sheet.png " + more);
  };
  EXPECT_EQ(outcome().code, 5) << "no files";
  put(images(8), labels(8));
  const Outcome good = outcome();
  EXPECT_EQ(good.code, 0) << good.error_line;
  const std::string whole = images(8);
  const struct {
    const char* name;
    std::string images, labels;
  } cases[] = {
      {"cut", whole.substr(0, whole.size() - 1), labels(8)},
      {"cut within the header", whole.substr(0, 11), labels(8)},
      {"empty", "", labels(8)},
      {"floats", images(8, 28, '\x0d'), labels(8)},
      {"foreign", "\x89PNG\r\n\x1a\n and so on and so on", labels(8)},
      {"labels for images", labels(8), labels(8)},
      {"cut labels", whole, labels(8).substr(0, 10)},
      {"labels of other images", whole, labels(7)},
      {"images smaller than the kernels", images(8, 2), labels(8)},
      {"images of another size", images(8, 20), labels(8)},
  };
  for (const auto& c : cases) {
    put(c.images, c.labels);
    const Outcome bad = outcome();
    EXPECT_EQ(bad.code, 2) << c.name << ": " << bad.error_line;
    EXPECT_TRUE(bad.error_line.starts_with("train_convnet: error: ")) << c.name << ": " << bad.error_line;
  }
  put(images(8), labels(8));
  for (const char* wrong : {"--batch 0", "--epochs -1", "--rules some", "--threads -1", "--nonsense", "--seed x"})
    EXPECT_EQ(outcome(wrong).code, 1) << wrong;
  for (const char* wrong : {"--engine magic", "--target x86:pentium"}) EXPECT_EQ(outcome(wrong).code, 2) << wrong;
  EXPECT_EQ(outcome("--save $no/where.npz").code, 5);
  EXPECT_EQ(outcome("--json $no/where.json").code, 5);
  EXPECT_EQ(outcome().code, 0) << "the next call works";
}

}  // namespace
}  // namespace fusejit
