// train_convnet as a clumsy user meets it: wrong options, wrong images, nowhere to write, a full disk, Ctrl-C.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "frontend/io/npz.h"
#include "fusejit/runtime.h"
#include "tests/unit/tools/program.h"

namespace fusejit {
namespace {

namespace fs = std::filesystem;

class TrainConvnet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kTrainConvnet)) GTEST_SKIP() << kTrainConvnet << " is not built";
    folder_ = fs::temp_directory_path() / ("fusejit_train_" + std::to_string(getpid()));
    fs::create_directories(folder_ / "data");
    images("train", 40, 28);
    labels("train", 40, 10);
    images("t10k", 10, 28);
    labels("t10k", 10, 10);
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  static std::string big_endian(std::uint32_t value) {
    return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
            static_cast<char>(value)};
  }
  void images(const std::string& stem, std::uint32_t count, std::uint32_t side) const {
    std::string pixels(count * side * side, '\0');
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * i % 251);
    write("data/" + stem + "-images-idx3-ubyte",
          std::string("\0\0\x08\x03", 4) + big_endian(count) + big_endian(side) + big_endian(side) + pixels);
  }
  void labels(const std::string& stem, std::uint32_t count, std::uint32_t classes) const {
    std::string values;
    for (std::uint32_t i = 0; i < count; ++i) values.push_back(static_cast<char>(i % classes));
    write("data/" + stem + "-labels-idx1-ubyte", std::string("\0\0\x08\x01", 4) + big_endian(count) + values);
  }

  // Its exit code, or -1 for a signal; what it says is in the files stdout and stderr.
  int train(const std::string& options, const std::string& out = "") const {
    const std::string command = fmt::format("cd {} && {} --data data --png '' {} > {} 2> stderr", folder_.string(),
                                            kTrainConvnet, options, out.empty() ? "stdout" : out);
    const int status = std::system(command.c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) < 126 ? WEXITSTATUS(status) : -1;
  }
  std::string error_line() const {
    const std::string text = content("stderr");
    return text.substr(0, text.find('\n'));
  }
  bool leaves_nothing() const {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name != "data" && name != "stdout" && name != "stderr") return false;
    }
    return true;
  }

  fs::path folder_;
};

TEST_F(TrainConvnet, EveryMistakeHasItsCodeAndSentenceBeforeTheTraining) {
  const std::string data = fmt::format("{}/", path("data"));
  struct Failure {
    std::string options;
    int code;
    std::string error;
  };
  const Failure cases[] = {
      {"--epochs many", 1, "--epochs: Value many not in range 0 to 10000"},
      {"--batch 0", 1, "--batch: Value 0 not in range 1 to 1048576"},
      {"--limit -1", 1, "--limit: Value -1 not in range 0 to 1099511627776"},
      {"--seed -1", 1, "--seed: Value -1 not in range 0 to 18446744073709551615"},
      {"--seed 18446744073709551616", 1, "--seed: Value 18446744073709551616 not in range 0 to 18446744073709551615"},
      {"--seed 1e3", 1, "--seed: Value 1e3 not in range 0 to 18446744073709551615"},
      {"--target cuda:sm_90", 2,
       "--target cuda:sm_90 is for a CUDA device, --device is cpu: there is no compiled code of that target for it"},
      {"--layers all", 1, "--layers: all not in {ordinary,save_input,both}"},
      {"--deviation 0", 2, "batches: mean 0.286 and deviation 0 must be finite, the deviation positive"},
      {"--nonsense", 1, "The following argument was not expected: --nonsense"},
      {"--engine magic", 2, "engine 'magic' is not known (compiled, graph_interpreter, kernel_interpreter)"},
      {"--device gpu", 2, "device 'gpu' is none of cpu, cuda, cuda:N"},
      {"--device cuda:1023", 6, why_unavailable(Device("cuda:1023"))},
      {"--save no/net.npz", 5, "no/net.npz: cannot be written: No such file or directory"},
      {"--json data", 5, "data: is a directory, not a file"},
  };
  for (const Failure& c : cases) {
    EXPECT_EQ(train("--measure 0 " + c.options), c.code) << c.options;
    EXPECT_EQ(error_line(), "train_convnet: error: " + c.error) << c.options;
    EXPECT_TRUE(content("stdout").find("epoch") == std::string::npos) << c.options;
  }
  write("data/t10k-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x0a\0\1\2\3\x0c\5\6\7\x08\x09", 18));
  EXPECT_EQ(train("--measure 0"), 2);
  EXPECT_EQ(error_line(), "train_convnet: error: data: the label of test image 4 is 12, labels are 0 to 9");
  images("t10k", 10, 32);
  EXPECT_EQ(train("--measure 0"), 2);
  EXPECT_EQ(error_line(), "train_convnet: error: data: the test images are 32 x 32, this network takes 28 x 28");
  fs::remove(path("data/train-images-idx3-ubyte"));
  EXPECT_EQ(train("--measure 0"), 5);
  EXPECT_TRUE(error_line().starts_with("train_convnet: error: data: neither train-images-idx3-ubyte nor "));
  EXPECT_TRUE(leaves_nothing());
}

#ifdef FUSEJIT_X86

TEST_F(TrainConvnet, AFullStandardOutputCostsNoTraining) {
  EXPECT_EQ(train("--epochs 1 --batch 20 --measure 0 --save net.npz", "/dev/full"), 5);
  EXPECT_EQ(error_line(), "train_convnet: error: standard output cannot be written");
  EXPECT_FALSE(io::read_npz(path("net.npz")).empty());
}

// The tutorial's comparison: from the same weights and images both forms learn the same, up to rounding.
TEST_F(TrainConvnet, BothFormsOfTheLayersLearnTheSame) {
  const std::string options = "--epochs 1 --batch 20 --measure 0 --json result.json --layers both ";
  ASSERT_EQ(train(options), 0) << content("stderr");
  const std::string text = content("stdout");
  EXPECT_LT(text.find("\nordinary layers\n"), text.find("\nsave-only-input layers\n"));
  EXPECT_NE(text.find("layers                         loss  test accuracy\nordinary  "), std::string::npos) << text;
  const nlohmann::json layers = nlohmann::json::parse(content("result.json"))["layers"];
  const std::vector<double> ordinary = layers["ordinary"]["losses"], save_input = layers["save_input"]["losses"];
  ASSERT_EQ(ordinary.size(), 2u);
  EXPECT_NEAR(ordinary[0], save_input[0], 1e-4) << "sums in another order";
  EXPECT_NEAR(ordinary[1], save_input[1], 0.05) << "after an update, which takes signs of small gradients as they are";
  ASSERT_EQ(train(options + "--mean 0.1307 --deviation 100"), 0) << content("stderr");
  const nlohmann::json other = nlohmann::json::parse(content("result.json"))["layers"];
  EXPECT_NE(other["ordinary"]["losses"], layers["ordinary"]["losses"]) << "eps counts beside so little variance";
}

// Sends `signal` once the standard output shows `sign`; the status it ends with.
int status_after(int signal, const std::string& sign, const std::vector<std::string>& options,
                 const std::function<std::string()>& shown, const std::string& out) {
  const pid_t child = fork();
  if (child == 0) {
    if (!std::freopen(out.c_str(), "w", stdout)) _exit(99);
    std::vector<char*> arguments;
    for (const std::string& option : options) arguments.push_back(const_cast<char*>(option.c_str()));
    arguments.push_back(nullptr);
    execv(kTrainConvnet.c_str(), arguments.data());
    _exit(99);
  }
  for (int i = 0; i < 1200 && shown().find(sign) == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(kill(child, signal), 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST_F(TrainConvnet, AnInterruptEndsItAfterTheStep) {
  const int status = status_after(
      SIGINT, "epoch 2/",
      {"train_convnet", "--data", path("data"), "--png", "", "--epochs", "10000", "--batch", "20", "--json",
       path("result.json")},
      [&] { return content("stdout"); }, path("stdout"));
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_NE(content("stdout").find("stopped after "), std::string::npos) << content("stdout");
  EXPECT_NE(content("result.json").find("\"stopped\": true"), std::string::npos) << content("result.json");
}

TEST_F(TrainConvnet, ATerminationIsSaidInTheExitCode) {
  const int status = status_after(
      SIGTERM, "epoch 2/",
      {"train_convnet", "--data", path("data"), "--png", "", "--epochs", "10000", "--batch", "20", "--save",
       path("net.npz")},
      [&] { return content("stdout"); }, path("stdout"));
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
  EXPECT_NE(content("stdout").find("stopped after "), std::string::npos) << content("stdout");
  EXPECT_FALSE(io::read_npz(path("net.npz")).empty());
}

// A thousand steps of each mode take minutes.
TEST_F(TrainConvnet, AnInterruptEndsTheMeasuringToo) {
  const auto start = std::chrono::steady_clock::now();
  const int status = status_after(
      SIGINT, "parameters saved",
      {"train_convnet", "--data", path("data"), "--png", "", "--epochs", "0", "--batch", "40", "--measure", "1000",
       "--save", path("net.npz"), "--json", path("result.json")},
      [&] { return fs::exists(path("net.npz")) ? std::string("parameters saved") : ""; }, path("stdout"));
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(content("stdout").find("One training step"), std::string::npos) << content("stdout");
  EXPECT_EQ(content("result.json").find("modes"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
}

#endif

}  // namespace
}  // namespace fusejit
