// The patterns of TensorFlow's remapper (grappler), and how many kernels they are: in both layouts, every float dtype,
// on processors and on CUDA, by themselves and differentiated. Preparation counts nothing: kernels that lay weights out
// for the tile that reads them, and those that touch vectors alone, such as 1/sqrt(var + eps) of each channel. What is
// fixed is prepared once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "ir/passes/grad.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"
#include "scheduler/report/fusions.h"

namespace fusejit::scheduler {
namespace {

// $D: the dtype; $X, $Y: images of 8 and 16 channels in the layout; $V: vector of 16; $P, $Q: matrices of 20 and 24.
struct Pattern {
  const char* name;
  const char* kinds;  // of the parts in the fusion log, none for one op by itself
  const char* parameters;
  const char* body;  // result: %y
  int kernels;
  int gradient_kernels;  // with the gradients of all parameters
  int more_in_nchw = 0;  // of those
};

constexpr const char* kConv = "%x: $X, %w: $D[16,8,3,3], %b: $V";
constexpr const char* kConvNorm = "%x: $X, %w: $D[16,8,3,3], %m: $V, %v: $V, %s: $V, %t: $V";
constexpr const char* kProduct = "%x: $P, %w: $D[24,20], %b: $D[24]";
constexpr const char* kDepthwise = "%x: $Y, %w: $D[16,1,3,3], %b: $V";
#define CONV "  %c = conv2d(%x, %w) {padding=[1,1,1,1]} : $Y\n"
#define CONV_BIAS CONV "  %d = bias_add(%c, %b) : $Y\n"
#define CONV_NORM CONV "  %d = batch_norm(%c, %m, %v, %s, %t) : $Y\n"
#define DEPTHWISE_BIAS "  %c = conv2d(%x, %w) {padding=[1,1,1,1], groups=16} : $Y\n  %d = bias_add(%c, %b) : $Y\n"
#define PRODUCT_BIAS "  %c = linear(%x, %w) : $Q\n  %d = bias_add(%c, %b) : $Q\n"

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all = {
      // 1, 3: bias, what is added, activation
      {"conv+bias+add+relu", "contraction bias_add side_input activation", "%x: $X, %w: $D[16,8,3,3], %b: $V, %z: $Y",
       CONV_BIAS "  %e = add(%d, %z) : $Y\n  %y = relu(%e) : $Y\n", 1, 3, 1},
      {"conv+bias+add+leaky_relu", "contraction bias_add side_input activation",
       "%x: $X, %w: $D[16,8,3,3], %b: $V, %z: $Y", CONV_BIAS "  %e = add(%d, %z) : $Y\n  %y = leaky_relu(%e) : $Y\n", 1,
       3, 1},
      {"conv+bias+add", "contraction bias_add side_input", "%x: $X, %w: $D[16,8,3,3], %b: $V, %z: $Y",
       CONV_BIAS "  %y = add(%d, %z) : $Y\n", 1, 4},
      {"depthwise+bias+add", "contraction bias_add side_input", "%x: $Y, %w: $D[16,1,3,3], %b: $V, %z: $Y",
       DEPTHWISE_BIAS "  %y = add(%d, %z) : $Y\n", 1, 4},
      {"product+bias+add", "contraction bias_add side_input", "%x: $P, %w: $D[24,20], %b: $D[24], %z: $Q",
       PRODUCT_BIAS "  %y = add(%d, %z) : $Q\n", 1, 4},
      {"depthwise+bias+add+relu6", "contraction bias_add side_input activation",
       "%x: $Y, %w: $D[16,1,3,3], %b: $V, %z: $Y", DEPTHWISE_BIAS "  %e = add(%d, %z) : $Y\n  %y = relu6(%e) : $Y\n", 1,
       3, 1},
      {"product+bias+add+elu", "contraction bias_add side_input activation",
       "%x: $P, %w: $D[24,20], %b: $D[24], %z: $Q", PRODUCT_BIAS "  %e = add(%d, %z) : $Q\n  %y = elu(%e) : $Q\n", 1,
       3},
      // 2: an activation by itself
      {"conv+leaky_relu", "contraction activation", "%x: $X, %w: $D[16,8,3,3]", CONV "  %y = leaky_relu(%c) : $Y\n", 1,
       3},
      {"conv+mish", "contraction activation", "%x: $X, %w: $D[16,8,3,3]", CONV "  %y = mish(%c) : $Y\n", 1, 3},
      // 4: padding in front
      {"pad+conv", "contraction layout", "%x: $X, %w: $D[16,8,2,2]",
       "  %p = pad(%x) {low=[0,0,0,0], high=[0,0,1,1]} : $D[2,8,11,11]$L\n  %y = conv2d(%p, %w) : $Y\n", 1, 3},
      // 5: an activation written out
      {"conv+bias+hardswish written out", "contraction bias_add side_input activation elementwise", kConv,
       CONV_BIAS "  %e = add(%d, 3) : $Y\n  %f = relu6(%e) : $Y\n  %g = mul(%f, 0.16666667) : $Y\n"
                 "  %y = mul(%d, %g) : $Y\n",
       1, 3},
      {"depthwise+bias+hardswish", "contraction bias_add activation", kDepthwise,
       DEPTHWISE_BIAS "  %y = hardswish(%d) : $Y\n", 1, 3},
      // 6, 9, 10: activations written out, alone
      {"x tanh(softplus(x))", "activation elementwise", "%x: $X",
       "  %a = softplus(%x) : $X\n  %c = tanh(%a) : $X\n  %y = mul(%x, %c) : $X\n", 1, 1},
      {"maximum(x, 0.2 x)", "elementwise", "%x: $X", "  %a = mul(%x, 0.2) : $X\n  %y = maximum(%x, %a) : $X\n", 1, 1},
      {"x sigmoid(x)", "activation elementwise", "%x: $X", "  %a = sigmoid(%x) : $X\n  %y = mul(%x, %a) : $X\n", 1, 1},
      // 7: a scaled product and a mask
      {"matmul*scalar+add", "contraction side_input elementwise",
       "%x: $D[2,4,6,20], %w: $D[2,4,20,24], %m: $D[2,1,6,24]",
       "  %c = matmul(%x, %w) : $D[2,4,6,24]\n  %d = mul(%c, 0.125) : $D[2,4,6,24]\n"
       "  %y = add(%d, %m) : $D[2,4,6,24]\n",
       1, 4},
      {"scalar*x matmul+add", "contraction side_input elementwise",
       "%x: $D[2,4,6,20], %w: $D[2,4,20,24], %m: $D[2,1,6,24]",
       "  %c = mul(%x, 0.125) : $D[2,4,6,20]\n  %d = matmul(%c, %w) : $D[2,4,6,24]\n"
       "  %y = add(%d, %m) : $D[2,4,6,24]\n",
       1, 4},
      // 8: swish
      {"conv+bias+x sigmoid(x)", "contraction bias_add activation elementwise", kConv,
       CONV_BIAS "  %e = sigmoid(%d) : $Y\n  %y = mul(%d, %e) : $Y\n", 1, 3},
      {"conv+batch_norm+silu", "contraction normalization activation", kConvNorm, CONV_NORM "  %y = silu(%d) : $Y\n", 1,
       4},
      // 11: layer norm, as one op and from its parts
      {"layer_norm", "", "%x: $R, %s: $D[80], %t: $D[80]",
       "  %y = layer_norm(%x, %s, %t) {normalized_shape=[80]} : $R\n", 1, 3},
      {"layer norm written out", "reduction side_input activation elementwise", "%x: $R, %s: $D[80], %t: $D[80]",
       "  %a = mean(%x) {dim=[1], keepdim=true} : $D[6,1]\n  %c = sub(%x, %a) : $R\n  %d = square(%c) : $R\n"
       "  %e = mean(%d) {dim=[1], keepdim=true} : $D[6,1]\n  %f = add(%e, 1e-5) : $D[6,1]\n"
       "  %g = rsqrt(%f) : $D[6,1]\n  %h = mul(%c, %g) : $R\n  %i = mul(%h, %s) : $R\n  %y = add(%i, %t) : $R\n",
       1, 3},
      // 12, 13: instance norm
      {"instance_norm+relu", "normalization activation", "%x: $X, %s: $D[8], %t: $D[8]",
       "  %a = instance_norm(%x, %s, %t) : $X\n  %y = relu(%a) : $X\n", 2, 4},
      {"instance_norm+leaky_relu", "normalization activation", "%x: $X, %s: $D[8], %t: $D[8]",
       "  %a = instance_norm(%x, %s, %t) : $X\n  %y = leaky_relu(%a) : $X\n", 2, 4},
      {"instance_norm", "", "%x: $X, %s: $D[8], %t: $D[8]", "  %y = instance_norm(%x, %s, %t) : $X\n", 2, 4},
      // 14: gelu in both forms
      {"product+bias+gelu", "contraction bias_add activation", kProduct, PRODUCT_BIAS "  %y = gelu(%d) : $Q\n", 1, 3},
      {"product+bias+gelu by tanh", "contraction bias_add activation", kProduct,
       PRODUCT_BIAS "  %y = gelu(%d) {approximate=tanh} : $Q\n", 1, 3},
      {"product+bias+gelu written out", "contraction bias_add side_input activation elementwise", kProduct,
       PRODUCT_BIAS "  %e = mul(%d, 0.70710678) : $Q\n  %f = erf(%e) : $Q\n  %g = add(%f, 1) : $Q\n"
                    "  %h = mul(%d, %g) : $Q\n  %y = mul(%h, 0.5) : $Q\n",
       1, 3},
      // 15, 16: bias, and an activation
      {"conv+bias", "contraction bias_add", kConv, CONV "  %y = bias_add(%c, %b) : $Y\n", 1, 4},
      {"depthwise+bias", "contraction bias_add", kDepthwise,
       "  %c = conv2d(%x, %w) {padding=[1,1,1,1], groups=16} : $Y\n  %y = bias_add(%c, %b) : $Y\n", 1, 4},
      {"product+bias", "contraction bias_add", kProduct, "  %c = linear(%x, %w) : $Q\n  %y = bias_add(%c, %b) : $Q\n",
       1, 4},
      {"conv+bias+relu", "contraction bias_add activation", kConv, CONV_BIAS "  %y = relu(%d) : $Y\n", 1, 3},
      {"conv+bias+maximum(x, 0)", "contraction bias_add elementwise", kConv, CONV_BIAS "  %y = maximum(%d, 0) : $Y\n",
       1, 3},
      {"conv+bias+relu6", "contraction bias_add activation", kConv, CONV_BIAS "  %y = relu6(%d) : $Y\n", 1, 3},
      {"conv+bias+leaky_relu", "contraction bias_add activation", kConv, CONV_BIAS "  %y = leaky_relu(%d) : $Y\n", 1,
       3},
      {"conv+bias+elu", "contraction bias_add activation", kConv, CONV_BIAS "  %y = elu(%d) : $Y\n", 1, 3},
      {"conv+bias+tanh", "contraction bias_add activation", kConv, CONV_BIAS "  %y = tanh(%d) : $Y\n", 1, 3},
      {"1x1 conv+bias+sigmoid", "contraction bias_add activation", "%x: $X, %w: $D[16,8,1,1], %b: $V",
       "  %c = conv2d(%x, %w) : $Y\n  %d = bias_add(%c, %b) : $Y\n  %y = sigmoid(%d) : $Y\n", 1, 3},
      {"depthwise+bias+relu", "contraction bias_add activation", kDepthwise, DEPTHWISE_BIAS "  %y = relu(%d) : $Y\n", 1,
       3},
      {"depthwise+bias+relu6", "contraction bias_add activation", kDepthwise, DEPTHWISE_BIAS "  %y = relu6(%d) : $Y\n",
       1, 3},
      {"depthwise+bias+elu", "contraction bias_add activation", kDepthwise, DEPTHWISE_BIAS "  %y = elu(%d) : $Y\n", 1,
       3},
      {"depthwise+bias+leaky_relu", "contraction bias_add activation", kDepthwise,
       DEPTHWISE_BIAS "  %y = leaky_relu(%d) : $Y\n", 1, 3},
      {"product+bias+relu", "contraction bias_add activation", kProduct, PRODUCT_BIAS "  %y = relu(%d) : $Q\n", 1, 3},
      {"product+bias+relu6", "contraction bias_add activation", kProduct, PRODUCT_BIAS "  %y = relu6(%d) : $Q\n", 1, 3},
      {"product+bias+elu", "contraction bias_add activation", kProduct, PRODUCT_BIAS "  %y = elu(%d) : $Q\n", 1, 3},
      {"product+bias+leaky_relu", "contraction bias_add activation", kProduct,
       PRODUCT_BIAS "  %y = leaky_relu(%d) : $Q\n", 1, 3},
      {"product+bias+sigmoid", "contraction bias_add activation", kProduct, PRODUCT_BIAS "  %y = sigmoid(%d) : $Q\n", 1,
       3},
      {"product+bias+tanh", "contraction bias_add activation", kProduct, PRODUCT_BIAS "  %y = tanh(%d) : $Q\n", 1, 3},
      // 17: a view in between
      {"conv+squeeze+bias", "contraction layout side_input", "%x: $D[2,8,3,10]$L, %w: $D[16,8,3,3], %b: $D[16,1]",
       "  %c = conv2d(%x, %w) {padding=[0,1,0,1]} : $D[2,16,1,10]$L\n  %d = squeeze(%c) {dim=[2]} : $D[2,16,10]\n"
       "  %y = add(%d, %b) : $D[2,16,10]\n",
       1, 5},
      // 18, 19: batch norm with known statistics, as one op and from its parts
      {"conv+batch_norm", "contraction normalization", kConvNorm, CONV "  %y = batch_norm(%c, %m, %v, %s, %t) : $Y\n",
       1, 4},
      {"conv+batch_norm+relu", "contraction normalization activation", kConvNorm, CONV_NORM "  %y = relu(%d) : $Y\n", 1,
       4},
      {"conv+batch_norm+relu6", "contraction normalization activation", kConvNorm, CONV_NORM "  %y = relu6(%d) : $Y\n",
       1, 4},
      {"conv+batch_norm+elu", "contraction normalization activation", kConvNorm, CONV_NORM "  %y = elu(%d) : $Y\n", 1,
       4},
      {"conv+batch_norm+leaky_relu", "contraction normalization activation", kConvNorm,
       CONV_NORM "  %y = leaky_relu(%d) : $Y\n", 1, 4},
      {"conv+batch norm written out+relu", "contraction side_input activation elementwise",
       "%x: $X, %w: $D[16,8,3,3], %m: $D[1,16,1,1], %v: $D[1,16,1,1], %s: $D[1,16,1,1], %t: $D[1,16,1,1]",
       CONV "  %a = add(%v, 1e-5) : $D[1,16,1,1]\n  %d = rsqrt(%a) : $D[1,16,1,1]\n"
            "  %e = mul(%d, %s) : $D[1,16,1,1]\n  %f = sub(%c, %m) : $Y\n  %g = mul(%f, %e) : $Y\n"
            "  %h = add(%g, %t) : $Y\n  %y = relu(%h) : $Y\n",
       1, 4},
      // 20, 21: batch norm, side input and relu, with known statistics and in training
      {"batch_norm+add+relu", "normalization side_input activation", "%x: $Y, %m: $V, %v: $V, %s: $V, %t: $V, %z: $Y",
       "  %a = batch_norm(%x, %m, %v, %s, %t) : $Y\n  %c = add(%a, %z) : $Y\n  %y = relu(%c) : $Y\n", 1, 2},
      {"batch_norm_train+relu", "normalization activation", "%x: $Y, %s: $V, %t: $V",
       "  %a = batch_norm_train(%x, %s, %t) : $Y\n  %y = relu(%a) : $Y\n", 2, 3},
      {"batch_norm_train+add+relu", "normalization side_input activation", "%x: $Y, %s: $V, %t: $V, %z: $Y",
       "  %a = batch_norm_train(%x, %s, %t) : $Y\n  %c = add(%a, %z) : $Y\n  %y = relu(%c) : $Y\n", 2, 3},
      {"conv+batch_norm_train+add+relu", "contraction normalization side_input activation",
       "%x: $X, %w: $D[16,8,3,3], %s: $V, %t: $V, %z: $Y",
       CONV "  %a = batch_norm_train(%c, %s, %t) : $Y\n  %d = add(%a, %z) : $Y\n  %y = relu(%d) : $Y\n", 2, 5, 1},
      {"conv+batch norm in training written out+relu", "contraction reduction side_input activation elementwise",
       "%x: $X, %w: $D[16,8,3,3], %s: $D[1,16,1,1], %t: $D[1,16,1,1]",
       CONV "  %m = mean(%c) {dim=[0,2,3], keepdim=true} : $D[1,16,1,1]\n  %d = sub(%c, %m) : $Y\n"
            "  %q = square(%d) : $Y\n  %v = mean(%q) {dim=[0,2,3], keepdim=true} : $D[1,16,1,1]\n"
            "  %e = add(%v, 1e-5) : $D[1,16,1,1]\n  %r = rsqrt(%e) : $D[1,16,1,1]\n  %f = mul(%d, %r) : $Y\n"
            "  %g = mul(%f, %s) : $Y\n  %h = add(%g, %t) : $Y\n  %y = relu(%h) : $Y\n",
       2, 6, 1},
      // 23: batch norm with known statistics alone
      {"batch_norm", "", "%x: $Y, %m: $V, %v: $V, %s: $V, %t: $V", "  %y = batch_norm(%x, %m, %v, %s, %t) : $Y\n", 1,
       2},
  };
  return all;
}

std::string replaced(std::string text, const char* dtype, bool nhwc) {
  const std::string d = dtype, l = nhwc ? ":nhwc" : "";
  const std::pair<const char*, std::string> words[] = {
      {"$X", "$D[2,8,10,10]$L"}, {"$Y", "$D[2,16,10,10]$L"}, {"$V", "$D[16]"}, {"$P", "$D[6,20]"},
      {"$R", "$D[6,80]"},        {"$Q", "$D[6,24]"},         {"$D", d},        {"$L", l}};
  for (const auto& [word, by] : words) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;) text.replace(at, 2, by);
  }
  return text;
}

ir::Graph graph_of(const Pattern& pattern, const char* dtype, bool nhwc) {
  return ir::parse_graph(fmt::format("graph @pattern({}) {{\n{}  return %y\n}}",
                                     replaced(pattern.parameters, dtype, nhwc), replaced(pattern.body, dtype, nhwc)));
}

struct Made {
  int kernels = 0;
  std::string names;
};
Made made(const ir::Graph& graph, const char* target) {
  Made m;
  const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, {}, runtime::cudnn::supports_step});
  for (const PlanStep& step : plan.steps) {
    const auto is_vector = [&](int value) {
      return plan.values[value].bytes * 8 <= bits(plan.values[value].dtype) * 80;
    };
    if (step.name.ends_with("_pack") || step.name == "conv2d_layout" ||
        std::all_of(step.values.begin(), step.values.end(), is_vector))
      continue;
    ++m.kernels;
    m.names += (m.names.empty() ? "" : ", ") + step.name;
  }
  return m;
}

TEST(Patterns, AreInAsManyKernelsAsTheyTake) {
  for (const Pattern& pattern : patterns()) {
    for (const char* dtype : {"f32", "f64", "bf16", "f16"}) {
      for (const bool nhwc : {false, true}) {
        const ir::Graph graph = graph_of(pattern, dtype, nhwc);
        std::vector<std::string> names;
        for (const ir::Value& parameter : graph.parameters()) names.push_back(parameter->name);
        const ir::Graph gradient = ir::differentiate(graph, names);
        for (const char* target : {"x86:avx512", "x86:avx2", "cuda:sm_90"}) {
          const auto expect = [&](const ir::Graph& g, int kernels, const char* what) {
            const Made m = made(g, target);
            EXPECT_LE(m.kernels, kernels)
                << pattern.name << what << ", " << dtype << (nhwc ? " nhwc, " : " nchw, ") << target << ": " << m.names;
          };
          expect(graph, pattern.kernels, "");
          expect(gradient, pattern.gradient_kernels + (nhwc ? 0 : pattern.more_in_nchw), ", gradient");
        }
      }
    }
  }
}

// Beside cuDNN an engine may leave one kernel more behind it, such as an activation that it does not have or the sums
// of a batch norm (docs/cudnn.md); backward the masked gradient and the layout of the weights' gradient.
TEST(Patterns, TakeALittleMoreBesideALibrary) {
  for (const Pattern& pattern : patterns()) {
    for (const char* dtype : {"f32", "bf16", "f16"}) {
      const ir::Graph graph = graph_of(pattern, dtype, true);
      std::vector<std::string> names;
      for (const ir::Value& parameter : graph.parameters()) names.push_back(parameter->name);
      for (const char* target : {"cuda:sm_90,cudnn=1", "cuda:sm_90,cudnn=2"}) {
        const Made forward = made(graph, target), both = made(ir::differentiate(graph, names), target);
        EXPECT_LE(forward.kernels, pattern.kernels + 1)
            << pattern.name << ", " << dtype << ", " << target << ": " << forward.names;
        EXPECT_LE(both.kernels, pattern.gradient_kernels + 2)
            << pattern.name << " gradient, " << dtype << ", " << target << ": " << both.names;
      }
    }
  }
}

// Every op of a pattern is in a line of the fusion log with what it is, and the line says what was saved.
TEST(Patterns, AreInTheFusionLog) {
  for (const Pattern& pattern : patterns()) {
    for (const bool nhwc : {false, true}) {
      const ir::Graph graph = graph_of(pattern, "f32", nhwc);
      for (const char* target : {"x86:avx512", "x86:avx2", "cuda:sm_90"}) {
        const Fusions fusions = fusions_of(make_plan(graph, {Target::parse(target), Rules::all, {}}), graph);
        std::set<std::string> kinds;
        for (const Fusion& fusion : fusions.list) {
          EXPECT_GT(fusion.saved_bytes, 0) << pattern.name << " on " << target << ": " << line_of(fusion);
          for (const auto& [kind, ops] : fusion.parts) kinds.insert(kind);
        }
        std::istringstream words(pattern.kinds);
        const std::set<std::string> expected{std::istream_iterator<std::string>(words), {}};
        EXPECT_EQ(kinds, expected) << pattern.name << " on " << target;
        EXPECT_EQ(fusions.fused_ops, expected.empty() ? 0 : fusions.recorded_ops) << pattern.name << " on " << target;
        EXPECT_EQ(expected.empty(), fusions.recorded_ops == 1) << pattern.name;
      }
    }
  }
}

}  // namespace
}  // namespace fusejit::scheduler
