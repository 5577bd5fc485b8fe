// Convolution with its gradients, matmul, linear: the seeds' examples, gradients, identities over random shapes,
// errors.
#include "tests/support/error_of.h"
#include "tests/support/graphs.h"

namespace fusejit::testing {
namespace {

using ir::build;
using Attrs = std::vector<ir::AttrInit>;
using Ints = std::vector<std::int64_t>;

FunctionCase conv(std::string name, Shape x, Shape w, Attrs attrs = {}) {
  return {std::move(name), {Type{f64, x}, Type{f64, w}}, [=](const Values& p) {
            return build(Op::conv2d, {p[0], p[1]}, attrs);
          }};
}

std::vector<FunctionCase> convolutions() {
  return {
      conv("plain", {2, 3, 5, 6}, {4, 3, 3, 3}),
      conv("stride", {2, 2, 7, 6}, {3, 2, 3, 3}, {{"stride", {2, 3}}, {"padding", {1, 1, 1, 1}}}),
      conv("asymmetric_padding", {1, 2, 4, 5}, {2, 2, 2, 3}, {{"padding", {0, 2, 1, 0}}}),
      conv("dilation", {1, 2, 7, 8}, {2, 2, 3, 2}, {{"dilation", {2, 3}}, {"padding", {2, 1, 1, 3}}}),
      conv("groups", {2, 4, 4, 4}, {6, 2, 3, 3}, {{"groups", 2}, {"padding", {1, 1, 1, 1}}}),
      conv("depthwise", {2, 3, 4, 5}, {6, 1, 3, 3}, {{"groups", 3}, {"stride", {2, 1}}, {"padding", {1, 1, 1, 1}}}),
      conv("one_by_one", {2, 3, 2, 2}, {4, 3, 1, 1}),
      conv("untouched_rows", {1, 1, 6, 6}, {1, 1, 2, 2}, {{"stride", {3, 3}}}),
      conv("all", {2, 4, 9, 8}, {4, 2, 3, 2},
           {{"groups", 2}, {"stride", {2, 2}}, {"padding", {1, 0, 2, 1}}, {"dilation", {2, 1}}}),
  };
}

std::vector<FunctionCase> products() {
  return {
      {"matmul",
       {f64_of({2, 3}), f64_of({3, 4})},
       [](const Values& p) {
         return build(Op::matmul, {p[0], p[1]});
       }},
      {"matmul_batch",
       {f64_of({2, 1, 2, 3}), f64_of({3, 3, 2})},
       [](const Values& p) {
         return build(Op::matmul, {p[0], p[1]});
       }},
      {"matmul_shared",
       {f64_of({2, 3}), f64_of({4, 3, 2})},
       [](const Values& p) {
         return build(Op::matmul, {p[0], p[1]});
       }},
      {"linear",
       {f64_of({2, 3}), f64_of({4, 3})},
       [](const Values& p) {
         return build(Op::linear, {p[0], p[1]});
       }},
      {"linear_vector",
       {f64_of({3}), f64_of({4, 3})},
       [](const Values& p) {
         return build(Op::linear, {p[0], p[1]});
       }},
      {"linear_batch",
       {f64_of({2, 2, 3}), f64_of({4, 3})},
       [](const Values& p) {
         return build(Op::linear, {p[0], p[1]});
       }},
  };
}

class Anchor : public ::testing::TestWithParam<FunctionCase> {};
TEST_P(Anchor, GradientIsThatOfDifferences) { check_gradient(GetParam()); }

// The gradients as functions of their own, checked the same way: closed under differentiation.
TEST_P(Anchor, SecondDerivativeIsThatOfDifferences) {
  for (const std::size_t operand : {0u, 1u}) check_gradient(derivative_of(GetParam(), operand));
}

std::vector<FunctionCase> all_cases() {
  std::vector<FunctionCase> all = convolutions();
  for (const FunctionCase& c : products()) all.push_back(c);
  return all;
}
INSTANTIATE_TEST_SUITE_P(, Anchor, ::testing::ValuesIn(all_cases()), [](const auto& info) { return info.param.name; });

// ---- the seeds

TEST(Seeds, ConvolutionOfTheFirstNineNumbers) {
  const auto got = run_text(
      "graph @g(%x: f32[1,1,3,3], %w: f32[1,1,2,2], %d: f32[1,1,2,2]) {"
      "  %0 = conv2d(%x, %w) : f32[1,1,2,2]"
      "  %1 = conv2d_weight_grad(%x, %d) {kernel_size=[2,2]} : f32[1,1,2,2]"
      "  return %0, %1 }",
      {{0, 1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1, 1}, {1, 1, 1, 1}});
  EXPECT_EQ(got[0], (std::vector<double>{8, 12, 20, 24}));
  EXPECT_EQ(got[1], (std::vector<double>{8, 12, 20, 24}));
}

TEST(Seeds, InputGradientOfTheReversedKernel) {
  const auto got = run_text(
      "graph @g(%d: f32[1,1,2,2], %w: f32[1,1,2,2]) {"
      "  %0 = conv2d_input_grad(%d, %w) {input_size=[3,3]} : f32[1,1,3,3] return %0 }",
      {{1, 1, 1, 1}, {0, 1, 2, 3}});
  EXPECT_EQ(got[0], (std::vector<double>{0, 1, 1, 2, 6, 4, 2, 5, 3}));
}

// The whole of S3 through the gradient pass: y = relu(conv(x, w) + b).
TEST(Seeds, ConvBiasReluBackward) {
  const Graph forward = ir::parse_graph(
      "graph @g(%x: f32[1,1,3,3], %w: f32[1,1,2,2], %b: f32[1]) {"
      "  %0 = conv2d(%x, %w) : f32[1,1,2,2] %1 = bias_add(%0, %b) : f32[1,1,2,2] %2 = relu(%1) : f32[1,1,2,2]"
      "  return %2 }");
  const Graph derived = ir::differentiate(forward, {"x", "w", "b"});
  const auto run = [&](double bias) {
    std::vector<Array> arguments;
    const std::vector<std::vector<double>> lists{{0, 1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 2, 3}, {bias}, {1, 1, 1, 1}};
    for (std::size_t i = 0; i < lists.size(); ++i)
      arguments.push_back(array_of(derived.parameters()[i].type(), lists[i]));
    std::vector<std::vector<double>> results;
    for (const Array& result : ir::interpret(derived, arguments)) results.push_back(doubles_of(result));
    return results;
  };
  const auto all = run(0);  // every y > 0
  EXPECT_EQ(all[1], (std::vector<double>{0, 1, 1, 2, 6, 4, 2, 5, 3}));
  EXPECT_EQ(all[2], (std::vector<double>{8, 12, 20, 24}));
  EXPECT_EQ(all[3], (std::vector<double>{4}));
  const auto one = run(-32);  // conv = 19 25 37 43: the last two pass
  EXPECT_EQ(one[0], (std::vector<double>{0, 0, 5, 11}));
  EXPECT_EQ(one[1], (std::vector<double>{0, 0, 0, 0, 1, 1, 2, 5, 3}));
  EXPECT_EQ(one[2], (std::vector<double>{3 + 4, 4 + 5, 6 + 7, 7 + 8}));
  EXPECT_EQ(one[3], (std::vector<double>{2}));
}

// S2's shape: N=1 H=2 W=3 C=3 K=3, 2x2 kernel, SAME padding: nothing before, one row and column after.
TEST(Seeds, SamePaddingIsAsymmetric) {
  check_gradient(conv("same", {1, 3, 2, 3}, {3, 3, 2, 2}, {{"padding", {0, 0, 1, 1}}}));
}

// S4's gradcheck shapes.
TEST(Seeds, ConvolutionOfTheCustomFunction) { check_gradient(conv("s4", {10, 3, 7, 7}, {5, 3, 3, 3})); }

TEST(Seeds, FusedConvolutionAndBatchNorm) {
  check_gradient({"s4_fused", {f64_of({2, 3, 4, 4}), f64_of({5, 3, 3, 3})}, [](const Values& p) {
                    return build(Op::batch_norm_train, {build(Op::conv2d, {p[0], p[1]}), 1, 0},
                                 {{"eps", 1e-3}, {"correction", 1}, {"eps_outside", true}});
                  }});
}

// S1: y = relu(bn(x; gamma, beta) + z), with gradients for all four.
TEST(Seeds, BatchNormAddRelu) {
  check_gradient({"s1", {f64_of({2, 3, 2, 3}), f64_of({3}), f64_of({3}), f64_of({2, 3, 2, 3})}, [](const Values& p) {
                    const Value y = build(Op::batch_norm_train, {p[0], p[1], p[2]});
                    return build(Op::relu, {build(Op::add, {y, p[3]})});
                  }});
}

// ---- S3's identities over random shapes: stride 1, any padding below the kernel

struct Draw {
  std::int64_t n, c, h, w, k, r, s;
  Ints padding;
};

Draw draw(std::mt19937_64& random) {
  const auto up_to = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  Draw d{up_to(1, 3), up_to(1, 3), up_to(3, 6), up_to(3, 6), up_to(1, 3), up_to(1, 3), up_to(1, 3), {}};
  for (int i = 0; i < 4; ++i) d.padding.push_back(up_to(0, i % 2 ? d.s - 1 : d.r - 1));
  return d;
}

Value swap_first(const Value& x) { return build(Op::permute, {x}, {{"dims", {1, 0, 2, 3}}}); }

TEST(Identities, GradientsAreConvolutions) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 40; ++round) {
    const Draw d = draw(random);
    const Value x = ir::parameter({f64, {d.n, d.c, d.h, d.w}}, "x"),
                w = ir::parameter({f64, {d.k, d.c, d.r, d.s}}, "w");
    const Attrs padding{{"padding", d.padding}};
    const Value y = build(Op::conv2d, {x, w}, padding);
    const Value dy = ir::parameter(y.type(), "dy");
    const Values grads = ir::gradient({y}, {dy}, {x, w});
    // dw is x, its images as channels, convolved with dy, its images as channels.
    const Value dw = swap_first(build(Op::conv2d, {swap_first(x), swap_first(dy)}, padding));
    // dx is the padded dy convolved with the flipped kernel.
    const Value flipped = swap_first(build(Op::flip, {w}, {{"dims", {2, 3}}}));
    const Ints rest{d.r - 1 - d.padding[0], d.s - 1 - d.padding[1], d.r - 1 - d.padding[2], d.s - 1 - d.padding[3]};
    const Value dx = build(Op::conv2d, {dy, flipped}, Attrs{{"padding", rest}});
    const Graph ours = ir::capture("ours", {x, w, dy}, {grads[0], grads[1]});
    const Graph identity = ir::capture("identity", {x, w, dy}, {dx, dw});
    expect_same_results(ours, identity, random_arguments(ours, {"", {}, {}}, static_cast<unsigned>(round)), 1e-12);
  }
}

// <conv(x,w), dy> = <x, input_grad(dy,w)> = <w, weight_grad(x,dy)> with every attribute drawn.
TEST(Identities, OneTrilinearForm) {
  std::mt19937_64 random(5);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 40; ++round) {
    const std::int64_t groups = pick(1, 3), r = pick(1, 3), s = pick(1, 3);
    const Value x = ir::parameter({f64, {pick(1, 2), groups * pick(1, 2), pick(5, 8), pick(5, 8)}}, "x");
    const Value w = ir::parameter({f64, {groups * pick(1, 2), x.type().shape[1] / groups, r, s}}, "w");
    const Attrs attrs{{"stride", {pick(1, 3), pick(1, 3)}},
                      {"padding", {pick(0, 2), pick(0, 2), pick(0, 2), pick(0, 2)}},
                      {"dilation", {pick(1, 2), pick(1, 2)}},
                      {"groups", groups}};
    const Value y = build(Op::conv2d, {x, w}, attrs);
    const Value dy = ir::parameter(y.type(), "dy");
    const Values grads = ir::gradient({y}, {dy}, {x, w});
    const auto dot = [](const Value& a, const Value& b) { return build(Op::sum, {build(Op::mul, {a, b})}); };
    const Graph graph = ir::capture("g", {x, w, dy}, {dot(y, dy), dot(x, grads[0]), dot(w, grads[1])});
    const std::vector<Array> got =
        ir::interpret(graph, random_arguments(graph, {"", {}, {}}, static_cast<unsigned>(round)));
    const double form = doubles_of(got[0])[0];
    EXPECT_NEAR(doubles_of(got[1])[0], form, 1e-9);
    EXPECT_NEAR(doubles_of(got[2])[0], form, 1e-9);
  }
}

TEST(AnchorEdges, EmptyBatchesAndEmptySums) {
  const auto got = run_text(
      "graph @g(%x: f32[0,1,3,3], %d: f32[0,1,2,2], %a: f32[2,0], %b: f32[0,2]) {"
      "  %0 = conv2d_weight_grad(%x, %d) {kernel_size=[2,2]} : f32[1,1,2,2]"
      "  %1 = matmul(%a, %b) : f32[2,2] return %0, %1 }",
      {{}, {}, {}, {}});
  EXPECT_EQ(got[0], (std::vector<double>(4, 0)));
  EXPECT_EQ(got[1], (std::vector<double>(4, 0)));
}

TEST(AnchorErrors, SayWhatIsWrong) {
  struct Wrong {
    Op op;
    std::vector<Type> types;
    Attrs attrs;
    const char* part;
  };
  const Type x{f32, {8, 64, 56, 56}};
  const Wrong table[] = {
      {Op::conv2d,
       {x, {f32, {64, 32, 3, 3}}},
       {},
       "conv2d: weight has 32 input channels, x has 64 (x: f32[8,64,56,56], w: f32[64,32,3,3])"},
      {Op::conv2d,
       {x, {f32, {64, 64, 3, 3}}},
       {{"groups", 2}},
       "weight has 64 input channels a group, x has 64 in 2 groups"},
      {Op::conv2d, {x, {f32, {64, 64, 3, 3}}}, {{"groups", 5}}, "groups = 5 does not divide the 64 input channels"},
      {Op::conv2d, {x, {f32, {64, 64, 57, 3}}}, {}, "a window of 57x3 with dilation 1x1 does not fit into 56x56"},
      {Op::conv2d, {x, {f32, {64, 64, 3, 3}}}, {{"dilation", {std::int64_t{1} << 40, 1}}}, "does not fit"},
      {Op::conv2d, {x, {f16, {64, 64, 3, 3}}}, {}, "x has dtype f32, w has f16"},
      {Op::conv2d, {x, {f32, {64, 64, 3, 3}}}, {{"stride", {0, 1}}}, "stride must be at least 1"},
      {Op::conv2d, {x, {f32, {64, 64, 3, 3}}}, {{"padding", {1, 1}}}, "padding must be four numbers"},
      {Op::conv2d_input_grad,
       {{f32, {1, 1, 2, 2}}, {f32, {1, 1, 2, 2}}},
       {{"input_size", {4, 4}}},
       "dy is 2x2, the convolution's result is 3x3"},
      {Op::matmul, {{f32, {2, 3}}, {f32, {4, 2}}}, {}, "a has 3 columns, b has 4 rows"},
      {Op::linear, {{f32, {2, 3}}, {f32, {5, 4}}}, {}, "weight has 4 input features, x has 3"},
  };
  for (const Wrong& wrong : table) {
    const std::string sentence = error_of([&] { op_over(wrong.op, wrong.types, wrong.attrs); });
    EXPECT_NE(sentence.find(wrong.part), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace fusejit::testing
