// Anchors that are no rows of the table of ops: a convolution of volumes and its gradients, whose contractions this
// test makes. They are fused, scheduled, checked, packed and built like those that are, for processors and devices;
// nothing under scheduler/ knows of them. What their rows would say: attributes, types of results,
// contractions_of_conv3d.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "codegen/x86/compile.h"
#include "scheduler/choose/choose.h"
#include "tests/random/generate/schedule_trial.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using ir::Contraction;
using ir::DimSum;
using ir::Value;
using runtime::Buffer;
using scheduler::Schedule;

constexpr ir::AttrDef kAttrs[] = {{"stride", ir::AttrKind::ints}, {"padding", ir::AttrKind::ints}};

// y [N,K,D',P,Q] += x [N,C,D,H,W] * w [K,C,T,R,S]; dims of three axes at once, outermost first.
using Dims = std::array<int, 3>;

class Maker {
 public:
  explicit Maker(const ir::Node& node)
      : stride_(node.attrs.ints("stride")), padding_(node.attrs.ints("padding")), node_(node) {}

  Contraction convolution() {
    const Shape &w = shape(1), &y = node_.type.shape;
    const int n = dim("n", y[0], false);
    const Dims cells = dims({"d", "p", "q"}, y, false);
    const int k = dim("k", y[1], false);
    const Dims taps = dims({"t", "r", "s"}, w, true);
    const int c = dim("c", w[1], true);
    all_.a = operand(0, {of(n), of(c)}, windows(cells, taps));
    all_.b = operand(1, {of(k), of(c)}, each(taps));
    all_.b.weights = true;
    all_.result = joined({of(n), of(k)}, each(cells));
    return all_;
  }
  // dw += x * dy
  Contraction weight_grad() {
    const Shape &dy = shape(1), &w = node_.type.shape;
    const int k = dim("k", w[0], false);
    const Dims taps = dims({"t", "r", "s"}, w, false);
    const int c = dim("c", w[1], false), n = dim("n", dy[0], true);
    const Dims cells = dims({"d", "p", "q"}, dy, true);
    all_.a = operand(0, {of(n), of(c)}, windows(cells, taps));
    all_.b = operand(1, {of(n), of(k)}, each(cells));
    all_.result = joined({of(k), of(c)}, each(taps));
    return all_;
  }
  // dx += dy * w, of the cells i * stride + offset along each axis: taps first + stride * m meet them, in reverse.
  Contraction input_grad(const std::array<std::int64_t, 3>& offset) {
    const Shape &w = shape(1), &x = node_.type.shape;
    std::array<std::int64_t, 3> first{}, count{}, base{};
    std::vector<std::int64_t> outputs{0, 0}, taps_of{0, 0};
    bool touched = true;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t kernel = w[static_cast<int>(i) + 2], extent = x[static_cast<int>(i) + 2];
      first[i] = (offset[i] + padding_[i]) % stride_[i];
      count[i] = first[i] < kernel ? (kernel - first[i] + stride_[i] - 1) / stride_[i] : 0;
      base[i] = (offset[i] + padding_[i] - first[i]) / stride_[i];
      outputs.push_back((extent - offset[i] + stride_[i] - 1) / stride_[i]), taps_of.push_back(count[i]);
      touched = touched && count[i] > 0;
    }
    const int n = dim("n", x[0], false);
    const Dims cells = dims({"d", "p", "q"}, Shape(outputs), false);
    const int k = dim("k", w[1], false);
    const Dims taps = dims({"t", "r", "s"}, Shape(taps_of), true);
    const int c = dim("c", touched ? w[0] : 0, true);
    std::vector<DimSum> over, tap, cell;
    for (std::size_t i = 0; i < 3; ++i) {
      over.push_back({{{cells[i], 1}, {taps[i], 1}}, base[i] - (count[i] - 1)});
      tap.push_back({{{taps[i], -stride_[i]}}, first[i] + stride_[i] * (count[i] - 1)});
      cell.push_back({{{cells[i], stride_[i]}}, offset[i]});
    }
    all_.a = operand(0, {of(n), of(c)}, over);
    all_.b = operand(1, {of(c), of(k)}, tap);
    all_.b.weights = true;
    all_.result = joined({of(n), of(k)}, cell);
    return all_;
  }

 private:
  const Shape& shape(std::size_t i) const { return node_.operands[i].value.type().shape; }
  int dim(const char* name, std::int64_t extent, bool reduced) {
    all_.dims.push_back({name, extent, reduced});
    return static_cast<int>(all_.dims.size()) - 1;
  }
  Dims dims(const std::array<const char*, 3>& names, const Shape& shape, bool reduced) {
    Dims made{};
    for (std::size_t i = 0; i < 3; ++i) made[i] = dim(names[i], shape[static_cast<int>(i) + 2], reduced);
    return made;
  }
  static DimSum of(int one) { return {{{one, 1}}, 0}; }
  static std::vector<DimSum> each(const Dims& dims) { return {of(dims[0]), of(dims[1]), of(dims[2])}; }
  std::vector<DimSum> windows(const Dims& cells, const Dims& taps) const {
    std::vector<DimSum> all;
    for (std::size_t i = 0; i < 3; ++i) all.push_back({{{cells[i], stride_[i]}, {taps[i], 1}}, -padding_[i]});
    return all;
  }
  static std::vector<DimSum> joined(std::vector<DimSum> first, const std::vector<DimSum>& rest) {
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
  }
  ir::ContractionOperand operand(int i, std::vector<DimSum> first, const std::vector<DimSum>& rest) const {
    const Shape& of_operand = shape(static_cast<std::size_t>(i));
    return {i, joined(std::move(first), rest), {of_operand.begin(), of_operand.end()}, false, DType::f32};
  }

  const std::span<const std::int64_t> stride_, padding_;
  const ir::Node& node_;
  Contraction all_;
};

// One, or as many as there are residues of the strides.
std::vector<Contraction> contractions_of_conv3d(const ir::Node& node) {
  if (node.op == ir::Op::conv2d) return {Maker(node).convolution()};
  if (node.op == ir::Op::conv2d_weight_grad) return {Maker(node).weight_grad()};
  const auto stride = node.attrs.ints("stride");
  std::vector<Contraction> all;
  for (std::int64_t at = 0; at < stride[0] * stride[1] * stride[2]; ++at)
    all.push_back(Maker(node).input_grad({at / (stride[1] * stride[2]), at / stride[2] % stride[1], at % stride[2]}));
  return all;
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

// What is computed: the convolution, its gradient by the input, by the weights. The row of the table of ops that stands
// for each: an anchor whose second operand is packed, or not, and whose lanes run along dim 1, or 0.
constexpr ir::Op kKinds[] = {ir::Op::conv2d, ir::Op::conv2d_input_grad, ir::Op::conv2d_weight_grad};

struct Shapes {
  Shape x, w, y;
};
Shapes shapes_of(const Case& c) {
  std::vector<std::int64_t> y{c.x[0], c.w[0]};
  for (std::size_t i = 0; i < 3; ++i) y.push_back((c.x[i + 2] + 2 * c.padding[i] - c.w[i + 2]) / c.stride[i] + 1);
  return {Shape(std::vector(c.x.begin(), c.x.end())), Shape(std::vector(c.w.begin(), c.w.end())), Shape(y)};
}

// A node like the one that build() would make of such a row.
Value conv3d(ir::Op kind, const Value& a, const Value& b, const Shape& result, const Case& c) {
  ir::Node like;
  like.op = kind;
  like.type = {a.type().dtype, result};
  std::vector<ir::Attr> attrs(2);
  attrs[0].ints.assign(c.stride.begin(), c.stride.end()), attrs[1].ints.assign(c.padding.begin(), c.padding.end());
  attrs[1].ints.insert(attrs[1].ints.end(), c.padding.begin(), c.padding.end());  // on the other side
  like.attrs = ir::Attrs(kAttrs, attrs);
  like.operands = {a, b};
  return ir::rebuild(like, {a, b});
}

enum class Epilogue { none, bias_relu, bias_relu_sum };

ir::Graph graph_of(ir::Op kind, const Case& c, Epilogue epilogue) {
  const Shapes shapes = shapes_of(c);
  const bool forward = kind == ir::Op::conv2d, of_weights = kind == ir::Op::conv2d_weight_grad;
  const Shape& result = forward ? shapes.y : of_weights ? shapes.w : shapes.x;
  const Value a = ir::parameter({DType::f32, forward || of_weights ? shapes.x : shapes.y}, "a"),
              b = ir::parameter({DType::f32, of_weights ? shapes.y : shapes.w}, "b"),
              bias = ir::parameter({DType::f32, Shape{result[1], 1, 1, 1}}, "bias");
  const Value y = conv3d(kind, a, b, result, c);
  if (epilogue == Epilogue::none) return ir::capture("conv3d", {a, b, bias}, {y});
  const Value z = ir::build(ir::Op::maximum, {ir::build(ir::Op::add, {y, bias}), 0.0});
  if (epilogue == Epilogue::bias_relu) return ir::capture("conv3d", {a, b, bias}, {z});
  const std::int64_t dims[] = {0, 2, 3, 4};
  return ir::capture("conv3d", {a, b, bias},
                     {z, ir::build(ir::Op::sum, {z}, {{"dim", std::span<const std::int64_t>(dims)}})});
}

// One product after the other: y = x * w, dx = y * w, dw = x * y.
std::vector<Buffer> by_hand(ir::Op kind, const ir::Graph& graph, const Case& c, Epilogue epilogue,
                            const std::vector<Buffer>& arguments) {
  std::vector<Buffer> results;
  for (const Value& value : graph.results()) results.push_back(Buffer::allocate(value.type()));
  auto* out = static_cast<float*>(results[0].data());
  const Shape& result = graph.results()[0].type().shape;
  std::fill_n(out, result.elements(), 0.0f);
  const auto* a = static_cast<const float*>(arguments[0].data());
  const auto* b = static_cast<const float*>(arguments[1].data());
  const Shapes shapes = shapes_of(c);
  const Shape& y = shapes.y;
  const std::int64_t cells = y[2] * y[3] * y[4], taps = c.w[2] * c.w[3] * c.w[4];
  for (std::int64_t at = 0; at < y.elements() * c.w[1] * taps; ++at) {
    const std::int64_t tap = at % taps, channel = at / taps % c.w[1], cell = at / taps / c.w[1] % cells,
                       k = at / taps / c.w[1] / cells % y[1], n = at / taps / c.w[1] / cells / y[1];
    const std::int64_t place[] = {cell / (y[3] * y[4]), cell / y[4] % y[3], cell % y[4]};
    const std::int64_t step[] = {tap / (c.w[3] * c.w[4]), tap / c.w[4] % c.w[3], tap % c.w[4]};
    std::int64_t in_x = n * c.x[1] + channel;
    bool inside = true;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t index = place[i] * c.stride[i] + step[i] - c.padding[i];
      inside = inside && index >= 0 && index < c.x[i + 2];
      in_x = in_x * c.x[i + 2] + index;
    }
    if (!inside) continue;
    const std::int64_t in_w = (k * c.w[1] + channel) * taps + tap, in_y = (n * y[1] + k) * cells + cell;
    if (kind == ir::Op::conv2d) out[in_y] += a[in_x] * b[in_w];
    if (kind == ir::Op::conv2d_input_grad) out[in_x] += a[in_y] * b[in_w];
    if (kind == ir::Op::conv2d_weight_grad) out[in_w] += a[in_x] * b[in_y];
  }
  if (epilogue == Epilogue::none) return results;
  const auto* bias = static_cast<const float*>(arguments[2].data());
  std::vector<float> sums(static_cast<std::size_t>(result[1]));
  const std::int64_t inner = result[2] * result[3] * result[4];
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    const std::int64_t channel = i / inner % result[1];
    out[i] = std::max(out[i] + bias[channel], 0.0f);
    sums[static_cast<std::size_t>(channel)] += out[i];
  }
  if (epilogue == Epilogue::bias_relu_sum) std::copy(sums.begin(), sums.end(), static_cast<float*>(results[1].data()));
  return results;
}

// Parts of a weight gradient are added up before its epilogue, which has no sums of its own then.
bool has(ir::Op kind, Epilogue epilogue) {
  return kind != ir::Op::conv2d_weight_grad || epilogue != Epilogue::bias_relu_sum;
}

constexpr const char* kConv3dTargets[] = {"x86:avx512,tasks=5", "x86:avx2,tasks=7", "x86:v2", "cuda:sm_80",
                                          "cuda:sm_100"};

Schedule chosen_one(const std::string&, const Contraction&, const Schedule& chosen) { return chosen; }

TEST(Conv3d, IsScheduledAndReadBack) {
  for (const Case& c : kCases) {
    for (const ir::Op kind : kKinds) {
      const ir::Graph graph = graph_of(kind, c, Epilogue::none);
      for (const Contraction& contraction : contractions_of_conv3d(*graph.results()[0])) {
        for (const char* name : kConv3dTargets) {
          for (const bool sums : {false, true}) {
            if (sums && kind == ir::Op::conv2d_weight_grad) continue;
            for (const int lanes : {1, 4}) {
              scheduler::FusedWork fused;
              fused.sums = sums, fused.lanes = lanes;
              for (const Schedule& schedule : candidates(contraction, Target::parse(name), fused)) {
                const std::string text = print(schedule);
                EXPECT_EQ(check(contraction, schedule, Target::parse(name), sums), "")
                    << text << " of " << str(contraction) << " on " << name;
                EXPECT_EQ(scheduler::parse_schedule(text), schedule);
              }
            }
          }
        }
      }
    }
  }
}

TEST(Conv3d, GivesTheNumbersOfLoops) {
  for (std::size_t i = 0; i < std::size(kCases); ++i) {
    for (const ir::Op kind : kKinds) {
      for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias_relu, Epilogue::bias_relu_sum}) {
        if (!has(kind, epilogue)) continue;
        const ir::Graph graph = graph_of(kind, kCases[i], epilogue);
        Random random(i);
        const std::vector<Buffer> arguments = arguments_of(graph, random, true),
                                  want = by_hand(kind, graph, kCases[i], epilogue, arguments);
        for (const char* name : kConv3dTargets) {
          SCOPED_TRACE(
              fmt::format("case {}, {}, epilogue {}, {}", i, ir::name(kind), static_cast<int>(epilogue), name));
          const Trial trial = planned(graph, Target::parse(name), chosen_one, contractions_of_conv3d, true);
          EXPECT_EQ(difference(graph, interpreted(graph, trial.plan, arguments), want), "") << trial.tried;
          const std::size_t contractions = trial.plan.steps.back().schedules.size();
          EXPECT_GE(contractions, 1u) << "what follows runs with it";
          EXPECT_LE(trial.plan.steps.size(), contractions + 1) << "weights are packed, and the rest is one kernel";
          if (trial.plan.target.isa == Isa::cuda || !codegen::x86::host_supports(trial.plan.target.isa)) continue;
          for (const int threads : {1, 3})
            EXPECT_EQ(difference(graph, as_machine_code(graph, trial.plan, arguments, threads), want), "");
        }
      }
    }
  }
}

TEST(Conv3d, GivesTheSameNumbersInAnyLegalSchedule) {
  int legal = 0, illegal = 0;
  const int wanted = is_nightly() ? 3000 : 60;
  for (std::uint64_t seed = 1; legal < wanted && illegal < 40 * wanted; ++seed) {
    Random random(seed);
    const Case& c = kCases[seed % std::size(kCases)];
    const ir::Op kind = kKinds[random.from(0, 2)];
    const auto epilogue = static_cast<Epilogue>(random.from(0, 2));
    if (!has(kind, epilogue)) continue;
    const ir::Graph graph = graph_of(kind, c, epilogue);
    const Target target = Target::parse(random.of(std::vector(std::begin(kConv3dTargets), std::end(kConv3dTargets))));
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto draw = [&](const std::string&, const Contraction& contraction, const Schedule& chosen) {
      return target.isa == Isa::cuda ? random_cuda_schedule(random, contraction, chosen)
                                     : random_schedule(random, contraction, chosen);
    };
    const Trial trial = planned(graph, target, draw, contractions_of_conv3d, true);
    if (!trial.legal) {
      ++illegal;
      continue;
    }
    ++legal;
    const std::vector<Buffer> arguments = arguments_of(graph, random, true);
    ASSERT_EQ(
        difference(graph, interpreted(graph, trial.plan, arguments), by_hand(kind, graph, c, epilogue, arguments)), "")
        << trial.tried;
  }
  EXPECT_EQ(legal, wanted) << illegal << " are not legal";
}

}  // namespace
}  // namespace fusejit::testing
