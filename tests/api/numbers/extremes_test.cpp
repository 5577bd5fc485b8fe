// Numbers at the ends of their ranges and tensors that hold nothing, given to every function that takes them: a
// UserError or an UnsupportedError in one sentence, or a value whose type is right. Never an overflow, a crash, or an
// error of ours. (The sanitizers see the rest.)
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

// What f gives is recorded only, unless it is small: then it is computed too.
void expect_sentence_or_value(const std::function<Tensor()>& f) {
  try {
    const Tensor t = f();
    ASSERT_TRUE(t.defined());
    EXPECT_GE(t.elements(), 0);
    if (t.elements() <= 4096) t.eval();
  } catch (const InternalError& error) {
    ADD_FAILURE() << error.what();
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_FALSE(sentence.empty());
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type of exception: " << error.what();
  }
}

class Extremes : public ::testing::Test {
 protected:
  void SetUp() override { set_options({.engine = "graph_interpreter"}); }
  void TearDown() override { set_options({}); }
  const Tensor x = from_host(std::vector<float>(48, 0.5f), {1, 3, 4, 4}), w = ones({2, 3, 3, 3}), i = arange(4);
};

TEST_F(Extremes, WholeNumbers) {
  using V = std::int64_t;
  struct Case {
    const char* name;
    std::function<Tensor(V)> f;
  };
  const auto as_int = [](V v) { return static_cast<int>(std::clamp<V>(v, INT32_MIN, INT32_MAX)); };
  const Case cases[] = {
      {"stride", [&](V v) { return conv2d(x, w, {.stride = v}); }},
      {"padding", [&](V v) { return conv2d(x, w, {.padding = v}); }},
      {"padding below", [&](V v) { return conv2d(x, w, {.padding = Padding(0, 0, v, v)}); }},
      {"dilation", [&](V v) { return conv2d(x, w, {.dilation = v}); }},
      {"dilation, same", [&](V v) { return conv2d(x, w, {.padding = "same", .dilation = v}); }},
      {"groups", [&](V v) { return conv2d(x, w, {.groups = v}); }},
      {"transposed stride",
       [&](V v) {
         return conv_transpose2d(x, ones({3, 2, 3, 3}), {.stride = v});
       }},
      {"transposed padding",
       [&](V v) {
         return conv_transpose2d(x, ones({3, 2, 3, 3}), {.padding = v});
       }},
      {"transposed dilation",
       [&](V v) {
         return conv_transpose2d(x, ones({3, 2, 3, 3}), {.dilation = v});
       }},
      {"transposed groups",
       [&](V v) {
         return conv_transpose2d(x, ones({3, 2, 3, 3}), {.groups = v});
       }},
      {"output padding",
       [&](V v) {
         return conv_transpose2d(x, ones({3, 2, 3, 3}), {.stride = 2}, v);
       }},
      {"all of a transposed convolution",
       [&](V v) {
         return conv_transpose2d(x, ones({3, 2, 3, 3}), {.stride = v, .padding = v, .dilation = v}, v);
       }},
      {"max window", [&](V v) { return max_pool2d(x, v); }},
      {"max stride", [&](V v) { return max_pool2d(x, 2, {.stride = v}); }},
      {"max padding", [&](V v) { return max_pool2d(x, 2, {.padding = v}); }},
      {"max dilation", [&](V v) { return max_pool2d(x, 2, {.dilation = v}); }},
      {"max window, same", [&](V v) { return max_pool2d(x, v, {.stride = 1, .padding = "same", .dilation = v}); }},
      {"average window", [&](V v) { return avg_pool2d(x, v); }},
      {"average padding", [&](V v) { return avg_pool2d(x, 2, {.padding = v}); }},
      {"average of the inside", [&](V v) { return avg_pool2d(x, v, {.padding = v, .count_include_pad = false}); }},
      {"adaptive", [&](V v) { return adaptive_avg_pool2d(x, v); }},
      {"nearest", [&](V v) { return upsample_nearest2d(x, v); }},
      {"bilinear", [&](V v) { return upsample_bilinear2d(x, v); }},
      {"slice", [&](V v) { return slice(x, 3, v); }},
      {"slice to", [&](V v) { return slice(x, 3, 0, v); }},
      {"slice by", [&](V v) { return slice(x, 3, 0, 4, v); }},
      {"slice of", [&](V v) { return slice(x, as_int(v), 0); }},
      {"pad below",
       [&](V v) {
         return pad(x, {0, 0, 0, v}, {0, 0, 0, 0});
       }},
      {"pad above",
       [&](V v) {
         return pad(x, {0, 0, 0, 1}, {0, 0, 0, v});
       }},
      {"pad both",
       [&](V v) {
         return pad(x, {v, v, v, v}, {v, v, v, v});
       }},
      {"reshape", [&](V v) { return reshape(x, {v}); }},
      {"reshape twice",
       [&](V v) {
         return reshape(x, {v, v});
       }},
      {"reshape the rest",
       [&](V v) {
         return reshape(x, {-1, v});
       }},
      {"expand",
       [&](V v) {
         return expand(x, {v, 3, 4, 4});
       }},
      {"expand more",
       [&](V v) {
         return expand(ones({1, 1}), {v, v, v});
       }},
      {"permute", [&](V v) { return permute(i, {v}); }},
      {"flatten from", [&](V v) { return flatten(x, as_int(v)); }},
      {"flatten to", [&](V v) { return flatten(x, 0, as_int(v)); }},
      {"squeeze", [&](V v) { return squeeze(x, {v}); }},
      {"unsqueeze", [&](V v) { return unsqueeze(x, as_int(v)); }},
      {"transpose", [&](V v) { return transpose(x, as_int(v), 0); }},
      {"concat",
       [&](V v) {
         return concat({x, x}, as_int(v));
       }},
      {"flip", [&](V v) { return flip(x, {v}); }},
      {"softmax", [&](V v) { return softmax(x, as_int(v)); }},
      {"log_softmax", [&](V v) { return log_softmax(x, as_int(v)); }},
      {"argmax", [&](V v) { return argmax(x, as_int(v)); }},
      {"sum", [&](V v) { return sum(x, {v}); }},
      {"amax",
       [&](V v) {
         return amax(x, {v, 0});
       }},
      {"var", [&](V v) { return var(x, {0}, v); }},
      {"size", [&](V v) { return full({}, x.size(as_int(v)), i64); }},
      {"gather",
       [&](V v) {
         return gather(x, as_int(v), full({1, 3, 4, 4}, 0, i64));
       }},
      {"gather at", [&](V v) { return gather(i, 0, full({2}, v, i64)); }},
      {"one_hot of", [&](V v) { return one_hot(full({2}, v, i64), 3); }},
      {"one_hot to", [&](V v) { return one_hot(i, v); }},
      {"layer_norm", [&](V v) { return layer_norm(x, {v}); }},
      {"group_norm", [&](V v) { return group_norm(x, v); }},
      {"correction", [&](V v) { return batch_norm_train(x, {}, {}, {.correction = v}); }},
      {"arange", [&](V v) { return arange(v); }},
      {"zeros",
       [&](V v) {
         return zeros({v, 2});
       }},
      {"zeros twice",
       [&](V v) {
         return zeros({v, v});
       }},
      {"rand", [&](V v) { return rand({v}); }},
      {"i64 and a number", [&](V v) { return floor_divide(i * v + v - v, i - 1 + v); }},
      {"f32 and a number", [&](V v) { return (x * v + v) / v; }},
      {"i32 and a number", [&](V v) { return remainder(i.to(i32) + v, i.to(i32) - v); }},
      {"bool and a number", [&](V v) { return logical_and(i > v, i >= -1); }},
      {"f16 and a number", [&](V v) { return pow(x.to(f16), v) + v; }},
      {"i64 to a power", [&](V v) { return pow(i, v); }},
      {"cast down", [&](V v) { return full({2}, v, i64).to(f16).to(i32).to(boolean).to(f64).to(i64); }},
      {"ignored target",
       [&](V v) {
         return nll_loss(ones({4, 2}), i, {.ignore_index = v});
       }},
      {"targets",
       [&](V v) {
         return cross_entropy(ones({2, 3}), full({2}, v, i64));
       }},
      {"a layer's channels", [&](V v) { return nn::BatchNorm2d(std::min<V>(v, 9))(x); }},
      {"a layer's groups", [&](V v) { return nn::Conv2d(3, 3, 1, {.groups = v})(x); }},
      {"a layer's padding", [&](V v) { return nn::Conv2d(3, 3, 1, {.padding = v})(x); }},
  };
  const V values[] = {INT64_MIN,  INT64_MIN + 1, INT32_MIN,     -5,       -1, 0, 1, 3, INT32_MAX, V{1} << 32,
                      V{1} << 40, V{1} << 62,    INT64_MAX - 1, INT64_MAX};
  for (const Case& c : cases) {
    for (const V v : values) {
      SCOPED_TRACE(std::string(c.name) + " " + std::to_string(v));
      expect_sentence_or_value([&] { return c.f(v); });
    }
  }
}

TEST_F(Extremes, RealNumbers) {
  struct Case {
    const char* name;
    std::function<Tensor(double)> f;
  };
  const nn::Parameter p("p", ones({2}));
  const auto stepped = [](optim::Optimizer&& opt) {
    opt.update({ones({2})});
    return opt.parameters()[0].value();
  };
  const Case cases[] = {
      {"f32", [&](double v) { return (x * v - v) / v + pow(x, v); }},
      {"f16", [&](double v) { return maximum(x.to(f16) * v, v); }},
      {"f64", [&](double v) { return fmod(x.to(f64), full({}, v, f64)) + remainder(x.to(f64), full({}, v, f64)); }},
      {"an integer tensor", [&](double v) { return i * v; }},
      {"clamp", [&](double v) { return clamp(x, v, -v); }},
      {"clamp integers", [&](double v) { return clamp(i, v); }},
      {"to integers", [&](double v) { return full({2}, v, f64).to(i32) + full({2}, v, f32).to(i64); }},
      {"full of integers", [&](double v) { return full({2}, v, i32); }},
      {"pad",
       [&](double v) {
         return pad(x, {0, 0, 0, 1}, {0, 0, 0, 0}, v);
       }},
      {"pad integers", [&](double v) { return pad(i, {1}, {0}, v); }},
      {"leaky_relu", [&](double v) { return leaky_relu(x - 1, v); }},
      {"elu", [&](double v) { return elu(x - 1, v); }},
      {"softplus", [&](double v) { return softplus(x, v) + softplus(x, 1, v); }},
      {"dropout", [&](double v) { return dropout(x, v); }},
      {"eps",
       [&](double v) {
         return batch_norm_train(x, {}, {}, {.eps = v}) + layer_norm(x, {4, 4}, {}, {}, v);
       }},
      {"label smoothing",
       [&](double v) {
         return cross_entropy(ones({2, 3}), arange(2), {.label_smoothing = v});
       }},
      {"smooth_l1", [&](double v) { return smooth_l1_loss(x, x * 2, "mean", v); }},
      {"Dropout", [&](double v) { return nn::Dropout(v)(x); }},
      {"SGD", [&](double v) { return stepped(optim::SGD({p}, {.lr = v, .momentum = v, .weight_decay = v})); }},
      {"Adam", [&](double v) { return stepped(optim::Adam({p}, {.lr = 1, .beta1 = v, .beta2 = v, .eps = v})); }},
      {"Adadelta", [&](double v) { return stepped(optim::Adadelta({p}, {.lr = 1, .rho = v, .eps = v})); }},
      {"clip_grad_norm",
       [&](double v) {
         std::vector<Tensor> gradients{x};
         return optim::clip_grad_norm(gradients, v);
       }},
  };
  for (const Case& c : cases) {
    for (const double v : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1.7e308, -1.7e308, 5e-324, 1e300, 9.3e18, -9.3e18, 4.3e9,
                           0.0, -0.0, 1.0, -1.0, 0.5}) {
      SCOPED_TRACE(std::string(c.name) + " " + std::to_string(v));
      expect_sentence_or_value([&] { return c.f(v); });
    }
  }
}

// A default Tensor, where a value is wanted.
TEST_F(Extremes, EmptyTensors) {
  const Tensor none;
  const std::function<void()> calls[] = {
      [&] { none.type(); },
      [&] { none.eval(); },
      [&] { none.evaluated(); },
      [&] { none.size(0); },
      [&] { none.item<float>(); },
      [&] { none.to_vector<float>(); },
      [&] { none.copy_to(nullptr); },
      [&] { none.to(f64); },
      [&] { none.to("cpu"); },
      [&] { none.detach(); },
      [&] { none.needs_grad(); },
      [&] { Tensor(none).requires_grad(); },
      [&] { none.reshape({1}); },
      [&] { none.sum(); },
      [&] { none + x; },
      [&] { x + none; },
      [&] { none * 2; },
      [&] { -none; },
      [&] { exp(none); },
      [&] { where(none, x, x); },
      [&] { clamp(none, 0); },
      [&] { relu(none); },
      [&] { softmax(none, 0); },
      [&] { dropout(none); },
      [&] { mean(none); },
      [&] { var(none); },
      [&] { argmax(none, 0); },
      [&] { flatten(none); },
      [&] { permute(none, {}); },
      [&] { transpose(none, 0, 0); },
      [&] { squeeze(none); },
      [&] { unsqueeze(none, 0); },
      [&] { expand(none, {1}); },
      [&] { slice(none, 0, 0); },
      [&] { pad(none, {}, {}); },
      [&] {
        concat({x, none});
      },
      [&] { flip(none, {}); },
      [&] { gather(none, 0, i); },
      [&] { gather(x, 0, none); },
      [&] { one_hot(none, 2); },
      [&] { conv2d(none, w); },
      [&] { conv2d(x, none); },
      [&] { conv_transpose2d(none, w); },
      [&] { bias_add(x, none); },
      [&] { matmul(none, none); },
      [&] { linear(x, none); },
      [&] { max_pool2d(none, 2); },
      [&] { avg_pool2d(none, 2); },
      [&] { adaptive_avg_pool2d(none, 1); },
      [&] { upsample_nearest2d(none, 2); },
      [&] { batch_norm(x, none, none); },
      [&] { batch_norm_train(none); },
      [&] { layer_norm(none, {4}); },
      [&] { cross_entropy(none, i); },
      [&] { cross_entropy(x, none); },
      [&] { mse_loss(none, x); },
      [&] { grad(none, {x}); },
      [&] { grad(sum(x), {none}); },
      [&] {
        eval({x, none});
      },
      [&] {
        save({{"x", none}}, "/dev/null");
      },
      [&] { nn::Parameter("p", none); },
      [&] { nn::Parameter("p", x).set(none); },
      [&] { nn::Conv2d(3, 2, 3)(none); },
      [&] { nn::BatchNorm2d(3)(none); },
      [&] { nn::BatchNorm2d(3, {.affine = false})(none); },
      [&] { nn::Linear(3, 3).freeze()(none); },
      [&] { gradcheck([](const std::vector<Tensor>&) { return Tensor(); }, {x.to(f64)}); },
      [&] { value_and_grad([](const std::vector<Tensor>&) { return Tensor(); })({x}); },
      [&] { value_and_grad([](const std::vector<Tensor>& in) { return sum(in[0]); }, {3})({x}); },
      [&] { value_and_grad([](const std::vector<Tensor>& in) { return sum(in[0]); }, {-1})({x}); },
      [&] { value_and_grad({})({x}); },
      [&] { custom_gradient({}, {})({x}); },
  };
  for (std::size_t c = 0; c < std::size(calls); ++c) EXPECT_THROW(calls[c](), UserError) << "call " << c;
  EXPECT_FALSE(none.str().empty());
}

}  // namespace
}  // namespace fusejit
