// What is kept of cuDNN's plans: in memory, as texts, and what damaged ones do.
#include "runtime/cudnn/graph/plan_cache.h"

#include <thread>

#include "fusejit/error.h"
#include "runtime/cudnn/graph/planner.h"
#include "tests/unit/cudnn/with_cudnn.h"

namespace fusejit::runtime::cudnn {
namespace {

Plan plan_from(const std::string& json) {
  if (json == "refused") throw DeviceError("of another device");
  Plan plan;
  plan.call = json;
  return plan;
}

TEST(PlanCache, ATextIsAPlanWhenItIsAskedFor) {
  PlanCache cache;
  EXPECT_EQ(cache.find("a", plan_from), nullptr);
  EXPECT_TRUE(cache.add_text(plan_text("a", "{\"one\": 1}")));
  const auto found = cache.find("a", plan_from);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->call, "{\"one\": 1}");
  EXPECT_EQ(cache.find("a", plan_from), found) << "made once";
  const PlanCacheStatistics statistics = cache.statistics();
  EXPECT_EQ(statistics.hits, 2);
  EXPECT_EQ(statistics.reloads, 1);
  EXPECT_EQ(statistics.misses, 1);
}

TEST(PlanCache, TheLeastRecentlyUsedGoesFirst) {
  PlanCache cache(3);
  for (const char* key : {"a", "b", "c"}) cache.add_text(plan_text(key, key));
  EXPECT_NE(cache.find("a", plan_from), nullptr);
  cache.keep("d", std::make_shared<const Plan>());
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(cache.find("b", plan_from), nullptr) << "the oldest is gone";
  for (const char* key : {"a", "c", "d"}) EXPECT_NE(cache.find(key, plan_from), nullptr) << key;
}

TEST(PlanCache, TextsComeOutInTheOrderOfTheirUse) {
  PlanCache cache;
  for (const char* key : {"a", "b c", "d"}) cache.add_text(plan_text(key, "json of " + std::string(key)));
  EXPECT_EQ(cache.texts(), (std::vector<std::string>{plan_text("a", "json of a"), plan_text("b c", "json of b c"),
                                                     plan_text("d", "json of d")}));
}

TEST(PlanCache, DamageIsAMiss) {
  const std::string text = plan_text("key of it", "{\"plan\": [1, 2, 3]}");
  for (std::size_t at = 0; at < text.size(); ++at) {
    PlanCache cache;
    std::string damaged = text;
    damaged[at] ^= 1;
    EXPECT_FALSE(cache.add_text(damaged)) << damaged;
    EXPECT_FALSE(cache.add_text(text.substr(0, at))) << at;
    EXPECT_EQ(cache.size(), 0u);
  }
  PlanCache cache;
  EXPECT_FALSE(cache.add_text(""));
  EXPECT_FALSE(cache.add_text(text + " "));
  EXPECT_TRUE(cache.add_text(text));
}

TEST(PlanCache, WhatIsNotTakenIsForgotten) {
  PlanCache cache;
  EXPECT_TRUE(cache.add_text(plan_text("a", "refused")));
  EXPECT_EQ(cache.find("a", plan_from), nullptr);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.statistics().refused_texts, 1);
  cache.keep("a", std::make_shared<const Plan>());
  EXPECT_TRUE(cache.add_text(plan_text("a", "refused")));
  EXPECT_NE(cache.find("a", plan_from), nullptr) << "a plan that is there stays";
}

ConvolutionCall example(Activation activation) {
  ConvolutionCall call;
  call.dtype = DType::bf16;
  call.layout = Layout::nhwc;
  call.x = Shape{8, 64, 14, 14};
  call.w = Shape{64, 64, 1, 1};
  call.bias = true;
  call.activation = activation;
  return call;
}

class PlannerOnCudnn : public WithCudnn {
 protected:
  Planner planner(const char* name, ChoosePlan choose = nullptr) {
    const DeviceDescription& described = described_device(name);
    return {library_, describe_device(library_, described), described.compute_capability, std::move(choose)};
  }
  std::string why_not_;
};

TEST_F(PlannerOnCudnn, PlansOnceAndKeepsTheText) {
  Planner first = planner("H100");
  const ConvolutionCall call = example(Activation::relu);
  const auto plan = first.plan(call, {}, why_not_);
  ASSERT_NE(plan, nullptr) << why_not_;
  EXPECT_EQ(first.plan(call, {}, why_not_), plan);
  EXPECT_EQ(first.cache().statistics().misses, 1);
  const std::vector<std::string> texts = first.cache().texts();
  ASSERT_EQ(texts.size(), 1u);
  Planner second = planner("H200");  // of the same architecture
  EXPECT_TRUE(second.cache().add_text(texts[0]));
  const auto again = second.plan(call, {}, why_not_);
  ASSERT_NE(again, nullptr) << why_not_;
  EXPECT_EQ(again->engine.index, plan->engine.index);
  EXPECT_EQ(again->workspace_bytes, plan->workspace_bytes);
  EXPECT_EQ(second.cache().statistics().reloads, 1);
  EXPECT_EQ(second.cache().texts(), texts);
}

TEST_F(PlannerOnCudnn, ARuntimeCompiledPlanComesBackWithoutACompiler) {
  if (!has_driver_) GTEST_SKIP() << "cuDNN: no libcuda.so.1, so no runtime-compiled engine";
  const ConvolutionCall call = example(Activation::silu);
  const PlanOptions options{.numerics = {}, .runtime_compiled = true};
  Planner first = planner("A100"), second = planner("A100");
  const auto plan = first.plan(call, options, why_not_);
  ASSERT_NE(plan, nullptr) << why_not_;
  EXPECT_EQ(plan->engine.tier, Tier::runtime_compiled);
  EXPECT_TRUE(second.cache().add_text(first.cache().texts()[0]));
  const auto start = std::chrono::steady_clock::now();
  const auto again = second.plan(call, options, why_not_);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_NE(again, nullptr) << why_not_;
  EXPECT_EQ(second.cache().statistics().reloads, 1);
  EXPECT_LT(seconds.count(), 0.3) << "nothing is compiled";
  // Where such engines are not asked for, the text is of no use: it has another key.
  EXPECT_EQ(second.plan(call, {}, why_not_), nullptr);
  EXPECT_NE(why_not_.find("no engine"), std::string::npos) << why_not_;
}

TEST_F(PlannerOnCudnn, TextsOfOthersAreMisses) {
  const ConvolutionCall call = example(Activation::relu);
  Planner ampere = planner("A100");
  const auto plan = ampere.plan(call, {}, why_not_);
  ASSERT_NE(plan, nullptr) << why_not_;
  const std::string key = plan_key(*library_, 90, call, {});
  for (const std::string& json : {plan->json(), std::string("{}"), plan->json().substr(0, 1000), std::string("]")}) {
    Planner hopper = planner("H100");
    EXPECT_TRUE(hopper.cache().add_text(plan_text(key, json)));
    EXPECT_NE(hopper.plan(call, {}, why_not_), nullptr) << why_not_;
    EXPECT_EQ(hopper.cache().statistics().refused_texts, 1);
    EXPECT_EQ(hopper.cache().statistics().misses, 1);
  }
}

TEST_F(PlannerOnCudnn, TheChoiceIsKeptWithThePlan) {
  ConvolutionCall call = example(Activation::none);
  call.bias = false;
  int asked = 0;
  std::vector<std::int64_t> engines;
  Planner first = planner("H100", [&](const ConvolutionCall&, std::span<const std::shared_ptr<const Plan>> plans) {
    ++asked;
    for (const auto& plan : plans) engines.push_back(plan->engine.index);
    return plans.size() - 1;
  });
  const PlanOptions options{.numerics = {}, .plans = 3};
  const auto plan = first.plan(call, options, why_not_);
  ASSERT_NE(plan, nullptr) << why_not_;
  ASSERT_EQ(engines.size(), 3u);
  EXPECT_EQ(plan->engine.index, engines.back());
  EXPECT_EQ(first.plan(call, options, why_not_), plan);
  EXPECT_EQ(asked, 1);
  Planner second =
      planner("H100", [](const ConvolutionCall&, auto) -> std::size_t { throw InternalError("chosen again"); });
  second.cache().add_text(first.cache().texts()[0]);
  EXPECT_EQ(second.plan(call, options, why_not_)->engine.index, plan->engine.index);
}

TEST_F(PlannerOnCudnn, ARefusalIsRemembered) {
  ConvolutionCall call = example(Activation::silu);
  call.layout = Layout::standard;
  Planner planning = planner("H100");
  const PlanOptions options{.numerics = {}, .runtime_compiled = has_driver_};
  std::string first, second;
  EXPECT_EQ(planning.plan(call, options, first), nullptr);
  EXPECT_EQ(planning.plan(call, options, second), nullptr);
  EXPECT_EQ(first, second);
  EXPECT_NE(first.find("no engine"), std::string::npos) << first;
  EXPECT_EQ(planning.cache().statistics().misses, 1) << "asked once";
}

TEST_F(PlannerOnCudnn, ThreadsPlanTogether) {
  Planner planning = planner("H100");
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<const Plan>> plans(4);
  for (std::size_t t = 0; t < plans.size(); ++t) {
    threads.emplace_back([&, t] {
      std::string why_not;
      ConvolutionCall call = example(Activation::relu);
      call.x = Shape{static_cast<std::int64_t>(8 + t / 2), 64, 14, 14};  // two by two the same
      plans[t] = planning.plan(call, {}, why_not);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& plan : plans) EXPECT_NE(plan, nullptr);
  EXPECT_EQ(plans[0], plans[1]);
  EXPECT_EQ(plans[2], plans[3]);
  EXPECT_EQ(planning.cache().statistics().misses, 2);
}

}  // namespace
}  // namespace fusejit::runtime::cudnn
