// What becomes of a graph of which a kernel cannot be made: its group in parts, an op alone on the interpreter.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "runtime/pieces.h"
#include "runtime/session.h"
#include "scheduler/make_plan.h"
#include "tests/conformance/compare.h"

namespace fusejit::runtime {
namespace {

constexpr const char* kConvolution = R"(graph @block(%x: f32[2,8,6,6]:nhwc, %w: f32[8,8,3,3], %b: f32[8]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,8,6,6]:nhwc
  %1 = bias_add(%0, %b) : f32[2,8,6,6]:nhwc
  %2 = relu(%1) : f32[2,8,6,6]:nhwc
  return %2
})";

// Strict mode allows no fallback.
class NotStrict {
 public:
  NotStrict() : was_(std::getenv("FUSEJIT_STRICT") ? std::getenv("FUSEJIT_STRICT") : "") { unsetenv("FUSEJIT_STRICT"); }
  ~NotStrict() {
    if (!was_.empty()) setenv("FUSEJIT_STRICT", was_.c_str(), 1);
  }
  NotStrict(const NotStrict&) = delete;
  NotStrict& operator=(const NotStrict&) = delete;

 private:
  std::string was_;
};

struct Ran {
  std::vector<Buffer> results;
  SessionStatistics statistics;
  std::vector<std::string> log;
};
Ran run_twice(const ir::Graph& graph, SessionOptions options) {
  Ran ran;
  options.log = [&ran](const std::string& line) { ran.log.push_back(line); };
  Session session(options);
  const std::vector<Buffer> arguments = testing::random_arguments(graph, 5);
  session.run(graph, arguments);
  ran.results = session.run(graph, arguments);
  ran.statistics = session.statistics();
  return ran;
}
bool agrees(const ir::Graph& graph, const std::vector<Buffer>& results) {
  const auto want = Session({.engine = Engine::graph_interpreter}).run(graph, testing::random_arguments(graph, 5));
  return testing::excess(results, want, {}) <= 0;
}

class Fallback : public ::testing::TestWithParam<const char*> {
 protected:
  SessionOptions options(const std::string& refused) const {
    SessionOptions made{.target = Target::parse(GetParam()), .engine = Engine::kernel_interpreter};
    made.checks.refused_kernel = refused;
    return made;
  }
  static scheduler::Plan plan(const ir::Graph& graph) {
    return scheduler::make_plan(graph, {Target::parse(GetParam()), scheduler::Rules::all, {}});
  }
  // The kernel of the convolution and what is fused with it.
  std::string fused_kernel(const ir::Graph& graph) const {
    for (const auto& step : plan(graph).steps) {
      const bool convolves = step.ops.size() > 1 && step.ops[0].find("conv2d") != std::string::npos;
      if (convolves) return step.kernel->name;
    }
    return "";
  }
};

TEST_P(Fallback, AGroupWhoseKernelCannotBeMadeIsMadeFromItsParts) {
  const NotStrict not_strict;
  const ir::Graph graph = ir::parse_graph(kConvolution);
  const Ran whole = run_twice(graph, options(""));
  EXPECT_EQ(whole.statistics.fallbacks, 0);
  EXPECT_TRUE(whole.log.empty());
  ASSERT_NE(fused_kernel(graph), "");
  const Ran ran = run_twice(graph, options(fused_kernel(graph)));
  EXPECT_TRUE(agrees(graph, ran.results));
  EXPECT_EQ(ran.statistics.fallbacks, 1);
  EXPECT_EQ(ran.statistics.plans_made, 1);
  ASSERT_EQ(ran.log.size(), 1u);
  EXPECT_NE(ran.log[0].find("conv2d"), std::string::npos) << ran.log[0];
  EXPECT_NE(ran.log[0].find("is refused"), std::string::npos) << ran.log[0];
  EXPECT_GT(ran.statistics.last_run.kernels, whole.statistics.last_run.kernels);
}

TEST_P(Fallback, AnOpWithoutAKernelIsInterpretedAlone) {
  const NotStrict not_strict;
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f32[6,5], %y: f32[5,7]) {
  %0 = matmul(%x, %y) : f32[6,7]
  %1 = sum(%0) {dim=[0,1], keepdim=true} : f32[1,1]
  %2 = sub(%0, %1) : f32[6,7]
  return %2, %0, %x
})");
  const std::string reduction = [&] {
    for (const auto& step : plan(graph).steps)
      if (step.kernel->name.find("sum") != std::string::npos) return step.kernel->name;
    return std::string();
  }();
  ASSERT_NE(reduction, "");
  const Ran ran = run_twice(graph, options(reduction));
  EXPECT_TRUE(agrees(graph, ran.results));
  EXPECT_GE(ran.statistics.fallbacks, 1);
  EXPECT_FALSE(ran.log.empty());
}

TEST_P(Fallback, WhereNothingCanBeCompiledEverythingIsInterpreted) {
  const NotStrict not_strict;
  const ir::Graph graph = ir::parse_graph(kConvolution);
  const Ran ran = run_twice(graph, options("*"));
  EXPECT_TRUE(agrees(graph, ran.results));
  EXPECT_GE(ran.statistics.fallbacks, 1);
  EXPECT_EQ(ran.statistics.plans_made, 1) << "what cannot be planned is not planned at every run";
}

TEST_P(Fallback, IsAnErrorWhereItIsNotAllowed) {
  const ir::Graph graph = ir::parse_graph(kConvolution);
  const std::vector<Buffer> arguments = testing::random_arguments(graph, 5);
  const auto error_of = [&](const SessionOptions& options) -> std::string {
    try {
      Session(options).run(graph, arguments);
    } catch (const UnsupportedError& error) {
      return error.what();
    }
    return "";
  };
  SessionOptions refused = options(fused_kernel(graph));
  refused.fall_back = false;
  {
    const NotStrict not_strict;
    EXPECT_NE(error_of(refused).find("conv2d"), std::string::npos) << error_of(refused);
  }
  setenv("FUSEJIT_STRICT", "1", 1);
  refused.fall_back = true;
  EXPECT_NE(error_of(refused).find("is refused"), std::string::npos) << error_of(refused);
}

// What runs would not be what was asked for.
TEST_P(Fallback, IsAnErrorWhereSchedulesAreGiven) {
  const NotStrict not_strict;
  const ir::Graph graph = ir::parse_graph(kConvolution);
  const auto error_of = [&](const SessionOptions& options) -> std::string {
    try {
      Session(options).run(graph, testing::random_arguments(graph, 5));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  SessionOptions refused = options(fused_kernel(graph));
  EXPECT_EQ(error_of(refused), "") << "the chosen ones fall back";
  refused.reschedule.anchor = [](const auto&, const auto& choice) { return choice.chosen(); };
  EXPECT_NE(error_of(refused).find("is refused"), std::string::npos) << error_of(refused);
  SessionOptions illegal = options("");
  illegal.reschedule.anchor = [](const auto&, const auto& choice) {
    scheduler::Schedule chosen = choice.chosen();
    chosen.tasks.clear();
    return chosen;
  };
  EXPECT_NE(error_of(illegal).find(" is no schedule of "), std::string::npos) << error_of(illegal);
}

TEST_P(Fallback, NothingIsPrinted) {
  const NotStrict not_strict;
  const ir::Graph graph = ir::parse_graph(kConvolution);
  ::testing::internal::CaptureStdout();
  SessionOptions refused = options("*");
  Session(refused).run(graph, testing::random_arguments(graph, 5));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_P(Fallback, FailedGraphsAreDumped) {
  const NotStrict not_strict;
  const ir::Graph graph = ir::parse_graph(kConvolution);
  for (const char* stages : {"graph", "plan"}) {
    SessionOptions refused = options("*");
    refused.fall_back = false;
    setenv("FUSEJIT_DUMP", stages, 1);
    ::testing::internal::CaptureStderr();
    EXPECT_THROW(Session(refused).run(graph, testing::random_arguments(graph, 5)), UnsupportedError);
    const std::string dumped = ::testing::internal::GetCapturedStderr();
    unsetenv("FUSEJIT_DUMP");
    EXPECT_EQ(ir::parse_graph(dumped), graph) << dumped;
  }
}

// They need no kernels, and do not keep the rest from having some.
TEST_P(Fallback, OpsWithoutElementsAreNone) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f32[6,5], %y: f32[0,5], %w: f32[5,3], %k: f32[6,0]) {
  %0 = concat(%x, %y) {dim=0} : f32[6,5]
  %1 = matmul(%0, %w) : f32[6,3]
  %2 = relu(%1) : f32[6,3]
  %3 = sum(%k) {dim=[1]} : f32[6]
  %4 = relu(%y) : f32[0,5]
  %5 = reshape(%3) {shape=[6,1]} : f32[6,1]
  %6 = add(%2, %5) : f32[6,3]
  return %6, %4, %3, %y
})");
  setenv("FUSEJIT_STRICT", "1", 1);
  const Ran ran = run_twice(graph, options(""));
  EXPECT_TRUE(agrees(graph, ran.results));
  EXPECT_EQ(ran.statistics.fallbacks, 0);
  EXPECT_TRUE(ran.log.empty());
  EXPECT_GT(ran.statistics.last_run.kernels, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, Fallback, ::testing::Values("x86:avx2", "cuda:sm_90"),
                         [](const auto& info) { return info.index == 0 ? "X86" : "Cuda"; });

TEST(Pieces, HoldWhatDependsOnTheSamePieces) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f32[4]) {
  %0 = exp(%x) : f32[4]
  %1 = relu(%0) : f32[4]
  %2 = tanh(%1) : f32[4]
  %3 = add(%0, %2) : f32[4]
  %4 = relu(%x) : f32[4]
  return %3, %x, %4
})");
  const Pieces pieces = cut(graph, {2});  // %1, after the parameter
  ASSERT_EQ(pieces.list.size(), 3u);
  EXPECT_FALSE(pieces.list[0].interpreted);
  EXPECT_EQ(pieces.list[0].writes, (std::vector<int>{1, 5}));
  EXPECT_TRUE(pieces.list[1].interpreted);
  EXPECT_EQ(pieces.list[1].reads, std::vector<int>{1});
  EXPECT_FALSE(pieces.list[2].interpreted);
  EXPECT_EQ(pieces.list[2].reads, (std::vector<int>{2, 1}));
}

}  // namespace
}  // namespace fusejit::runtime
