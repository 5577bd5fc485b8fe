// The examples in the public headers on modules and layers; api/header_examples_test.cpp holds them together.
#include "tests/api/header_examples.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/cache_folder.h"

namespace fusejit::test {
namespace {

namespace fj = fusejit;

struct Net : fj::nn::ModuleOf<Net> {
  fj::nn::Conv2d conv = add("conv", fj::nn::Conv2d(1, 8, 3));
  fj::nn::Linear head = add("head", fj::nn::Linear(8 * 26 * 26, 10));
  fj::Tensor forward(const fj::Tensor& x) const override { return head(fj::flatten(fj::relu(conv(x)), 1)); }
};

TEST_F(HeaderExamples, Module) {
  Net net;
  EXPECT_EQ(net(fj::ones({2, 1, 28, 28})).shape(), (fj::Shape{2, 10}));
  EXPECT_EQ(net.named_parameters().front().first, "conv.weight");
}

TEST_F(HeaderExamples, Unloaded) {
  fj::nn::Linear head(512, 10);
  fj::nn::Unloaded left = head.load_state_dict({{"weight", fj::ones({1000, 512})}}, {.strict = false});
  std::cout << left.misshapen[0].given.shape[0] << ' ' << left.missing[0];  // 1000 bias
  EXPECT_EQ(printed_.str(), "1000 bias");
}

TEST_F(HeaderExamples, LoadConverts) {
  const fusejit::test::CacheFolder folder;
  const std::string path = folder.path("weights.npz");
  fj::nn::Linear(512, 10).save(path);
  fj::nn::Linear half(512, 10);
  half.to(fj::bf16);
  fj::nn::Unloaded report = half.load(path, {.convert = true});
  std::cout << report.converted[0].name << ' ' << report.converted[0].given.str();  // weight f32[10,512]
  EXPECT_EQ(printed_.str(), "weight f32[10,512]");
}

TEST_F(HeaderExamples, Layers) {
  fj::nn::Sequential net(fj::nn::Conv2d(1, 8, 3, {.padding = "same"}), fj::nn::ReLU(), fj::nn::Flatten(),
                         fj::nn::Linear(8 * 4 * 4, 10));
  fj::Tensor logits = net(fj::ones({2, 1, 4, 4}));
  EXPECT_EQ(logits.shape(), (fj::Shape{2, 10}));
}

TEST_F(HeaderExamples, NamedLayers) {
  fj::nn::Sequential head;
  head.push_back("norm", fj::nn::BatchNorm2d(8)).push_back(fj::nn::ReLU()).push_back(fj::nn::Conv2d(8, 4, 1));
  bool found = head.state_dict().contains("2.weight");  // and "norm.weight"
  EXPECT_TRUE(found && head.state_dict().contains("norm.weight"));
  EXPECT_THROW(head.push_back("norm", fj::nn::ReLU()), fj::UserError);
  EXPECT_EQ(head(fj::ones({2, 8, 3, 3})).shape(), (fj::Shape{2, 4, 3, 3}));
}

TEST_F(HeaderExamples, Functions) {
  fj::nn::Sequential net(fj::nn::Conv2d(1, 8, 3), fj::relu, [](const fj::Tensor& x) { return x.mean({2, 3}); });
  EXPECT_EQ(net(fj::ones({2, 1, 5, 5})).shape(), (fj::Shape{2, 8}));
}

TEST_F(HeaderExamples, Lists) {
  fj::nn::ModuleList layers(fj::nn::Linear(4, 4), fj::nn::Linear(4, 4));
  fj::Tensor y = fj::ones({2, 4});
  for (fj::nn::Module& layer : layers) y = fj::relu(layer(y)) + y;
  EXPECT_EQ(y.shape(), (fj::Shape{2, 4}));
}

TEST_F(HeaderExamples, Dictionaries) {
  fj::nn::ModuleDict heads({{"boxes", fj::nn::Linear(8, 4)}, {"classes", fj::nn::Linear(8, 10)}});
  fj::Tensor boxes = heads["boxes"](fj::ones({2, 8}));  // [2,4]
  for (const auto& [name, head] : heads) std::cout << name << (*head)(fj::ones({2, 8})).shape().str() << ' ';
  EXPECT_EQ(printed_.str(), "boxes[2,4] classes[2,10] ");
  EXPECT_EQ(boxes.shape(), (fj::Shape{2, 4}));
}

TEST_F(HeaderExamples, Convolutions) {
  fj::nn::Conv2d conv(3, 8, 3, {.padding = "same", .padding_mode = "reflect"});
  EXPECT_EQ(conv(fj::ones({1, 3, 5, 6})).shape(), (fj::Shape{1, 8, 5, 6}));
  fj::nn::ConvTranspose2d up(8, 4, 2, {.stride = 2});  // twice the size
  EXPECT_EQ(up(fj::ones({1, 8, 5, 6})).shape(), (fj::Shape{1, 4, 10, 12}));
  fj::nn::Upsample twice({.scale_factor = 2, .mode = "bilinear"});
  EXPECT_EQ(twice(fj::ones({1, 8, 5, 6})).shape(), (fj::Shape{1, 8, 10, 12}));
}

TEST_F(HeaderExamples, Norms) {
  fj::nn::LayerNorm norm(64);          // over the last axis
  fj::nn::LayerNorm image({8, 4, 4});  // over the last three
  fj::nn::Sequential mlp(fj::nn::Linear(8, 16), fj::nn::BatchNorm1d(16), fj::nn::ReLU());
  EXPECT_EQ(mlp(fj::ones({2, 8})).shape(), (fj::Shape{2, 16}));
  EXPECT_EQ(norm(fj::ones({2, 64})).shape(), (fj::Shape{2, 64}));
  EXPECT_EQ(image(fj::ones({2, 8, 4, 4})).shape(), (fj::Shape{2, 8, 4, 4}));
}

TEST_F(HeaderExamples, SequencesAndShuffles) {
  fj::nn::Conv1d conv(4, 8, 3, {.padding = 1});
  fj::Tensor y = conv(fj::ones({2, 4, 10}));  // [2,8,10]
  EXPECT_EQ(y.shape(), (fj::Shape{2, 8, 10}));
  fj::nn::Sequential larger(fj::nn::Conv2d(3, 12, 3, {.padding = 1}), fj::nn::PixelShuffle(2));
  EXPECT_EQ(larger(fj::ones({1, 3, 4, 5})).shape(), (fj::Shape{1, 3, 8, 10}));
}

TEST_F(HeaderExamples, Printing) {
  fj::nn::Sequential net(fj::nn::Linear(4, 2), fj::nn::ReLU());
  std::cout << net;
  EXPECT_EQ(printed_.str(), "Sequential(\n  (0): Linear(weight: f32[2,4], bias: f32[2])\n  (1): ReLU()\n)");
}

TEST_F(HeaderExamples, Embedding) {
  fj::nn::Embedding words(1000, 16, {.padding_idx = 0});
  fj::Tensor rows = words(fj::tensor<std::int64_t>({3, 1, 4}));  // [3,16]
  EXPECT_EQ(rows.shape(), (fj::Shape{3, 16}));
}

TEST_F(HeaderExamples, Attention) {
  fj::nn::MultiheadAttention attention(32, 4);
  fj::Tensor y = attention(fj::ones({2, 10, 32}));                              // to itself
  fj::Tensor z = attention(y, fj::ones({2, 5, 32}), fj::ones({2, 5, 32}), {});  // [2,10,32]
  EXPECT_EQ(y.shape(), (fj::Shape{2, 10, 32}));
  EXPECT_EQ(z.shape(), (fj::Shape{2, 10, 32}));
}

TEST_F(HeaderExamples, Init) {
  fj::nn::Conv2d conv(3, 8, 3);
  fj::nn::init::kaiming_normal_(conv.weight(), {.mode = "fan_out", .nonlinearity = "relu"});
  EXPECT_EQ(conv.weight().value().shape(), (fj::Shape{8, 3, 3, 3}));
}

}  // namespace
}  // namespace fusejit::test
