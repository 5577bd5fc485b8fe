// An anchor that is no row of the table of ops: a convolution of volumes, whose contraction this test makes. It is
// fused, scheduled, checked, packed and built like those that are, for processors and devices; nothing under scheduler/
// knows of it. What its row would say: attributes, the type of its result, contraction_of_conv3d.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "codegen/x86/compile.h"
#include "scheduler/choose/choose.h"
#include "tests/random/schedule_trial.h"

namespace fusejit::testing {
namespace {

using ir::Contraction;
using ir::DimSum;
using ir::Value;
using runtime::Buffer;
using scheduler::Schedule;

constexpr ir::AttrDef kAttrs[] = {{"stride", ir::AttrKind::ints}, {"padding", ir::AttrKind::ints}};

// y [N,K,D',P,Q] += x [N,C,D,H,W] * w [K,C,T,R,S]
std::vector<Contraction> contraction_of_conv3d(const ir::Node& node) {
  const Shape &x = node.operands[0].value.type().shape, &w = node.operands[1].value.type().shape, &y = node.type.shape;
  const auto stride = node.attrs.ints("stride"), padding = node.attrs.ints("padding");
  Contraction all;
  const auto dim = [&](const char* name, std::int64_t extent, bool reduced) {
    all.dims.push_back({name, extent, reduced});
    return static_cast<int>(all.dims.size()) - 1;
  };
  const int n = dim("n", y[0], false), d = dim("d", y[2], false), p = dim("p", y[3], false), q = dim("q", y[4], false),
            k = dim("k", y[1], false), t = dim("t", w[2], true), r = dim("r", w[3], true), s = dim("s", w[4], true),
            c = dim("c", w[1], true);
  const auto of = [](int one) { return DimSum{{{one, 1}}, 0}; };
  const auto window = [&](std::size_t axis, int output, int tap) {
    return DimSum{{{output, stride[axis]}, {tap, 1}}, -padding[axis]};
  };
  all.a = {0, {of(n), of(c), window(0, d, t), window(1, p, r), window(2, q, s)}, {x.begin(), x.end()}, false};
  all.b = {1, {of(k), of(c), of(t), of(r), of(s)}, {w.begin(), w.end()}, true};
  all.result = {of(n), of(k), of(d), of(p), of(q)};
  return {all};
}

struct Case {
  std::array<std::int64_t, 5> x, w;
  std::array<std::int64_t, 3> stride, padding;
};
const Case kCases[] = {
    {{2, 3, 5, 7, 9}, {18, 3, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
    {{1, 8, 4, 9, 14}, {32, 8, 2, 3, 3}, {2, 2, 2}, {0, 1, 1}},
    {{2, 17, 3, 6, 6}, {5, 17, 1, 1, 1}, {1, 1, 1}, {0, 0, 0}},
    {{1, 2, 6, 8, 8}, {16, 2, 3, 5, 4}, {1, 2, 3}, {2, 0, 3}},
};

// A node like the one that build() would make of such a row.
Value conv3d(const Value& x, const Value& w, const Case& c) {
  ir::Node like;
  like.op = ir::Op::conv2d;  // the table's row: an anchor with packed weights whose lanes run along dim 1
  std::vector<std::int64_t> shape{c.x[0], c.w[0]};
  for (std::size_t i = 0; i < 3; ++i) shape.push_back((c.x[i + 2] + 2 * c.padding[i] - c.w[i + 2]) / c.stride[i] + 1);
  like.type = {x.type().dtype, Shape(shape)};
  std::vector<ir::Attr> attrs(2);
  attrs[0].ints.assign(c.stride.begin(), c.stride.end()), attrs[1].ints.assign(c.padding.begin(), c.padding.end());
  like.attrs = ir::Attrs(kAttrs, attrs);
  like.operands = {x, w};
  return ir::rebuild(like, {x, w});
}

enum class Epilogue { none, bias_relu, bias_relu_sum };

ir::Graph graph_of(const Case& c, Epilogue epilogue) {
  const Value x = ir::parameter({DType::f32, Shape(std::vector(c.x.begin(), c.x.end()))}, "x"),
              w = ir::parameter({DType::f32, Shape(std::vector(c.w.begin(), c.w.end()))}, "w"),
              bias = ir::parameter({DType::f32, Shape{c.w[0], 1, 1, 1}}, "bias");
  const Value y = conv3d(x, w, c);
  if (epilogue == Epilogue::none) return ir::capture("conv3d", {x, w, bias}, {y});
  const Value z = ir::build(ir::Op::maximum, {ir::build(ir::Op::add, {y, bias}), 0.0});
  if (epilogue == Epilogue::bias_relu) return ir::capture("conv3d", {x, w, bias}, {z});
  const std::int64_t dims[] = {0, 2, 3, 4};
  return ir::capture("conv3d", {x, w, bias},
                     {z, ir::build(ir::Op::sum, {z}, {{"dim", std::span<const std::int64_t>(dims)}})});
}

// One term after the other.
std::vector<Buffer> by_hand(const ir::Graph& graph, const Case& c, Epilogue epilogue,
                            const std::vector<Buffer>& arguments) {
  const auto in = [&](std::size_t i) { return static_cast<const float*>(arguments[i].data()); };
  std::vector<Buffer> results;
  for (const Value& value : graph.results()) results.push_back(Buffer::allocate(value.type()));
  auto* out = static_cast<float*>(results[0].data());
  const Shape& y = graph.results()[0].type().shape;
  std::vector<float> sums(static_cast<std::size_t>(y[1]));
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t k = 0; k < y[1]; ++k)
      for (std::int64_t at = 0; at < y[2] * y[3] * y[4]; ++at) {
        const std::int64_t place[] = {at / (y[3] * y[4]), at / y[4] % y[3], at % y[4]};
        float sum = 0;
        for (std::int64_t term = 0; term < c.w[1] * c.w[2] * c.w[3] * c.w[4]; ++term) {
          const std::int64_t tap[] = {term / (c.w[3] * c.w[4]) % c.w[2], term / c.w[4] % c.w[3], term % c.w[4]};
          std::int64_t from = n * c.x[1] + term / (c.w[2] * c.w[3] * c.w[4]);
          bool inside = true;
          for (std::size_t i = 0; i < 3; ++i) {
            const std::int64_t cell = place[i] * c.stride[i] + tap[i] - c.padding[i];
            inside = inside && cell >= 0 && cell < c.x[i + 2];
            from = from * c.x[i + 2] + cell;
          }
          if (inside) sum += in(0)[from] * in(1)[k * c.w[1] * c.w[2] * c.w[3] * c.w[4] + term];
        }
        if (epilogue != Epilogue::none) sum = std::max(sum + in(2)[k], 0.0f);
        *out++ = sum, sums[static_cast<std::size_t>(k)] += sum;
      }
  if (epilogue == Epilogue::bias_relu_sum) std::copy(sums.begin(), sums.end(), static_cast<float*>(results[1].data()));
  return results;
}

constexpr const char* kTargets[] = {"x86:avx512,tasks=5", "x86:avx2,tasks=7", "x86:v2", "cuda:sm_80", "cuda:sm_100"};

Schedule chosen_one(const std::string&, const Contraction&, const Schedule& chosen) { return chosen; }

TEST(Conv3d, IsScheduledAndReadBack) {
  for (const Case& c : kCases) {
    const ir::Graph graph = graph_of(c, Epilogue::none);
    const Contraction contraction = contraction_of_conv3d(*graph.results()[0]).at(0);
    std::printf("%s\n", str(contraction).c_str());
    for (const char* name : kTargets) {
      for (const bool sums : {false, true}) {
        for (const int lanes : {1, 4}) {
          scheduler::FusedWork fused;
          fused.sums = sums, fused.lanes = lanes;
          for (const Schedule& schedule : candidates(contraction, Target::parse(name), fused)) {
            const std::string text = print(schedule);
            if (lanes == 4 && !sums) std::printf("  %-18s %s\n", name, text.c_str());
            EXPECT_EQ(check(contraction, schedule, Target::parse(name), sums), "") << text;
            EXPECT_EQ(scheduler::parse_schedule(text), schedule);
          }
        }
      }
    }
  }
}

TEST(Conv3d, GivesTheNumbersOfLoops) {
  for (std::size_t i = 0; i < std::size(kCases); ++i) {
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias_relu, Epilogue::bias_relu_sum}) {
      const ir::Graph graph = graph_of(kCases[i], epilogue);
      Random random(i);
      const std::vector<Buffer> arguments = arguments_of(graph, random, true),
                                want = by_hand(graph, kCases[i], epilogue, arguments);
      for (const char* name : kTargets) {
        SCOPED_TRACE(fmt::format("case {}, epilogue {}, {}", i, static_cast<int>(epilogue), name));
        const Trial trial = planned(graph, Target::parse(name), chosen_one, contraction_of_conv3d);
        EXPECT_EQ(difference(graph, interpreted(graph, trial.plan, arguments), want), "") << trial.tried;
        const scheduler::PlanStep& step = trial.plan.steps.back();
        EXPECT_EQ(step.schedules.size(), 1u) << "what follows runs with it";
        EXPECT_LE(trial.plan.steps.size(), 2u) << "weights are packed, and the rest is one kernel";
        if (trial.plan.target.isa == Isa::cuda || !codegen::x86::host_supports(trial.plan.target.isa)) continue;
        for (const int threads : {1, 3})
          EXPECT_EQ(difference(graph, as_machine_code(graph, trial.plan, arguments, threads), want), "");
      }
    }
  }
}

TEST(Conv3d, GivesTheSameNumbersInAnyLegalSchedule) {
  int legal = 0, illegal = 0;
  const int wanted = by_night() ? 3000 : 40;
  for (std::uint64_t seed = 1; legal < wanted && illegal < 20 * wanted; ++seed) {
    Random random(seed);
    const Case& c = kCases[seed % std::size(kCases)];
    const auto epilogue = static_cast<Epilogue>(random.from(0, 2));
    const ir::Graph graph = graph_of(c, epilogue);
    const Target target = Target::parse(random.of(std::vector(std::begin(kTargets), std::end(kTargets))));
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto draw = [&](const std::string&, const Contraction& contraction, const Schedule& chosen) {
      return target.isa == Isa::cuda ? random_cuda_schedule(random, contraction, chosen)
                                     : random_schedule(random, contraction, chosen);
    };
    const Trial trial = planned(graph, target, draw, contraction_of_conv3d);
    if (!trial.legal) {
      ++illegal;
      continue;
    }
    ++legal;
    const std::vector<Buffer> arguments = arguments_of(graph, random, true);
    ASSERT_EQ(difference(graph, interpreted(graph, trial.plan, arguments), by_hand(graph, c, epilogue, arguments)), "")
        << trial.tried;
  }
  EXPECT_EQ(legal, wanted) << illegal << " are not legal";
}

}  // namespace
}  // namespace fusejit::testing
