// Bad input through the API: one clear sentence that holds the shapes, nothing lost, and the next call works.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/api/engines.h"

namespace fusejit {
namespace {

struct Mistake {
  const char* name;
  std::function<void()> action;
  std::vector<std::string> says;  // each must be in the sentence
};

class BadInput : public ::testing::TestWithParam<testing::EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::select_engine(GetParam()); !why.empty()) GTEST_SKIP() << why;
    path_ = (std::filesystem::temp_directory_path() / ("bad_input_" + std::to_string(::getpid()))).string();
    x = from_host(std::vector<float>(48, 0.5f), {1, 3, 4, 4});
  }
  void TearDown() override {
    std::filesystem::remove_all(path_);
    set_options({});
  }

  // E must be thrown, with one sentence; then everything works as before.
  template <class E>
  void expect_refused(const Mistake& m) {
    const std::int64_t before = memory::allocated();
    try {
      m.action();
      ADD_FAILURE() << m.name << ": nothing was thrown";
    } catch (const E& error) {
      const std::string sentence = error.what();
      EXPECT_FALSE(sentence.empty()) << m.name;
      EXPECT_EQ(sentence.find('\n'), std::string::npos) << m.name << ": " << sentence;
      for (const std::string& words : m.says)
        EXPECT_NE(sentence.find(words), std::string::npos) << m.name << ": '" << words << "' is not in: " << sentence;
    } catch (const std::exception& error) {
      ADD_FAILURE() << m.name << ": another type of exception: " << error.what();
    }
    EXPECT_EQ(memory::allocated(), before) << m.name << ": memory is lost";
    EXPECT_EQ(sum(x * 2).item<float>(), 48) << m.name << ": the next call";
  }
  std::string path_;
  Tensor x;
};
INSTANTIATE_TEST_SUITE_P(Engines, BadInput,
                         ::testing::Values(testing::kEachKindOfEngine[0], testing::kEachKindOfEngine[2]),
                         testing::name_of);

TEST_P(BadInput, ShapesDtypesRanksAxes) {
  const Tensor w = ones({2, 3, 3, 3}).eval(), i = arange(3).eval();
  const Mistake mistakes[] = {
      {"channels",
       [&] {
         conv2d(x, ones({2, 5, 3, 3}));
       },
       {"conv2d", "f32[1,3,4,4]", "f32[2,5,3,3]"}},
      {"rank of x",
       [&] {
         conv2d(ones({3, 4, 4}), w);
       },
       {"conv2d", "f32[3,4,4]"}},
      {"rank of w",
       [&] {
         conv2d(x, ones({3, 3}));
       },
       {"conv2d", "f32[3,3]"}},
      {"kernel larger than the padded input",
       [&] {
         conv2d(x, ones({2, 3, 7, 3}), {.padding = 1});
       },
       {"conv2d", "f32[1,3,4,4]", "f32[2,3,7,3]"}},
      {"window larger than the padded input", [&] { max_pool2d(x, 9); }, {"max_pool2d", "f32[1,3,4,4]"}},
      {"average window", [&] { avg_pool2d(x, Pair(2, 9)); }, {"avg_pool2d", "f32[1,3,4,4]"}},
      {"dtype of w", [&] { conv2d(x, w.to(f64)); }, {"conv2d", "f32[1,3,4,4]", "f64[2,3,3,3]"}},
      {"integers in a convolution", [&] { conv2d(x.to(i64), w.to(i64)); }, {"conv2d", "i64"}},
      {"stride 0", [&] { conv2d(x, w, {.stride = 0}); }, {"conv2d", "stride"}},
      {"negative padding", [&] { conv2d(x, w, {.padding = -1}); }, {"conv2d", "padding"}},
      {"dilation 0", [&] { conv2d(x, w, {.dilation = 0}); }, {"conv2d", "dilation"}},
      {"groups", [&] { conv2d(x, w, {.groups = 2}); }, {"conv2d", "groups"}},
      {"bias", [&] { conv2d(x, w, ones({5})); }, {"bias_add", "f32[5]"}},
      {"broadcast",
       [&] {
         x + ones({2, 5});
       },
       {"add", "f32[1,3,4,4]", "f32[2,5]"}},
      {"matmul",
       [&] {
         matmul(ones({2, 3}), ones({4, 5}));
       },
       {"matmul", "f32[2,3]", "f32[4,5]"}},
      {"matmul of a vector",
       [&] {
         matmul(ones({3}), ones({3, 2}));
       },
       {"matmul", "f32[3]"}},
      {"linear",
       [&] {
         linear(ones({2, 3}), ones({4, 5}));
       },
       {"linear", "f32[2,3]", "f32[4,5]"}},
      {"reshape",
       [&] {
         x.reshape({7, 7});
       },
       {"reshape", "f32[1,3,4,4]", "[7,7]"}},
      {"permute",
       [&] {
         x.permute({0, 1, 2, 2});
       },
       {"permute", "f32[1,3,4,4]"}},
      {"axis", [&] { sum(x, {4}); }, {"sum", "4", "f32[1,3,4,4]"}},
      {"negative axis", [&] { softmax(x, -5); }, {"softmax", "-5", "f32[1,3,4,4]"}},
      {"axis twice",
       [&] {
         mean(x, {1, -3});
       },
       {"mean", "f32[1,3,4,4]"}},
      {"axis of argmax", [&] { argmax(x, 7); }, {"argmax", "7"}},
      {"axis of concat",
       [&] {
         concat({x, x}, 4);
       },
       {"concat"}},
      {"concat of other extents",
       [&] {
         concat({x, ones({1, 3, 5, 4})}, 1);
       },
       {"concat", "f32[1,3,5,4]"}},
      {"batch norm's weight", [&] { batch_norm_train(x, ones({4}), zeros({4})); }, {"batch_norm_train", "f32[4]"}},
      {"target's dtype",
       [&] {
         nll_loss(ones({3, 2}), ones({3}));
       },
       {"nll_loss", "f32[3]"}},
      {"target's shape",
       [&] {
         nll_loss(ones({4, 2}), i);
       },
       {"nll_loss", "f32[4,2]", "i64[3]"}},
      {"condition", [&] { where(x, x, x); }, {"where", "f32[1,3,4,4]"}},
      {"values for another shape",
       [&] {
         from_host(std::vector<float>(5), {2, 3});
       },
       {"5", "[2,3]"}},
      {"a shape below zero",
       [&] {
         zeros({2, -3});
       },
       {"-3"}},
      {"too many elements",
       [&] {
         zeros({1 << 20, 1 << 20, 1 << 20});
       },
       {}},
  };
  for (const Mistake& m : mistakes) expect_refused<UserError>(m);
}

TEST_P(BadInput, LossesRatesAndOptions) {
  const Tensor v = tensor<float>({1, 2}).requires_grad();
  const nn::Parameter p("p", tensor<float>({1}));
  optim::SGD opt({p}, {.lr = 0.5});
  const double nan = std::nan("");
  const Mistake mistakes[] = {
      {"a loss of two elements", [&] { grad(v * v, {v}); }, {"loss", "f32[2]"}},
      {"an integer loss", [&] { grad(sum(arange(3)), {v}); }, {"loss", "i64"}},
      {"no way to the loss", [&] { grad(sum(v), {p.value()}); }, {"f32[1]"}},
      {"a NaN learning rate", [&] { optim::SGD({p}, {.lr = nan}); }, {"nan"}},
      {"a NaN learning rate later", [&] { opt.set_lr(nan); }, {"nan"}},
      {"an infinite learning rate", [&] { optim::Adam({p}, {.lr = INFINITY}); }, {"inf"}},
      {"a negative learning rate", [&] { optim::Adadelta({p}, {.lr = -1}); }, {"-1"}},
      {"nesterov without momentum", [&] { optim::SGD({p}, {.lr = 1, .nesterov = true}); }, {"nesterov"}},
      {"an engine", [&] { set_options({.engine = "magic"}); }, {"magic"}},
      {"a target", [&] { set_options({.target = "x86:pentium"}); }, {"pentium"}},
      {"rules", [&] { set_options({.rules = "some"}); }, {"some"}},
      {"threads", [&] { set_options({.threads = -1}); }, {"-1"}},
  };
  for (const Mistake& m : mistakes) expect_refused<UserError>(m);
  EXPECT_EQ(opt.lr(), 0.5);
}

// A step that fails leaves parameters, state and counters as they were, whatever the mistake.
TEST_P(BadInput, AStepThatFailsChangesNothing) {
  nn::Sequential net(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2), nn::ReLU(), nn::Flatten(), nn::Linear(8, 3));
  optim::Adam opt(net.parameters());
  std::string mode;
  auto step = train_step(net, opt, [&](const Tensor& images, const Tensor& labels) {
    const Tensor y = net(images);
    if (mode == "no number") return y;
    return cross_entropy(y, labels);
  });
  const Tensor images = ones({2, 1, 4, 4}).eval(), labels = arange(2).eval();
  step(images, labels);
  const auto state = [&] {
    std::vector<float> all;
    for (const StateDict& dict : {net.state_dict(), opt.state_dict()}) {
      for (const auto& [name, value] : dict) {
        for (const float f : value.to_vector<float>()) all.push_back(f);
      }
    }
    return all;
  };
  const std::vector<float> before = state();
  EXPECT_THROW(step(ones({2, 1, 9, 9}), labels), UserError) << "another image size";
  EXPECT_THROW(step(ones({2, 1, 2, 2}), labels), UserError) << "smaller than the kernel";
  EXPECT_THROW(step(ones({2, 3, 4, 4}), labels), UserError) << "other channels";
  EXPECT_THROW(step(images, arange(5)), UserError) << "labels for other images";
  EXPECT_THROW(step(images, ones({2})), UserError) << "float labels";
  mode = "no number";
  EXPECT_THROW(step(images, labels), UserError) << "a loss that is no number";
  mode = "";
  EXPECT_EQ(state(), before);
  EXPECT_EQ(step.count(), 1);
  EXPECT_EQ(opt.steps(), 1);
  step(images, labels);
  EXPECT_EQ(step.count(), 2);
  EXPECT_NE(state(), before);
}

TEST_P(BadInput, Files) {
  nn::Linear layer(3, 2);
  std::filesystem::create_directories(path_);
  const std::string good = path_ + "/good.npz", bad = path_ + "/bad.npz";
  layer.save(good);
  const std::vector<float> before = layer.weight().value().to_vector<float>();
  std::string bytes(std::filesystem::file_size(good), '\0');
  std::ifstream(good, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto load = [&] { layer.load(bad); };
  for (std::size_t length = 0; length < bytes.size(); length += 7) {
    std::ofstream(bad, std::ios::binary) << bytes.substr(0, length);
    expect_refused<UserError>({"cut npz", load, {"bad.npz"}});
  }
  for (std::size_t at = 0; at < bytes.size(); at += 5) {  // damage is found or harmless, and never half loaded
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    std::ofstream(bad, std::ios::binary) << damaged;
    try {
      layer.load(bad);
    } catch (const UserError&) {
    }
    EXPECT_EQ(layer.weight().value().to_vector<float>(), before) << "byte " << at;
  }
  std::ofstream(bad, std::ios::binary) << "\x89PNG\r\n\x1a\nno zip";
  expect_refused<UserError>({"a foreign file", load, {"bad.npz"}});
  nn::Linear(4, 2).save(bad);
  expect_refused<UserError>({"another layer's parameters", load, {"f32[2,4]", "f32[2,3]"}});
  expect_refused<FileError>({"no file", [&] { layer.load(path_ + "/none.npz"); }, {"none.npz"}});
  expect_refused<FileError>({"no folder", [&] { layer.save(path_ + "/no/where.npz"); }, {"where.npz"}});
  expect_refused<FileError>({"no images", [&] { data::idx(path_, {.batch = 2}); }, {path_}});
  EXPECT_EQ(layer.weight().value().to_vector<float>(), before);
  layer.load(good);
}

}  // namespace
}  // namespace fusejit
