// Options::memory_limit: what a training step takes of memory, as predicted and as the process grows, with the same
// numbers as without a limit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "frontend/models/named.h"
#include "fusejit/fusejit.h"
#include "ir/base/number.h"
#include "tests/support/nightly.h"

namespace fusejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// "VmRSS": resident bytes of this process now, "VmHWM": the most since the last reset_high_water().
std::int64_t resident(const std::string& which) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == which + ":" && status >> kib) return kib * 1024;
  }
  return -1;
}
bool reset_high_water() { return bool(std::ofstream("/proc/self/clear_refs") << "5" << std::flush); }

class MemoryLimit : public ::testing::Test {
 protected:
  void TearDown() override {
    set_log({});
    set_options({});
    memory::release();
  }
};

struct Ran {
  std::vector<double> losses;
  PlanStatistics plan;
  std::int64_t grown = 0;  // of the process, by a step whose code was there
};
Ran train(const char* source, const std::string& limit, DType dtype = f32, int steps = 3) {
  set_options({.memory_limit = limit, .threads = 2});
  memory::release();
  manual_seed(1);
  const models::NamedNetwork model = models::named_network(source, dtype);
  std::vector<float> pixels(static_cast<std::size_t>(model.input.elements()));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::sin(static_cast<float>(i * i % 10007));
  const Tensor x = from_host(pixels.data(), model.input.shape, f32).to(dtype).eval();
  std::vector<std::int64_t> labels(static_cast<std::size_t>(model.target.elements()));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int64_t>(i) % model.classes;
  const Tensor target = from_host(labels.data(), model.target, i64).eval();
  auto step = train_step(*model.net, *model.optimizer,
                         [&](const Tensor& in, const Tensor& t) { return model.loss((*model.net)(in), t); });
  Ran ran;
  for (int i = 0; i < steps; ++i) ran.losses.push_back(step(x, target).item<double>());
  memory::release();
  const std::int64_t before = resident("VmRSS");
  if (reset_high_water()) {
    ran.losses.push_back(step(x, target).item<double>());
    ran.grown = resident("VmHWM") - before;
  }
  ran.plan = stats().last_plan;
  return ran;
}

TEST_F(MemoryLimit, ChangesNoLossButByRounding) {
  for (const char* source : {"convnet@4:train", "resnet18@4x3x64x64:train"}) {
    const Ran all = train(source, "none", f64), least = train(source, "least", f64);
    EXPECT_EQ(all.plan.recomputed, 0) << source;
    EXPECT_GT(least.plan.recomputed, 0) << source;
    EXPECT_GT(least.plan.extra_time, 0) << source;
    EXPECT_LT(least.plan.memory_bytes, all.plan.memory_bytes) << source;
    for (std::size_t i = 0; i < all.losses.size(); ++i)
      EXPECT_NEAR(least.losses[i], all.losses[i], 1e-9) << source << ", step " << i;
  }
}

TEST_F(MemoryLimit, IsWhatTheProcessGrowsBy) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory counts";
#endif
  if (!reset_high_water()) GTEST_SKIP() << "the process cannot reset its high-water mark";
  std::vector<const char*> sources = {"resnet18@16x3x128x128:train"};
  if (testing::is_nightly())
    sources = {"resnet50@16x3x224x224:train", "mobilenet_v2@16x3x224x224:train", "convnet@2048:train"};
  for (const char* source : sources) {
    const Ran all = train(source, "none"), least = train(source, "least");
    const std::int64_t half = (all.plan.memory_bytes + least.plan.memory_bytes) / 2;
    const Ran between = train(source, std::to_string(half));
    EXPECT_LE(between.plan.memory_bytes, half) << source;
    for (const Ran* ran : {&all, &least, &between}) {
      // The arguments are there before.
      const std::int64_t expected = ran->plan.arena_bytes;
      EXPECT_NEAR(static_cast<double>(ran->grown), static_cast<double>(expected),
                  0.05 * static_cast<double>(ran->plan.memory_bytes))
          << source << ": a step is said to take " << ran->plan.memory_bytes << " bytes";
    }
  }
}

TEST_F(MemoryLimit, IsSaidBeforeAnythingRuns) {
  std::vector<std::string> lines;
  set_log([&](std::string_view line) { lines.emplace_back(line); });
  const Ran ran = train("convnet@8:train", "1GiB", f32, 1);
  EXPECT_EQ(ran.plan.recomputed, 0);
  EXPECT_THAT(lines, ::testing::Contains(AllOf(HasSubstr("MiB (arguments "), HasSubstr("arena "),
                                               HasSubstr("0 values computed again in 0.0 % of the time"))));
}

// How little a step can take is said with what that costs, and is what a limit below it is refused with. The arena is
// looked for to one hundredth.
TEST_F(MemoryLimit, OfAStepHasALeastThatIsSaid) {
  std::vector<std::string> lines;
  set_log([&](std::string_view line) { lines.emplace_back(line); });
  const char* const source = "resnet18@4x3x64x64:train";
  const Ran least = train(source, "least", f32, 1);
  ASSERT_GT(least.plan.recomputed, 0);
  ASSERT_GT(least.plan.extra_time, 0.0005);
  const std::string bytes = ir::bytes_text(least.plan.memory_bytes),
                    again = fmt::format("{} of its values computed again", least.plan.recomputed);
  EXPECT_THAT(lines,
              ::testing::Contains(AllOf(HasSubstr(bytes + " (arguments "),
                                        HasSubstr(fmt::format("{} values computed again in {:.1f} % of the time",
                                                              least.plan.recomputed, 100 * least.plan.extra_time)))));
  for (const std::string& limit : {std::string("1KiB"), std::to_string(least.plan.memory_bytes / 100 * 99)}) {
    try {
      train(source, limit, f32, 1);
      ADD_FAILURE() << limit << " was enough";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot be met: " + bytes + " (arguments "), HasSubstr(again)));
    }
  }
  // Nothing was lost, and the least is enough.
  const Ran enough = train(source, std::to_string(least.plan.memory_bytes), f32, 1);
  EXPECT_LE(enough.plan.memory_bytes, least.plan.memory_bytes);
  EXPECT_NEAR(enough.losses[0], least.losses[0], 1e-5);
}

TEST_F(MemoryLimit, ThatCannotBeMetLeavesEverythingUsable) {
  set_options({.memory_limit = "1KiB"});
  const Tensor x = ones({64, 64}) * 2;
  try {
    x.eval();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("a memory limit of 1.0 KiB cannot be met"), HasSubstr("16.0 KiB")));
  }
  set_options({});
  EXPECT_EQ(sum(x).item<float>(), 2 * 64 * 64);
}

TEST_F(MemoryLimit, IsRefusedWhereNothingIsComputedAgain) {
  EXPECT_THROW(set_options({.rules = "none", .memory_limit = "least"}), UserError);
  EXPECT_THROW(set_options({.memory_limit = "a lot"}), UserError);
  EXPECT_EQ(options().memory_limit, "none");
}

}  // namespace
}  // namespace fusejit
