// Files of weights and models that PyTorch wrote of torchvision's networks
// (tests/reference/recording/small_networks.py, whole_networks.py): read, saved, and read again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "frontend/models/named.h"
#include "fusejit/fusejit.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::onnx {
namespace {

const std::string kWeightsFolder = FUSEJIT_SOURCE_DIR "/tests/reference/torchvision/";

// The largest difference, of the largest element.
double off_by(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(got.shape(), want.shape());
  if (got.shape() != want.shape()) return HUGE_VAL;
  const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  double largest = 0, most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    most = a[i] == a[i] ? std::max(most, std::abs(a[i] - b[i])) : HUGE_VAL;
  }
  return most / largest;
}

// All of `want` but what PyTorch alone counts.
void expect_same_values(const StateDict& got, StateDict want, const std::string& what) {
  std::erase_if(want, [](const auto& named) { return named.first.ends_with("num_batches_tracked"); });
  ASSERT_EQ(got.size(), want.size()) << what;
  for (const auto& [name, value] : want) {
    ASSERT_TRUE(got.contains(name)) << what << ": " << name;
    EXPECT_EQ(got.at(name).shape(), value.shape()) << what << ": " << name;
    EXPECT_EQ(got.at(name).to_vector<float>(), value.to_vector<float>()) << what << ": " << name;
  }
}

class TorchWeights : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_options({.engine = "graph_interpreter"}); }
  void TearDown() override { set_options({}); }
};

constexpr double kWeightsTolerance = 1e-5;

// The model has other values of the same names.
TEST_P(TorchWeights, AreThoseOfTheExportedModel) {
  const std::string stem = kWeightsFolder + GetParam();
  const StateDict recorded = fusejit::load(stem + ".npz");
  const testing::TemporaryFolder folder;
  for (const std::string ending : {".npz", ".safetensors"}) {
    const std::string weights = stem + ".weights" + ending;
    Model net = load(stem + ".onnx");
    EXPECT_GT(off_by(net(recorded.at("x")), recorded.at("y")), 0.01);
    EXPECT_TRUE(net.load(weights).empty());
    EXPECT_LT(off_by(net(recorded.at("x")), recorded.at("y")), kWeightsTolerance) << ending;
    EXPECT_LT(off_by(net.freeze()(recorded.at("x")), recorded.at("y")), kWeightsTolerance) << ending;
    for (const std::string again : {"again.npz", "again.safetensors"}) {
      net.save(folder / again);
      expect_same_values(fusejit::load(folder / again), fusejit::load(weights), ending + " to " + again);
    }
  }
  EXPECT_EQ(load_metadata(stem + ".weights.safetensors").at("format"), "pt");
}

INSTANTIATE_TEST_SUITE_P(Small, TorchWeights,
                         ::testing::Values("resnet", "mobilenet_v2", "vgg", "densenet", "squeezenet", "unet",
                                           "unet_bilinear"),
                         [](const auto& info) { return std::string(info.param); });

TEST(TorchWeightsOf, TheBuiltInUNets) {
  set_options({.engine = "graph_interpreter"});
  const std::pair<std::string, models::UNet> nets[] = {
      {"unet", models::unet(5, {.width = 4, .depth = 2})},
      {"unet_bilinear", models::unet(5, {.channels = 1, .width = 4, .depth = 1, .up = models::UNetUp::bilinear})}};
  for (auto [name, net] : nets) {
    const StateDict recorded = fusejit::load(kWeightsFolder + name + ".npz");
    for (const std::string ending : {".npz", ".safetensors"}) {
      EXPECT_TRUE(net.load(kWeightsFolder + name + ".weights" + ending).empty());
      EXPECT_LT(off_by(net.eval()(recorded.at("x")), recorded.at("y")), kWeightsTolerance) << name << ending;
    }
  }
  set_options({});
}

// Whatever order the elements have in memory, and whoever shares it.
TEST(TorchWeightsOf, ViewsAndSharedMemoryAreSavedRowMajor) {
  set_options({.engine = "graph_interpreter"});
  const Tensor x = arange(24, f32).reshape({2, 3, 2, 2}).eval();
  static const std::vector<float> kLast = x.permute({0, 2, 3, 1}).to_vector<float>();
  const StateDict values = {{"x", x},
                            {"again", x},
                            {"turned", x.permute({3, 1, 0, 2})},
                            {"part", slice(x, 1, 1, 3)},
                            {"repeated", expand(slice(x, 0, 0, 1), {4, 3, 2, 2})},
                            {"channels_last", borrow(kLast.data(), {2, 3, 2, 2}, {12, 1, 6, 3}, [] {})}};
  const testing::TemporaryFolder folder;
  for (const std::string file : {"a.npz", "a.safetensors"}) {
    fusejit::save(values, folder / file);
    expect_same_values(fusejit::load(folder / file), values, file);
    EXPECT_EQ(fusejit::load(folder / file).at("channels_last").to_vector<float>(), x.to_vector<float>()) << file;
  }
  set_options({});
}

// Made by tests/reference/make_onnx.py --large FOLDER: FUSEJIT_ONNX_MODELS is that folder. Each prints its row of the
// table in docs/interop.md.
class OnnxWholeNetworks : public ::testing::TestWithParam<const char*> {};

TEST_P(OnnxWholeNetworks, AreWithinTheBound) {
  const char* folder = std::getenv("FUSEJIT_ONNX_MODELS");
  if (!folder) GTEST_SKIP() << "FUSEJIT_ONNX_MODELS names no folder with models of make_onnx.py --large";
  const std::string name = GetParam(), stem = std::string(folder) + "/" + name;
  const StateDict recorded = fusejit::load(stem + ".npz");
  const Tensor &x = recorded.at("x"), &y = recorded.at("y");
  double frozen = 0;
  std::string row = "| " + name + " |";
  const auto column = [&](const nn::Module& net) {
    const double off = off_by(net(x), y);
    EXPECT_LT(off, 1e-4) << row;
    frozen = std::max(frozen, off_by(net.freeze()(x), y));
    EXPECT_LT(frozen, 1e-4) << row;
    char text[20];
    std::snprintf(text, sizeof text, " %.1e |", off);
    row += text;
  };
  for (const char* ending : {".npz", ".safetensors"}) {
    const std::shared_ptr<nn::Module> net = models::model_named(name).make();
    EXPECT_TRUE(net->load(stem + ".weights" + ending).empty());
    column(net->eval());
  }
  column(load(stem + ".onnx"));
  column(load(stem + ".program.onnx"));
  Model net = load(stem + ".names.onnx");
  column(net);
  for (const auto& [key, value] : net.named_values()) value.set(zeros(value.value().shape()));
  EXPECT_TRUE(net.load(stem + ".weights.safetensors").empty());
  column(net);
  std::printf("%s %.1e |\n", row.c_str(), frozen);
}

INSTANTIATE_TEST_SUITE_P(Torchvision, OnnxWholeNetworks,
                         ::testing::Values("resnet50", "mobilenet_v2", "vgg16", "densenet121", "squeezenet1_0", "unet"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusejit::onnx
