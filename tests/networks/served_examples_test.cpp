// The programs in examples/ that serve, and README's `train`, beside their twins in PyTorch
// (tests/reference/recording/examples): 20 requests from the same values, 21 steps from the same seed. Those two that
// the README shows are run as programs.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <future>
#include <iostream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/api/engines.h"
#include "tests/networks/recorded.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_folder.h"

#define main program  // as in trained_examples_test.cpp
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"
namespace batching_server {
#include "examples/batching_server.cpp"
}
namespace serve_onnx {
#include "examples/serve_onnx.cpp"
}
#pragma GCC diagnostic pop
#undef main

namespace fusejit::test {
namespace {

class ServedExamples : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = testing::select_engine({"", "compiled", "host"}); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { set_options({}); }
  // A program of bin/, in the folder; its output.
  std::string output_of(const std::string& command) const {
    const std::string line = "cd " + folder_.path() + " && " + FUSEJIT_BINARY_DIR + "/bin/" + command + " > out 2> err";
    const int status = std::system(line.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command << ": " << testing::bytes_of(folder_ / "err");
    return testing::bytes_of(folder_ / "out");
  }
  const testing::TemporaryFolder folder_;
};

TEST_F(ServedExamples, BatchingServer) {
  const std::string file = "examples/batching_server.npz";
  const std::vector<double> classes = recorded_array(file, "class"), bias = recorded_array(file, "fc.bias");
  ASSERT_GT(std::set<double>(classes.begin(), classes.end()).size(), 3u)
      << "a server that always says the same is seen";
  models::ResNet net = models::resnet18(10);
  set_initial_values(net);
  StateDict values = net.state_dict();
  values["fc.bias"] = from_host(std::vector<float>(bias.begin(), bias.end()), {10});
  net.load_state_dict(values);
  net.eval();
  const Shape image{3, 32, 32};
  batching_server::Server server(net.freeze(), image, std::chrono::milliseconds(20));
  std::vector<std::int64_t> answers(classes.size());
  std::vector<std::thread> clients;
  for (std::size_t c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      for (std::size_t i = c; i < answers.size(); i += 4)
        answers[i] = server.ask(uniform_of("request " + std::to_string(i), image.elements(), -2, 2)).get();
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(std::vector<double>(answers.begin(), answers.end()), classes);
  EXPECT_LT(server.batches(), static_cast<std::int64_t>(classes.size())) << "they are put together";
}

TEST_F(ServedExamples, ServeOnnx) {
  const std::string reference = std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/";
  const std::vector<double> meant = recorded_array("examples/serve_onnx.npz", "meant");
  const double tolerance = recorded_array("examples/serve_onnx.npz", "tolerance")[0];
  std::vector<std::string> images;
  for (const auto& entry : std::filesystem::directory_iterator(reference + "images"))
    if (entry.path().extension() != ".npz") images.push_back(entry.path().string());
  std::sort(images.begin(), images.end());
  ASSERT_EQ(images.size() * 10, meant.size());
  std::optional<onnx::Model> net;
  try {
    net = onnx::load(reference + "examples/serve_onnx.onnx");
  } catch (const UnsupportedError& error) {
    GTEST_SKIP() << error.what();
  }
  net->eval();
  const Frozen serve = net->freeze();
  std::vector<Tensor> inputs;
  std::vector<float> seen;
  const auto take = [&](const Tensor& y) {
    const std::vector<float> values = y.to_vector<float>();
    seen.insert(seen.end(), values.begin(), values.end());
  };
  for (const std::string& image : images) {
    inputs.push_back(serve_onnx::input_of(net->inputs().at(0), image));
    take(serve(inputs.back()));
  }
  const auto half = inputs.begin() + 9;
  take(serve(concat({inputs.begin(), half}, 0))), take(serve(concat({half, inputs.end()}, 0)));
  ASSERT_EQ(seen.size(), 2 * meant.size());
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_NEAR(seen[i], meant[i % meant.size()], tolerance) << images[i / 10 % 18] << " class " << i % 10;
}

// For the night: a ResNet-50 of 100 MB for each of 20 sizes.
TEST_F(ServedExamples, Serve) {
  if (!testing::is_nightly()) GTEST_SKIP() << "for the night";
  const std::string file = "examples/serve.npz";
  const std::vector<double> sides = recorded_array(file, "side"), classes = recorded_array(file, "class"),
                            meant = recorded_array(file, "meant"), tolerance = recorded_array(file, "tolerance");
  models::ResNet net = models::resnet50();
  set_initial_values(net);
  StateDict values = net.state_dict();
  values["fc.weight"] = values["fc.weight"] * 0x1p-10;
  save(values, folder_ / "weights.npz");
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const std::string said = output_of("serve weights.npz " + std::to_string(static_cast<int>(sides[i])));
    int best = -1;
    double probability = -1;
    ASSERT_EQ(std::sscanf(said.c_str(), "class %d of 1000, probability %lf", &best, &probability), 2) << said;
    EXPECT_EQ(best, classes[i]) << sides[i];
    EXPECT_NEAR(probability, meant[i], tolerance[i]) << sides[i];
  }
}

// Ten classes that differ in brightness.
void write_digits(const testing::TemporaryFolder& folder) {
  std::string images("\0\0\x08\x03\0\0\x06\xd6\0\0\0\x1c\0\0\0\x1c", 16), labels("\0\0\x08\x01\0\0\x06\xd6", 8);
  const std::vector<float> noise = uniform_of("train", 1750 * 784, 0, 56);
  for (std::size_t i = 0; i < 1750; ++i) {
    labels.push_back(static_cast<char>(i % 10));
    for (std::size_t p = 0; p < 784; ++p)
      images.push_back(static_cast<char>(i % 10 * 20 + static_cast<std::size_t>(noise[i * 784 + p])));
  }
  std::ofstream(folder / "train-images-idx3-ubyte", std::ios::binary) << images;
  std::ofstream(folder / "train-labels-idx1-ubyte", std::ios::binary) << labels;
}

// The program draws its own weights, and C++ leaves open which layer draws first: what comes of either is recorded.
TEST_F(ServedExamples, Train) {
  write_digits(folder_);
  output_of("train .");
  const StateDict values = load(folder_ / "net.npz");
  const auto off_by = [&](const std::string& order) {  // of the tolerance
    const std::vector<double> rows = recorded_array("examples/train.npz", order + ".rows"),
                              tolerance = recorded_array("examples/train.npz", order + ".tolerance");
    EXPECT_EQ(rows.size(), values.size() * 9);
    double worst = 0;
    std::size_t at = 0;
    for (const auto& [name, value] : values) {
      const Description row = described(name, value.to_vector<double>());
      const double* meant = &rows[9 * at];
      std::vector<double> off{(row.largest - meant[0]) / meant[0], (row.norm - meant[1]) / meant[1],
                              (row.along - meant[2]) / meant[1]};
      for (std::size_t s = 0; s < 6; ++s) off.push_back((row.samples[s] - meant[3 + s]) / meant[0]);
      for (const double o : off) worst = std::max(worst, std::abs(o) / tolerance[at]);
      ++at;
    }
    return worst;
  };
  const double worst = std::min(off_by("convolution_first"), off_by("linear_first"));
  EXPECT_LE(worst, 1) << "times the tolerance";
  std::printf("train: 21 steps, at worst %.2f of the tolerance\n", worst);
}

}  // namespace
}  // namespace fusejit::test
