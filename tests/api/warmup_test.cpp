// Starting warm: what is kept on disk, recorded, compiled beforehand and frozen, as users call it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "fusejit/fusejit.h"
#include "tests/support/cache_folder.h"
#include "tests/support/error_of.h"

namespace fj = fusejit;

namespace {

using fj::testing::error_of;

class Warmup : public ::testing::Test {
 protected:
  void SetUp() override { restart(); }
  void TearDown() override { fj::set_options({.cache = "off"}); }
  // As another process would begin: nothing in memory.
  static void restart(fj::Options options = {}) { fj::set_options(options); }
  int entries() const {
    int count = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(cache_.path("cache")))
      count += file.path().extension() == ".entry";
    return count;
  }
  fusejit::test::CacheFolder cache_;
};

fj::Tensor numbers(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t n : shape) count *= n;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  return fj::from_host(values.data(), fj::Shape(std::span<const std::int64_t>(shape)), fj::f32);
}

std::vector<float> train(int steps, std::int64_t batch = 4) {
  fj::manual_seed(3);
  fj::nn::Sequential net(fj::nn::Conv2d(2, 8, 3), fj::nn::BatchNorm2d(8), fj::nn::ReLU(), fj::nn::Flatten(),
                         fj::nn::Linear(8 * 6 * 6, 5));
  fj::optim::SGD opt(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::cross_entropy(net(x), y); });
  const std::vector<std::int64_t> labels(static_cast<std::size_t>(batch), 2);
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(step(numbers({batch, 2, 8, 8}), fj::from_host(labels.data(), {batch}, fj::i64)).item<float>());
  return losses;
}

TEST_F(Warmup, TheSecondProcessCompilesNothingAndComputesTheSameBits) {
  const std::vector<float> cold = train(3);
  const fj::Statistics first = fj::stats();
  EXPECT_GT(first.kernels_compiled, 0);
  EXPECT_EQ(first.plans_loaded, 0);
  restart();
  EXPECT_EQ(train(3), cold);
  const fj::Statistics second = fj::stats();
  EXPECT_EQ(second.kernels_compiled, 0);
  EXPECT_EQ(second.kernels_loaded, first.kernels_compiled);
  EXPECT_EQ(second.plans_loaded, second.plans_made);
  EXPECT_NE(second.str().find(fmt::format("{} from disk, 0 compiled", second.kernels_loaded)), std::string::npos);
}

TEST_F(Warmup, CacheOffAndReadKeepNothing) {
  restart({.cache = "off"});
  train(1);
  EXPECT_EQ(entries(), 0);
  restart({.cache = "read"});
  train(1);
  EXPECT_EQ(entries(), 0);
  restart();
  train(1);
  EXPECT_GT(entries(), 0);
  restart({.cache = "read"});
  train(1);
  EXPECT_EQ(fj::stats().kernels_compiled, 0);
  EXPECT_THROW(restart({.cache = "maybe"}), fj::UserError);
}

TEST_F(Warmup, FrozenSaysWhatIsMissingAndWhatDiffers) {
  train(1);
  restart({.freeze = true});
  train(2);  // all of it is there
  EXPECT_EQ(fj::stats().kernels_compiled, 0);
  const std::string other = error_of([] { train(1, 6); });
  for (const char* part : {"frozen: graph @train_step would have to be planned", "differs in shapes",
                           "'p0 [4,2,8,8]' there, 'p0 [6,2,8,8]' here"}) {
    EXPECT_NE(other.find(part), std::string::npos) << part << " is not in " << other;
  }
  EXPECT_NO_THROW(train(1)) << "after an error the next call works";
  restart({.rules = "none", .freeze = true});
  const std::string rules = error_of([] { train(1); });
  EXPECT_NE(rules.find("differs in rules: 'all' there, 'none' here"), std::string::npos) << rules;
}

TEST_F(Warmup, AMissingKernelIsNamedWhereThePlanIsThere) {
  train(1);
  for (const auto& file : std::filesystem::recursive_directory_iterator(cache_.path("cache"))) {
    if (!file.is_regular_file() || file.path().extension() != ".entry") continue;
    std::stringstream bytes;
    bytes << std::ifstream(file.path()).rdbuf();
    if (bytes.str().find("object") != std::string::npos) std::filesystem::remove(file.path());
  }
  restart({.freeze = true});
  const std::string sentence = error_of([] { train(1); });
  EXPECT_NE(sentence.find("frozen: kernel @"), std::string::npos) << sentence;
}

TEST_F(Warmup, FunctionsAreCompiledForTheirTypesAndNotRun) {
  const auto net = fj::nn::Sequential(fj::nn::Conv2d(3, 8, 3), fj::nn::BatchNorm2d(8), fj::nn::ReLU());
  fj::nn::Sequential moved = net;
  const fj::Frozen serve = moved.eval().freeze();
  // What surrounds a frozen network is part of the plan.
  const auto f = [&](const fj::Tensor& a, const fj::Tensor& b) {
    return fj::softmax(fj::mean(serve(fj::concat({a, b}, 0)), {2, 3}), 1);
  };
  fj::compile(f, {{fj::f32, {1, 3, 9, 9}}, {fj::f32, {2, 3, 9, 9}}});
  const fj::Statistics compiled = fj::stats();
  const fj::Tensor a = numbers({1, 3, 9, 9}), b = numbers({2, 3, 9, 9});
  f(a, b).eval();
  EXPECT_EQ(fj::stats().plans_made, compiled.plans_made);
  EXPECT_EQ(fj::stats().plan_cache_hits, compiled.plan_cache_hits + 1);
  EXPECT_NE(error_of([&] {
              fj::compile(f, {{fj::f32, {1, 3, 9, 9}}, {fj::f32, {2, 3, 9, 8}}});
            }).find("concat"),
            std::string::npos)
      << "errors are those of the function";
  const auto several = [](const fj::Tensor& x) { return std::vector<fj::Tensor>{x.sum(), fj::relu(x)}; };
  fj::compile(several, {{fj::f32, {40, 3}}});
}

TEST_F(Warmup, WhatOneRunRecordedAnotherOneIsMadeReadyWith) {
  const std::string file = cache_.path("run.fjs");
  fj::record_signatures(file);
  const std::vector<float> losses = train(2);
  fj::record_signatures("");
  const std::int64_t plans = fj::stats().plans_made;
  cache_.clear();  // on another machine
  restart();
  std::vector<std::int64_t> seen;
  const fj::WarmupReport report = fj::warmup(file, {.progress = [&](const fj::WarmupProgress& p) {
                                               seen.push_back(p.done);
                                               EXPECT_EQ(p.total, plans);
                                             }});
  EXPECT_EQ(report.signatures, plans);
  EXPECT_EQ(report.plans_made, plans);
  EXPECT_GT(report.kernels_compiled, 0);
  EXPECT_EQ(report.left_out, std::vector<std::string>());
  EXPECT_EQ(static_cast<std::int64_t>(seen.size()), plans);
  restart({.freeze = true});
  EXPECT_EQ(train(2), losses);

  std::ofstream(file, std::ios::app) << "{\"graph\": 3}\nnothing at all\n";
  restart();
  const fj::WarmupReport again = fj::warmup(file);
  EXPECT_EQ(again.signatures, plans);
  EXPECT_EQ(again.plans_loaded, plans);
  EXPECT_EQ(again.kernels_compiled, 0);
  EXPECT_EQ(again.left_out.size(), 2u);
  EXPECT_THROW(fj::warmup(cache_.path("nothing.fjs")), fj::FileError);
  EXPECT_THROW(fj::record_signatures(cache_.path("no/such/folder/run.fjs")), fj::FileError);
}

TEST_F(Warmup, ABudgetLeavesTheRestOut) {
  const std::string file = cache_.path("run.fjs");
  fj::record_signatures(file);
  train(1);
  fj::record_signatures("");
  const fj::WarmupReport report = fj::warmup(file, {.budget_seconds = 1e-9});
  EXPECT_EQ(report.signatures, 0);
  ASSERT_FALSE(report.left_out.empty());
  EXPECT_NE(report.left_out[0].find("the budget was used up"), std::string::npos);
}

TEST_F(Warmup, InTheBackgroundTheSameBitsComeFirstFromQuickCode) {
  restart({.cache = "off"});
  const std::vector<float> losses = train(3);
  restart({.compile = "background", .cache = "off"});
  EXPECT_EQ(train(3), losses);
  fj::finish_compiling();
  EXPECT_GT(fj::stats().background_plans, 0);
  EXPECT_EQ(fj::stats().background_failures, 0);
  const std::int64_t compiled = fj::stats().kernels_compiled;
  EXPECT_EQ(train(3), losses);
  EXPECT_EQ(fj::stats().kernels_compiled, compiled) << "what was made in the background took its place";
}

}  // namespace
