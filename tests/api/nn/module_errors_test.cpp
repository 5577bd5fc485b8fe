// What modules refuse: names taken twice, values that cannot be normalised; and that an error says where it came from.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <typeinfo>

#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

template <class E = UserError>
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return typeid(error) == typeid(E) ? error.what() : std::string("another type: ") + error.what();
  }
  return "no error";
}

class ModuleErrors : public ::testing::Test {
 protected:
  void SetUp() override { set_options({.engine = "graph_interpreter"}); }
};

// ---- names ----------------------------------------------------------------------------------------------------------

struct Free : nn::ModuleOf<Free> {
  Tensor forward(const Tensor& x) override { return x; }
  using Module::add;
  using Module::parameter;
  using Module::state;
};

TEST_F(ModuleErrors, ANameIsTakenOnce) {
  const Tensor one = ones({1});
  const nn::Linear layer(1, 1);
  const auto refuses = [&](const std::function<void(Free&)>& first, const std::function<void(Free&)>& second,
                           const std::string& name) {
    Free net;
    first(net);
    const std::size_t values = net.state_dict().size();
    const std::string error = error_of([&] { second(net); });
    EXPECT_NE(error.find("there is one called '" + name + "' already"), std::string::npos) << error;
    EXPECT_EQ(net.state_dict().size(), values) << "nothing has changed";
    EXPECT_EQ(net.named_values().size(), values);
  };
  using Add = std::function<void(Free&)>;
  const Add parameter = [&](Free&n) { n.parameter("x", one); }, state = [&](Free&n) { n.state("x", one); },
            module = [&](Free&n) { n.add("x", layer); };
  for (const Add& first : {parameter, state, module}) {
    for (const Add& second : {parameter, state, module}) refuses(first, second, "x");
  }
  refuses([&](Free& n) { n.add("x", layer); }, [&](Free& n) { n.parameter("x.weight", one); }, "x.weight");
  refuses([&](Free& n) { n.state("x.weight", one); }, [&](Free& n) { n.add("x", layer); }, "x.weight");
  refuses([&](Free& n) { n.add("a.b", layer); },
          [&](Free& n) {
            Free inner;
            inner.add("b", layer);
            n.add("a", inner);
          },
          "a.b.weight");
  refuses([&](Free& n) { n.add("0", layer); }, [&](Free& n) { n.parameter("0", one); }, "0");
  Free net;
  EXPECT_NE(error_of([&] { net.parameter("", one); }).find("must have a name"), std::string::npos);
  net.add("a", layer), net.add("b", layer);  // one module under two names is no clash
  EXPECT_EQ(net.state_dict().size(), 4u);
}

// What is added to a module after it was added itself is seen when names are asked for.
TEST_F(ModuleErrors, NamesThatClashLater) {
  Free net, inner;
  net.add("a", inner);
  net.parameter("a.b", ones({1}));
  inner.parameter("b", ones({1}));
  for (const std::function<void()>& action :
       {std::function<void()>([&] { net.parameters(); }), std::function<void()>([&] { net.state_dict(); })}) {
    const std::string error = error_of(action);
    EXPECT_NE(error.find("'a.b'"), std::string::npos) << error;
  }
}

// ---- batch norm -----------------------------------------------------------------------------------------------------

TEST_F(ModuleErrors, BatchNormNeedsMoreThanOneValueAChannel) {
  for (const bool affine : {false, true}) {
    nn::BatchNorm2d norm(3, {.affine = affine});
    const std::string error = error_of([&] { norm(ones({1, 3, 1, 1})); });
    EXPECT_NE(error.find("more than 1 value a channel is needed in training (x: f32[1,3,1,1])"), std::string::npos)
        << error;
    EXPECT_THROW(norm(ones({0, 3, 4, 4})), UserError);
    EXPECT_EQ(norm.state_dict().at("running_var").to_vector<float>(), (std::vector<float>{1, 1, 1})) << "as before";
    norm(rand({2, 3, 1, 1}));
    for (const float v : norm.state_dict().at("running_var").to_vector<float>()) EXPECT_TRUE(std::isfinite(v));
    norm.eval();
    EXPECT_EQ(norm(ones({1, 3, 1, 1})).shape(), (Shape{1, 3, 1, 1})) << "evaluation takes one";
  }
  nn::BatchNorm2d own(3, {.track_running_stats = false});
  own.eval();
  EXPECT_THROW(own(ones({1, 3, 1, 1})), UserError) << "it normalises by the batch's own statistics";
  for (const bool save_only_input : {false, true}) {
    nn::ConvBatchNorm2d layer(1, 2, 3, {.save_only_input = save_only_input});
    EXPECT_THROW(layer(ones({1, 1, 3, 3})), UserError);
    EXPECT_EQ(layer.state_dict().at("running_var").to_vector<float>(), (std::vector<float>{1, 1}));
  }
  EXPECT_THROW(batch_norm_train(ones({1, 3}), Tensor(), Tensor()), UserError);
}

// ---- places ---------------------------------------------------------------------------------------------------------

TEST_F(ModuleErrors, SayWhichLayer) {
  nn::Sequential inner(nn::Conv2d(3, 4, 1), nn::ReLU(), nn::Conv2d(5, 4, 1));
  nn::Sequential net(nn::Conv2d(3, 3, 3), inner);
  const std::string error = error_of([&] { net(ones({1, 3, 8, 8})); });
  EXPECT_TRUE(error.starts_with("in 1.2: conv2d: ")) << error;
  EXPECT_TRUE(error_of([&] {
                inner(ones({1, 3, 8, 8}));
              }).starts_with("in 2: conv2d: "))
      << "the outermost has no name";
  EXPECT_TRUE(error_of([&] { net(ones({1, 4, 8, 8})); }).starts_with("in 0: conv2d: "));
  EXPECT_TRUE(error_of([&] { nn::Conv2d(3, 3, 3)(ones({1, 4, 8, 8})); }).starts_with("conv2d: "));
  models::ResNet short_of_blocks({1}, 10);
  const std::string own = error_of([&] { short_of_blocks(ones({2, 3, 32, 32})); });
  EXPECT_TRUE(own.starts_with("in fc: linear: ")) << own;
  const std::string deep = error_of([&] { short_of_blocks(ones({1, 3, 4, 4})); });
  EXPECT_TRUE(deep.starts_with("in layer1.0.bn1: batch_norm_train: ")) << deep;
}

// A module of one's own: children called through handles, a grandchild called directly, a module nobody has added.
struct ModuleErrorsBlock : nn::ModuleOf<ModuleErrorsBlock> {
  nn::Linear first = add("first", nn::Linear(4, 4)), second = add("second", nn::Linear(4, 4));
  Tensor forward(const Tensor& x) override { return second(first(x)); }
};
struct Whole : nn::ModuleOf<Whole> {
  ModuleErrorsBlock block = add("block", ModuleErrorsBlock());
  nn::Linear loose{4, 4};
  int calls = 0;
  Tensor forward(const Tensor& x) override {
    if (calls == 1) return block.second(x);
    if (calls == 2) return loose(x);
    if (calls == 3) throw UnsupportedError("not yet");
    if (calls == 4) throw FileError("no such file");
    if (calls == 5) {
      try {
        return block(x);
      } catch (const UserError&) {
        return matmul(x, ones({9, 9}));
      }
    }
    return block(x);
  }
};

TEST_F(ModuleErrors, OfModulesOfOnesOwn) {
  Whole whole;
  const auto run = [&](int calls) {
    whole.calls = calls;
    nn::Sequential net(nn::ReLU(), whole);
    return [net]() mutable { net(ones({2, 3})); };
  };
  const auto begins = [&](const std::string& error, const std::string& beginning) {
    EXPECT_TRUE(error.starts_with(beginning)) << error;
  };
  begins(error_of(run(0)), "in 1.block.first: linear: ");
  begins(error_of(run(1)), "in 1.block.second: linear: ");
  begins(error_of(run(2)), "in 1: linear: ");
  begins(error_of<UnsupportedError>(run(3)), "in 1: not yet");
  begins(error_of<FileError>(run(4)), "in 1: no such file");
  begins(error_of(run(5)), "in 1: matmul: ");
  // The next call has nothing left of the last one.
  begins(error_of(run(0)), "in 1.block.first: linear: ");
  const Tensor y = whole.loose(ones({2, 4}));
  EXPECT_EQ(y.shape(), (Shape{2, 4}));
  EXPECT_EQ(error_of([&] { matmul(y, ones({9, 9})); }).find("in 1"), std::string::npos);
}

TEST_F(ModuleErrors, SayWhichLayerHasAnotherDtype) {
  for (const int odd : {0, 2, 4}) {
    nn::Conv2d a(3, 4, 3), b(4, 4, 3);
    nn::Linear c(4 * 4 * 4, 2);
    a.to(bf16), b.to(bf16), c.to(bf16);
    if (odd == 0) a.to(f32);
    if (odd == 2) b.to(f32);
    if (odd == 4) c.to(f32);
    nn::Sequential net(a, nn::ReLU(), b, nn::Flatten(), c);
    const std::string error = error_of([&] { net(ones({1, 3, 8, 8}, bf16)); });
    EXPECT_TRUE(error.starts_with("in " + std::to_string(odd) + ": ")) << error;
    EXPECT_NE(error.find("bf16["), std::string::npos) << error;
    EXPECT_NE(error.find("f32["), std::string::npos) << error;
    optim::SGD opt(net.parameters(), {.lr = 0.1});
    auto step = train_step(net, opt, [&](const Tensor& x) { return sum(net(x)); });
    EXPECT_TRUE(error_of([&] { step(ones({1, 3, 8, 8}, bf16)); }).starts_with("in " + std::to_string(odd) + ": "));
    EXPECT_TRUE(error_of([&] { net.freeze()(ones({1, 3, 8, 8}, bf16)); }).starts_with("in " + std::to_string(odd)));
  }
}

// Names are for messages only: the same program gives the same trace with and without them.
TEST_F(ModuleErrors, PlacesChangeNoTrace) {
  nn::Linear a(3, 3), b(3, 3);
  nn::Sequential net(a, b);
  const Tensor x = ones({2, 3}).eval();
  net(x).eval();
  const std::int64_t traces = stats().traces;
  b.forward(a.forward(x)).eval();
  EXPECT_EQ(stats().traces, traces);
}

}  // namespace
}  // namespace fusejit
