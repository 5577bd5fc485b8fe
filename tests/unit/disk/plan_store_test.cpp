// What is planned for an experiment has no place in a cache.
#include "runtime/disk/plan_store.h"

#include <gtest/gtest.h>

#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

// No key says which schedules replaced the chosen ones.
TEST(PlanStore, NeitherKeepsNorTakesAPlanWithOtherSchedules) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f32[2,16,6,6], %w: f32[64,16,1,1]) {
  %0 = conv2d(%x, %w) : f32[2,64,6,6]
  return %0
})");
  TemporaryFolder folder;
  const auto cache = std::make_shared<DiskCache>(DiskCacheOptions{.folder = folder.path()});
  const PlanStore store(cache, false);
  const scheduler::Schedule other =
      scheduler::parse_schedule("schedule { vector k 8 x 1 tile q 3 task n, p outer k inner q, c }");
  const scheduler::PlanOptions chosen{Target::parse("x86:avx2"), scheduler::Rules::all, {}};
  scheduler::PlanOptions replaced = chosen;
  replaced.reschedule.anchor = [&](const std::string&, const scheduler::AnchorChoice&) {
    return other;
  };
  const auto schedule_of = [](const PlanStore::Planned& planned) {
    return planned.plan.steps.back().schedules.at(0).schedule;
  };

  const PlanStore::Planned first = store.schedule(graph, replaced);
  EXPECT_EQ(schedule_of(first), other);
  store.put(graph, replaced, first.plan);
  EXPECT_EQ(cache->statistics().stored, 0);

  const PlanStore::Planned plain = store.schedule(graph, chosen);
  EXPECT_FALSE(plain.was_kept);
  EXPECT_NE(schedule_of(plain), other);
  store.put(graph, chosen, plain.plan);
  EXPECT_TRUE(store.schedule(graph, chosen).was_kept);
  EXPECT_EQ(schedule_of(store.schedule(graph, replaced)), other) << "a kept plan hides nothing";
}

}  // namespace
}  // namespace fusejit::runtime::disk
