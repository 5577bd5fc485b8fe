// The programs in examples/: what the README shows of them is their text, and they run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "frontend/io/npz.h"
#include "tests/support/temporary_folder.h"

namespace fusejit {
namespace {

namespace fs = std::filesystem;

// The lines between the two marks, without the indentation of a function's body.
std::string shown_part(const std::string& program) {
  const std::string from = "  // README, from here\n", to = "  // README, to here\n";
  const std::size_t first = program.find(from), last = program.find(to);
  if (first == std::string::npos || last == std::string::npos) return "";
  std::istringstream lines(program.substr(first + from.size(), last - first - from.size()));
  std::string part, line;
  while (std::getline(lines, line)) part += (line.starts_with("  ") ? line.substr(2) : line) + "\n";
  return part;
}

class Examples : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("fusejit_examples_{}", getpid());
    fs::create_directories(folder_ / "data");
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Exit code; output in the files stdout and stderr.
  int run(const std::string& program, const std::string& arguments) const {
    const fs::path path = fs::path(FUSEJIT_BINARY_DIR) / "bin" / program;
    if (!fs::exists(path)) return -1;
    const int status = std::system(
        fmt::format("cd {} && {} {} > stdout 2> stderr", folder_.string(), path.string(), arguments).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
  }
  std::string text(const char* file) const { return testing::bytes_of(folder_ / file); }

  fs::path folder_;
};

TEST_F(Examples, TheReadmeShowsThem) {
  const std::string readme = testing::bytes_of(fs::path(FUSEJIT_SOURCE_DIR) / "README.md");
  for (const char* name : {"train.cpp", "serve.cpp"}) {
    const std::string part = shown_part(testing::bytes_of(fs::path(FUSEJIT_SOURCE_DIR) / "examples" / name));
    EXPECT_FALSE(part.empty()) << name;
    EXPECT_NE(readme.find(part), std::string::npos) << name << " and the README differ:\n" << part;
  }
}

TEST_F(Examples, TrainingWritesTheNetwork) {
  std::string images("\0\0\x08\x03\0\0\0\x28\0\0\0\x1c\0\0\0\x1c", 16), labels("\0\0\x08\x01\0\0\0\x28", 8);
  for (int i = 0; i < 40 * 28 * 28; ++i) images.push_back(static_cast<char>(i * i % 251));
  for (int i = 0; i < 40; ++i) labels.push_back(static_cast<char>(i % 10));
  std::ofstream(folder_ / "data/train-images-idx3-ubyte", std::ios::binary) << images;
  std::ofstream(folder_ / "data/train-labels-idx1-ubyte", std::ios::binary) << labels;
  ASSERT_EQ(run("train", "data"), 0) << text("stderr");
  EXPECT_EQ(io::read_npz((folder_ / "net.npz").string()).size(), 8u) << "six parameters, two running statistics";
  EXPECT_EQ(run("train", "nothing"), 1);
  EXPECT_EQ(text("stderr").find("train: nothing: "), 0u) << text("stderr");
}

// A second call goes on where the checkpoint is.
TEST_F(Examples, CifarTrainsAndGoesOn) {
  const auto records = [&](const std::string& name, int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      bytes.push_back(static_cast<char>(i % 10));
      for (int p = 0; p < 3072; ++p) bytes.push_back(static_cast<char>((i % 10) * 25 + p % 7));
    }
    std::ofstream(folder_ / "data" / name, std::ios::binary) << bytes;
  };
  for (int file = 1; file <= 5; ++file) records(fmt::format("data_batch_{}.bin", file), 4);
  records("test_batch.bin", 10);
  ASSERT_EQ(run("cifar10", "data 1"), 0) << text("stderr");
  EXPECT_NE(text("stdout").find("epoch 1/1 100 %"), std::string::npos) << text("stdout");
  EXPECT_NE(text("stdout").find("saved cifar10.npz"), std::string::npos) << text("stdout");
  ASSERT_EQ(run("cifar10", "data 2"), 0) << text("stderr");
  EXPECT_EQ(text("stdout").find("epoch 1/2"), std::string::npos) << text("stdout");
  EXPECT_NE(text("stdout").find("epoch 2/2 100 %"), std::string::npos) << text("stdout");
  EXPECT_EQ(run("cifar10", "data two"), 1);
  EXPECT_EQ(text("stderr").find("cifar10: EPOCHS is 'two'"), 0u) << text("stderr");
  EXPECT_EQ(run("cifar10", "nothing"), 1);
  EXPECT_EQ(text("stderr").find("cifar10: nothing/data_batch_1.bin: "), 0u) << text("stderr");
}

// Those that make their own data, for a few steps.
TEST_F(Examples, OthersTrain) {
  const std::pair<const char*, const char*> programs[] = {{"own_optimizer", "step 20: loss "},
                                                          {"unet", "intersection over union: "},
                                                          {"gan", "step 20: judge "},
                                                          {"mobilenet_v3", " of 128"},
                                                          {"vision_transformer", " of 256"}};
  for (const auto& [program, line] : programs) {
    ASSERT_EQ(run(program, "20"), 0) << program << ": " << text("stderr");
    EXPECT_NE(text("stdout").find(line), std::string::npos) << program << ": " << text("stdout");
    EXPECT_EQ(text("stdout").find("nan"), std::string::npos) << program << ": " << text("stdout");
    EXPECT_EQ(run(program, "0"), 1) << program;
    EXPECT_EQ(text("stderr"), fmt::format("{}: STEPS is '0', it must be a whole number above 0\n", program));
  }
}

TEST_F(Examples, RequestsAreServedInBatches) {
  ASSERT_EQ(run("batching_server", ""), 0) << text("stderr");
  int images = 0, batches = 0;
  ASSERT_EQ(std::sscanf(text("stdout").c_str(), "%d images in %d batches", &images, &batches), 2) << text("stdout");
  EXPECT_EQ(images, 256);
  EXPECT_GE(batches, 32);
  EXPECT_LT(batches, 256) << "they are put together";
}

TEST_F(Examples, OnnxModelsAreServed) {
  const std::string models = std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/onnx/networks/";
  const int code = run("serve_onnx", models + "classifier.onnx");
  if (text("stderr").find("FUSEJIT_ONNX=OFF") != std::string::npos) GTEST_SKIP() << text("stderr");
  ASSERT_EQ(code, 0) << text("stderr");
  for (const char* line : {"takes x: f32[?,1,8,8]\n", "gives y: f32[?,5]\n", "largest result: ", " ms a call\n"})
    EXPECT_NE(text("stdout").find(line), std::string::npos) << text("stdout");
  EXPECT_EQ(run("serve_onnx", models + "signal.onnx"), 1);
  EXPECT_NE(text("stderr").find("the model takes no images [N,C,H,W]"), std::string::npos) << text("stderr");
  EXPECT_EQ(run("serve_onnx", "nothing.onnx"), 1);
  EXPECT_EQ(text("stderr").find("serve_onnx: nothing.onnx: "), 0u) << text("stderr");
}

TEST_F(Examples, ServingAnswers) {
  ASSERT_EQ(run("serve", "\"\" 32"), 0) << text("stderr");
  EXPECT_EQ(text("stdout").find("class "), 0u) << text("stdout");
  EXPECT_EQ(run("serve", "nothing.npz"), 1);
  EXPECT_EQ(text("stderr").find("serve: nothing.npz: "), 0u) << text("stderr");
  for (const char* side : {"abc", "-1", "0", "32x", "9223372036854775808", "5000"}) {
    EXPECT_EQ(run("serve", fmt::format("\"\" {}", side)), 1);
    EXPECT_EQ(text("stderr"),
              fmt::format("serve: SIDE is '{}', it must be a whole number of pixels from 1 to 4096\n", side));
  }
}

}  // namespace
}  // namespace fusejit
