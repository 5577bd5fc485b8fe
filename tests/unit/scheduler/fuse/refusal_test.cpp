// Every reason not to fuse has a graph in tests/refusals/ that provokes it, <code>.fj, and the same graph with the
// cause removed, <code>.twin.fj.
#include "scheduler/fuse/refusal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "frontend/io/graph_file.h"
#include "scheduler/make_plan.h"
#include "scheduler/report/explained.h"

namespace fusejit::scheduler {
namespace {

namespace fs = std::filesystem;
const fs::path kFolder = fs::path(FUSEJIT_SOURCE_DIR) / "tests/refusals";

// For the one code that no graph provokes: kernels with two results are refused.
void refuse_two_results(const ir::Kernel& kernel) {
  const auto written = std::count_if(kernel.params.begin(), kernel.params.end(), [&](const ir::KernelParam& param) {
    return param.memory >= 0 && kernel.memories[static_cast<std::size_t>(param.memory)].kind == ir::MemKind::write;
  });
  if (written > 1) throw UnsupportedError("two results");
}

std::vector<Refusal> refusals_of(const fs::path& file, const char* target) {
  PlanOptions options{Target::parse(target), Rules::all, {}};
  const bool needs_fallback = file.filename().string().starts_with("no_kernel");
  if (file.filename().string().starts_with("rule_off")) options.rules = Rules::all.without(Rule::epilogue);
  if (needs_fallback) options.inspect = refuse_two_results, setenv("FUSEJIT_STRICT", "0", 1);
  const Plan plan = make_plan(io::read_graph(file.string()), options);
  setenv("FUSEJIT_STRICT", "1", 1);
  EXPECT_EQ(unexplained_edges(plan).size(), 0u) << file << print_outline(plan);
  return plan.refusals;
}

std::string listed(const std::vector<Refusal>& refusals) {
  std::string out;
  for (const Refusal& r : refusals) out += std::string(name(r.code)) + ": " + r.producer + " -> " + r.consumer + "\n";
  return out;
}

bool has(const std::vector<Refusal>& refusals, std::string_view code) {
  return std::any_of(refusals.begin(), refusals.end(), [&](const Refusal& r) { return name(r.code) == code; });
}

TEST(Refusal, EveryCodeHasAGraphAndItsTwin) {
  std::set<std::string> expected, found;
  for (int code = 0; code < kRefusalCodes; ++code) {
    const std::string stem(name(static_cast<RefusalCode>(code)));
    expected.insert(stem + ".fj");
    expected.insert(stem + ".twin.fj");
  }
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".fj") found.insert(entry.path().filename().string());
  }
  EXPECT_EQ(found, expected);
}

// Where a code can occur.
std::vector<const char*> targets(RefusalCode code) {
  if (code == RefusalCode::library_call) return {"cuda:sm_90,cudnn=1"};
  if (code == RefusalCode::concatenated) return {"x86:avx512", "x86:avx2", "x86:v2"};
  return {"x86:avx512", "x86:avx2", "x86:v2", "cuda:sm_90"};
}

TEST(Refusal, TheGraphIsRefusedAndTheTwinIsNot) {
  for (int code = 0; code < kRefusalCodes; ++code) {
    for (const char* target : targets(static_cast<RefusalCode>(code))) {
      const std::string stem(name(static_cast<RefusalCode>(code)));
      const std::vector<Refusal> refusals = refusals_of(kFolder / (stem + ".fj"), target);
      EXPECT_TRUE(has(refusals, stem)) << target << " " << stem << "\n" << listed(refusals);
      const std::vector<Refusal> twin = refusals_of(kFolder / (stem + ".twin.fj"), target);
      EXPECT_FALSE(has(twin, stem)) << target << " " << stem << ".twin\n" << listed(twin);
    }
  }
}

TEST(Refusal, SaysWhatItCosts) {
  for (int code = 0; code < kRefusalCodes; ++code) {
    const std::string stem(name(static_cast<RefusalCode>(code)));
    std::set<std::string> seen;
    for (const Refusal& r : refusals_of(kFolder / (stem + ".fj"), targets(static_cast<RefusalCode>(code)).front())) {
      EXPECT_GT(r.bytes, 0) << stem;
      EXPECT_FALSE(r.sentence.empty()) << stem;
      EXPECT_TRUE(seen.insert(std::string(name(r.code)) + r.producer + r.consumer).second)
          << "said twice: " << name(r.code) << " " << r.producer << " -> " << r.consumer;
    }
  }
}

// A pair that runs in one kernel was not refused: four tensors summed for two element-wise users.
TEST(Refusal, WhatIsFusedIsNotListed) {
  const ir::Graph graph = ir::parse_graph(
      "graph @g(%a: f32[64], %b: f32[64], %c: f32[64], %d: f32[64]) {\n  %0 = add(%a, %b) : f32[64]\n"
      "  %1 = add(%0, %c) : f32[64]\n  %2 = add(%1, %d) : f32[64]\n  %3 = relu(%2) : f32[64]\n"
      "  %4 = neg(%2) : f32[64]\n  return %3, %4\n}\n");
  const Plan plan = make_plan(graph, {Target::parse("x86:avx2"), Rules::all, {}});
  EXPECT_EQ(plan.steps.size(), 1u);
  EXPECT_TRUE(plan.refusals.empty()) << listed(plan.refusals);
}

}  // namespace
}  // namespace fusejit::scheduler
