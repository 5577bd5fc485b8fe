// The ledger is what runs: distinct bytes that the loops of a plan's kernels read and write, as the cost model reads
// them off the text, against the elements that the kernel interpreter touches, buffer by buffer and phase by phase.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "frontend/models/named.h"
#include "ir/kernel/cost/cost.h"
#include "ir/kernel/interp/interp.h"
#include "ir/kernel/verify/verify.h"
#include "scheduler/make_plan.h"
#include "tests/random/generate/network.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

constexpr const char* kLedgerTargets[] = {"x86:avx512,tasks=7", "x86:avx2,l1=1k,l2=4k,l3=16k,tasks=5",
                                          "x86:avx512,winograd=1", "cuda:sm_90"};

// What a run of the kernel touches, on zeros; of integers on all there are, so that gathers meet many elements.
std::vector<ir::MemoryTraffic> seen(const ir::Kernel& kernel) {
  std::vector<std::vector<std::uint64_t>> memory;
  std::vector<void*> buffers;
  std::vector<ir::Scalar> scalars;
  for (const ir::KernelParam& p : kernel.params) {
    if (p.memory < 0) {
      scalars.push_back(ir::Scalar::of(1.0F));
      continue;
    }
    const ir::Memory& m = kernel.memories[static_cast<std::size_t>(p.memory)];
    memory.emplace_back(static_cast<std::size_t>(bytes(m.dtype, m.elements()) + 7) / 8);
    for (std::int64_t i = 0; i < m.elements(); ++i) {
      if (m.dtype == i64) reinterpret_cast<std::int64_t*>(memory.back().data())[i] = i;
      if (m.dtype == i32) reinterpret_cast<std::int32_t*>(memory.back().data())[i] = static_cast<std::int32_t>(i);
    }
    buffers.push_back(memory.back().data());
  }
  std::vector<ir::MemoryTraffic> traffic;
  ir::interpret(kernel, buffers, scalars, {.check_poison = false, .traffic = &traffic});
  return traffic;
}

// Buffers of which loaded values name an element or say whether it is read: how many that are is data.
std::set<ir::MemId> named_by_data(const ir::Kernel& kernel) {
  std::set<ir::MemId> found;
  const auto is_value = [](const ir::Index& index) {
    bool value = false;
    index.for_each_leaf([&](const ir::IndexAtom& leaf) { value = value || leaf.kind == ir::AtomKind::value; });
    return value;
  };
  ir::for_each_with_path(kernel, [&](const ir::Stmt& stmt, const ir::Path& path, std::size_t) {
    const ir::Place* place = ir::touched(stmt);
    if (place == nullptr) return;
    bool by_data = std::any_of(place->index.begin(), place->index.end(), is_value);
    for (const ir::Enclosing& e : path) {
      if (!e.choice) continue;
      by_data = by_data || e.choice->condition >= 0;
      for (const ir::Compare& compare : e.choice->compares) by_data = by_data || is_value(compare.left);
    }
    if (by_data) found.insert(place->memory);
  });
  return found;
}

struct Compared {
  int entries = 0, above = 0;
};

// Every buffer of every phase of the plan's kernels. More is said only where data decides, or by `above` entries.
void compare(const scheduler::Plan& plan, const std::string& what, Compared& compared, bool exact) {
  std::set<const ir::Kernel*> known;
  for (const scheduler::PlanStep& step : plan.steps) {
    if (!known.insert(step.kernel.get()).second) continue;
    const std::vector<ir::MemoryTraffic> text = ir::traffic(*step.kernel), run = seen(*step.kernel);
    const std::set<ir::MemId> by_data = named_by_data(*step.kernel);
    const auto expect = [&](const char* way, const ir::MemoryTraffic& of, std::int64_t said, std::int64_t touched) {
      const bool more = said > touched && !by_data.contains(of.memory);
      ++compared.entries, compared.above += more;
      if (said >= touched && !(more && exact)) return;
      ADD_FAILURE() << what << ", " << step.name << ", memory " << of.memory << " of phase " << of.phase << ": " << said
                    << " bytes " << way << ", where " << touched << " are touched";
    };
    for (const ir::MemoryTraffic& t : text) {
      ir::MemoryTraffic r{t.memory, t.phase, 0, 0};
      for (const ir::MemoryTraffic& each : run)
        if (each.memory == t.memory && each.phase == t.phase) r = each;
      expect("read", t, t.read_bytes, r.read_bytes);
      expect("written", t, t.written_bytes, r.written_bytes);
    }
    for (const ir::MemoryTraffic& r : run) {
      EXPECT_TRUE(std::any_of(text.begin(), text.end(),
                              [&](const ir::MemoryTraffic& t) { return t.memory == r.memory && t.phase == r.phase; }))
          << what << ", " << step.name << ": memory " << r.memory << " of phase " << r.phase << " is not in the ledger";
    }
  }
}

TEST(Ledger, IsWhatTheInterpreterTouches) {
  Compared compared;
  for (std::uint64_t seed = 1; seed <= (is_nightly() ? 1000 : 60); ++seed) {
    const Network network = random_network(seed);
    const TrainingGraph training = training_graph(network);
    const char* target = kLedgerTargets[seed % std::size(kLedgerTargets)];
    // A GPU's threads count rows and columns in one number: beyond the iterations that are walked, a bound by dim.
    compare(scheduler::make_plan(training.graph, {Target::parse(target), scheduler::Rules::all, training.donated}),
            "seed " + std::to_string(seed) + " on " + target, compared, !is_nightly() || target[0] != 'c');
  }
  EXPECT_LE(compared.above, compared.entries / 2000) << "of " << compared.entries;
}

// Whole training steps of built-in models, small.
TEST(Ledger, IsWhatTheInterpreterTouchesInModels) {
  std::vector<std::pair<const char*, const char*>> plans = {{"convnet@2:train", "x86:avx512"},
                                                            {"convnet@2:train", "cuda:sm_90"}};
  if (is_nightly()) {
    for (const char* target : kLedgerTargets)
      for (const char* source :
           {"resnet18@2x3x32x32:train", "resnet50@2x3x64x64:train", "mobilenet_v2@2x3x64x64:train"})
        plans.emplace_back(source, target);
  }
  for (const auto& [source, target] : plans) {
    const models::ModelGraph model = models::model_graph(source);
    Compared compared;
    compare(
        scheduler::make_plan(
            model.graph, {Target::parse(target), scheduler::Rules::all, {model.donated.begin(), model.donated.end()}}),
        std::string(source) + " on " + target, compared, true);
  }
}

}  // namespace
}  // namespace fusejit::testing
