// Every layer against torch.nn, as tests/reference/layers has it: names of the state_dict, forward, gradients, running
// statistics. In f64, so that what differs is meaning; layers are called as const.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/api/engines.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;

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
  static const std::vector<LayerCase> all{
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
  Tensor out;
  if (values.contains("query")) {
    const Tensor query = input("query"), key = input("key"), value = input("value");
    out = dynamic_cast<const nn::MultiheadAttention&>(*layer)(query, key, value,
                                                              {mask("attn_mask"), mask("key_padding_mask")});
  } else {
    out = std::as_const(*layer)(input("x"));
  }
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

TEST(LayersAre, AllThatWasRecorded) {
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) files += file.path().extension() == ".npz";
  EXPECT_EQ(files, cases().size());
}

// ---- what they begin with -------------------------------------------------------------------------------------------

class NewLayers : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({.engine = "graph_interpreter"});
    manual_seed(5);
  }
  void TearDown() override { set_options({}); }
};

float largest(const Tensor& t) {
  float most = 0;
  for (const float v : t.to_vector<float>()) most = std::max(most, std::abs(v));
  return most;
}

TEST_F(NewLayers, BeginAsPyTorchs) {
  // PyTorch's fan of a transposed convolution is that of its weight [in,out/groups,R,S]: out/groups*R*S.
  const nn::ConvTranspose2d up(64, 32, 3, {.groups = 2});
  const float bound = 1 / std::sqrt(16.f * 9);
  EXPECT_LE(largest(up.weight()), bound);
  EXPECT_GT(largest(up.weight()), 0.99f * bound);
  EXPECT_LE(largest(up.state_dict().at("bias")), bound);

  const nn::Embedding table(200, 50, {.padding_idx = 3});
  const std::vector<float> rows = table.weight().value().to_vector<float>();
  double sum = 0, squares = 0;
  for (const float v : rows) sum += v, squares += static_cast<double>(v) * v;
  EXPECT_NEAR(sum / 9950, 0, 0.05);  // five deviations of a mean
  EXPECT_NEAR(squares / 9950, 1, 0.08);
  EXPECT_EQ(std::vector<float>(rows.begin() + 150, rows.begin() + 200), std::vector<float>(50, 0));

  const StateDict attention = nn::MultiheadAttention(64, 4).state_dict();
  const float xavier = std::sqrt(6.f / (64 + 192));
  EXPECT_LE(largest(attention.at("in_proj_weight")), xavier);
  EXPECT_GT(largest(attention.at("in_proj_weight")), 0.99f * xavier);
  EXPECT_EQ(largest(attention.at("in_proj_bias")), 0);
  EXPECT_EQ(largest(attention.at("out_proj.bias")), 0);
  EXPECT_LE(largest(attention.at("out_proj.weight")), 1 / 8.f);
  EXPECT_EQ(nn::PReLU(2, 0.5).weight().value().to_vector<float>(), (std::vector<float>{0.5, 0.5}));
}

TEST_F(NewLayers, DropWholeChannels) {
  nn::Dropout2d layer(0.25);
  Tensor x = rand({16, 8, 2, 3}) + 1;
  x.requires_grad();
  const Tensor y = layer(x);
  const std::vector<float> kept = grad(sum(y), {x})[0].to_vector<float>(), in = x.to_vector<float>(),
                           out = y.to_vector<float>();
  int dropped = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_FLOAT_EQ(out[i], in[i] * kept[i]);
    EXPECT_EQ(kept[i], kept[i - i % 6]) << "a channel as a whole";
    EXPECT_TRUE(kept[i] == 0 || std::abs(kept[i] - 1 / 0.75f) < 1e-6f) << kept[i];
    dropped += kept[i] == 0;
  }
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, 6 * 64);  // 32 of 128 expected
  layer.eval();
  EXPECT_EQ(layer(x).to_vector<float>(), in);
  EXPECT_EQ(largest(nn::Dropout2d(1)(x)), 0);
}

TEST_F(NewLayers, RowsThatAreNone) {
  const nn::Embedding table(3, 2);
  const std::vector<float> rows = table(tensor<std::int64_t>({3, -1, 2})).to_vector<float>();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(rows[static_cast<std::size_t>(i)])) << i;
  EXPECT_FALSE(std::isnan(rows[4]));
  EXPECT_EQ(table(zeros({0, 4}, i32)).shape(), (Shape{0, 4, 2}));
}

TEST_F(NewLayers, RefuseWithOneSentence) {
  const Tensor x = ones({1, 3, 4, 5});
  const struct {
    std::function<void()> action;
    std::string sentence;
  } refusals[] = {
      {[&] { nn::Conv2d(3, 2, 3, {.padding_mode = "mirror"}); },
       "Conv2d: padding_mode 'mirror' is not known (zeros, reflect, replicate, circular)"},
      {[&] { nn::Conv2d(3, 2, 3, {.padding = 4, .padding_mode = "reflect"})(x); },
       "Conv2d: reflect padding of 4 and 4 cells does not fit an extent of 4 (x: f32[1,3,4,5])"},
      {[&] { nn::Conv2d(3, 2, 3, {.padding = 5, .padding_mode = "circular"})(x); }, "does not fit an extent of 4"},
      {[&] { nn::Conv2d(3, 2, 3, {.stride = 2, .padding = "same", .padding_mode = "reflect"})(x); }, "needs stride 1"},
      {[&] { nn::ConvTranspose2d(4, 2, 3)(x); }, "ConvTranspose2d: x must be [N,4,H,W] (x: f32[1,3,4,5])"},
      {[&] { nn::ConvTranspose2d(4, 2, 3, {.output_padding = 1}); },
       "output_padding [1,1] must be less than the stride [1,1]"},
      {[&] { nn::ConvTranspose2d(3, 2, 3, {.groups = 2}); }, "do not divide into 2 groups"},
      {[&] { nn::LayerNorm(4)(x); }, "layer_norm"},
      {[&] { nn::LayerNorm(Dims{}); }, "normalized_shape has no axes"},
      {[&] { nn::LayerNorm(0); }, "must be at least 1"},
      {[&] { nn::GroupNorm(2, 3); }, "GroupNorm: 3 channels do not divide into 2 groups"},
      {[&] { nn::GroupNorm(2, 4)(x); }, "GroupNorm: x must be [N,4,...] (x: f32[1,3,4,5])"},
      {[&] { nn::InstanceNorm2d(4)(x); }, "InstanceNorm2d: x must be [N,4,H,W] (x: f32[1,3,4,5])"},
      {[&] {
         nn::InstanceNorm2d(3)(ones({2, 3, 1, 1}));
       },
       "instance_norm"},
      {[&] { nn::PReLU(4)(x); }, "PReLU: x must be f32 of 4 channels along axis 1 (x: f32[1,3,4,5], weight: f32[4])"},
      {[&] { nn::PReLU(3)(x.to(bf16)); }, "PReLU: x must be f32"},
      {[&] { nn::PReLU(0); }, "PReLU: 0 parameters"},
      {[&] { nn::GELU("fast")(x); }, "gelu"},
      {[&] { nn::Dropout2d(-1); }, "Dropout2d: p is -1"},
      {[&] {
         nn::Dropout2d()(ones({3, 4}));
       },
       "Dropout2d: x must be a float [N,C,H,W] (x: f32[3,4])"},
      {[&] { nn::Upsample({}); }, "either size or scale_factor must be given"},
      {[&] { nn::Upsample({.size = 2, .scale_factor = 2}); }, "not both"},
      {[&] { nn::Upsample({.size = 2, .mode = "bicubic"}); }, "mode 'bicubic' is not known (nearest, bilinear)"},
      {[&] { nn::Upsample({.size = 2, .align_corners = true}); }, "for mode bilinear only"},
      {[&] { nn::Upsample({.scale_factor = 1.5})(x); },
       "Upsample: 1.5 times an extent of 5 is no whole number, give the size itself (x: f32[1,3,4,5])"},
      {[&] { nn::Upsample({.scale_factor = -1}); }, "must be finite and above 0"},
      {[&] { nn::Embedding(3, 2)(x); }, "Embedding: x must hold i32 or i64 numbers of rows (x: f32[1,3,4,5])"},
      {[&] { nn::Embedding(3, 2, {.padding_idx = 3}); }, "padding_idx 3 is no row of 3"},
      {[&] { nn::MultiheadAttention(6, 4); }, "6 features do not divide into 4 heads"},
      {[&] { nn::MultiheadAttention(4, 2)(x); }, "query must be [N,L,4]"},
      {[&] {
         nn::MultiheadAttention(4, 2)(ones({2, 3, 4}), ones({2, 5, 4}), ones({2, 6, 4}));
       },
       "key and value [N,S,4] (query: f32[2,3,4], key: f32[2,5,4], value: f32[2,6,4])"},
      {[&] {
         nn::MultiheadAttention(4, 2)(ones({2, 3, 4}), ones({2, 5, 4}), ones({2, 5, 4}), {.attn_mask = ones({3, 3})});
       },
       "attn_mask must be bool or float [3,5] or [4,3,5] (attn_mask: f32[3,3])"},
  };
  for (const auto& refusal : refusals) {
    const std::string error = error_of(refusal.action);
    EXPECT_NE(error.find(refusal.sentence), std::string::npos) << refusal.sentence << "\n" << error;
  }
}

// A call with several inputs is a call like any other: its errors have a place.
TEST_F(NewLayers, AttentionHasAPlace) {
  struct Block : nn::ModuleOf<Block> {
    nn::MultiheadAttention attention = add("attention", nn::MultiheadAttention(4, 2));
    Tensor forward(const Tensor& x) const override { return attention(x, ones({1, 2, 3}), x); }
  };
  const nn::Sequential net(nn::Identity{}, Block());
  EXPECT_TRUE(error_of([&] { net(ones({1, 2, 4})); }).starts_with("in 1.attention: MultiheadAttention: "));
}

}  // namespace
}  // namespace fusejit
