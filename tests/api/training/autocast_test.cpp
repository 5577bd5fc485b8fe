// Mixed precision: what is computed in which type, that parameters and their gradients stay f32, and that a step is the
// one with the casts written by hand.
#include "fusejit/autocast.h"

#include <gtest/gtest.h>

#include <functional>
#include <tuple>

#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

TEST(Autocast, TypesAreThoseOfPyTorchsLists) {
  const Tensor x = ones({2, 4, 6, 6}), w = ones({4, 4, 3, 3}), v = ones({4}), m = ones({3, 4});
  const Tensor target = zeros({3}, i64);
  struct Row {
    const char* name;
    std::function<Tensor(const Tensor& image, const Tensor& matrix)> f;
    bool narrow;  // whatever the input is; else f32
  };
  const Row rows[] = {
      {"conv2d", [&](auto& i, auto&) { return conv2d(i, w, v); }, true},
      {"conv_transpose2d", [&](auto& i, auto&) { return conv_transpose2d(i, w); }, true},
      {"linear",
       [&](auto&, auto& a) {
         return linear(a, ones({5, 4}), ones({5}));
       },
       true},
      {"matmul",
       [&](auto&, auto& a) {
         return matmul(a, ones({4, 5}));
       },
       true},
      {"conv1d",
       [&](auto&, auto& a) {
         return conv1d(unsqueeze(a, 0), ones({2, 3, 3}), ones({2}));
       },
       true},
      {"einsum",
       [&](auto&, auto& a) {
         return einsum("ij,jk->ik", {a, ones({4, 5})});
       },
       true},
      {"prelu", [&](auto& i, auto&) { return nn::PReLU(4)(i); }, true},
      {"exp", [&](auto&, auto& a) { return exp(a); }, false},
      {"norm", [&](auto&, auto& a) { return norm(a); }, false},
      {"logsumexp", [&](auto&, auto& a) { return logsumexp(a, {1}); }, false},
      {"cumsum", [&](auto&, auto& a) { return cumsum(a, 1); }, false},
      {"log", [&](auto&, auto& a) { return log(a); }, false},
      {"pow", [&](auto&, auto& a) { return pow(a, 1.5); }, false},
      {"rsqrt", [&](auto&, auto& a) { return rsqrt(a); }, false},
      {"softplus", [&](auto&, auto& a) { return softplus(a); }, false},
      {"softmax", [&](auto&, auto& a) { return softmax(a, 1); }, false},
      {"log_softmax", [&](auto&, auto& a) { return log_softmax(a, 1); }, false},
      {"sum", [&](auto&, auto& a) { return sum(a); }, false},
      {"layer_norm", [&](auto&, auto& a) { return layer_norm(a, {4}, v, v); }, false},
      {"group_norm", [&](auto& i, auto&) { return group_norm(i, 2, v, v); }, false},
      {"cross_entropy", [&](auto&, auto& a) { return cross_entropy(a, target); }, false},
      {"mse_loss", [&](auto&, auto& a) { return mse_loss(a, a); }, false},
      {"binary_cross_entropy_with_logits", [&](auto&, auto& a) { return binary_cross_entropy_with_logits(a, a); },
       false},
  };
  const Row as_given[] = {
      {"relu", [&](auto& i, auto&) { return relu(i); }, true},
      {"gelu", [&](auto& i, auto&) { return gelu(i); }, true},
      {"batch_norm_train", [&](auto& i, auto&) { return batch_norm_train(i, v, v); }, true},
      {"max_pool2d", [&](auto& i, auto&) { return max_pool2d(i, 2); }, true},
      {"times a number", [&](auto&, auto& a) { return a * 0.3; }, true},
      {"mean", [&](auto&, auto& a) { return mean(a); }, true},
  };
  for (const DType narrow : {bf16, f16}) {
    const Autocast scope(narrow);
    for (const DType given : {f32, narrow}) {
      const Tensor image = x.to(given), matrix = m.to(given);
      for (const Row& row : rows)
        EXPECT_EQ(row.f(image, matrix).dtype(), row.narrow ? narrow : f32) << row.name << " of " << name(given);
      for (const Row& row : as_given) EXPECT_EQ(row.f(image, matrix).dtype(), given) << row.name;
      EXPECT_EQ((image.to(narrow) + x).dtype(), f32) << "promoted";
    }
    EXPECT_EQ(matmul(m.to(f64), ones({4, 5}, f64)).dtype(), f64);
    EXPECT_EQ(exp(m.to(f64)).dtype(), f64);
    EXPECT_EQ(sum(zeros({3}, i64)).dtype(), i64);
    {
      const Autocast off(f32);
      EXPECT_EQ(linear(m, ones({5, 4})).dtype(), f32);
      EXPECT_EQ(exp(m.to(narrow)).dtype(), narrow);
    }
    EXPECT_EQ(linear(m, ones({5, 4})).dtype(), narrow);
  }
  EXPECT_EQ(linear(m, ones({5, 4})).dtype(), f32);
}

// What joins tensors of one dtype takes mixed ones in the widest of theirs, as PyTorch's list of promotions says; it
// computes what it computes of operands that were cast by hand, and gradients have the dtypes of what was given.
TEST(Autocast, WhatJoinsTensorsTakesTheWidest) {
  manual_seed(2);
  const Tensor image = rand({1, 2, 3, 3}).eval(), grid = (rand({1, 2, 2, 2}) * 2 - 1).eval(), row = rand({3}).eval();
  const Tensor places = tensor<std::int64_t>({2, 0, 2});
  struct Row {
    const char* name;
    std::function<Tensor(const Tensor&, const Tensor&)> f;
    Tensor a, b;
  };
  const Row rows[] = {
      {"dot", [](auto& a, auto& b) { return dot(a, b); }, row, row + 1},
      {"scatter_add", [&](auto& a, auto& b) { return scatter_add(a, 0, places, b); }, row, row + 1},
      {"grid_sample", [](auto& a, auto& b) { return grid_sample(a, b); }, image, grid},
      {"concat",
       [](auto& a, auto& b) {
         return concat({a, b});
       },
       row, row + 1},
      {"stack",
       [](auto& a, auto& b) {
         return stack({a, b});
       },
       row, row + 1},
  };
  for (const Row& r : rows) {
    for (const auto& [left, right, widest] :
         {std::tuple{f32, bf16, f32}, {f16, f32, f32}, {bf16, bf16, bf16}, {f16, bf16, f32}, {f64, f64, f64}}) {
      const std::string what =
          std::string(r.name) + " of " + std::string(name(left)) + " and " + std::string(name(right));
      Tensor a = r.a.to(left), b = r.b.to(right);
      a.eval(), a.requires_grad(), b.eval(), b.requires_grad();
      Tensor y;
      {
        const Autocast scope(bf16);
        y = r.f(a, b);
      }
      EXPECT_EQ(y.dtype(), widest) << what;
      EXPECT_EQ(y.to_vector<float>(), r.f(a.to(widest), b.to(widest)).to_vector<float>()) << what;
      const std::vector<Tensor> d = grad(sum(y), {a, b});
      EXPECT_EQ(d[0].dtype(), left) << what;
      EXPECT_EQ(d[1].dtype(), right) << what;
    }
    if (std::string(r.name) == "stack" || std::string(r.name) == "concat") continue;  // they promote at all times
    EXPECT_THROW(r.f(r.a, r.b.to(bf16)), UserError) << r.name << " without an Autocast";
  }
  const Autocast scope(f16);
  EXPECT_THROW(dot(row.to(f64), row), UserError) << "f64 is nobody's to cast";
}

struct Network : nn::ModuleOf<Network> {
  nn::Conv2d conv = add("conv", nn::Conv2d(3, 8, 3, {.padding = 1}));
  nn::BatchNorm2d norm = add("norm", nn::BatchNorm2d(8));
  nn::Linear head = add("head", nn::Linear(8, 5));
  Tensor forward(const Tensor& x) const override { return head(flatten(mean(relu(norm(conv(x))), {2, 3}), 1)); }
};

// The same with the casts by hand.
Tensor by_hand(const Network& net, const Tensor& x, DType narrow) {
  const auto parameters = net.named_values();
  const auto value = [&](const std::string& name) {
    for (const auto& [key, parameter] : parameters)
      if (key == name) return parameter.value();
    return Tensor();
  };
  const Tensor y = bias_add(conv2d(x.to(narrow), value("conv.weight").to(narrow), {.padding = 1}), value("conv.bias"));
  const Tensor z = mean(relu(batch_norm_train(y, value("norm.weight"), value("norm.bias"))), {2, 3});
  return linear(z, value("head.weight").to(narrow), value("head.bias").to(narrow));
}

TEST(Autocast, AStepIsTheOneWithCastsWrittenByHand) {
  for (const DType narrow : {bf16, f16}) {
    manual_seed(3);
    const Tensor x = rand({4, 3, 9, 9}).eval(), target = from_host(std::vector<std::int64_t>{0, 1, 4, 2}, {4}).eval();
    Network net;
    std::vector<Tensor> values;
    for (const nn::Parameter& parameter : net.parameters()) values.push_back(parameter.value());
    const Tensor loss = cross_entropy(by_hand(net, x, narrow).to(f32), target);
    const std::vector<Tensor> wanted = grad(loss, values);
    Tensor own;
    {
      const Autocast scope(narrow);
      own = cross_entropy(net(x), target);
    }
    const std::vector<Tensor> got = grad(own, values);
    EXPECT_EQ(own.item<float>(), loss.item<float>());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].dtype(), f32);
      EXPECT_EQ(got[i].to_vector<float>(), wanted[i].to_vector<float>()) << net.named_parameters()[i].first;
    }
    // The same through the option of a training step: what SGD leaves.
    const std::vector<float> before = net.parameters()[0].value().to_vector<float>();
    optim::SGD opt(net.parameters(), {.lr = 0.5});
    auto step = train_step(net, opt, [&](const Tensor& in, const Tensor& t) { return cross_entropy(net(in), t); },
                           {.autocast = narrow});
    EXPECT_EQ(step(x, target).item<float>(), loss.item<float>());
    const std::vector<float> after = net.parameters()[0].value().to_vector<float>();
    const std::vector<float> gradient = wanted[0].to_vector<float>();
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(after[i], before[i] - 0.5F * gradient[i], 1e-6F);
    EXPECT_EQ(net.parameters()[0].value().dtype(), f32);
  }
}

// A layer that computes its convolution again computes it in the type that it was computed in.
TEST(Autocast, LayersThatKeepOnlyTheirInputComputeAgainInTheSameType) {
  manual_seed(4);
  const Tensor x = rand({2, 3, 8, 8}).eval();
  nn::ConvBatchNorm2d saving(3, 6, 3), ordinary(3, 6, 3, {.save_only_input = false});
  ordinary.load_state_dict(saving.state_dict());
  const auto gradients = [&](nn::ConvBatchNorm2d& layer) {
    Tensor loss;
    {
      const Autocast scope(bf16);
      const Tensor y = layer(x);
      EXPECT_EQ(y.dtype(), bf16);
      loss = sum(y * y * y);
    }
    std::vector<Tensor> values;
    for (const nn::Parameter& parameter : layer.parameters()) values.push_back(parameter.value());
    return grad(loss, values);
  };
  const std::vector<Tensor> a = gradients(saving), b = gradients(ordinary);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].to_vector<float>(), b[i].to_vector<float>()) << i;
}

TEST(Autocast, AFrozenNetworkComputesAsItWasFrozen) {
  Network net;
  net.eval();
  const Tensor x = rand({1, 3, 9, 9}).eval();
  const Frozen wide = net.freeze();
  const Autocast scope(bf16);
  EXPECT_EQ(wide(x).dtype(), f32);
  const Frozen narrow = net.freeze();
  const Autocast off(f32);
  EXPECT_EQ(narrow(x).dtype(), bf16);
  EXPECT_NEAR(narrow(x).to_vector<float>()[0], wide(x).to_vector<float>()[0], 0.02);
}

TEST(Autocast, OtherTypesAreRefused) {
  EXPECT_THROW(Autocast{i32}, UserError);
  EXPECT_THROW(Autocast{f64}, UserError);
  nn::Linear net(2, 2);
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  const auto f = [&](const Tensor& in) { return sum(net(in)); };
  EXPECT_THROW(train_step(net, opt, f, {.autocast = f64}), UserError);
  const Autocast scope(bf16);
  try {
    const Autocast inner(i64);
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "Autocast: i64 is no type to compute in (bf16, f16, or f32: off)");
  }
  EXPECT_EQ(net(ones({1, 2})).dtype(), bf16);  // as before
}

}  // namespace
}  // namespace fusejit
