// Winograd's algorithm: random convolutions, schedules and epilogues, against the graph interpreter within the bound
// that docs/schedules.md states, and against itself bit by bit.
#include "scheduler/schedule/winograd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/random/generate/schedule_trial.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using ir::Contraction;
using ir::Graph;
using runtime::Buffer;
using scheduler::Schedule;

double largest(const Buffer& of, const Type& type) {
  double most = 0;
  for (std::int64_t i = 0; i < type.elements(); ++i)
    most = std::max(most, std::abs(ir::load_element(of.data(), type.dtype, i).as_double()));
  return most;
}

// The largest sum of absolute values that the second operand has for an output, which is its dim `of`.
double largest_sum(const Graph& graph, const std::vector<Buffer>& arguments, int of) {
  const Type& type = graph.parameters()[1].type();
  std::map<std::int64_t, double> sums;
  std::int64_t inside = 1;
  for (int d = of + 1; d < 4; ++d) inside *= type.shape[d];
  for (std::int64_t i = 0; i < type.elements(); ++i)
    sums[i / inside % type.shape[of]] += std::abs(ir::load_element(arguments[1].data(), type.dtype, i).as_double());
  double most = 0;
  for (const auto& [output, sum] : sums) most = std::max(most, sum);
  return most;
}

std::int64_t summed_elements(const ir::Node& result) {
  return result.op == ir::Op::sum ? result.operands[0].value.type().elements() / result.type.elements() : 1;
}

// Errors of an element are below 2^-18 of max |a| times the output's sum of |b|; of a sum of elements as often.
std::string beyond_bound(const Graph& graph, const std::vector<Buffer>& got, const std::vector<Buffer>& want,
                         double of_element) {
  for (std::size_t r = 0; r < want.size(); ++r) {
    const ir::Node& node = *graph.results()[r];
    const Type& type = node.type;
    const std::int64_t summed = summed_elements(node);
    const double bound = of_element * static_cast<double>(summed);
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      const double is = ir::load_element(got[r].data(), type.dtype, i).as_double(),
                   should = ir::load_element(want[r].data(), type.dtype, i).as_double();
      if (!(std::abs(is - should) <= bound))
        return fmt::format("element {} of {} of result {} is {}, not {}: beyond {}", i, type.elements(), r, is, should,
                           bound);
    }
  }
  return "";
}

bool has_windows(const Trial& trial) {
  return std::any_of(trial.drawn.begin(), trial.drawn.end(),
                     [](const auto& one) { return scheduler::winograd_dims(one.first).has_value(); });
}
// Which Winograd could compute and does not. A stride's single taps are none.
std::int64_t direct_windows(const Trial& trial) {
  return std::count_if(trial.drawn.begin(), trial.drawn.end(), [](const auto& one) {
    return one.first.outputs() > 0 && one.first.terms() > 0 && scheduler::winograd_dims(one.first) &&
           one.second.winograd != 4;
  });
}

void expect_right_numbers(int wanted, const std::vector<const char*>& targets,
                          Schedule (*draw)(Random&, const Contraction&, const Schedule&)) {
  int done = 0, refused = 0, computed = 0;
  for (std::uint64_t seed = 1; done < wanted; ++seed) {
    ASSERT_LT(refused, 5 * wanted) << "few schedules are legal";
    Random random(seed);
    const Target target = Target::parse(random.of(targets));
    const std::string text = random_small_window(random);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Graph graph = ir::parse_graph(text);
    const auto drawn = [&](const std::string&, const Contraction& contraction, const Schedule& chosen) {
      return draw(random, contraction, chosen);
    };
    try {
      const Trial trial = planned(graph, target, drawn);
      if (!trial.legal || !has_windows(trial)) {  // nothing is: views leave only zeros of the results
        ++refused;
        continue;
      }
      ++done;
      ASSERT_EQ(direct_windows(trial), 0) << trial.tried;
      const std::vector<Buffer> arguments = arguments_of(graph, random, false);
      const std::vector<Buffer> got = interpreted(graph, trial.plan, arguments);
      computed += text.find("%computed") != std::string::npos && trial.plan.steps.size() == 1;
      const double of_a =
          largest(arguments[0], graph.parameters()[0].type()) + (text.find("sub(1, %a)") != std::string::npos);
      const double bound =
          std::ldexp(1, -18) * of_a * largest_sum(graph, arguments, text.find("conv2d(") != std::string::npos ? 0 : 1);
      ASSERT_EQ(beyond_bound(graph, got, on_graph_interpreter(graph, arguments), bound), "") << trial.tried;
      const Trial again = planned(graph, target, drawn);
      if (again.legal && again.order == trial.order) {
        ASSERT_EQ(difference(graph, interpreted(graph, again.plan, arguments), got), "")
            << trial.tried << again.tried << trial.order;
      }
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
  }
  std::printf("%d legal, %d not; %d read what they compute\n", done, refused, computed);
  EXPECT_GT(computed, wanted / 10) << "operands are not computed where they are read";
}

const std::vector<const char*> kWinogradTargets = {"x86:avx512,tasks=7,winograd=2",
                                                   "x86:avx512,tasks=7,l2=32k,fma=2,winograd=2",
                                                   "x86:avx2,tasks=5,l1=1k,l2=4k,winograd=2", "x86:v2,winograd=2"};

TEST(RandomWinograd, GivesTheNumbersOfTheGraphInterpreter) {
  expect_right_numbers(is_nightly() ? 5000 : 120, kWinogradTargets, random_winograd);
}

// Whole numbers of 16 bits: what the points add to or leave out of a sum is taken away again by rounding, so that sums
// which the dtype holds exactly are right, but for what is near zero. Larger ones may be rounded to either side, before
// a bias is added too.
std::string beyond_rounding(const Graph& graph, const std::vector<Buffer>& got, const std::vector<Buffer>& want) {
  for (std::size_t r = 0; r < want.size(); ++r) {
    const Type& type = graph.results()[r]->type;
    const int digits = type.dtype == DType::bf16 ? 8 : 11;
    const auto summed = static_cast<double>(summed_elements(*graph.results()[r]));
    const double of_zero = std::max(std::ldexp(1, -10), std::ldexp(summed, -20));
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      const double is = ir::load_element(got[r].data(), type.dtype, i).as_double(),
                   should = ir::load_element(want[r].data(), type.dtype, i).as_double(), size = std::abs(should),
                   bound = size < std::ldexp(1, digits - 1) ? of_zero : std::ldexp(size, 1 - digits);
      if (is != should && !(std::abs(is - should) <= bound))  // where both are beyond the dtype's range
        return fmt::format("element {} of {} of result {} is {}, not {}", i, type.elements(), r, is, should);
    }
  }
  return "";
}

TEST(RandomWinograd, OfSixteenBitsSumsWholeNumbersExactly) {
  const std::vector<const char*> targets = {"x86:avx512bf16,tasks=7,l2=32k,fma=2,dot2=1,winograd=2",
                                            "x86:avx512,tasks=7,winograd=2", "x86:avx2,tasks=5,l2=4k,winograd=2",
                                            "x86:v2,winograd=2"};
  int done = 0;
  for (std::uint64_t seed = 1; done < (is_nightly() ? 3000 : 120); ++seed) {
    Random random(seed);
    const Target target = Target::parse(random.of(targets));
    const std::string text = random_small_window(random, random.of<std::string>({"bf16", "f16"}));
    SCOPED_TRACE(fmt::format("seed {} on {}\n{}", seed, target.str(), text));
    const Graph graph = ir::parse_graph(text);
    const bool drawn = random.chance(70);
    const Trial trial = planned(graph, target, [&](const std::string&, const Contraction& c, const Schedule& chosen) {
      return drawn ? random_winograd(random, c, chosen) : chosen;
    });
    if (!trial.legal || !has_windows(trial)) continue;
    ++done;
    ASSERT_EQ(direct_windows(trial), 0) << trial.tried;
    const std::vector<Buffer> arguments = arguments_of(graph, random, true);
    ASSERT_EQ(beyond_rounding(graph, interpreted(graph, trial.plan, arguments), on_graph_interpreter(graph, arguments)),
              "")
        << trial.tried;
  }
}

TEST(RandomWinograd, HasTheSameBitsAsMachineCodeOnAnyThreads) {
  Target host = Target::host();
  host.winograd = WinogradMode::always, host.tasks = 7;
  for (std::uint64_t seed = 1; seed <= (is_nightly() ? 300u : 12u); ++seed) {
    Random random(seed);
    const std::string text = random_small_window(random, random.of<std::string>({"f32", "bf16", "f16"}));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const Graph graph = ir::parse_graph(text);
    const Trial trial = planned(graph, host, [&](const std::string&, const Contraction& c, const Schedule& chosen) {
      return seed % 2 == 0 ? random_winograd(random, c, chosen) : chosen;
    });
    if (!trial.legal) continue;
    const std::vector<Buffer> arguments = arguments_of(graph, random, false);
    const std::vector<Buffer> got = interpreted(graph, trial.plan, arguments);
    for (const int threads : {1, 2, 3, 8})
      ASSERT_EQ(difference(graph, as_machine_code(graph, trial.plan, arguments, threads), got), "") << trial.tried;
  }
}

// Windows of stride and dilation 2 touch every second row and column: those are a convolution of stride 1, and the
// others are zeros, which direct schedules finish in its epilogue and Winograd's do not.
TEST(Winograd, LeavesWhatNoWindowTouchesToSchedulesOfItsOwn) {
  Random random(1);
  for (const char* name : kWinogradTargets) {
    for (const int rows : {1, 9}) {
      const std::string type = fmt::format("f32[2,5,{},10]:nhwc", rows);
      const Graph graph = ir::parse_graph(fmt::format(
          "graph @g(%a: f32[2,3,{},5]:nhwc, %b: f32[3,5,3,3], %side: {}) {{\n"
          "  %0 = conv2d_input_grad(%a, %b) {{input_size=[{},10], stride=[2,2], padding=[2,2,2,2], dilation=[2,2], "
          "groups=1}} : {}\n  %1 = add(%0, %side) : {}\n  return %1\n}}",
          (rows + 1) / 2, type, rows, type, type));
      const Trial trial =
          planned(graph, Target::parse(name), [](const auto&, const auto&, const Schedule& s) { return s; });
      ASSERT_EQ(trial.drawn.size(), rows == 1 ? 2u : 4u) << trial.tried;
      EXPECT_EQ(trial.drawn[0].second.winograd, 4) << trial.tried;
      const std::vector<Buffer> arguments = arguments_of(graph, random, false);
      const double bound =
          std::ldexp(1, -18) * largest(arguments[0], graph.parameters()[0].type()) * largest_sum(graph, arguments, 1);
      EXPECT_EQ(
          beyond_bound(graph, interpreted(graph, trial.plan, arguments), on_graph_interpreter(graph, arguments), bound),
          "")
          << trial.tried;
    }
  }
}

TEST(RandomWinograd, ChosenOnesGiveTheNumbersOfTheGraphInterpreter) {
  expect_right_numbers(is_nightly() ? 2000 : 100, kWinogradTargets,
                       [](Random&, const Contraction&, const Schedule& chosen) { return chosen; });
}

}  // namespace
}  // namespace fusejit::testing
