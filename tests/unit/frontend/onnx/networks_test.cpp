// Networks that PyTorch exported: run, with another batch, frozen, trained and saved.
#include <gtest/gtest.h>

#include <cmath>

#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"
#include "tests/support/onnx_file.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::onnx {
namespace {

const std::string kFolder = FUSEJIT_SOURCE_DIR "/tests/reference/onnx/networks/";

// Of the largest element, or of a hundredth: PyTorch's sums are in another order, and some of them should be 0.
void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.shape().str(), want.shape().str()) << what;
  const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  double largest = 1e-2;
  for (const double v : b) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * largest) << what << ", element " << i;
}

class OnnxNetworks : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    set_options({.engine = GetParam()});
    try {
      (ones({2}) * 3).eval();
    } catch (const Error& error) {
      GTEST_SKIP() << "engine " << GetParam() << ": " << error.what();
    }
  }
  void TearDown() override { set_options({}); }
};

constexpr double kTolerance = 2e-5;

TEST_P(OnnxNetworks, ComputeWhatPyTorchDoes) {
  for (const char* name : {"attention", "classifier", "excited", "shuffled", "shuffled_pixels", "signal", "up"}) {
    SCOPED_TRACE(name);
    const StateDict recorded = fusejit::load(kFolder + name + ".npz");
    Model net = load(kFolder + name + ".onnx");
    expect_close(net(recorded.at("x")), recorded.at("y"), kTolerance, name);
    expect_close(net(recorded.at("more.x")), recorded.at("more.y"), kTolerance, "another batch");
    const Frozen serve = net.freeze();
    expect_close(serve(recorded.at("more.x")), recorded.at("more.y"), kTolerance, "frozen");
  }
}

TEST_P(OnnxNetworks, AreTrainedInTheirTrainingForm) {
  const StateDict recorded = fusejit::load(kFolder + "training.npz");
  Model net = load(kFolder + "training.onnx");
  net.eval();
  const std::vector<float> before = net.state_dict().at("1.running_mean").to_vector<float>();
  net(recorded.at("x")).eval();
  EXPECT_EQ(net.state_dict().at("1.running_mean").to_vector<float>(), before) << "in evaluation";
  net.train();
  std::vector<Tensor> parameters;
  std::vector<std::string> names;
  for (const auto& [name, parameter] : net.named_parameters()) {
    names.push_back(name);
    parameters.push_back(parameter.value());
  }
  EXPECT_EQ(names.size(), 6u);
  const Tensor y = net(recorded.at("x"));
  const std::vector<Tensor> gradients = grad(sum(y * recorded.at("weights")), parameters);
  expect_close(y, recorded.at("y"), kTolerance, "y");
  for (std::size_t i = 0; i < names.size(); ++i)
    expect_close(gradients[i], recorded.at("d_" + names[i]), 1e-4, "gradient of " + names[i]);
  for (const char* name : {"1.running_mean", "1.running_var"})
    expect_close(net.state_dict().at(name), recorded.at("after." + std::string(name)), kTolerance, name);
}

TEST_P(OnnxNetworks, AreFrozenWithoutBatchNorm) {
  const StateDict recorded = fusejit::load(kFolder + "training.npz");
  Model net = load(kFolder + "training.onnx");
  net.eval();
  const Frozen serve = net.freeze();
  const testing::TemporaryFolder folder;
  save_graph(folder / "plain.fj", {net(recorded.at("x"))});
  save_graph(folder / "frozen.fj", {serve(recorded.at("x"))});
  EXPECT_NE(testing::bytes_of(folder / "plain.fj").find("batch_norm"), std::string::npos);
  EXPECT_EQ(testing::bytes_of(folder / "frozen.fj").find("batch_norm"), std::string::npos);
  expect_close(serve(recorded.at("x")), net(recorded.at("x")), kTolerance, "y");
}

TEST_P(OnnxNetworks, LearnAndAreSaved) {
  const StateDict recorded = fusejit::load(kFolder + "excited.npz");
  Model net = load(kFolder + "excited.onnx");
  optim::SGD opt(net.parameters(), {.lr = 0.01});
  auto step = train_step(net, opt, [&](Tensor x, Tensor y) { return mse_loss(net(x), y); });
  const Tensor x = recorded.at("x"), y = zeros(x.shape());
  const float first = step(x, y).item<float>();
  for (int i = 0; i < 3; ++i) step(x, y);
  const float last = step(x, y).item<float>();
  EXPECT_LT(last, first);
  const testing::TemporaryFolder folder;
  net.save(folder / "values.npz");
  Model again = load(kFolder + "excited.onnx");
  again.load(folder / "values.npz");
  EXPECT_EQ(again(x).to_vector<float>(), net(x).to_vector<float>());
}

INSTANTIATE_TEST_SUITE_P(Engines, OnnxNetworks, ::testing::Values("graph_interpreter", "compiled"));

TEST(OnnxModel, KeepsTheNamesOfTheExporter) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : load(kFolder + "training.onnx").named_values()) names.push_back(name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"0.bias", "0.weight", "1.bias", "1.running_mean", "1.running_var",
                                             "1.weight", "5.bias", "5.weight"}));
}

TEST(OnnxModel, SaysWhichInputsItTakes) {
  Model net = load(kFolder + "classifier.onnx");
  ASSERT_EQ(net.inputs().size(), 1u);
  EXPECT_EQ(net.inputs()[0].name, "x");
  EXPECT_EQ(net.inputs()[0].shape, (std::vector<std::int64_t>{-1, 1, 8, 8}));
  EXPECT_EQ(net.results()[0].name, "y");
  const auto refusal = [&](const Tensor& x) { return testing::error_of([&] { net(x); }); };
  EXPECT_TRUE(refusal(ones({2, 1, 8, 9})).ends_with("input 'x' is f32[2,1,8,9], the model says f32[N,1,8,8]"));
  EXPECT_TRUE(refusal(ones({8, 8})).ends_with("input 'x' is f32[8,8], the model says f32[N,1,8,8]"));
  EXPECT_TRUE(refusal(ones({2, 1, 8, 8}, i64)).ends_with("input 'x' is i64[2,1,8,8], the model says f32[N,1,8,8]"));
  EXPECT_TRUE(testing::error_of([&] { net.run({}); }).ends_with("0 inputs are given, the model has 1"));
}

TEST(OnnxModel, IsConvertedToOtherFloats) {
  for (const char* name : {"attention", "classifier", "excited", "shuffled_pixels"}) {
    const StateDict recorded = fusejit::load(kFolder + name + ".npz");
    Model net = load(kFolder + name + ".onnx");
    net.to(bf16);
    const Tensor y = net(recorded.at("x").to(bf16));
    EXPECT_EQ(y.dtype(), bf16) << name;
    expect_close(y, recorded.at("y"), 0.05, name);  // eight bits a value, in several layers
  }
}

TEST(OnnxModel, DropsOutInTrainingWhereTheGraphSaysSo) {
  namespace file = testing::onnx_file;
  const testing::TemporaryFolder folder;
  const auto loaded = [&](bool has_training_form) {
    const std::string graph =
        file::node("Dropout", {"x", "ratio", "mode"}, {"y"}) +
        file::initializer("ratio", {}, file::kFloat, std::string("\0\0\0\x3f", 4)) +
        file::initializer("mode", {}, file::kBool, std::string(1, has_training_form ? '\1' : '\0')) +
        file::port(11, "x", {-1, 64}) + file::port(12, "y", {-1, 64});
    testing::write_bytes(folder / "model.onnx", file::model(graph));
    return load(folder / "model.onnx");
  };
  const auto kept = [](Model net) { return sum(ne(net(ones({16, 64})), 0)).item<std::int64_t>(); };
  Model net = loaded(true), plain = loaded(false);
  EXPECT_NEAR(static_cast<double>(kept(net)), 512, 100);
  EXPECT_EQ(kept(plain), 1024);
  net.eval();
  EXPECT_EQ(kept(net), 1024);
}

}  // namespace
}  // namespace fusejit::onnx
