// Every path of the choosers and of what builds their schedules is reached by small convolutions: on targets whose
// caches are as small, whose chosen schedules give the right numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "codegen/x86/compile.h"
#include "frontend/models/named.h"
#include "scheduler/make_plan.h"
#include "tests/random/generate/schedule_trial.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using ir::Contraction;
using ir::Graph;
using scheduler::Schedule;

// Processors as there are, with caches of a hundredth: one FMA a cycle (Zen 4), two that wait for L2 (Sapphire Rapids),
// dot products, a matrix unit, 16 registers, no FMA; Winograd where it pays, and always.
constexpr const char* kToyTargets[] = {
    "x86:avx512,tasks=16,l1=2k,l2=16k,l3=256k,fma=1",
    "x86:avx512,tasks=16,l1=2k,l2=32k,l3=256k,fma=2",
    "x86:avx512,tasks=4,l1=4k,l2=128k,l3=512k,fma=2,winograd=1",
    "x86:avx512,tasks=8,l1=2k,l2=32k,l3=128k,fma=1,winograd=2",
    "x86:avx512,tasks=8,l1=2k,l2=32k,l3=64k,fma=2,winograd=2",
    "x86:avx512,tasks=4,l1=2k,l2=16k,l3=64k,fma=2,winograd=2",
    "x86:avx512bf16,tasks=16,l1=2k,l2=16k,l3=256k,fma=2,dot2=1",
    "x86:amx,tasks=16,l1=4k,l2=64k,l3=512k,fma=2",
    "x86:avx2,tasks=16,l1=2k,l2=16k,l3=64k,fma=2,winograd=1",
    "x86:v2,tasks=4,l1=2k,l2=8k,l3=32k",
};

// What networks are held against.
constexpr std::pair<const char*, DType> kRealTargets[] = {{"x86:avx512,fma=1,winograd=1", DType::f32},
                                                          {"x86:avx512,fma=2,winograd=1", DType::f32},
                                                          {"x86:avx512bf16,fma=2,dot2=1", DType::bf16},
                                                          {"x86:amx,fma=2", DType::bf16},
                                                          {"x86:avx2", DType::f32},
                                                          {"x86:avx512", DType::f16}};

std::string dtype_on(Random& random, const Target& target) {
  if (target.dot2_is_faster || target.isa == Isa::x86_amx) return random.chance(80) ? "bf16" : "f32";
  return random.of<std::string>({"f32", "f32", "f32", "f16"});
}

// What a schedule does, in words.
std::set<std::string> ways_of(const Contraction& c, const Schedule& s) {
  const std::string pass = c.b.weights ? "images" : "weights";
  std::set<std::string> ways;
  const auto add = [&](bool does, const std::string& what) {
    if (does) ways.insert(fmt::format("{}: {}", pass, what));
  };
  if (s.winograd > 0) {
    add(true, "Winograd");
    add(!s.outer.empty(), "Winograd, some outputs at once");
    add(s.fetch_packed, "Winograd, weights fetched");
    add(s.stream, "Winograd, streamed");
    for (const auto& loop : s.tasks) add(loop.dims[0] == "n" && loop.step > 1, "Winograd, several images a task");
    return ways;
  }
  add(s.matrix == 0, fmt::format("{} vectors", s.vectors));
  add(!s.dot.empty() && s.matrix == 0, c.dims.back().name == s.dot ? "pairs of channels" : "pairs of others");
  add(s.matrix > 0, s.merges_taps() ? "matrix unit, taps merged" : "matrix unit");
  add(s.unroll_within, "unrolled within the tile");
  add(s.tiles_a, "tiles side by side");
  add(s.panel_a == Schedule::kTask, "panel a of a task");
  add(!s.panel_a.empty() && s.panel_a != Schedule::kTask, "panel a in a loop");
  add(s.panel_b == Schedule::kTask, "panel b of a task");
  add(!s.panel_b.empty() && s.panel_b != Schedule::kTask, "panel b in a loop");
  add(s.pack_b > 0, "packed");
  add(!s.combine.empty(), "combined");
  for (const std::string& dim : s.fetch.dims) add(true, s.fetch_b ? "panel b fetched" : "fetched along " + dim);
  add(s.stream, "streamed");
  add(s.tile.size() > 1, "tile of two dims");
  for (const auto& loop : s.outer) add(loop.step > 0, "blocks of " + loop.dims[0]);
  return ways;
}

struct Drawn {
  Target target;
  Graph graph;
};
Drawn draw(Random& random) {
  Target target = Target::parse(random.of<const char*>({std::begin(kToyTargets), std::end(kToyTargets)}));
  const bool of_winograd = target.winograd == WinogradMode::always && random.chance(50);
  const std::string text =
      of_winograd ? random_small_window(random) : random_anchor_of_many_channels(random, dtype_on(random, target));
  return {std::move(target), ir::parse_graph(text)};
}

// In how many of the schedules that a plan has for its anchors each way is gone.
using Ways = std::map<std::string, int>;
void count_ways(const Graph& graph, const Target& target, Ways& ways) {
  scheduler::PlanOptions options;
  options.target = target;
  options.reschedule.anchor = [&](const std::string&, const scheduler::AnchorChoice& choice) {
    for (const std::string& way : ways_of(choice.contraction, choice.chosen())) ++ways[way];
    return choice.chosen();
  };
  scheduler::make_plan(graph, options);
}

TEST(ChosenPaths, SmallAnchorsGoEveryWayThatNetworksGo) {
  Ways small;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    const Drawn drawn = draw(random);
    count_ways(drawn.graph, drawn.target, small);
  }
  for (const auto& [target, dtype] : kRealTargets) {
    for (const models::NamedModel& model : models::named_models()) {
      const bool by_day = model.name == "resnet50" || model.name == "convnet";
      if (!by_day && !is_nightly()) continue;
      const std::string image = model.name.starts_with("convnet") ? "@4:train" : "@2x3x224x224:train";
      Ways large;
      count_ways(models::model_graph(std::string(model.name) + image, dtype).graph, Target::parse(target), large);
      for (const auto& [way, times] : large)
        EXPECT_TRUE(small.contains(way)) << model.name << " on " << target << " has " << times << " of " << way;
    }
  }
  for (const auto& [way, times] : small) std::printf("%5d  %s\n", times, way.c_str());
}

TEST(ChosenPaths, GiveTheNumbersOfTheGraphInterpreter) {
  Ways ways;
  int compiled = 0;
  for (std::uint64_t seed = 1; seed <= (is_nightly() ? 3000 : 60); ++seed) {
    Random random(seed);
    const Drawn drawn = draw(random);
    SCOPED_TRACE(fmt::format("seed {} on {}\n{}", seed, drawn.target.str(), ir::print(drawn.graph)));
    bool exact = true;  // Winograd's products are not: winograd_test.cpp
    const Trial trial = planned(drawn.graph, drawn.target,
                                [&](const std::string&, const Contraction& contraction, const Schedule& chosen) {
                                  exact = exact && chosen.winograd == 0;
                                  for (const std::string& way : ways_of(contraction, chosen)) ++ways[way];
                                  return chosen;
                                });
    if (!exact) continue;
    const std::vector<runtime::Buffer> arguments = arguments_of(drawn.graph, random, true);
    const std::vector<runtime::Buffer> right = on_graph_interpreter(drawn.graph, arguments);
    ASSERT_EQ(difference(drawn.graph, interpreted(drawn.graph, trial.plan, arguments), right), "") << trial.tried;
    if (seed % 3 != 0 || !codegen::x86::host_supports(drawn.target.isa)) continue;
    ++compiled;
    ASSERT_EQ(difference(drawn.graph, as_machine_code(drawn.graph, trial.plan, arguments, 3), right), "")
        << "as machine code\n"
        << trial.tried;
  }
  std::printf("%zu ways, %d plans as machine code\n", ways.size(), compiled);
}

}  // namespace
}  // namespace fusejit::testing
