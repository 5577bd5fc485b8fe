// Any legal schedule gives the right numbers: random contractions times random legal schedules with epilogues and sums,
// for processors and devices, on whole numbers, where every order of a sum has the same result, against the graph
// interpreter; some as machine code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "codegen/x86/compile.h"
#include "scheduler/choose/neighbours.h"
#include "scheduler/make_plan.h"
#include "tests/random/generate/schedule_trial.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using ir::Contraction;
using ir::Graph;
using scheduler::Schedule;

// What a schedule is drawn for.
struct Wish {
  const Contraction& contraction;
  const Schedule& chosen;
  const Target& target;
  bool sums;
};

struct Tried {
  int wanted;
  std::vector<const char*> targets;
  Schedule (*draw)(Random&, const Wish&);
  int patience = 20;  // draws for a legal one
  std::string (*anchor)(Random&, const std::string& dtype) = random_anchor;
  ir::ContractionsFn contractions = ir::contractions_of;
};

// Dot products are of bf16; whatever else is computed is computed in f32.
std::string dtype_for(Random& random, const Target& target) {
  if (target.dot2_is_faster || target.isa == Isa::x86_amx) return "bf16";
  return random.of<std::string>({"f32", "f32", "f32", "f32", "f16", "bf16"});
}

// The kernel of the anchor casts, or reads or stores through a view.
bool casts_or_views_with_anchor(const scheduler::Plan& plan) {
  const auto is_one = [](const std::string& op) {
    const std::optional<ir::Op> named = ir::op_named(op.substr(op.find(' ') + 1));
    return named && (named == ir::Op::cast || ir::op_def(*named).family == ir::Family::view);
  };
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const scheduler::PlanStep& step) {
    return !step.schedules.empty() && step.schedules[0].kind == scheduler::Work::contraction &&
           std::any_of(step.ops.begin(), step.ops.end(), is_one);
  });
}

void expect_right_numbers(const Tried& tried) {
  int done = 0, refused = 0, around = 0, compiled = 0;
  for (std::uint64_t seed = 1; done < tried.wanted; ++seed) {
    ASSERT_LT(refused, tried.patience * tried.wanted) << "few schedules are legal";
    Random random(seed);
    const Target target = Target::parse(random.of(tried.targets));
    const std::string text = tried.anchor(random, dtype_for(random, target));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Graph graph = ir::parse_graph(text);
    const bool sums = sums_results(graph);
    Trial trial;
    try {
      const auto draw = [&](const std::string&, const Contraction& contraction, const Schedule& chosen) {
        return tried.draw(random, {contraction, chosen, target, sums});
      };
      trial = planned(graph, target, draw, tried.contractions);
      if (!trial.legal) {
        ++refused;
        continue;
      }
      ++done;
      around += casts_or_views_with_anchor(trial.plan) ? 1 : 0;
      const std::vector<runtime::Buffer> arguments = arguments_of(graph, random, true);
      const std::vector<runtime::Buffer> right = on_graph_interpreter(graph, arguments);
      ASSERT_EQ(difference(graph, interpreted(graph, trial.plan, arguments), right), "")
          << trial.tried << ir::print(*trial.plan.steps.back().kernel);
      if (target.isa != Isa::cuda && done % (is_nightly() ? 4 : 20) == 0 && codegen::x86::host_supports(target.isa)) {
        ++compiled;
        ASSERT_EQ(difference(graph, as_machine_code(graph, trial.plan, arguments, 3), right), "")
            << "as machine code\n"
            << trial.tried << ir::print(*trial.plan.steps.back().kernel);
      }
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\n" << trial.tried;
    }
  }
  std::printf("%d legal, %d not; %d with casts or views in the kernel of the anchor; %d as machine code\n", done,
              refused, around, compiled);
  EXPECT_GT(around, done / 40) << "casts and views are kernels of their own";
}

constexpr const char* kProcessors[] = {"x86:avx512,tasks=7", "x86:avx2,tasks=5,l1=1k,l2=4k,l3=1k",
                                       "x86:avx512bf16,tasks=5,dot2=1"};
constexpr const char* kDevices[] = {"cuda:sm_90", "cuda:sm_80"};

TEST(RandomSchedules, GiveTheNumbersOfTheGraphInterpreter) {
  expect_right_numbers(
      {is_nightly() ? 20000 : 2000,
       {std::begin(kProcessors), std::end(kProcessors)},
       [](Random& random, const Wish& of) { return random_schedule(random, of.contraction, of.chosen); }});
}

TEST(RandomSchedules, OfExchangedOperandsGiveTheNumbersOfTheGraphInterpreter) {
  const auto exchanged = [](const ir::Node& node) {
    const std::optional<Contraction> other = ir::exchanged(ir::contractions_of(node)[0]);
    return other ? std::vector{*other} : ir::contractions_of(node);  // not once a padding is the convolution's own
  };
  const auto drawn = [](Random& random, const Wish& of) {
    return random.chance(30) ? of.chosen : random_schedule(random, of.contraction, of.chosen);
  };
  expect_right_numbers({.wanted = is_nightly() ? 2000 : 200,
                        .targets = {std::begin(kProcessors), std::end(kProcessors)},
                        .draw = drawn,
                        .anchor = random_product_of_images,
                        .contractions = exchanged});
}

TEST(RandomSchedules, WithPairsOfTapsGiveTheNumbersOfTheGraphInterpreter) {
  const auto draw = [](Random& random, const Wish& of) {
    Schedule s = with_pairs_of_taps(random, of.contraction, random_schedule(random, of.contraction, of.chosen));
    const bool taps = !s.dot.empty() && !s.panel_a.empty() && of.contraction.dims.back().name != s.dot;
    if (!taps) s.lanes = 3;  // another draw
    return s;
  };
  expect_right_numbers({is_nightly() ? 2000 : 100, {"x86:avx512bf16,tasks=5,dot2=1"}, draw, 200});
}

TEST(RandomSchedules, OfAMatrixUnitGiveTheNumbersOfTheGraphInterpreter) {
  const auto draw = [](Random& random, const Wish& of) {
    Schedule s = random.chance(30)
                     ? of.chosen
                     : in_matrix_unit(random, of.contraction, random_schedule(random, of.contraction, of.chosen));
    if (s.matrix == 0) s.lanes = 3;  // another draw
    return s;
  };
  expect_right_numbers(
      {is_nightly() ? 4000 : 200, {"x86:amx,tasks=5", "x86:amx,tasks=3,l1=1k,l2=4k,l3=1k"}, draw, 200});
}

TEST(RandomSchedules, OfTapsInAMatrixUnitGiveTheNumbersOfTheGraphInterpreter) {
  const auto draw = [](Random& random, const Wish& of) {
    Schedule s = random.chance(30)
                     ? of.chosen
                     : in_matrix_unit(random, of.contraction, random_schedule(random, of.contraction, of.chosen));
    if (!s.merges_taps()) s.lanes = 3;  // another draw
    return s;
  };
  expect_right_numbers({is_nightly() ? 2000 : 60, {"x86:amx,tasks=5", "x86:amx,tasks=3,l1=1k,l2=4k,l3=1k"}, draw, 500});
}

// What stands beside an odd channel is a zero, and no pixel is read for a tap that is none: an infinite one reaches the
// results of its windows alone, as infinity.
TEST(RandomSchedules, OfTapsInAMatrixUnitTakeInfinitePixelsToTheirWindowsAlone) {
  for (const std::int64_t channels : {1, 2, 3}) {
    for (const char* layout : {"", ":nhwc"}) {
      const Graph graph = ir::parse_graph(
          fmt::format("graph @g(%a: bf16[2,{0},13,13]{1}, %b: bf16[16,{0},3,5]) {{ %0 = conv2d(%a, %b) {{stride=[2,2], "
                      "padding=[1,2,1,2]}} : bf16[2,16,7,7] return %0 }}",
                      channels, layout));
      const std::int64_t pixels = graph.parameters()[0].type().elements();
      const scheduler::Plan plan = scheduler::make_plan(graph, {Target::parse("x86:amx"), scheduler::Rules::all, {}});
      EXPECT_NE(ir::print(*plan.steps.back().kernel).find(" tile {"), std::string::npos);
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        Random random(1);
        std::vector<runtime::Buffer> arguments = arguments_of(graph, random, true);
        const auto set = [&](std::size_t argument, std::int64_t i, double number) {
          ir::store_element(arguments[argument].data(), DType::bf16, i, ir::cast(ir::Scalar::of(number), DType::bf16));
        };
        for (std::int64_t i = 0; i < graph.parameters()[1].type().elements(); ++i) set(1, i, 1);
        // Of the first image; side by side they are all channels, in planes the last.
        set(0, pixels / 2 - 40 - channel, std::numeric_limits<double>::infinity());
        EXPECT_EQ(difference(graph, interpreted(graph, plan, arguments), on_graph_interpreter(graph, arguments)), "");
      }
    }
  }
}

TEST(RandomSchedules, OfWeightsInAMatrixUnitGiveTheNumbersOfTheGraphInterpreter) {
  const auto draw = [](Random& random, const Wish& of) {
    Schedule s = random.chance(40) ? of.chosen : shared_out_otherwise(random, of.contraction, of.chosen);
    if (s.matrix == 0) s.lanes = 3;  // another draw
    return s;
  };
  expect_right_numbers(
      {.wanted = is_nightly() ? 2000 : 100,
       .targets = {"x86:amx,tasks=5", "x86:amx,tasks=3,l1=1k,l2=16k,l3=32k"},
       .draw = draw,
       .patience = 40,
       .anchor = [](Random& random, const std::string&) { return random_weight_gradient_of_tiles(random); }});
}

TEST(RandomSchedules, ForDevicesGiveTheNumbersOfTheGraphInterpreter) {
  expect_right_numbers(
      {is_nightly() ? 10000 : 500, {std::begin(kDevices), std::end(kDevices)}, [](Random& random, const Wish& of) {
         return random_cuda_schedule(random, of.contraction, of.chosen);
       }});
}

TEST(RandomSchedules, WithPanelsThatThreadsShareGiveTheNumbersOfTheGraphInterpreter) {
  expect_right_numbers(
      {is_nightly() ? 10000 : 300, {std::begin(kDevices), std::end(kDevices)}, [](Random& random, const Wish& of) {
         return random_shared_panels(random, of.contraction, of.chosen);
       }});
}

TEST(RandomSchedules, ChosenOnesGiveTheNumbersOfTheGraphInterpreter) {
  const auto chosen_one = [](Random&, const Wish& of) { return of.chosen; };
  expect_right_numbers(
      {is_nightly() ? 10000 : 300, {kProcessors[0], kProcessors[1], kProcessors[2], kDevices[0]}, chosen_one});
}

// As tuning goes: a few steps, each to a legal neighbour.
TEST(RandomSchedules, NeighboursOfChosenOnesGiveTheNumbersOfTheGraphInterpreter) {
  const auto walk = [](Random& random, const Wish& of) {
    Schedule schedule = of.chosen;
    for (auto steps = random.from(1, 3); steps > 0; --steps) {
      const std::vector<Schedule> near = neighbours(of.contraction, schedule, of.target, of.sums);
      if (near.empty()) break;
      schedule = random.of(near);
    }
    return schedule;
  };
  expect_right_numbers(
      {is_nightly() ? 10000 : 500, {kProcessors[0], kProcessors[1], kProcessors[2], kDevices[0]}, walk});
}

}  // namespace
}  // namespace fusejit::testing
