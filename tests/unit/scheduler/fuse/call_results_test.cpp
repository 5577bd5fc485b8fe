// What input gradients that a library runs write in place of their own result: which calls take it, and which do not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/passes/grad.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

using runtime::cudnn::ConvolutionCall;
using runtime::cudnn::Mask;
using runtime::cudnn::Sums;

constexpr const char* kCompiled = "cuda:sm_90,cudnn=2";

Plan plan_of(const ir::Graph& graph, const char* target = kCompiled, Rules rules = Rules::all) {
  return make_plan(graph, {Target::parse(target), rules, {}, runtime::cudnn::supports_step});
}
// Input gradients' calls, with what they take along: "1x1/1 side mask=bits sums=gradient", of stride 1.
std::vector<std::string> gradients_of(const Plan& plan) {
  std::vector<std::string> calls;
  for (const PlanStep& step : plan.steps) {
    if (!step.library) continue;
    const ConvolutionCall call = runtime::cudnn::step_call(step.library->graph).call;
    const std::string text = call.str();
    const std::string_view kGroups = "groups=1";
    if (call.direction == runtime::cudnn::Direction::input_gradient)
      calls.push_back(
          fmt::format("{0}x{0}/{1}{2}", call.w[2], call.stride[0], text.substr(text.find(kGroups) + kGroups.size())));
  }
  std::sort(calls.begin(), calls.end());
  return calls;
}

// %x, of 16 channels and 8x8 pixels, is normalised and rectified; `rest` computes %y of it.
ir::Graph behind_relu(const std::string& rest, const std::string& wanted, const char* activation = "relu") {
  const ir::Graph graph = ir::parse_graph(fmt::format(
      R"(graph @g(%image: bf16[2,16,8,8]:nhwc, %w0: bf16[16,16,3,3], %s: f32[16], %t: f32[16], %w1: bf16[32,16,1,1],
          %w2: bf16[32,16,1,1], %w3: bf16[16,1,3,3], %b: bf16[16]) {{
  %c = conv2d(%image, %w0) {{padding=[1,1,1,1]}} : bf16[2,16,8,8]:nhwc
  %n = batch_norm_train(%c, %s, %t) : bf16[2,16,8,8]:nhwc
  %x = {}(%n) : bf16[2,16,8,8]:nhwc
{}  return %y
}})",
      activation, rest));
  std::vector<std::string> names;
  for (std::size_t at = 0, end; at < wanted.size(); at = end + 1) {
    end = std::min(wanted.find(' ', at), wanted.size());
    names.push_back(wanted.substr(at, end - at));
  }
  return ir::differentiate(graph, names);
}

const char* const kOne = "  %y = conv2d(%x, %w1) : bf16[2,32,8,8]:nhwc\n";
const char* const kAll = "w0 s t w1";

TEST(CallResults, AreMaskedAndSummed) {
  for (const char* activation : {"relu", "relu6"})
    EXPECT_EQ(gradients_of(plan_of(behind_relu(kOne, kAll, activation))),
              (std::vector<std::string>{"1x1/1 mask=bits sums=gradient"}))
        << activation;
  // The mask is stored by who normalises; precompiled engines take none, nor does a plan without that rule.
  const std::vector<std::string> plain{"1x1/1"};
  EXPECT_EQ(gradients_of(plan_of(behind_relu(kOne, kAll), "cuda:sm_90,cudnn=1")), plain);
  EXPECT_EQ(gradients_of(plan_of(behind_relu(kOne, kAll), kCompiled, parse_rules("-R5"))), plain);
  EXPECT_EQ(gradients_of(plan_of(behind_relu(kOne, kAll), kCompiled, parse_rules("-R8"))), plain);
}

// What is done to both sums, updates of the vectors included, is one kernel.
TEST(CallResults, SumsAreFinishedByOneKernel) {
  const Plan plan = plan_of(behind_relu(kOne, kAll));
  int of_vectors = 0;
  for (const PlanStep& step : plan.steps)
    of_vectors += std::all_of(step.values.begin(), step.values.end(),
                              [&](int v) { return plan.values[static_cast<std::size_t>(v)].bytes <= 16 * 4; });
  EXPECT_EQ(of_vectors, 1) << print_outline(plan);
}

// Of two gradients that are added, the one is asked whose engine adds up channels: none does at a stride of two.
TEST(CallResults, BelongToTheGradientThatIsSummed) {
  const std::string both = R"(  %y1 = conv2d(%x, %w1) : bf16[2,32,8,8]:nhwc
  %z1 = slice(%y1) {starts=[0,0,0,0], stops=[2,32,8,8], steps=[1,1,2,2]} : bf16[2,32,4,4]:nhwc
  %y2 = conv2d(%x, %w2) {stride=[2,2]} : bf16[2,32,4,4]:nhwc
  %y = mul(%z1, %y2) : bf16[2,32,4,4]:nhwc
)";
  std::string other = both;
  other.replace(other.find("%w1"), 3, "%w2"), other.replace(other.rfind("%w2"), 3, "%w1");
  for (const std::string& rest : {both, other})
    EXPECT_EQ(gradients_of(plan_of(behind_relu(rest, "w0 s t w1 w2"))),
              (std::vector<std::string>{"1x1/1 side mask=bits sums=gradient", "1x1/2"}));
}

// Without a relu in between the call adds up its own result; what else flows into it is added in the call.
TEST(CallResults, AreSummedWithoutAMaskToo) {
  EXPECT_EQ(gradients_of(plan_of(behind_relu("  %y = conv2d(%n, %w1) : bf16[2,32,8,8]:nhwc\n", kAll))),
            (std::vector<std::string>{"1x1/1 sums=gradient"}));
  const std::string residual = R"(  %l = conv2d(%n, %w0) {padding=[1,1,1,1]} : bf16[2,16,8,8]:nhwc
  %k = conv2d(%l, %w0) {padding=[1,1,1,1]} : bf16[2,16,8,8]:nhwc
  %y = add(%k, %n) : bf16[2,16,8,8]:nhwc
)";
  EXPECT_EQ(gradients_of(plan_of(behind_relu(residual, "w0 s t"))),
            (std::vector<std::string>{"3x3/1", "3x3/1 side sums=gradient"}));
}

// A mask that a generated convolution would have to store cannot be bits: its gradient goes without, and all is as it
// would be.
TEST(CallResults, MasksThatCannotBeBitsAreNotAskedFor) {
  const std::string depthwise = R"(  %d = conv2d(%x, %w3) {padding=[1,1,1,1], groups=16} : bf16[2,16,8,8]:nhwc
  %e = bias_add(%d, %b) : bf16[2,16,8,8]:nhwc
  %r = relu6(%e) : bf16[2,16,8,8]:nhwc
  %y = conv2d(%r, %w1) : bf16[2,32,8,8]:nhwc
)";
  EXPECT_EQ(gradients_of(plan_of(behind_relu(depthwise, "w0 s t w1 w3 b"))), (std::vector<std::string>{"1x1/1"}));
}

// Both sums are asked for together, whichever comes first: of frozen weights the second does.
TEST(CallResults, AreSummedInAnyOrder) {
  const std::vector<std::string> one{"1x1/1 mask=bits sums=gradient"};
  for (const char* wanted : {"s t w1", "t s", "s t"})
    EXPECT_EQ(gradients_of(plan_of(behind_relu(kOne, wanted))), one) << wanted;
}

// A call writes what it sums, also where nobody reads that.
TEST(CallResults, AreWrittenWhereTheirSumsAloneAreRead) {
  EXPECT_EQ(gradients_of(plan_of(behind_relu(kOne, "t"))), (std::vector<std::string>{"1x1/1 mask=bits sums=bias"}));
  const Plan statistics = plan_of(ir::parse_graph(R"(graph @g(%x: f16[2,16,8,8]:nhwc, %w: f16[16,16,1,1]) {
  %0 = conv2d(%x, %w) : f16[2,16,8,8]:nhwc
  %1 = cast(%0) {dtype=f32} : f32[2,16,8,8]:nhwc
  %2 = mean(%1) {dim=[0,2,3]} : f32[16]
  %3 = var(%1) {dim=[0,2,3]} : f32[16]
  return %2, %3
})"),
                                  "cuda:sm_90,cudnn=1,fastnorm=1");
  ASSERT_EQ(statistics.steps.size(), 2u) << print_outline(statistics);
  ASSERT_TRUE(statistics.steps[0].library);
  EXPECT_EQ(statistics.steps[0].library->graph.results().size(), 3u);
}

// A mask that is a result has a byte an element, as its type says.
TEST(CallResults, MasksThatAreResultsAreNoBits) {
  const Plan plan = plan_of(ir::parse_graph(
      R"(graph @g(%dy: bf16[2,32,8,8]:nhwc, %w: bf16[32,16,1,1], %x: bf16[2,16,8,8]:nhwc) {
  %0 = mul(%x, 2) : bf16[2,16,8,8]:nhwc
  %1 = gt(%0, 0.5) : bool[2,16,8,8]:nhwc
  %2 = conv2d_input_grad(%dy, %w) {input_size=[8,8]} : bf16[2,16,8,8]:nhwc
  %3 = where(%1, %2, 0) : bf16[2,16,8,8]:nhwc
  return %3, %1
})"));
  EXPECT_EQ(gradients_of(plan), (std::vector<std::string>{"1x1/1"}));
  EXPECT_EQ(plan.values[static_cast<std::size_t>(plan.results[1])].dtype, DType::boolean);
}

// Where no engine sums deterministically, batch norm's variance is what it always is.
TEST(CallResults, StatisticsAreFastWhereACallLeavesThem) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f16[2,16,8,8]:nhwc, %w: f16[16,16,1,1]) {
  %0 = conv2d(%x, %w) : f16[2,16,8,8]:nhwc
  %1 = batch_norm_train(%0, 1, 0) : f16[2,16,8,8]:nhwc
  return %1
})");
  const auto has_variance = [&](const char* target) {
    return print(optimised(graph, {Target::parse(target), Rules::all, {}, runtime::cudnn::supports_step}))
               .find("var(") != std::string::npos;
  };
  EXPECT_FALSE(has_variance("cuda:sm_90,cudnn=1,fastnorm=1"));
  for (const char* target : {"cuda:sm_90,cudnn=1", "cuda:sm_100,cudnn=2,fastnorm=1", "cuda:sm_90,fastnorm=1"})
    EXPECT_TRUE(has_variance(target)) << target;
}

// What compares a convolution's result is asked about, and refused.
TEST(CallResults, ComparisonsAreNoCall) {
  const Plan plan = plan_of(ir::parse_graph(R"(graph @g(%x: bf16[2,16,8,8]:nhwc, %w: bf16[16,16,1,1]) {
  %0 = conv2d(%x, %w) : bf16[2,16,8,8]:nhwc
  %1 = ge(%0, 0.5) : bool[2,16,8,8]:nhwc
  return %1
})"));
  EXPECT_EQ(plan.steps.size(), 2u);
}

// A mask from outside has a byte an element, which no call reads.
TEST(CallResults, AreNotMaskedByBytes) {
  const Plan plan = plan_of(ir::parse_graph(
      R"(graph @g(%dy: bf16[2,32,8,8]:nhwc, %w: bf16[32,16,1,1], %m: bool[2,16,8,8]:nhwc) {
  %0 = conv2d_input_grad(%dy, %w) {input_size=[8,8]} : bf16[2,16,8,8]:nhwc
  %1 = where(%m, %0, 0) : bf16[2,16,8,8]:nhwc
  return %1
})"));
  EXPECT_EQ(gradients_of(plan), (std::vector<std::string>{"1x1/1"}));
  const auto bits = [](const Refusal& refusal) { return refusal.sentence.find("mask as bits") != std::string::npos; };
  EXPECT_TRUE(std::any_of(plan.refusals.begin(), plan.refusals.end(), bits));
}

}  // namespace
}  // namespace fusejit::scheduler
