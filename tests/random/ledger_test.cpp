// The ledger is what runs: distinct bytes that the loops of a plan's kernels read and write, as the cost model reads
// them off the text, against the elements that the kernel interpreter touches, buffer by buffer and phase by phase.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/kernel/cost/cost.h"
#include "ir/kernel/interp/interp.h"
#include "ir/kernel/walk.h"
#include "scheduler/make_plan.h"
#include "tests/random/generate/network.h"

namespace fusejit::testing {
namespace {

constexpr const char* kLedgerTargets[] = {"x86:avx512,tasks=7", "x86:avx2,l1=1k,l2=4k,l3=16k,tasks=5",
                                          "x86:avx512,winograd=1", "cuda:sm_90"};

// What a run of the kernel touches, on zeros.
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
    buffers.push_back(memory.back().data());
  }
  std::vector<ir::MemoryTraffic> traffic;
  ir::interpret(kernel, buffers, scalars, {.check_poison = false, .traffic = &traffic});
  return traffic;
}

// Buffers of which loaded values name an element: how many that are is data.
std::set<ir::MemId> gathered(const ir::Kernel& kernel) {
  std::set<ir::MemId> found;
  for (const ir::Phase& phase : kernel.phases) {
    ir::for_each_stmt(phase.body, [&](const ir::Stmt& stmt) {
      const auto* load = std::get_if<ir::LoadStmt>(&stmt.node);
      if (load == nullptr) return;
      for (const ir::Index& index : load->place.index) {
        index.for_each_leaf([&](const ir::IndexAtom& leaf) {
          if (leaf.kind == ir::AtomKind::value) found.insert(load->place.memory);
        });
      }
    });
  }
  return found;
}

// Never less than that. More only where a box is not full (docs/kernel-ir.md, 9): a stride steps over elements that
// another tap meets in part, a task has no part of the images.
TEST(Ledger, IsWhatTheInterpreterTouches) {
  std::int64_t equal = 0, compared = 0, said = 0, touched = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Network network = random_network(seed);
    const TrainingGraph training = training_graph(network);
    const Target target = Target::parse(kLedgerTargets[seed % std::size(kLedgerTargets)]);
    const scheduler::Plan plan =
        scheduler::make_plan(training.graph, {target, scheduler::Rules::all, training.donated});
    for (const scheduler::PlanStep& step : plan.steps) {
      const std::vector<ir::MemoryTraffic> text = ir::traffic(*step.kernel), run = seen(*step.kernel);
      const std::set<ir::MemId> by_data = gathered(*step.kernel);
      const auto expect = [&](const char* what, const ir::MemoryTraffic& of, std::int64_t said_here,
                              std::int64_t touched_here) {
        EXPECT_GE(said_here, touched_here) << "seed " << seed << ", " << step.name << ", memory " << of.memory
                                           << " of phase " << of.phase << ": " << what;
        if (by_data.contains(of.memory)) return;
        ++compared, equal += said_here == touched_here, said += said_here, touched += touched_here;
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
            << "seed " << seed << ", " << step.name << ": memory " << r.memory << " of phase " << r.phase
            << " is not in the ledger";
      }
    }
  }
  EXPECT_GE(equal, compared * 99 / 100) << equal << " of " << compared;
  EXPECT_LE(said, touched + touched / 100) << said << " bytes, where " << touched << " are touched";
}

}  // namespace
}  // namespace fusejit::testing
