// In how many copies of their bodies loops on CUDA run: kernel texts in, what is said of each loop out.
#include "scheduler/lower/cuda/copies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/walk.h"

namespace fusejit::scheduler {
namespace {

// Of the serial loops of a body, outer first.
std::vector<int> copies_of(const std::string& body) {
  ir::Kernel kernel = ir::parse_kernel(
      "kernel @k(%x: f32[4096,64,128] read align 16, %z: f64[4096,64,128] read align 16, %y: f32[128] write) on cuda { "
      "phase { for %g in 0..1 grid.x { for %t in 0..128 block.x { " +
      body + " store %y[%t], 1 } } } }");
  cuda::bound_copies(kernel);
  std::vector<int> copies;
  ir::for_each_stmt(kernel.phases[0].body, [&](const ir::Stmt& s) {
    const auto* loop = std::get_if<ir::ForStmt>(&s.node);
    if (loop != nullptr && loop->binding == ir::Binding::none) copies.push_back(loop->copies);
  });
  EXPECT_EQ(print(ir::parse_kernel(print(kernel))), print(kernel));
  return copies;
}

// A loop of so many trips, with so many loads each, over a tile of so many words.
std::string over_a_tile(int trips, int loads, int words, const char* what = "%x", const char* type = "f32") {
  return fmt::format(
      "local %a: {4}[{2}] register = 0 for %c in 0..{0} {{ for %u in 0..{1} unroll {{ %0 = load {3}[%c, %u, %t] : {4} "
      "store %a[0], %0 }} }}",
      trips, loads, words, what, type);
}

using Copies = std::vector<int>;

// ptxas would have the loads of all rounds at once.
TEST(Copies, ShortLoopsOverATileHaveAFewLoadsInFlight) {
  EXPECT_EQ(copies_of(over_a_tile(6, 16, 1)), Copies{4});
  EXPECT_EQ(copies_of(over_a_tile(4, 16, 1)), Copies{0}) << "64 words";
  EXPECT_EQ(copies_of(over_a_tile(200, 16, 1)), Copies{0}) << "so many are not copied anyway";
  EXPECT_EQ(copies_of(over_a_tile(6, 16, 1, "%z", "f64")), Copies{2}) << "two words each";
}

// A copy that knows its quotients is so much shorter that the compiler makes all of a long loop, 36 rounds of 40 here.
TEST(Copies, OfRoundsThatDivideAreBoundedInLongLoops) {
  const auto copies = [](const char* index) {
    return copies_of(
        fmt::format("local %a: f32[3] register = 0 for %c in 0..36 {{ for %u in 0..12 unroll {{ "
                    "%0 = load %x[{}, 0, %t] : f32 %1 = mul(%0, 2) : f32 %2 = add(%1, 1) : f32 store %a[0], %2 }} }}",
                    index));
  };
  EXPECT_EQ(copies("(%c*12 + %u) / 5"), Copies{5});
  EXPECT_EQ(copies("%c*12 + %u"), Copies{0});
}

TEST(Copies, AreNotMadeWhereOneRoundIsEnough) {
  std::string loads;
  for (int i = 0; i < 17; ++i) loads += fmt::format("%{0} = load %x[%c, {0}, %t] : f32 ", i);
  EXPECT_EQ(copies_of("for %c in 0..4096 { " + loads + "}"), Copies{1});
  const std::string branch = "for %c in 0..4096 {{ if %c < 9 {{ %0 = load %x[%c, 0, %t] : f32 }} }}";
  EXPECT_EQ(copies_of("local %a: f32[117] register " + fmt::format(fmt::runtime(branch))), Copies{2});
  EXPECT_EQ(copies_of("local %a: f32[119] register " + fmt::format(fmt::runtime(branch))), Copies{1});
  EXPECT_EQ(copies_of("local %a: f32[23] register " + fmt::format(fmt::runtime(branch))), Copies{0});
}

// Taps of a depthwise convolution: what a column of them loads, behind the test for the border.
TEST(Copies, OverATileKeepOneMoreRoundInFlightWhereARoundIsSmall) {
  const auto taps = [](int trips, int loads) {
    return copies_of(
        fmt::format("local %a: f32[32] register = 0 for %c in 0..{} {{ for %u in 0..{} unroll {{ if %c + %u < 4000 {{ "
                    "%0 = load %x[%c, %u, %t] : f32 store %a[%u], %0 }} }} }}",
                    trips, loads));
  };
  EXPECT_EQ(taps(3, 20), Copies{3});
  EXPECT_EQ(taps(56, 20), Copies{4});
  EXPECT_EQ(taps(5, 20), Copies{1}) << "a round would be left over";
  EXPECT_EQ(taps(3, 25), Copies{1}) << "one round is enough";
}

// Sums that read several arrays: vectors of 16 bits are half as many words, and what all rounds share is no load.
TEST(Copies, OfLongRoundsKeepEnoughWordsInFlight) {
  const auto sums = [](int arrays, const char* type, const char* row) {
    std::string body;
    for (int i = 0; i < arrays; ++i)
      body += fmt::format("%{0} = load %h[{1}, {0}, %l] : {2} ", i, row, type) +
              fmt::format("%{0} = load %s[%l] : f32 ", arrays + i);
    return fmt::format("for %l in 0..4 vector {{ local %a: f32[1] register = 0 for %c in 0..4096 {{ {} }} }}", body);
  };
  const auto copies = [&](int arrays, const char* type, const char* row) {
    ir::Kernel kernel = ir::parse_kernel(
        fmt::format("kernel @k(%h: {}[4096,64,4] read align 16, %s: f32[4] read align 16) on cuda {{ phase {{ {} }} }}",
                    type, sums(arrays, type, row)));
    cuda::bound_copies(kernel);
    int result = -1;
    ir::for_each_stmt(kernel.phases[0].body, [&](const ir::Stmt& s) {
      const auto* loop = std::get_if<ir::ForStmt>(&s.node);
      if (loop != nullptr && loop->binding == ir::Binding::none) result = loop->copies;
    });
    return result;
  };
  EXPECT_EQ(copies(3, "bf16", "%c"), 2) << "6 words";
  EXPECT_EQ(copies(3, "f32", "%c"), 1) << "12 words";
  EXPECT_EQ(copies(3, "bf16", "0"), 1) << "nothing is loaded in each round";
}

TEST(Copies, OfLanesCountThem) {
  const auto lanes = [](const char* place) {
    return copies_of(
        fmt::format("for %l in 0..4 vector {{ local %a: f32[1] register = 0 for %c in 0..20 {{ "
                    "%0 = load %x[%c, 0, {}] : f32 store %a[0], %0 }} }}",
                    place));
  };
  EXPECT_EQ(lanes("%l"), Copies{16});
  EXPECT_EQ(lanes("%t"), Copies{0});
}

}  // namespace
}  // namespace fusejit::scheduler
