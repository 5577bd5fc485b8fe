// Every layer against torch.nn, as tests/reference/layers has it: names of the state_dict, forward, gradients, running
// statistics. In f64, so that what differs is meaning; layers are called as const.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/api/engines.h"
#include "tests/support/composed_cases.h"

namespace fusejit {
namespace {

struct LayerCase {
  const char* name;
  std::function<std::shared_ptr<nn::Module>()> layer;
};

template <class M, class... Arguments>
LayerCase with(const char* name, Arguments... arguments) {
  return {name, [=] { return std::make_shared<M>(arguments...); }};
}

// What recording/layers.py makes, by its names.
const std::vector<LayerCase>& cases() {
  using nn::Conv2dOptions, nn::ConvTranspose2dOptions, nn::InstanceNorm2dOptions, nn::UpsampleOptions;
  const auto conv_in_mode = [](const char* name, const char* mode) {
    return with<nn::Conv2d>(name, 4, 3, Pair(3), Conv2dOptions{.padding = Padding(2, 1), .padding_mode = mode});
  };
  const InstanceNorm2dOptions tracked{.momentum = 0.25, .affine = true, .track_running_stats = true};
  const auto conv1d_in_mode = [](const char* name, const char* mode) {
    return with<nn::Conv1d>(name, 4, 3, 3, nn::Conv1dOptions{.padding = 2, .padding_mode = mode});
  };
  static const std::vector<LayerCase> all{
      with<nn::Conv1d>("conv1d", 4, 6, 3, nn::Conv1dOptions{.stride = 2, .padding = 1, .dilation = 2, .groups = 2}),
      conv1d_in_mode("conv1d_reflect", "reflect"),
      conv1d_in_mode("conv1d_replicate", "replicate"),
      conv1d_in_mode("conv1d_circular", "circular"),
      with<nn::Conv1d>("conv1d_reflect_same", 4, 3, 4,
                       nn::Conv1dOptions{.padding = "same", .bias = false, .padding_mode = "reflect"}),
      with<nn::Conv2d>("conv2d", 4, 6, Pair(3), Conv2dOptions{.stride = 2, .padding = 1, .groups = 2}),
      conv_in_mode("conv2d_reflect", "reflect"),
      conv_in_mode("conv2d_replicate", "replicate"),
      conv_in_mode("conv2d_circular", "circular"),
      with<nn::Conv2d>("conv2d_reflect_same", 4, 3, Pair(2, 4),
                       Conv2dOptions{.padding = "same", .padding_mode = "reflect"}),
      with<nn::ConvTranspose2d>("conv_transpose2d", 4, 6, Pair(3),
                                ConvTranspose2dOptions{.stride = 2, .padding = 1, .output_padding = 1}),
      with<nn::ConvTranspose2d>(
          "conv_transpose2d_groups", 4, 6, Pair(2, 3),
          ConvTranspose2dOptions{.stride = Pair(2, 1), .groups = 2, .bias = false, .dilation = 2}),
      with<nn::Linear>("linear", 6, 3),
      with<nn::BatchNorm2d>("batch_norm2d", 4),
      with<nn::BatchNorm2d>("batch_norm2d_eval", 4),
      with<nn::LayerNorm>("layer_norm", 6),
      with<nn::LayerNorm>("layer_norm_image", Dims{4, 5, 6}, nn::LayerNormOptions{.eps = 1e-3, .bias = false}),
      with<nn::LayerNorm>("layer_norm_plain", Dims{5, 6}, nn::LayerNormOptions{.elementwise_affine = false}),
      with<nn::GroupNorm>("group_norm", 2, 4),
      with<nn::GroupNorm>("group_norm_plain", 4, 4, nn::GroupNormOptions{.affine = false}),
      with<nn::InstanceNorm2d>("instance_norm2d", 4),
      with<nn::InstanceNorm2d>("instance_norm2d_affine", 4, InstanceNorm2dOptions{.eps = 1e-3, .affine = true}),
      with<nn::InstanceNorm2d>("instance_norm2d_tracked", 4, tracked),
      with<nn::InstanceNorm2d>("instance_norm2d_tracked_eval", 4, tracked),
      with<nn::ReLU>("relu"),
      with<nn::ReLU6>("relu6"),
      with<nn::LeakyReLU>("leaky_relu"),
      with<nn::PReLU>("prelu"),
      with<nn::PReLU>("prelu_channels", 4),
      with<nn::ELU>("elu"),
      with<nn::SELU>("selu"),
      with<nn::GELU>("gelu"),
      with<nn::GELU>("gelu_tanh", "tanh"),
      with<nn::SiLU>("silu"),
      with<nn::Mish>("mish"),
      with<nn::Softplus>("softplus"),
      with<nn::Softplus>("softplus_beta", 2, 3),
      with<nn::Sigmoid>("sigmoid"),
      with<nn::Hardsigmoid>("hardsigmoid"),
      with<nn::Hardswish>("hardswish"),
      with<nn::Tanh>("tanh"),
      with<nn::Softmax>("softmax"),
      with<nn::Softmax>("softmax_last", -1),
      with<nn::LogSoftmax>("log_softmax"),
      with<nn::Identity>("identity"),
      with<nn::MaxPool2d>("max_pool2d", 2),
      with<nn::AvgPool2d>("avg_pool2d", 2),
      with<nn::MaxPool2d>("max_pool2d_ceil", 2, PoolOptions{.ceil_mode = true}),
      with<nn::AvgPool2d>("avg_pool2d_ceil", 2, PoolOptions{.ceil_mode = true}),
      with<nn::AdaptiveMaxPool2d>("adaptive_max_pool2d", Pair(5, 3)),
      with<nn::PixelShuffle>("pixel_shuffle", 2),
      with<nn::PixelUnshuffle>("pixel_unshuffle", 2),
      with<nn::AdaptiveAvgPool2d>("adaptive_avg_pool2d", Pair(2, 3)),
      with<nn::Upsample>("upsample_scale", UpsampleOptions{.scale_factor = 2}),
      with<nn::Upsample>("upsample_size", UpsampleOptions{.size = Pair(7, 4)}),
      with<nn::Upsample>("upsample_bilinear",
                         UpsampleOptions{.scale_factor = nn::ScaleFactor(2, 1.5), .mode = "bilinear"}),
      with<nn::Upsample>("upsample_bilinear_size", UpsampleOptions{.size = Pair(7, 4), .mode = "bilinear"}),
      with<nn::Upsample>("upsample_corners",
                         UpsampleOptions{.scale_factor = 1.5, .mode = "bilinear", .align_corners = true}),
      with<nn::Embedding>("embedding", 7, 3),
      with<nn::Embedding>("embedding_padding", 7, 3, nn::EmbeddingOptions{.padding_idx = -2}),
      with<nn::MultiheadAttention>("attention_self", 8, 2),
      with<nn::MultiheadAttention>("attention", 8, 4),
      with<nn::MultiheadAttention>("attention_plain", 8, 1, nn::MultiheadAttentionOptions{.bias = false}),
      with<nn::MultiheadAttention>("attention_masked", 8, 4),
      with<nn::MultiheadAttention>("attention_masked_heads", 8, 4),
  };
  return all;
}

const std::filesystem::path kFolder = std::filesystem::path(FUSEJIT_SOURCE_DIR) / "tests/reference/layers";

// An f64 array beside the expected one. Sums of some hundred products of numbers below 4, in f64: 1e-11 is far more
// than their rounding and far less than any other meaning.
void expect_close(const Tensor& result, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(result.shape(), expected.shape()) << what;
  const std::vector<double> r = result.to_vector<double>(), e = expected.to_vector<double>();
  for (std::size_t i = 0; i < e.size(); ++i)
    ASSERT_NEAR(r[i], e[i], 1e-11 * std::max(1.0, std::abs(e[i]))) << what << ", element " << i;
}

// What the layer makes of the inputs `x`, or `query` and so on.
Tensor called(const nn::Module& layer, const StateDict& inputs) {
  if (!inputs.contains("query")) return layer(inputs.at("x"));
  const auto mask = [&](const char* name) { return inputs.contains(name) ? inputs.at(name) : Tensor(); };
  return dynamic_cast<const nn::MultiheadAttention&>(layer)(inputs.at("query"), inputs.at("key"), inputs.at("value"),
                                                            {mask("attn_mask"), mask("key_padding_mask")});
}

class Layers : public ::testing::TestWithParam<testing::EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::select_engine(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { set_options({}); }
};
INSTANTIATE_TEST_SUITE_P(Engines, Layers, ::testing::ValuesIn(testing::kEachKindOfEngine), testing::name_of);

void check_layer(const LayerCase& c) {
  SCOPED_TRACE(c.name);
  const StateDict values = load((kFolder / (std::string(c.name) + ".npz")).string());
  const std::shared_ptr<nn::Module> layer = c.layer();
  StateDict state;
  for (const auto& [name, value] : values) {
    if (name.starts_with("state.")) state.emplace(name.substr(6), value);
  }
  layer->load_state_dict(state);  // all of them and no other, in these shapes
  layer->to(f64);
  layer->train(!std::string(c.name).ends_with("_eval"));

  std::vector<Tensor> inputs;
  std::vector<std::string> names;
  const auto input = [&](const std::string& name) -> Tensor {
    Tensor x = values.at(name);
    if (!is_float(x.dtype())) return x;
    x = x.to(f64).eval();
    inputs.push_back(x.requires_grad());
    names.push_back("d_" + name);
    return x;
  };
  const auto mask = [&](const char* name) {
    if (!values.contains(name)) return Tensor();
    const Tensor& m = values.at(name);
    return m.to(is_float(m.dtype()) ? f64 : boolean);
  };
  StateDict given;
  for (const char* name : {"x", "query", "key", "value"})
    if (values.contains(name)) given.emplace(name, input(name));
  for (const char* name : {"attn_mask", "key_padding_mask"})
    if (const Tensor m = mask(name); m.defined()) given.emplace(name, m);
  const Tensor out = called(*layer, given);
  for (const auto& [name, parameter] : layer->named_parameters()) {
    inputs.push_back(parameter.value());
    names.push_back("grad." + name);
  }
  const std::vector<Tensor> gradients = grad({out}, {values.at("d_out").to(f64)}, inputs);
  expect_close(out, values.at("out"), "out");
  for (std::size_t i = 0; i < names.size(); ++i) expect_close(gradients[i], values.at(names[i]), names[i]);
  for (const auto& [name, value] : values) {
    if (name.starts_with("after.")) expect_close(layer->state_dict().at(name.substr(6)), value, name);
  }
}

TEST_P(Layers, AreThoseOfPyTorch) {
  for (const LayerCase& c : cases()) check_layer(c);
}

// Words to classes: a block of the layers that attend, trained and served.
struct Block : nn::ModuleOf<Block> {
  nn::Embedding words = add("words", nn::Embedding(11, 8, {.padding_idx = 0}));
  nn::MultiheadAttention attention = add("attention", nn::MultiheadAttention(8, 2, {.dropout = 0.1}));
  nn::LayerNorm norm = add("norm", nn::LayerNorm(8));
  nn::Sequential rest = add("rest", nn::Sequential(nn::Linear(8, 16), nn::GELU(), nn::Linear(16, 3)));
  Tensor forward(const Tensor& x) const override {
    const Tensor y = words(x);
    return rest(mean(norm(y + attention(y, y, y, {.key_padding_mask = eq(x, 0)})), {1}));
  }
};

TEST_P(Layers, OfABlockTrainTogether) {
  manual_seed(3);
  Block net;
  optim::Adam opt(net.parameters(), {.lr = 0.02});
  const Tensor x = from_host(std::vector<std::int64_t>{1, 2, 3, 0, 4, 5, 0, 0, 6, 7, 8, 9}, {3, 4});
  const Tensor classes = tensor<std::int64_t>({2, 0, 1});
  auto step = train_step(net, opt, [&](const Tensor& t) { return cross_entropy(net(t), classes); });
  const float first = step(x).item<float>();
  for (int i = 0; i < 15; ++i) step(x);
  EXPECT_LT(step(x).item<float>(), 0.3f * first);
  const std::vector<float> padding = slice(net.words.weight(), 0, 0, 1).to_vector<float>();
  EXPECT_EQ(padding, std::vector<float>(8, 0));
  net.eval();
  const std::vector<float> plain = net(x).to_vector<float>(), served = net.freeze()(x).to_vector<float>();
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], served[i], 1e-5);
}

// A recorded input in that dtype and layout. Rows that a layer of attention reads are the pixels of an image in it.
Tensor input_in_form(const Tensor& recorded, DType dtype, Layout layout) {
  if (!is_float(recorded.dtype()) || recorded.rank() != 3) return test::in_form(recorded, dtype, layout);
  const std::int64_t images = recorded.size(0), rows = recorded.size(1), channels = recorded.size(2);
  const Tensor image = reshape(transpose(recorded, 1, 2), {images, channels, rows, 1});
  return transpose(reshape(test::in_form(image, dtype, layout), {images, channels, rows}), 1, 2);
}

// In every float dtype and layout they compute what they compute in f64 of the same numbers, but for rounding: of each
// value once, and of what is between two ops of a layer.
TEST(LayersAre, OfEveryFloatAndLayout) {
  set_options({.engine = "graph_interpreter"});
  for (const LayerCase& c : cases()) {
    const StateDict values = load((kFolder / (std::string(c.name) + ".npz")).string());
    StateDict state;
    for (const auto& [name, value] : values)
      if (name.starts_with("state.")) state.emplace(name.substr(6), value);
    for (const DType dtype : {f32, f16, bf16}) {
      for (const Layout layout : {Layout::standard, Layout::nhwc}) {
        const std::string what =
            std::string(c.name) + " of " + std::string(name(dtype)) + (layout == Layout::nhwc ? ", nhwc" : "");
        const std::shared_ptr<nn::Module> layer = c.layer(), wide = c.layer();
        layer->load_state_dict(state);
        layer->to(dtype);
        wide->to(dtype);
        wide->load_state_dict(layer->state_dict());  // what is rounded
        wide->to(f64);
        for (nn::Module* m : {layer.get(), wide.get()}) m->train(!std::string(c.name).ends_with("_eval"));
        // Scores of hundreds would have a softmax amplify their rounding.
        const double factor = std::string(c.name).starts_with("attention") ? 0.125 : 1;
        StateDict inputs, exact_inputs;
        for (const char* name : {"x", "query", "key", "value", "attn_mask", "key_padding_mask"}) {
          if (!values.contains(name)) continue;
          const Tensor& recorded = values.at(name);
          const bool is_mask = std::string(name).ends_with("mask");
          Tensor x = input_in_form(is_float(recorded.dtype()) ? recorded * factor : recorded, dtype, layout);
          if (is_mask && !is_float(x.dtype())) x = x.to(boolean);
          inputs.emplace(name, x);
          exact_inputs.emplace(name, is_float(x.dtype()) ? x.to(f64) : x);
        }
        const Tensor y = called(*layer, inputs), exact = called(*wide, exact_inputs);
        EXPECT_EQ(y.dtype(), dtype) << what;
        ASSERT_EQ(y.shape(), values.at("out").shape()) << what;
        const std::vector<double> got = y.to_vector<double>(), want = exact.to_vector<double>();
        double largest = 0;
        for (const double v : want) largest = std::max(largest, std::abs(v));
        const double unit = dtype == f32 ? 0x1p-24 : dtype == f16 ? 0x1p-11 : 0x1p-8;
        for (std::size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(got[i], want[i], (dtype == f32 ? 40 : 4) * unit * largest) << what << ", element " << i;
      }
    }
  }
  set_options({});
}

TEST(LayersAre, AllThatWasRecorded) {
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) files += file.path().extension() == ".npz";
  EXPECT_EQ(files, cases().size());
}

}  // namespace
}  // namespace fusejit
