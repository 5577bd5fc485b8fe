// The two programs of the README, at toy size on files of their own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "fusejit/fusejit.h"

namespace {

namespace fj = fusejit;

// On the interpreter and on generated code.
class Examples : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    fj::set_options({.engine = GetParam()});
    try {
      (fj::ones({2}) * 3).eval();
    } catch (const fj::Error& error) {
      GTEST_SKIP() << "engine " << GetParam() << ": " << error.what();
    }
    fj::set_options({.engine = GetParam()});  // counts from zero
    directory_ = std::filesystem::temp_directory_path() / ("examples_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    // Two kinds of 8 x 8 images: bright above, bright below.
    std::string images("\0\0\x08\x03\0\0\0\x20\0\0\0\x08\0\0\0\x08", 16), labels("\0\0\x08\x01\0\0\0\x20", 8);
    for (int i = 0; i < 32; ++i) {
      labels.push_back(static_cast<char>(i % 2));
      for (int p = 0; p < 64; ++p) images.push_back(static_cast<char>((p < 32) == (i % 2 == 0) ? 200 + i : p % 7));
    }
    std::ofstream(path("train-images-idx3-ubyte"), std::ios::binary) << images;
    std::ofstream(path("train-labels-idx1-ubyte"), std::ios::binary) << labels;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::filesystem::path directory_;
};

TEST_P(Examples, Training) {
  const std::string dir = directory_.string();
  fj::manual_seed(1);
  fj::nn::Sequential net(fj::nn::Conv2d(1, 4, 3), fj::nn::BatchNorm2d(4), fj::nn::ReLU(), fj::nn::MaxPool2d(2),
                         fj::nn::Flatten(), fj::nn::Linear(36, 10));
  fj::optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::cross_entropy(net(x), y); });
  float first = 0, last = 0;
  for (int epoch = 0; epoch < 3; ++epoch, opt.set_lr(opt.lr() * 0.7)) {
    for (auto [x, y] : fj::data::idx(dir, {.batch = 8, .shuffle = true})) {
      fj::Tensor loss = step(x, y);
      last = loss.item<float>();
      if (step.count() == 1) first = last;
    }
  }
  fj::save(net.state_dict(), path("net.npz"));
  EXPECT_EQ(step.count(), 12);
  EXPECT_GT(first, 1);
  EXPECT_LT(last, 0.1f * first);
  EXPECT_EQ(fj::stats().traces, 1) << "recorded each call, planned once";

  fj::manual_seed(2);
  fj::nn::Sequential again(fj::nn::Conv2d(1, 4, 3), fj::nn::BatchNorm2d(4), fj::nn::ReLU(), fj::nn::MaxPool2d(2),
                           fj::nn::Flatten(), fj::nn::Linear(36, 10));
  again.load(path("net.npz"));
  net.eval(), again.eval();
  const auto [x, y] = *fj::data::idx(dir, {.batch = 32}).begin();
  EXPECT_EQ(net(x).to_vector<float>(), again(x).to_vector<float>());
  EXPECT_EQ(fj::argmax(net(x), 1).to_vector<std::int64_t>(), y.to_vector<std::int64_t>());
}

TEST_P(Examples, Serving) {
  fj::manual_seed(3);
  auto net = fj::models::ResNet({1, 1, 1, 1}, 7);
  net.save(path("resnet.npz"));
  net.load(path("resnet.npz"));
  auto serve = net.eval().freeze();
  serve.compile({fj::f32, {1, 3, 8, 8}});
  std::vector<float> image(3 * 8 * 8, 0.5f);
  fj::Tensor x = fj::borrow(image.data(), {1, 3, 8, 8});
  std::vector<float> p = fj::softmax(serve(x), 1).to_vector<float>();
  ASSERT_EQ(p.size(), 7u);
  const std::vector<float> plain = fj::softmax(net(x), 1).to_vector<float>();
  float total = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    total += p[i];
    EXPECT_NEAR(p[i], plain[i], 1e-4);
  }
  EXPECT_NEAR(total, 1, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Engines, Examples, ::testing::Values("graph_interpreter", "compiled"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
