// Random networks in training: machine code with and without fusion against the graph interpreter in f64. A failure
// prints the network and a graph as small as shrinking makes it, to be kept as a case of tests/conformance.
// FUSEJIT_NIGHTLY=1 runs 5,000 of them, FUSEJIT_RANDOM_NETWORKS=first-last others; FUSEJIT_SURVEY=1 goes through all
// and writes a line for each, with the part of the bound that its largest error is.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "codegen/x86/compile.h"
#include "scheduler/make_plan.h"
#include "scheduler/report/memory.h"
#include "tests/random/generate/network_check.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

struct Seeds {
  std::uint64_t first = 1, last = 60;
};
Seeds seeds() {
  Seeds s;
  if (testing::is_nightly()) s.last = 5000;
  if (const char* wanted = std::getenv("FUSEJIT_RANDOM_NETWORKS")) {
    unsigned long long first = 0, last = 0;
    if (std::sscanf(wanted, "%llu-%llu", &first, &last) == 2) s = {first, last};
  }
  return s;
}

// What a seed is run for. By day every sixth network is machine code, at night all are.
CheckOptions options_of(std::uint64_t seed) {
  static constexpr const char* kTargets[] = {
      "x86:avx512,tasks=7", "x86:avx2,l1=1k,l2=4k,l3=16k,tasks=5", "x86:v2,tasks=3", "x86:avx512bf16,l1=2k,tasks=3",
      "x86:avx2",           "x86:v2,l1=1k,l2=4k,l3=16k,tasks=9",   "cuda:sm_90"};
  CheckOptions options{.target = Target::parse(kTargets[seed % std::size(kTargets)])};
  options.compiled = (testing::is_nightly() || seed % 6 == 0) && options.target.isa != Isa::cuda &&
                     codegen::x86::host_supports(options.target.isa);
  return options;
}

void expect_agreement(Seeds seeds, CheckOptions (*options_of)(std::uint64_t seed), const NetworkOptions& of = {}) {
  const bool survey = std::getenv("FUSEJIT_SURVEY") != nullptr;
  int failures = 0;
  std::uint64_t left_out = 0;
  for (std::uint64_t seed = seeds.first; seed <= seeds.last && (survey || failures < 3); ++seed) {
    const Network network = random_network(seed, of);
    const CheckOptions options = options_of(seed);
    const Finding found = check_network(network, seed, options);
    left_out += !found.compared;
    if (survey) {
      std::printf("%llu\t%s\t%s\t%.2g\t%s\n", static_cast<unsigned long long>(seed), found.kind.c_str(),
                  network.str().c_str(), found.of_bound, found.text.substr(0, found.text.find('\n')).c_str());
      std::fflush(stdout);
    }
    if (found.kind.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << found.kind << ": " << found.text << "\nat its smallest: "
                  << (survey ? "not looked for" : smallest(network, seed, options, found.kind));
  }
  EXPECT_LE(left_out, (seeds.last - seeds.first + 1) / 10) << "are not compared";
}

TEST(RandomNetworks, EnginesAgreeWithTheInterpreterInF64) { expect_agreement(seeds(), options_of); }

// A block of composed functions at a time, in each dtype and layout.
TEST(RandomNetworks, OfComposedFunctionsAgreeInEveryForm) {
  std::uint64_t seed = 0;
  for (int k = static_cast<int>(BlockKind::bordered); k < static_cast<int>(BlockKind::count_); ++k) {
    for (const DType dtype : {f64, f32, bf16}) {
      for (const bool nhwc : {false, true}) {
        const auto kind = static_cast<BlockKind>(k);
        // Places in 16 bits are others (network.cpp).
        if (dtype == bf16 && (kind == BlockKind::strongest || kind == BlockKind::sampled)) continue;
        Network network;
        while (network.blocks.empty())
          network = random_network(
              ++seed, {.most_blocks = 1, .most_products = 60000, .kind = kind, .dtype = dtype, .nhwc = nhwc});
        ASSERT_TRUE(network.blocks[0].kind == kind && network.dtype == dtype && network.nhwc == nhwc) << network.str();
        const CheckOptions options = options_of(seed);
        const Finding found = check_network(network, seed, options);
        EXPECT_EQ(found.kind, "") << found.text
                                  << "\nat its smallest: " << smallest(network, seed, options, found.kind);
      }
    }
  }
}

// Wherever Winograd can be used, which is in networks with 3x3 convolutions, but those in f64; then in bf16 alone.
TEST(RandomNetworks, WithWinogradAgreeWithTheInterpreterInF64) {
  Seeds some = seeds();
  if (!testing::is_nightly() && std::getenv("FUSEJIT_RANDOM_NETWORKS") == nullptr) some.last = 16;
  const auto with_winograd = [](std::uint64_t seed) {
    CheckOptions options = options_of(seed);
    if (options.target.isa == Isa::cuda) options.target = Target::parse("x86:avx512,l2=64k");
    options.target.winograd = WinogradMode::always;
    return options;
  };
  expect_agreement(some, with_winograd);
  some.last = some.first + (some.last - some.first) / 2;
  expect_agreement(some, with_winograd, {.dtype = DType::bf16});
}

// Without a library, where convolutions compute what they read in panels that threads share.
TEST(RandomNetworks, OnADeviceAgreeWithTheInterpreterInF64) {
  Seeds some = seeds();
  if (!testing::is_nightly() && std::getenv("FUSEJIT_RANDOM_NETWORKS") == nullptr) some.last = 14;
  expect_agreement(some, [](std::uint64_t seed) {
    return CheckOptions{.target = Target::parse(seed % 2 == 0 ? "cuda:sm_90" : "cuda:sm_80")};
  });
}

// Kernels in place of the calls of cuDNN, which take along what its engines do.
TEST(RandomNetworks, BesideALibraryAgreeWithTheInterpreterInF64) {
  Seeds some = seeds();
  if (!testing::is_nightly() && std::getenv("FUSEJIT_RANDOM_NETWORKS") == nullptr) some.last = 14;
  expect_agreement(some, [](std::uint64_t seed) {
    return CheckOptions{.target = Target::parse(seed % 4 == 0 ? "cuda:sm_90,cudnn=1" : "cuda:sm_90,cudnn=2")};
  });
  some.last = some.first + (some.last - some.first) / 2;
  expect_agreement(some,
                   [](std::uint64_t) { return CheckOptions{.target = Target::parse("cuda:sm_90,cudnn=2,fastnorm=1")}; },
                   {.dtype = DType::f16});
}

// In bf16, whose products a matrix unit computes where channels come in eights.
TEST(RandomNetworks, InAMatrixUnitAgreeWithTheInterpreterInF64) {
  Seeds some = seeds();
  if (!testing::is_nightly() && std::getenv("FUSEJIT_RANDOM_NETWORKS") == nullptr) some.last = 20;
  expect_agreement(
      some,
      [](std::uint64_t seed) {
        CheckOptions options = options_of(seed);
        options.target = Target::parse(seed % 2 == 0 ? "x86:amx,tasks=3" : "x86:amx,l1=1k,l2=8k,l3=32k,tasks=7");
        options.compiled = (testing::is_nightly() || seed % 3 == 0) && codegen::x86::host_supports(options.target.isa);
        return options;
      },
      {.dtype = DType::bf16});
}

// In f16, which is computed wide and kept narrow; what leaves its range is left out.
TEST(RandomNetworks, InHalvesAgreeWithTheInterpreterInF64) {
  Seeds some = seeds();
  if (!testing::is_nightly() && std::getenv("FUSEJIT_RANDOM_NETWORKS") == nullptr) some.last = 12;
  expect_agreement(some, options_of, {.dtype = DType::f16});
}

// A rule less, each in turn.
TEST(RandomNetworks, WithoutARuleAgreeWithTheInterpreterInF64) {
  Seeds some = seeds();
  if (!testing::is_nightly() && std::getenv("FUSEJIT_RANDOM_NETWORKS") == nullptr) some.last = 27;
  expect_agreement(some, [](std::uint64_t seed) {
    static constexpr const char* kRules[] = {"-R1", "-R2", "-R3", "-R4", "-R5", "-R6", "-R7", "-R8", "-R9", "inductor"};
    CheckOptions options = options_of(seed / 8);
    options.rules = scheduler::parse_rules(kRules[seed % std::size(kRules)]);
    return options;
  });
}

// As little memory as recomputation reaches, or a half or a quarter of the way there.
TEST(RandomNetworks, UnderMemoryLimitsAgreeWithTheInterpreterInF64) {
  Seeds some = seeds();
  if (!testing::is_nightly() && std::getenv("FUSEJIT_RANDOM_NETWORKS") == nullptr) some.last = 24;
  expect_agreement(some, [](std::uint64_t seed) {
    CheckOptions options = options_of(seed);
    options.memory_limit.bytes = scheduler::MemoryLimit::kLeast;
    if (seed % 3 == 0) return options;
    const TrainingGraph made = training_graph(random_network(seed));
    scheduler::PlanOptions wanted{options.target, scheduler::Rules::all, made.donated};
    const auto bytes = [&] { return memory_use(make_plan(made.graph, wanted)).total(); };
    const std::int64_t all = bytes();
    wanted.memory_limit = options.memory_limit;
    options.memory_limit.bytes = all - (all - bytes()) / (seed % 3 == 1 ? 2 : 4);
    return options;
  });
}

// Those limits take what they are for: of many networks values are computed again.
TEST(RandomNetworks, LimitsOfADayAreMetByComputingAgain) {
  int recomputed = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const TrainingGraph made = training_graph(random_network(seed));
    scheduler::PlanOptions wanted{options_of(seed).target, scheduler::Rules::all, made.donated};
    const std::int64_t all = memory_use(make_plan(made.graph, wanted)).total();
    wanted.memory_limit.bytes = scheduler::MemoryLimit::kLeast;
    const scheduler::Plan least = make_plan(made.graph, wanted);
    recomputed += least.recomputed > 0;
    EXPECT_LE(memory_use(least).total(), all) << "seed " << seed;
  }
  EXPECT_GE(recomputed, 10);
}

}  // namespace
}  // namespace fusejit::testing
