// Keys: whatever decides about a plan or a kernel changes its key, in the part that a person would name; what does not
// decide, such as names, changes nothing.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "runtime/disk/entries/plan_entry.h"
#include "runtime/disk/explain.h"
#include "runtime/disk/identity.h"
#include "tests/support/mutate.h"
#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

const char* const kStep = R"(graph @step(%x: f32[4,6,8,8], %w: f32[8,3,3,3], %b: f32[8], %s: f32[]) {
  %0 = conv2d(%x, %w) {stride=[1,1], padding=[1,1,1,1], dilation=[1,1], groups=2} : f32[4,8,8,8]
  %1 = bias_add(%0, %b) : f32[4,8,8,8]
  %2 = clamp(%1) {min=0.0, max=6.0} : f32[4,8,8,8]
  %3 = mul(%s, %2) : f32[4,8,8,8]
  %4 = add(%3, 1.5) : f32[4,8,8,8]
  %5 = sum(%4) {dim=[0], keepdim=false} : f32[8,8,8]
  return %5, %3
})";

PlanWish wish() { return {Target::parse("x86:avx2"), scheduler::Rules::all, {}, {}, {}, ""}; }
CacheKey key_of(const std::string& text, const PlanWish& w = wish(), const char* planner = "p") {
  return plan_key(ir::parse_graph(text), w, planner);
}

std::string changed(std::string text, const std::vector<std::pair<std::string, std::string>>& edits) {
  for (const auto& [from, to] : edits) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  return text;
}

// What explain() says of `wanted` where `there` is the only entry.
std::vector<std::string> explained(const CacheKey& there, const CacheKey& wanted) {
  TemporaryFolder folder;
  DiskCache cache({.folder = folder.path()});
  cache.put(there, {{"plan", "a plan"}});
  const Explanation why = explain(cache, wanted);
  EXPECT_EQ(why.is_there, there == wanted) << why.text;
  EXPECT_EQ(why.is_there, cache.find(wanted).has_value());
  for (const std::string& part : why.differing) EXPECT_NE(why.text.find(part), std::string::npos) << why.text;
  EXPECT_TRUE(why.nearest || why.text.find("no entry has the same ops") != std::string::npos) << why.text;
  return why.nearest ? why.differing : std::vector<std::string>{"ops"};
}

TEST(PlanKey, NamesDoNotCount) {
  const CacheKey key = key_of(kStep);
  EXPECT_EQ(key, key_of(changed(
                     kStep, {{"@step", "@other"}, {"%x", "%image"}, {"%w", "%kernel"}, {"%b", "%z"}, {"%s", "%a_s"}})));
  EXPECT_EQ(explained(key, key), std::vector<std::string>());
}

struct Change {
  std::string part;  // the one that is named
  std::vector<std::pair<std::string, std::string>> edits;
};
TEST(PlanKey, EveryChangeOfAGraphIsNamed) {
  const std::vector<Change> changes = {
      {"ops", {{"clamp(%1) {min=0.0, max=6.0}", "relu(%1)"}}},
      {"ops", {{"bias_add(%0, %b)", "relu(%0)"}}},
      {"ops", {{"return %5, %3", "return %3, %5"}}},
      {"ops", {{"return %5, %3", "return %5"}}},
      {"ops", {{"%s: f32[])", "%s: f32[], %unused: f32[2])"}}},
      {"ops", {{"add(%3, 1.5)", "add(%3, %s)"}}},
      {"ops", {{"mul(%s, %2)", "mul(%2, %s)"}}},
      {"attributes", {{"max=6.0", "max=6.5"}}},
      {"attributes", {{"min=0.0", "min=-0.0"}}},
      {"attributes", {{"max=6.0", "max=nan"}}},
      {"attributes", {{"max=6.0", "max=6.000000000000001"}}},
      {"attributes", {{"1.5", "1.5000000000000002"}}},
      {"attributes", {{"1.5", "2"}}},
      {"attributes", {{"dilation=[1,1]", "dilation=[2,2]"}, {"padding=[1,1,1,1]", "padding=[2,2,2,2]"}}},
      {"attributes", {{"padding=[1,1,1,1]", "padding=[0,1,2,1]"}}},
  };
  const CacheKey key = key_of(kStep);
  for (const Change& change : changes) {
    const auto named = explained(key, key_of(changed(kStep, change.edits)));
    EXPECT_EQ(named, std::vector<std::string>{change.part}) << change.edits[0].second;
  }
  const auto has = [&](const std::vector<std::pair<std::string, std::string>>& edits) {
    return explained(key, key_of(changed(kStep, edits)));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(has({{"[4,", "[5,"}}), Names{"shapes"});
  EXPECT_EQ(has({{"[8,3,3,3]", "[16,3,3,3]"},
                 {"f32[8]", "f32[16]"},
                 {"[4,8,8,8]", "[4,16,8,8]"},
                 {"f32[8,8,8]", "f32[16,8,8]"}}),
            Names{"shapes"});
  EXPECT_EQ(has({{"f32", "f64"}}), Names{"dtypes"});
  EXPECT_EQ(has({{"dim=[0], keepdim=false} : f32[8,8,8]", "dim=[0], keepdim=true} : f32[1,8,8,8]"}}),
            (Names{"shapes", "attributes"}));
}

TEST(PlanKey, EveryWishIsNamed) {
  const CacheKey key = key_of(kStep);
  const auto named = [&](const PlanWish& w, const char* planner = "p") {
    return explained(key, key_of(kStep, w, planner));
  };
  using Names = std::vector<std::string>;
  PlanWish w = wish();
  w.donated = {false, true, false, false};
  EXPECT_EQ(named(w), Names{"donated"});
  w = wish(), w.fixed = {false, true, false, false};
  EXPECT_EQ(named(w), Names{"fixed"});
  w = wish(), w.rules = scheduler::Rules::none;
  EXPECT_EQ(named(w), Names{"rules"});
  w = wish(), w.memory_limit.bytes = scheduler::MemoryLimit::kLeast;
  EXPECT_EQ(named(w), Names{"memory limit"});
  w = wish(), w.library = "cudnn 9.1";
  EXPECT_EQ(named(w), Names{"library"});
  w = wish(), w.tune = "full";
  EXPECT_EQ(named(w), Names{"tune"});
  EXPECT_EQ(named(wish(), "q"), Names{"planner"});
  w = wish(), w.donated = {false, false, false, false};  // as if it had not been said
  EXPECT_EQ(named(w), Names());
  w.donated = {}, w.rules = scheduler::Rules::none, w.fixed = {true};
  EXPECT_EQ(named(w), (Names{"fixed", "rules"}));
}

// Every constant of a target. A new one must be added to str(), and here.
TEST(PlanKey, EveryConstantOfTheTargetCounts) {
  const auto& [isa, l1, l2, l3, fma, tasks, capability, dot2, cudnn, strict, winograd, norm] =
      wish().target;  // does not compile with one more
  std::map<std::string, const char*> seen = {{wish().target.str(), "avx2"}};
  const auto expect_new = [&](const char* what, auto&& change) {
    PlanWish w = wish();
    change(w.target);
    EXPECT_TRUE(seen.emplace(w.target.str(), what).second) << what;
    EXPECT_EQ(explained(key_of(kStep), key_of(kStep, w)), std::vector<std::string>{"target"}) << what;
  };
  expect_new("isa", [](Target& t) { t.isa = Isa::x86_v2; });
  expect_new("l1", [](Target& t) { t.l1_bytes *= 2; });
  expect_new("l2", [](Target& t) { t.l2_bytes *= 2; });
  expect_new("l3", [](Target& t) { t.l3_bytes *= 2; });
  expect_new("fma", [](Target& t) { ++t.fma_per_cycle; });
  expect_new("tasks", [](Target& t) { ++t.tasks; });
  expect_new("dot2", [](Target& t) { t.dot2_is_faster = !t.dot2_is_faster; });
  expect_new("strict", [](Target& t) { t.strict_f32 = true; });
  expect_new("fastnorm", [](Target& t) { t.fast_norm = true; });
  expect_new("winograd", [](Target& t) { t.winograd = WinogradMode::automatic; });
  expect_new("winograd wherever it can be used", [](Target& t) { t.winograd = WinogradMode::always; });
  const std::string sm_90 = Target::parse("cuda:sm_90").str();
  EXPECT_NE(sm_90, Target::parse("cuda:sm_80").str());
  EXPECT_NE(sm_90, Target::parse("cuda:sm_90,cudnn=1").str());
  EXPECT_NE(Target::parse("cuda:sm_90,cudnn=1").str(), Target::parse("cuda:sm_90,cudnn=2").str());
}

TEST(PlanKey, LayoutsCount) {
  const auto key = [](Layout layout) {
    ir::Value x = ir::parameter({f32, Shape({1, 4, 2, 2}), layout});
    return plan_key(ir::capture("g", {x}, {ir::build(ir::Op::relu, {x})}), wish(), "p");
  };
  EXPECT_EQ(explained(key(Layout::standard), key(Layout::nhwc)), std::vector<std::string>{"layouts"});
}

// Two graphs have one key exactly if they are one graph.
TEST(PlanKey, OfDamagedGraphsAreEqualOnlyWhereTheGraphsAre) {
  std::mt19937 random(11);
  const ir::Graph original = ir::parse_graph(kStep);
  const CacheKey key = plan_key(original, wish(), "p");
  int same = 0, different = 0;
  for (int round = 0; round < 60'000; ++round) {
    try {
      const ir::Graph other = ir::parse_graph(mutated(kStep, random));
      const bool equal = ir::hash(other) == ir::hash(original);
      ASSERT_EQ(plan_key(other, wish(), "p") == key, equal) << ir::print(other);
      ++(equal ? same : different);
    } catch (const Error&) {
    }
  }
  EXPECT_GT(same, 200);
  EXPECT_GT(different, 100);
}

TEST(PlanKey, NameTheSourcesOfTheirPlanner) {
  EXPECT_EQ(plan_key(ir::parse_graph(kStep), wish()).part("planner"), source_identity());
  EXPECT_EQ(source_identity().size(), 32u);
}

TEST(Explanation, NamesTheNearestEntry) {
  TemporaryFolder folder;
  DiskCache cache({.folder = folder.path()});
  const CacheKey wanted = key_of(kStep);
  EXPECT_NE(explain(cache, wanted).text.find("no entry has the same ops"), std::string::npos);
  PlanWish far = wish(), near = wish();
  far.rules = scheduler::Rules::none, far.donated = {true}, near.fixed = {true};
  cache.put(key_of(kStep, far), {}), cache.put(key_of(kStep, near), {});
  const Explanation why = explain(cache, wanted);
  EXPECT_EQ(why.differing, std::vector<std::string>{"fixed"});
  EXPECT_EQ(*why.nearest, key_of(kStep, near));
  EXPECT_NE(why.text.find("differs in fixed: '0' there, '' here"), std::string::npos) << why.text;
  PlanWish other = far;  // for which the far one is near
  other.library = "cudnn";
  EXPECT_EQ(explain(cache, key_of(kStep, other)).differing, std::vector<std::string>{"library"});
  // Damaged neighbours are passed over.
  write_bytes(place_of(cache, key_of(kStep, near)), "damaged");
  EXPECT_EQ(explain(cache, wanted).differing, (std::vector<std::string>{"donated", "rules"}));
  EXPECT_NE(explain(DiskCache({.folder = "/proc/none"}), wanted).text.find("nothing is kept: "), std::string::npos);
}

}  // namespace
}  // namespace fusejit::runtime::disk
