// Steps of plans as calls of cuDNN.
#include "runtime/cudnn/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/models/named.h"
#include "scheduler/make_plan.h"
#include "tests/unit/cudnn/with_cudnn.h"

namespace fusejit::runtime::cudnn {
namespace {

scheduler::Plan plan_of(const char* model, const std::string& target, DType dtype = DType::f32) {
  const models::ModelGraph step = models::model_graph(model, dtype);
  return scheduler::make_plan(
      step.graph,
      {Target::parse(target), scheduler::Rules::all, {step.donated.begin(), step.donated.end()}, supports_step});
}

std::vector<ConvolutionCall> calls_of(const scheduler::Plan& plan) {
  std::vector<ConvolutionCall> calls;
  std::set<std::string> seen;
  for (const scheduler::PlanStep& step : plan.steps) {
    if (!step.library) continue;
    const StepCall wanted = step_call(step.library->graph);
    if (seen.insert(wanted.call.str()).second) calls.push_back(wanted.call);
  }
  return calls;
}

TEST(CudnnStep, EveryConvolutionOfAStepIsACall) {
  const scheduler::Plan plan = plan_of("convnet@4:train", "cuda:sm_90,cudnn=1");
  std::vector<std::string> calls;
  for (const ConvolutionCall& call : calls_of(plan)) calls.push_back(call.str());
  const std::string one = "x=[4,1,28,28] w=[32,1,3,3] stride=[1,1] padding=[0,0,0,0] dilation=[1,1] groups=1";
  const std::string two = "x=[4,32,26,26] w=[64,32,3,3] stride=[1,1] padding=[0,0,0,0] dilation=[1,1] groups=1";
  const std::vector<std::string> want = {"forward f32:nhwc " + one, "forward f32:nhwc " + two,
                                         "input_gradient f32:nhwc " + two, "weight_gradient f32:nhwc " + one,
                                         "weight_gradient f32:nhwc " + two};
  EXPECT_EQ(std::set<std::string>(calls.begin(), calls.end()), std::set<std::string>(want.begin(), want.end()));
  for (const scheduler::PlanStep& step : plan_of("convnet@4:train", "cuda:sm_90").steps) EXPECT_FALSE(step.library);
}

// A depthwise convolution takes its statistics, mask and sums along where the library would leave them to a kernel.
TEST(CudnnStep, DepthwiseConvolutionsStayKernels) {
  const scheduler::Plan plan = plan_of("mobilenet_v2@2x3x32x32:train", "cuda:sm_90,cudnn=1");
  for (const ConvolutionCall& call : calls_of(plan)) EXPECT_EQ(call.groups, 1) << call.str();
  int with_statistics = 0, with_sums = 0, calls = 0;
  for (const scheduler::PlanStep& step : plan.steps) {
    calls += step.library.has_value();
    const auto computes = [&step](std::string_view op) {
      return std::any_of(step.ops.begin(), step.ops.end(),
                         [&](const std::string& label) { return label.ends_with(op); });
    };
    with_statistics += computes(" conv2d") && computes(" mean") && computes(" var");
    with_sums += computes(" conv2d_input_grad") && computes(" sum");
  }
  EXPECT_EQ(with_statistics, 17);
  EXPECT_EQ(with_sums, 17);
  EXPECT_EQ(calls, 35 * 3 - 1) << "every other convolution and its gradients, but for that of the images";
}

// Two addends after a convolution, in either order, written as people and as exporters write them.
ir::Graph block(const char* addends) {
  return ir::parse_graph(fmt::format(
      R"(graph @block(%x: f32[8,64,28,28]:nhwc, %w: f32[64,64,3,3]:nhwc, %b: f32[64], %side: f32[8,64,28,28]:nhwc) {{
  %0 = conv2d(%x, %w) {{padding=[1,1,1,1]}} : f32[8,64,28,28]:nhwc
  {}
  %3 = relu(%2) : f32[8,64,28,28]:nhwc
  return %3
}})",
      addends));
}
const char* const kBiasFirst =
    "%1 = bias_add(%0, %b) : f32[8,64,28,28]:nhwc\n  %2 = add(%1, %side) : f32[8,64,28,28]:nhwc";
const char* const kSideFirst =
    "%1 = add(%side, %0) : f32[8,64,28,28]:nhwc\n  %2 = bias_add(%1, %b) : f32[8,64,28,28]:nhwc";

TEST(CudnnStep, ABlockIsOneCall) {
  for (const char* addends : {kBiasFirst, kSideFirst}) {
    const scheduler::Plan plan = scheduler::make_plan(
        block(addends), {Target::parse("cuda:sm_90,cudnn=1"), scheduler::Rules::all, {}, supports_step});
    ASSERT_EQ(plan.steps.size(), 1u) << scheduler::print_outline(plan);
    ASSERT_TRUE(plan.steps[0].library);
    const StepCall wanted = step_call(plan.steps[0].library->graph);
    EXPECT_TRUE(wanted.call.side && wanted.call.bias);
    EXPECT_EQ(wanted.call.activation, Activation::relu);
    EXPECT_EQ(std::set<Role>(wanted.roles.begin(), wanted.roles.end()),
              (std::set<Role>{Role::x, Role::w, Role::bias, Role::side, Role::y}));
    EXPECT_EQ(wanted.roles.back(), Role::y);
    // Which value has which role: by the labels of the plan.
    for (std::size_t i = 0; i + 1 < wanted.roles.size(); ++i) {
      const std::string& label = plan.values[static_cast<std::size_t>(plan.steps[0].library->values[i])].label;
      const Role role = wanted.roles[i];
      EXPECT_EQ(label, role == Role::x ? "%x" : role == Role::w ? "%w" : role == Role::bias ? "%b" : "%side");
    }
    // A call reads its operands while it writes.
    EXPECT_EQ(plan.values[static_cast<std::size_t>(plan.results[0])].storage, scheduler::Storage::result);
  }
}

TEST(CudnnStep, WhatIsNoCallSaysSo) {
  const auto answer = [](const std::string& result, const std::string& more = "") {
    const ir::Graph graph = ir::parse_graph(fmt::format(
        "graph @g(%x: f32[2,8,8,8]:nhwc, %w: f32[8,8,3,3]:nhwc{}) {{\n  %0 = conv2d(%x, %w) {{padding=[1,1,1,1]}} : "
        "f32[2,8,8,8]:nhwc\n  %1 = {} : f32[2,8,8,8]:nhwc\n  return %1\n}}",
        more, result));
    return supports_step(graph, Target::parse("cuda:sm_90,cudnn=1"));
  };
  const std::string slow = answer("maximum(%0, 0)").why;  // without bias there is no precompiled engine for it
  EXPECT_NE(slow.find("only engines that cuDNN compiles at run time"), std::string::npos) << slow;
  EXPECT_FALSE(answer("maximum(%0, 1)").ok);
  EXPECT_FALSE(answer("mul(%0, 2)").ok);
  EXPECT_FALSE(answer("add(%0, 2)").ok);
  EXPECT_FALSE(answer("add(%0, %x)").ok) << "one value in two roles";
  EXPECT_FALSE(answer("add(%0, %r)", ", %r: f32[2,8,1,8]:nhwc").ok);
  const auto why = answer("mul(%0, 2)").why;
  EXPECT_NE(why.find("mul"), std::string::npos) << why;
}

// A convolution with what stands after it, of one dtype; vectors of one number a channel are f32 where `norm` says so.
ir::Graph followed_by(const std::string& ops, const std::string& dtype, const std::string& vectors) {
  std::string text = R"(graph @g(%x: T[8,64,28,28]:nhwc, %w: T[64,64,3,3]:nhwc, %b: V[64], %side: T[8,64,28,28]:nhwc,
      %mean: V[64], %var: V[64], %gamma: V[64]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : T[8,64,28,28]:nhwc
)" + ops + "}";
  for (const auto& [letter, word] : {std::pair('T', dtype), std::pair('V', vectors)}) {
    for (std::size_t at = text.find(letter); at != std::string::npos; at = text.find(letter, at + 1)) {
      text.replace(at, 1, word);
    }
  }
  return ir::parse_graph(text);
}
std::string line(const char* number, const std::string& op) {
  return fmt::format("  %{} = {} : T[8,64,28,28]:nhwc\n", number, op);
}

scheduler::Plan plan_for(const ir::Graph& graph, const std::string& target) {
  return scheduler::make_plan(graph, {Target::parse(target), scheduler::Rules::all, {}, supports_step});
}

TEST(CudnnStep, ActivationsAreOneCallWhereEnginesAreCompiled) {
  struct Case {
    const char* op;
    Activation activation;
  };
  for (const auto& [op, activation] : {Case{"relu6(%1)", Activation::relu6},
                                       {"sigmoid(%1)", Activation::sigmoid},
                                       {"tanh(%1)", Activation::tanh},
                                       {"silu(%1)", Activation::silu},
                                       {"elu(%1)", Activation::elu},
                                       {"gelu(%1)", Activation::gelu},
                                       {"gelu(%1) {approximate=tanh}", Activation::gelu_tanh},
                                       {"softplus(%1)", Activation::softplus},
                                       {"leaky_relu(%1) {negative_slope=0.2}", Activation::leaky_relu}}) {
    for (const char* dtype : {"f32", "f16", "bf16"}) {
      const ir::Graph graph =
          followed_by(line("1", "bias_add(%0, %b)") + line("2", op) + "  return %2\n", dtype, dtype);
      const scheduler::Plan plan = plan_for(graph, "cuda:sm_90,cudnn=2");
      ASSERT_EQ(plan.steps.size(), 1u) << op << " " << dtype << "\n" << scheduler::print_outline(plan);
      const ConvolutionCall call = step_call(plan.steps[0].library->graph).call;
      EXPECT_EQ(call.activation, activation) << op << " " << dtype;
      EXPECT_TRUE(call.bias && !call.side && !call.scale);
      if (activation == Activation::leaky_relu) {
        EXPECT_EQ(call.slope, 0.2f);
      }
      const bool compiled = tier_of(plan.steps[0].library->graph, plan.target) == Tier::runtime_compiled;
      // Without those engines it is two steps, and the reason is kept.
      const scheduler::Plan without = plan_for(graph, "cuda:sm_90,cudnn=1");
      EXPECT_EQ(without.steps.size(), compiled ? 2u : 1u) << op << " " << dtype;
      EXPECT_EQ(without.refusals.empty(), !compiled) << op << " " << dtype;
    }
  }
  // Another slope is no elu of cuDNN's.
  const ir::Graph other =
      followed_by(line("1", "bias_add(%0, %b)") + line("2", "elu(%1) {alpha=0.5}") + "  return %2\n", "f16", "f16");
  EXPECT_EQ(plan_for(other, "cuda:sm_90,cudnn=2").steps.size(), 2u);
}

const char* const kNorm = "batch_norm(%0, %mean, %var, %gamma, %b)";

TEST(CudnnStep, BatchNormWithKnownStatisticsJoinsTheCall) {
  const std::string norm = line("1", kNorm);
  struct Case {
    std::string ops;
    bool side;
    Activation activation;
  };
  for (const auto& [ops, side, activation] :
       {Case{norm + "  return %1\n", false, Activation::none},
        Case{norm + line("2", "relu(%1)") + "  return %2\n", false, Activation::relu},
        Case{norm + line("2", "silu(%1)") + "  return %2\n", false, Activation::silu},
        Case{norm + line("2", "add(%1, %side)") + line("3", "relu(%2)") + "  return %3\n", true, Activation::relu},
        Case{norm + line("2", "add(%side, %1)") + line("3", "relu(%2)") + "  return %3\n", true, Activation::relu}}) {
    for (const char* dtype : {"f32", "f16", "bf16"}) {
      const ir::Graph graph = followed_by(ops, dtype, "f32");
      const scheduler::Plan plan = plan_for(graph, "cuda:sm_90,cudnn=2");
      ASSERT_EQ(plan.steps.size(), 2u) << dtype << ", the other one computes the scale\n"
                                       << scheduler::print_outline(plan);
      const StepCall wanted = step_call(plan.steps[1].library->graph);
      EXPECT_TRUE(wanted.call.centre && wanted.call.scale && wanted.call.bias);
      EXPECT_EQ(wanted.call.side, side);
      EXPECT_EQ(wanted.call.activation, activation);
      for (std::size_t i = 0; i + 1 < wanted.roles.size(); ++i) {
        const std::string& label = plan.values[static_cast<std::size_t>(plan.steps[1].library->values[i])].label;
        if (wanted.roles[i] == Role::output_mean) {
          EXPECT_EQ(label, "%mean");
        }
        if (wanted.roles[i] == Role::bias) {
          EXPECT_EQ(label, "%b");
        }
        if (wanted.roles[i] == Role::side) {
          EXPECT_EQ(label, "%side");
        }
      }
      EXPECT_EQ(tier_of(plan.steps[1].library->graph, plan.target), Tier::runtime_compiled);
    }
  }
}

// Gradients of a residual block: what a relu lets through, and the gradient of the other branch.
TEST(CudnnStep, MasksAndSideInputsJoinTheInputGradient) {
  const auto steps = [](const std::string& rest, const std::string& target) {
    const ir::Graph graph = ir::parse_graph(
        "graph @g(%dy: f16[8,64,28,28]:nhwc, %w: f16[64,64,3,3]:nhwc, %y: f16[8,64,28,28]:nhwc, %side: "
        "f16[8,64,28,28]:nhwc) {\n  %0 = conv2d_input_grad(%dy, %w) {input_size=[28,28], padding=[1,1,1,1]} : "
        "f16[8,64,28,28]:nhwc\n" +
        rest + "}");
    return plan_for(graph, target);
  };
  const std::string type = " : f16[8,64,28,28]:nhwc\n";
  const std::string add = "  %1 = add(%side, %0)" + type;
  const auto mask = [&](const char* gradient) {
    return fmt::format("  %2 = le(%y, 0) : bool[8,64,28,28]:nhwc\n  %3 = where(%2, 0, {}){}  return %3\n", gradient,
                       type);
  };
  struct Case {
    std::string rest;
    std::set<Role> roles;
    std::string call;
  };
  for (const auto& [rest, roles, end] :
       {Case{add + "  return %1\n", {Role::y, Role::w, Role::x, Role::side}, " side"},
        Case{mask("%0"), {Role::y, Role::w, Role::x, Role::mask}, " mask=output"},
        Case{add + mask("%1"), {Role::y, Role::w, Role::x, Role::side, Role::mask}, " side mask=output"}}) {
    const scheduler::Plan plan = steps(rest, "cuda:sm_90,cudnn=2");
    ASSERT_EQ(plan.steps.size(), 1u) << scheduler::print_outline(plan);
    const StepCall wanted = step_call(plan.steps[0].library->graph);
    EXPECT_EQ(std::set<Role>(wanted.roles.begin(), wanted.roles.end()), roles);
    EXPECT_EQ(wanted.roles.back(), Role::x);
    EXPECT_TRUE(wanted.call.str().ends_with("groups=1" + end)) << wanted.call.str();
    EXPECT_EQ(tier_of(plan.steps[0].library->graph, plan.target), Tier::runtime_compiled);
    for (std::size_t i = 0; i < wanted.roles.size(); ++i) {
      const std::string& label = plan.values[static_cast<std::size_t>(plan.steps[0].library->values[i])].label;
      if (wanted.roles[i] == Role::mask) {
        EXPECT_EQ(label, "%y");
      }
      if (wanted.roles[i] == Role::side) {
        EXPECT_EQ(label, "%side");
      }
    }
    EXPECT_EQ(steps(rest, "cuda:sm_90,cudnn=1").steps.size(), 2u);
  }
  // A relu of a gradient, or a gradient times something, is no call.
  EXPECT_EQ(steps("  %1 = maximum(%0, 0)" + type + "  return %1\n", "cuda:sm_90,cudnn=2").steps.size(), 2u);
  EXPECT_EQ(steps("  %1 = mul(%0, %y)" + type + "  return %1\n", "cuda:sm_90,cudnn=2").steps.size(), 2u);
}

// A kernel that reads nothing of an operand, because each tap is outside of the image, is no call.
TEST(CudnnStep, WhatReadsNothingIsAKernel) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%dy: f32[1,3,1,1]:nhwc, %x: f32[1,9,1,1]:nhwc) {
  %0 = conv2d_weight_grad(%x, %dy) {kernel_size=[2,2], padding=[1,1,1,1], dilation=[2,2], groups=3} : f32[3,3,2,2]:nhwc
  return %0
})");
  for (const char* target : {"cuda:sm_90,cudnn=1", "cuda:sm_90,cudnn=2"})
    for (const scheduler::Rules rules : {scheduler::Rules::all, scheduler::Rules::none}) {
      const scheduler::Plan plan = scheduler::make_plan(graph, {Target::parse(target), rules, {}, supports_step});
      for (const scheduler::PlanStep& step : plan.steps) EXPECT_FALSE(step.library);
    }
}

// An input gradient of which a stored mask, one bit an element, says what passes, and sums of what does.
ir::Graph with_sums(const std::string& results, const std::string& sums, const char* gradient = "%1") {
  const bool centred = sums.find("%5") != std::string::npos,
             normalised = centred || sums.find("%3") != std::string::npos;
  return ir::parse_graph(fmt::format(
      R"(graph @g(%dy: f16[8,64,28,28]:nhwc, %w: f16[64,64,3,3]:nhwc, %m: bool[8,64,28,28]:nhwc{}{}) {{
  %0 = conv2d_input_grad(%dy, %w) {{input_size=[28,28], padding=[1,1,1,1]}} : f16[8,64,28,28]:nhwc
  %1 = where(%m, %0, 0) : f16[8,64,28,28]:nhwc
  %2 = cast({}) {{dtype=f32}} : f32[8,64,28,28]:nhwc
{}{}{}  return {}
}})",
      normalised ? ", %y: f16[8,64,28,28]:nhwc" : "", centred ? ", %mean: f32[64]" : "", gradient,
      normalised ? "  %3 = cast(%y) {dtype=f32} : f32[8,64,28,28]:nhwc\n" : "",
      centred ? "  %4 = reshape(%mean) {shape=[1,64,1,1]} : f32[1,64,1,1]\n"
                "  %5 = sub(%3, %4) : f32[8,64,28,28]:nhwc\n"
              : "",
      sums, results));
}
const char* const kFirst = "  %s = sum(%2) {dim=[0,2,3]} : f32[64]\n";
const char* const kSecond = "  %p = mul(%2, %5) : f32[8,64,28,28]:nhwc\n  %q = sum(%p) {dim=[0,2,3]} : f32[64]\n";

TEST(CudnnStep, SumsOfAMaskedGradientJoinItsCall) {
  struct Case {
    std::string results, sums;
    std::vector<Role> roles;
    Sums kind;
  };
  for (const auto& [results, sums, roles, kind] :
       {Case{"%1, %s", kFirst, {Role::x, Role::sum}, Sums::bias},
        Case{"%1, %s, %q", std::string(kFirst) + kSecond, {Role::x, Role::sum, Role::second_sum}, Sums::gradient},
        Case{"%1, %q, %s", std::string(kSecond) + kFirst, {Role::x, Role::second_sum, Role::sum}, Sums::gradient}}) {
    const StepCall step = step_call(with_sums(results, sums));
    EXPECT_EQ(step.call.mask, Mask::bits);
    EXPECT_EQ(step.call.sums, kind) << step.call.str();
    ASSERT_GE(step.roles.size(), roles.size());
    EXPECT_TRUE(std::equal(roles.rbegin(), roles.rend(), step.roles.rbegin())) << results;
  }
}

// A convolution and sums of it: its statistics, in either order, both and beside nothing else.
TEST(CudnnStep, StatisticsJoinAConvolution) {
  const auto graph_of = [](const std::string& ops, const std::string& results) {
    return ir::parse_graph(fmt::format(
        R"(graph @g(%x: f16[8,64,28,28]:nhwc, %w: f16[64,64,1,1]:nhwc) {{
  %0 = conv2d(%x, %w) : f16[8,64,28,28]:nhwc
{}  return {}
}})",
        ops, results));
  };
  const std::string wide = "  %1 = cast(%0) {dtype=f32} : f32[8,64,28,28]:nhwc\n";
  const std::string sum = "  %s = sum(%1) {dim=[0,2,3]} : f32[64]\n";
  const std::string squares = "  %2 = mul(%1, %1) : f32[8,64,28,28]:nhwc\n  %q = sum(%2) {dim=[0,2,3]} : f32[64]\n";
  for (const bool sum_first : {true, false}) {
    const StepCall step = step_call(graph_of(wide + sum + squares, sum_first ? "%0, %s, %q" : "%0, %q, %s"));
    EXPECT_EQ(step.call.sums, Sums::statistics);
    const std::vector<Role> roles(step.roles.end() - 3, step.roles.end());
    EXPECT_EQ(roles, sum_first ? (std::vector<Role>{Role::y, Role::sum, Role::second_sum})
                               : (std::vector<Role>{Role::y, Role::second_sum, Role::sum}));
  }
  const Target target = Target::parse("cuda:sm_90,cudnn=1");
  EXPECT_TRUE(supports_step(graph_of(wide + sum + squares, "%0, %s, %q"), target).ok);
  EXPECT_FALSE(supports_step(graph_of(wide + sum, "%0, %s"), target).ok) << "no engine leaves one of them";
  EXPECT_FALSE(supports_step(graph_of(wide + squares, "%0, %q"), target).ok);
  // sm_100's engine sums in any order, which the table says.
  EXPECT_FALSE(supports_step(graph_of(wide + sum + squares, "%0, %s, %q"), Target::parse("cuda:sm_100,cudnn=1")).ok);
  const std::string relu =
      "  %r = maximum(%0, 0) : f16[8,64,28,28]:nhwc\n"
      "  %1 = cast(%r) {dtype=f32} : f32[8,64,28,28]:nhwc\n";
  EXPECT_FALSE(supports_step(graph_of(relu + sum + squares, "%r, %s, %q"), Target::parse("cuda:sm_90,cudnn=2")).ok);
}

TEST(CudnnStep, OtherSumsAreNoCall) {
  const auto refused = [](const ir::Graph& graph, std::string_view what) {
    const scheduler::LibraryAnswer answer = supports_step(graph, Target::parse("cuda:sm_90,cudnn=2"));
    EXPECT_FALSE(answer.ok);
    EXPECT_NE(answer.why.find(what), std::string::npos) << answer.why;
  };
  const std::string none = "none of the sums of its calls";
  refused(with_sums("%1, %q", kSecond), none);                                      // without the first
  refused(with_sums("%1, %s", kFirst, "%0"), none);                                 // of what passes no mask
  refused(with_sums("%1, %s", "  %s = sum(%2) {dim=[0,2]} : f32[64,28]\n"), none);  // over other dims
  refused(with_sums("%1, %s", "  %s = sum(%1) {dim=[0,2,3]} : f16[64]\n"), none);   // rounded to f16
  refused(with_sums("%1, %s", "  %s = mean(%2) {dim=[0,2,3]} : f32[64]\n"), none);  // no sum
  refused(with_sums("%1, %s", "  %p = mul(%2, %3) : f32[8,64,28,28]:nhwc\n  %s = sum(%p) {dim=[0,2,3]} : f32[64]\n"),
          none);  // of what is not centred
  refused(with_sums("%1, %s, %t", std::string(kFirst) + "  %t = sum(%2) {dim=[0,2,3], keepdim=true} : f32[1,64,1,1]\n"),
          none);  // the same twice
  // Strict f32 has no such engines, nor has a target that does not compile them.
  const scheduler::LibraryAnswer precompiled =
      supports_step(with_sums("%1, %s", kFirst), Target::parse("cuda:sm_90,cudnn=1"));
  EXPECT_NE(precompiled.why.find("only engines that cuDNN compiles at run time"), std::string::npos) << precompiled.why;
}

// Sums of sums: walked in time that does not double with each.
TEST(CudnnStep, ManySumsAreNoCall) {
  std::string ops = "  %1 = add(%0, %0) : T[8,64,28,28]:nhwc\n";
  for (int i = 2; i < 60; ++i) ops += fmt::format("  %{0} = add(%{1}, %{1}) : T[8,64,28,28]:nhwc\n", i, i - 1);
  const ir::Graph graph = followed_by(ops + "  return %59\n", "f32", "f32");
  EXPECT_FALSE(supports_step(graph, Target::parse("cuda:sm_90,cudnn=2")).ok);
}

using StepOnCudnn = WithCudnn;

TEST_F(StepOnCudnn, WhatIsCompiledAtRunTimeHasAPlan) {
  if (!has_driver_) GTEST_SKIP() << "cuDNN: no libcuda.so.1, so no runtime-compiled engine";
  std::vector<std::string> all = {line("1", kNorm) + line("2", "add(%1, %side)") + line("3", "relu(%2)") +
                                  "  return %3\n"};
  if (testing::is_nightly()) {
    // The last two read their operand so often that after a batch norm the expression is cut.
    for (const char* op : {"relu(%1)", "relu6(%1)", "sigmoid(%1)", "tanh(%1)", "silu(%1)", "elu(%1)", "gelu(%1)",
                           "leaky_relu(%1)", "gelu(%1) {approximate=tanh}", "softplus(%1)"}) {
      const bool often = std::string_view(op).starts_with("softplus") || std::string_view(op).ends_with("}");
      all.push_back(line("1", often ? "add(%0, %side)" : kNorm) + line("2", op) + "  return %2\n");
    }
  }
  for (const std::string& ops : all) {
    const scheduler::Plan plan = plan_for(followed_by(ops, "f16", "f32"), "cuda:sm_90,cudnn=2");
    ASSERT_LE(plan.steps.size(), 2u) << ops;
    const ConvolutionCall call = step_call(plan.steps.back().library->graph).call;
    const PlanResult found = find_plans(library_, device("H100"), call, {.numerics = {}, .runtime_compiled = true});
    ASSERT_FALSE(found.plans.empty()) << call.str() << ": " << found.why_not();
    EXPECT_EQ(found.plans[0].engine.tier, Tier::runtime_compiled) << call.str();
  }
}

// What plans for compiled engines ask of a training step beyond the table: that these shapes have them, which is
// cuDNN's to say. By day two, at night all of ResNet-50's and MobileNet-v2's.
TEST_F(StepOnCudnn, SummedGradientsHavePlans) {
  if (!has_driver_) GTEST_SKIP() << "cuDNN: no libcuda.so.1, so no runtime-compiled engine";
  int asked = 0;
  for (const char* model : {"resnet50@16x3x224x224:train", "mobilenet_v2@16x3x224x224:train"}) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      for (const ConvolutionCall& call : calls_of(plan_of(model, "cuda:sm_90,cudnn=2", dtype))) {
        if (call.sums == Sums::none || (!testing::is_nightly() && asked == 2)) continue;
        const PlanResult found = find_plans(library_, device("H100"), call,
                                            {.numerics = {.tf32 = dtype == DType::f32}, .runtime_compiled = true});
        EXPECT_FALSE(found.plans.empty()) << call.str() << ": " << found.why_not();
        ++asked;
      }
      if (!testing::is_nightly()) break;
    }
  }
  EXPECT_GE(asked, 2);
}

TEST_F(StepOnCudnn, ABlockHasAPrecompiledPlan) {
  for (const char* name : {"A100", "H100", "B200"}) {
    const int capability = described_device(name).compute_capability;
    const scheduler::Plan plan = scheduler::make_plan(
        block(kBiasFirst),
        {Target::parse(fmt::format("cuda:sm_{},cudnn=1", capability)), scheduler::Rules::all, {}, supports_step});
    const PlanResult found = find_plans(library_, device(name), step_call(plan.steps[0].library->graph).call);
    ASSERT_FALSE(found.plans.empty()) << name << ": " << found.why_not();
    EXPECT_EQ(found.plans[0].engine.tier, Tier::precompiled) << name;
  }
}

TEST_F(StepOnCudnn, EveryCallOfResNet50HasAPlan) {
  const char* const kModel = "resnet50@16x3x224x224:train";
  struct Row {
    const char* device;
    DType dtype;
  };
  for (const Row& row : {Row{"A100", DType::f32}, Row{"H100", DType::f32}, Row{"B200", DType::f32},
                         Row{"H200", DType::bf16}, Row{"A100", DType::f16}}) {
    const int capability = described_device(row.device).compute_capability;
    const scheduler::Plan plan = plan_of(kModel, fmt::format("cuda:sm_{},cudnn=1", capability), row.dtype);
    // 53 convolutions three ways, but for the input gradient of the first; the layer at the end is a matrix product.
    EXPECT_GE(std::count_if(plan.steps.begin(), plan.steps.end(), [](const auto& s) { return s.library.has_value(); }),
              158);
    const auto calls = calls_of(plan);
    EXPECT_GE(calls.size(), 60u);  // equal ones counted once
    for (const ConvolutionCall& call : calls) {
      EXPECT_EQ(call.dtype, row.dtype) << call.str();
      const PlanResult found = find_plans(library_, device(row.device), call);
      EXPECT_FALSE(found.plans.empty()) << row.device << ": " << call.str() << ": " << found.why_not();
      EXPECT_TRUE(supports(call, capability).ok) << call.str();
    }
  }
}

}  // namespace
}  // namespace fusejit::runtime::cudnn
