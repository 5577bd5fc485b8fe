// What layers begin with, what dropouts leave, and what layers refuse.
#include <gtest/gtest.h>

#include <cmath>

#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;

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

// As BatchNorm2d of images of one column, which is PyTorch's (layers_test.cpp).
TEST_F(NewLayers, BatchNorm1d) {
  for (const Shape& shape : {Shape{6, 4}, Shape{3, 4, 5}}) {
    SCOPED_TRACE(shape.str());
    const std::int64_t length = shape.rank() == 3 ? shape[2] : 1;
    const Tensor x = randn(shape).eval(), images = reshape(x, {shape[0], 4, length, 1});
    const nn::BatchNorm1d norm(4);
    const nn::BatchNorm2d of_images(4);
    for (const bool training : {true, false}) {
      nn::BatchNorm1d(norm).train(training);
      nn::BatchNorm2d(of_images).train(training);
      const Tensor y = norm(x);
      EXPECT_EQ(y.to_vector<float>(), of_images(images).to_vector<float>());
      EXPECT_EQ(y.shape(), shape);
    }
    for (const auto& [name, value] : of_images.state_dict())
      EXPECT_EQ(norm.state_dict().at(name).to_vector<float>(), value.to_vector<float>()) << name;
    EXPECT_NE(norm.state_dict().at("running_mean").to_vector<float>(), std::vector<float>(4, 0));
  }
}

TEST_F(NewLayers, RowsThatAreNone) {
  const nn::Embedding table(3, 2);
  const std::vector<float> rows = table(tensor<std::int64_t>({3, -1, 2})).to_vector<float>();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(rows[static_cast<std::size_t>(i)])) << i;
  EXPECT_FALSE(std::isnan(rows[4]));
  EXPECT_EQ(table(zeros({0, 4}, i32)).shape(), (Shape{0, 4, 2}));
}

TEST_F(NewLayers, BatchNorm1dRefusesImages) {
  try {
    nn::BatchNorm1d(4)(ones({2, 4, 3, 3}));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "BatchNorm1d: x must be [N,C] or [N,C,L] (x: f32[2,4,3,3])");
  }
  EXPECT_THROW(nn::BatchNorm1d(4)(ones({2, 3})), UserError);
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
      {[&] {
         nn::BatchNorm2d(3)(ones({2, 3}));
       },
       "BatchNorm2d: x must be [N,C,H,W]; for [N,C] and [N,C,L] there is BatchNorm1d (x: f32[2,3])"},
      {[&] {
         nn::BatchNorm2d(3, {.affine = false, .track_running_stats = false})(ones({2, 3, 4}));
       },
       "there is BatchNorm1d (x: f32[2,3,4])"},
      {[&] { nn::Conv1d(4, 6, 0); }, "Conv1d: the kernel [0] must have at least one cell"},
      {[&] { nn::Conv2d(4, 6, Pair(3, 0)); }, "Conv2d: the kernel [3,0] must have at least one cell"},
      {[&] { nn::Conv1d(4, 6, 3)(x); }, "conv1d: x and w must have rank 3 (x: f32[1,3,4,5], w: f32[6,4,3])"},
      {[&] { nn::Conv1d(4, 6, 3, {.padding = 1, .padding_mode = "circular"})(x); },
       "Conv1d: x must be [N,C,L] (x: f32[1,3,4,5])"},
      {[&] { nn::Conv1d(4, 6, 3, {.padding_mode = "mirror"}); }, "Conv1d: padding_mode 'mirror' is not known"},
      {[&] { nn::Embedding(3, 2)(x); }, "Embedding: x must hold ints, numbers of rows (x: f32[1,3,4,5])"},
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

// Of classes of one's own, with a parameter beside the children, after to(), and of what was added to a child later.
TEST_F(NewLayers, ArePrintedAsATree) {
  struct Scaled : nn::ModuleOf<Scaled> {
    nn::Parameter scale = parameter("scale", ones({2}));
    nn::Sequential body = add("body", nn::Sequential(nn::Identity()));
    Tensor forward(const Tensor& x) const override { return body(x) * scale.value(); }
  };
  Scaled net;
  net.body.push_back("norm", nn::BatchNorm1d(2)).push_back(nn::ModuleList(nn::Flatten()));
  net.to(f16);
  EXPECT_EQ(net.str(),
            "Scaled(scale: f16[2]\n"
            "  (body): Sequential(\n"
            "    (0): Identity()\n"
            "    (norm): BatchNorm1d(weight: f16[2], bias: f16[2], running_mean: f16[2], running_var: f16[2])\n"
            "    (2): ModuleList(\n"
            "      (0): Flatten()\n"
            "    )\n"
            "  )\n"
            ")");
  EXPECT_EQ(models::squeezenet1_1(2).str().substr(0, 67),
            "SqueezeNet(\n  (features): Sequential(\n    (0): Conv2d(weight: f32[6");
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
