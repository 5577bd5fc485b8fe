// Anchors in random legal schedules as CUDA text: on the CPU against the interpreter, bit for bit, and through NVRTC.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/cuda/nvrtc.h"
#include "tests/random/generate/schedule_trial.h"
#include "tests/support/cuda_shim/shim.h"
#include "tests/support/nightly.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

using testing::Random;

struct Drawn {
  std::vector<std::shared_ptr<const ir::Kernel>> kernels;
  std::vector<codegen::cuda::CudaSource> sources;
  std::vector<std::string> texts;  // graph and schedules
};

// The kernels of so many anchors.
Drawn draw(int anchors, std::uint64_t first_seed, const std::string& target) {
  Drawn drawn;
  for (std::uint64_t seed = first_seed; anchors > 0; ++seed) {
    Random random(seed);
    const std::string text = testing::random_anchor(random, random.of<std::string>({"f32", "f32", "f64", "bf16"}));
    const testing::Trial trial = testing::planned(
        ir::parse_graph(text), Target::parse(target), [&](const auto&, const auto& contraction, const auto& chosen) {
          return seed % 2 == 0 ? testing::random_shared_panels(random, contraction, chosen)
                               : testing::random_cuda_schedule(random, contraction, chosen);
        });
    if (!trial.legal) continue;
    --anchors;
    for (const scheduler::PlanStep& step : trial.plan.steps) {
      drawn.kernels.push_back(step.kernel);
      drawn.sources.push_back(codegen::cuda::emit(*step.kernel, fmt::format("k{}", drawn.sources.size())));
      drawn.texts.push_back(fmt::format("seed {}\n{}\n{}", seed, text, trial.tried));
    }
  }
  return drawn;
}

TEST(CudaSchedules, TextEqualsInterpreter) {
  const Drawn drawn = draw(testing::is_nightly() ? 200 : 40, 1, "cuda:sm_90");
  constexpr std::size_t kTogether = 40;
  for (std::size_t begin = 0; begin < drawn.kernels.size(); begin += kTogether) {
    const std::size_t end = std::min(begin + kTogether, drawn.kernels.size());
    Shim shim({drawn.sources.begin() + static_cast<std::ptrdiff_t>(begin),
               drawn.sources.begin() + static_cast<std::ptrdiff_t>(end)});
    shim.open("-O0");
    for (std::size_t k = begin; k < end; ++k) {
      const ir::Kernel& kernel = *drawn.kernels[k];
      Operands expected = random_operands(kernel, Values::ordinary, k + 1);
      run_interpreted(kernel, expected);
      for (const ir::TaskOrder order : {ir::TaskOrder::ascending, ir::TaskOrder::shuffled}) {
        Operands actual = random_operands(kernel, Values::ordinary, k + 1);
        shim.run(k - begin, actual, order);
        ASSERT_EQ(difference(kernel, expected, actual), "") << drawn.texts[k] << drawn.sources[k].text;
      }
    }
  }
}

TEST(CudaSchedules, AreCompiled) {
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  for (const int capability : {90, 80, 100}) {
    const Drawn drawn = draw(testing::is_nightly() ? 100 : 10, 1000 * static_cast<std::uint64_t>(capability),
                             fmt::format("cuda:sm_{}", capability));
    std::size_t entries = 0;
    for (const codegen::cuda::CudaSource& source : drawn.sources) entries += source.launches.size();
    try {
      EXPECT_EQ(codegen::cuda::compile(codegen::cuda::program(drawn.sources), capability).entries.size(), entries);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (!testing::is_nightly()) break;
  }
}

}  // namespace
}  // namespace fusejit::test
