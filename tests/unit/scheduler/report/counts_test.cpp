// What a block of a residual network moves beside what its convolutions read and write by themselves, in units of one
// tensor, at the shapes of ResNet-50's four stages at batch 16. A block more in a network is what a block costs, so it
// has its neighbours' kernels to put its work into, as in the whole network.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "ir/kernel/cost/cost.h"
#include "ir/passes/grad.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

constexpr int kBatch = 16;

struct Stage {
  int channels, side;  // of the tensors between the convolutions; a join has four times as many channels
  std::int64_t join_bytes(DType dtype = DType::f32) const {
    return bytes(dtype, std::int64_t{kBatch} * 4 * channels * side * side);
  }
  // Of what the stage's first block reads.
  int stride() const { return side == 56 ? 1 : 2; }
  int input_channels() const { return side == 56 ? 64 : 2 * channels; }
  int input_side() const { return side * stride(); }
};
constexpr Stage kStages[] = {{64, 56}, {128, 28}, {256, 14}, {512, 7}};

enum class Side {
  identity,
  projection,
  downsample
};  // what is added: the block's input, or a convolution of it with its batch norm; that may be the stage's first block

class Network {
 public:
  Network(Stage stage, Side side, int blocks, bool training, DType dtype = DType::f32) : stage_(stage), dtype_(dtype) {
    parameter("x", side == Side::downsample ? type(stage.input_channels(), stage.input_side())
                                            : type(4 * stage.channels, stage.side));
    std::string x = "x";
    for (int b = 0; b < blocks; ++b) x = block(b, x, side);
    graph_ = ir::parse_graph(fmt::format("graph @network({}) {{\n{}  return %{}\n}}", parameters_, ops_, x));
    if (training) graph_ = ir::differentiate(graph_, wanted_);
  }
  const ir::Graph& graph() const { return graph_; }

 private:
  void parameter(const std::string& name, const std::string& type) {
    parameters_ += fmt::format("{}%{}: {}", parameters_.empty() ? "" : ", ", name, type);
    wanted_.push_back(name);
  }
  std::string type(int channels, int side) const {
    return fmt::format("{0}[{1},{2},{3},{3}]:nhwc", name_of(dtype_), kBatch, channels, side);
  }
  // A convolution of `x` and its batch norm, `side` pixels high and wide.
  std::string normalised(const std::string& name, const std::string& x, int from, int to, int taps, int side,
                         int stride = 1) {
    parameter("w" + name, fmt::format("{}[{},{},{},{}]", name_of(dtype_), to, from, taps, taps));
    parameter("s" + name, fmt::format("f32[{}]", to));
    parameter("t" + name, fmt::format("f32[{}]", to));
    const int pad = taps / 2;
    ops_ += fmt::format("  %c{0} = conv2d(%{1}, %w{0}) {{padding=[{2},{2},{2},{2}], stride=[{3},{3}]}} : {4}\n", name,
                        x, pad, stride, type(to, side));
    ops_ += fmt::format("  %n{0} = batch_norm_train(%c{0}, %s{0}, %t{0}) : {1}\n", name, type(to, side));
    return "n" + name;
  }
  std::string relu(const std::string& name, const std::string& x, int channels, int side) {
    ops_ += fmt::format("  %r{} = relu(%{}) : {}\n", name, x, type(channels, side));
    return "r" + name;
  }
  std::string block(int b, const std::string& x, Side side) {
    const int narrow = stage_.channels, wide = 4 * narrow, side_out = stage_.side;
    const bool down = side == Side::downsample;
    const int from = down ? stage_.input_channels() : wide, side_in = down ? stage_.input_side() : side_out,
              stride = down ? stage_.stride() : 1;
    const auto name = [&](const char* part) { return fmt::format("{}{}", part, b); };
    const std::string first = relu(name("a"), normalised(name("a"), x, from, narrow, 1, side_in), narrow, side_in);
    const std::string second =
        relu(name("b"), normalised(name("b"), first, narrow, narrow, 3, side_out, stride), narrow, side_out);
    const std::string third = normalised(name("c"), second, narrow, wide, 1, side_out);
    const std::string added = side == Side::identity ? x : normalised(name("d"), x, from, wide, 1, side_out, stride);
    ops_ += fmt::format("  %j{} = add(%{}, %{}) : {}\n", b, third, added, type(wide, side_out));
    return relu(name("j"), name("j"), wide, side_out);
  }

  static std::string_view name_of(DType dtype) { return fusejit::name(dtype); }

  Stage stage_;
  DType dtype_;
  std::string parameters_, ops_;
  std::vector<std::string> wanted_;
  ir::Graph graph_;
};

// Bytes of tensors of a block's size, and of masks of such (bits, on CUDA bytes), read and written by the steps' loops.
// What a step reads of what it has just written is on chip (R4).
std::int64_t moved(const ir::Graph& graph, Stage stage, const char* target, DType dtype = DType::f32) {
  const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, {}, runtime::cudnn::supports_step});
  const std::int64_t wide = stage.join_bytes(dtype), narrow = wide / 4;
  const auto counts = [&](std::int64_t bytes) {
    for (const std::int64_t of : {2 * wide, wide, narrow})
      if (bytes == of || bytes == of / bits(dtype) || bytes == of / 4) return true;
    return false;
  };
  std::int64_t bytes = 0;
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    for (const ir::MemoryTraffic& traffic : ir::traffic(*step.kernel)) {
      std::size_t i = 0, k = 0;
      for (; i < step.kernel->params.size() && step.kernel->params[i].memory != traffic.memory; ++i)
        k += step.kernel->params[i].memory >= 0;
      if (i == step.kernel->params.size()) continue;  // work
      const PlanValue& value = plan.values[static_cast<std::size_t>(step.values[k])];
      if (counts(value.bytes)) bytes += (value.first_step == s ? 0 : traffic.read_bytes) + traffic.written_bytes;
    }
  }
  return bytes;
}

// Of one block more, in tensors of its join.
double tensors(Stage stage, Side side, bool training, const char* target, DType dtype = DType::f32) {
  const auto of = [&](int blocks) {
    return moved(Network(stage, side, blocks, training, dtype).graph(), stage, target, dtype);
  };
  return static_cast<double>(of(3) - of(2)) / static_cast<double>(stage.join_bytes(dtype));
}

// The three convolutions of a block, of 1, 1/4 and 1/4 + 1/4 and 1/4 + 1 tensors, in each pass; the fourth's are 2.
constexpr double kConvolutions = 3, kProjection = 2;
// Bits of a mask, of a tensor of f32.
constexpr double kMask = 1.0 / 32;

// What a join adds on processors: its kernel reads what the convolution wrote and what is added, and writes; where that
// kernel is the next convolution's, that does not read it back. Weights of the last stage are larger than L2.
double join(Stage stage) { return stage.side > 7 ? 2 : 3; }

// What is between two convolutions adds nothing where the second computes it while it copies it to a panel; else, where
// a library runs it, 2 of the narrow tensor each. A device's join is a kernel of its own.
TEST(Counts, Forward) {
  for (const Stage stage : kStages) {
    for (const char* target : {"x86:avx512", "x86:avx2"}) {
      EXPECT_LE(tensors(stage, Side::identity, false, target), kConvolutions + join(stage)) << target << stage.side;
      EXPECT_LE(tensors(stage, Side::projection, false, target), kConvolutions + kProjection + join(stage))
          << target << stage.side;
    }
    EXPECT_LE(tensors(stage, Side::identity, false, "cuda:sm_90"), kConvolutions + 3) << stage.side;
    EXPECT_LE(tensors(stage, Side::projection, false, "cuda:sm_90"), kConvolutions + kProjection + 3) << stage.side;
    const double stored = 2 * 2 * 0.25;
    // In strict f32 cuDNN has no engine that sums what it computes (docs/cudnn.md, Numerics): statistics are one more
    // read of each convolution's result.
    for (const char* target : {"cuda:sm_90,cudnn=1", "cuda:sm_90,cudnn=2"}) {
      EXPECT_LE(tensors(stage, Side::identity, false, target), kConvolutions + 3 + stored + 1.5)
          << target << stage.side;
      EXPECT_LE(tensors(stage, Side::projection, false, target), kConvolutions + kProjection + 3 + stored + 2.5)
          << target << stage.side;
    }
  }
}

// Both gradients of the last convolution of a block of few channels read once what they are computed from, the
// gradient, what was normalised, and of the narrow image the same (R9).
double read_once(Stage stage) { return stage.side > 28 ? 2 + 0.25 : 0; }

// A join's backward adds 5 and a mask written and read: the input gradient's epilogue reads what else flows into the
// join and what was normalised; then the gradient of that is made of two reads and written, or computed by both
// gradients of the convolution, which read one more each. A plain one adds 3 of the narrow tensor with prologues, else
// 4.
TEST(Counts, Step) {
  const auto step = [](double forward, double join, double plain) {
    return 3 * kConvolutions + forward + join + 2 * kMask + 2 * plain * 0.25;
  };
  for (const Stage stage : kStages) {
    for (const char* target : {"x86:avx512", "x86:avx2"})
      EXPECT_LE(tensors(stage, Side::identity, true, target), step(join(stage), 4, 3) - read_once(stage))
          << target << stage.side;
    EXPECT_LE(tensors(stage, Side::identity, true, "cuda:sm_90"), step(3, 4, 3)) << stage.side;
    // What is asked of the backward pass by itself: 5 and a mask for the join, 3 for each of the others.
    for (const char* target : {"x86:avx512", "x86:avx2", "cuda:sm_90"})
      EXPECT_LE(tensors(stage, Side::identity, true, target) - tensors(stage, Side::identity, false, target),
                2 * kConvolutions + 5 + 2 * kMask + 2 * 3 * 0.25)
          << target << stage.side;
    // No precompiled engine has sums in the epilogue of an input gradient either: what flows into each of the three is
    // read, and what it normalised.
    EXPECT_LE(tensors(stage, Side::identity, true, "cuda:sm_90,cudnn=1"), step(5.5, 5, 4) + 3) << stage.side;
  }
}

// Engines that cuDNN compiles mask an input gradient by bits and add up both sums of batch norm's gradient
// (docs/cudnn.md, T counts, exact): forward a join takes 4 and a plain block 3, whose masks are written; backward they
// take 5 and 4, and read them.
TEST(Counts, StepWithCompiledEngines) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const double mask = 1.0 / bits(dtype);
    for (const Stage stage : kStages) {
      EXPECT_LE(tensors(stage, Side::identity, true, "cuda:sm_90,cudnn=2", dtype),
                3 * kConvolutions + (4 + 5 + 2 * mask) + 2 * 0.25 * (3 + 4 + 2 * mask))
          << name(dtype) << stage.side;
    }
  }
}

// Where statistics may be what cuDNN's engines leave, in f16: forward a join takes 3 and a plain block 2, as they would
// with sums in a generated kernel.
TEST(Counts, ForwardWithFastStatistics) {
  const char* const target = "cuda:sm_90,cudnn=1,fastnorm=1";
  for (const Stage stage : kStages) {
    EXPECT_LE(tensors(stage, Side::identity, false, target, DType::f16), kConvolutions + 3 + 2 * 0.25 * 2)
        << stage.side;
    EXPECT_LE(tensors(stage, Side::projection, false, target, DType::f16),
              kConvolutions + kProjection + 3 + 2 * 0.25 * 2)
        << stage.side;
    EXPECT_LE(tensors(stage, Side::identity, true, "cuda:sm_90,cudnn=2,fastnorm=1", DType::f16),
              3 * kConvolutions + (3 + 5 + 2.0 / 16) + 2 * 0.25 * (2 + 4 + 2.0 / 16))
        << stage.side;
  }
}

// The first block of a stage by itself: its join is 3 as well. Of the stage's input, 2 tensors, the projection of
// stride 2 reads a quarter; the first convolution's result is as large as the join.
TEST(Counts, Downsample) {
  for (const Stage stage : kStages) {
    const double input = stage.stride() == 2 ? 2 : 0.25, pixels = stage.stride() * stage.stride();
    const double convolutions = (input + pixels * 0.25) + (pixels * 0.25 + 0.25) + (0.25 + 1) + (input / pixels + 1);
    const auto of = [&](const char* target, DType dtype = DType::f32) {
      const ir::Graph graph = Network(stage, Side::downsample, 1, false, dtype).graph();
      return static_cast<double>(moved(graph, stage, target, dtype)) / static_cast<double>(stage.join_bytes(dtype));
    };
    for (const char* target : {"x86:avx512", "x86:avx2", "cuda:sm_90"})
      EXPECT_LE(of(target), convolutions + 3) << target << stage.side;
    // What the two convolutions on the way read is stored first, the sums read all four results.
    const double stored = 2 * (pixels * 0.25 + 0.25), summed = pixels * 0.25 + 0.25 + 2;
    for (const char* target : {"cuda:sm_90,cudnn=1", "cuda:sm_90,cudnn=2"})
      EXPECT_LE(of(target), convolutions + 3 + stored + summed) << target << stage.side;
    EXPECT_LE(of("cuda:sm_90,cudnn=1,fastnorm=1", DType::f16), convolutions + 3 + stored) << stage.side;
  }
}

// Without a convolution, forward: statistics, then two reads and one write. In one graph with its gradient the backward
// pass takes what would be 6 and a mask (the masked gradient is written, and read with what was normalised): less,
// because its first kernel is the forward's.
TEST(Counts, NormalisedAddedRectifiedAlone) {
  for (const char* target : {"x86:avx512", "x86:avx2", "cuda:sm_90"}) {
    for (const Stage stage : kStages) {
      const int channels = 4 * stage.channels;
      const ir::Graph forward = ir::parse_graph(fmt::format(
          R"(graph @join(%x: f32[{0},{1},{2},{2}]:nhwc, %s: f32[{1}], %t: f32[{1}], %side: f32[{0},{1},{2},{2}]:nhwc) {{
  %0 = batch_norm_train(%x, %s, %t) : f32[{0},{1},{2},{2}]:nhwc
  %1 = add(%0, %side) : f32[{0},{1},{2},{2}]:nhwc
  %2 = relu(%1) : f32[{0},{1},{2},{2}]:nhwc
  return %2
}})",
          kBatch, channels, stage.side));
      const ir::Graph both = ir::differentiate(forward, {"x", "s", "t", "side"});
      const auto tensors = [&](const ir::Graph& graph) {
        return static_cast<double>(moved(graph, stage, target)) / static_cast<double>(stage.join_bytes());
      };
      EXPECT_LE(tensors(forward), 4) << target << stage.side;
      EXPECT_LE(tensors(both), 4 + 6 + 2 * kMask - 1) << target << stage.side;
    }
  }
}

// The backward pass as a graph of its own, of what a forward pass left; the result is known by y itself, or by a mask,
// which has bytes where who records it says so.
ir::Graph backward_alone(Stage stage, bool mask, const char* layout) {
  const int channels = 4 * stage.channels;
  return ir::parse_graph(fmt::format(
      R"(graph @back(%x: f32[{0},{1},{2},{2}]{7}, %y: {3}[{0},{1},{2},{2}]{7}, %dy: f32[{0},{1},{2},{2}]{7},
                     %m: f32[1,{1},1,1], %r: f32[1,{1},1,1], %s: f32[1,{1},1,1]) {{
{4}  %1 = where(%{6}, %dy, 0) : f32[{0},{1},{2},{2}]{7}
  %2 = sub(%x, %m) : f32[{0},{1},{2},{2}]{7}
  %3 = mul(%2, %r) : f32[{0},{1},{2},{2}]{7}
  %4 = sum(%1) {{dim=[0,2,3], keepdim=true}} : f32[1,{1},1,1]
  %5 = mul(%1, %3) : f32[{0},{1},{2},{2}]{7}
  %6 = sum(%5) {{dim=[0,2,3], keepdim=true}} : f32[1,{1},1,1]
  %7 = mul(%3, %6) : f32[{0},{1},{2},{2}]{7}
  %8 = add(%7, %4) : f32[{0},{1},{2},{2}]{7}
  %9 = mul(%8, {5}) : f32[{0},{1},{2},{2}]{7}
  %10 = sub(%1, %9) : f32[{0},{1},{2},{2}]{7}
  %11 = mul(%r, %s) : f32[1,{1},1,1]
  %12 = mul(%10, %11) : f32[{0},{1},{2},{2}]{7}
  return %12, %1, %4, %6
}})",
      kBatch, channels, stage.side, mask ? "bool" : "f32",
      mask ? "" : fmt::format("  %0 = gt(%y, 0) : bool[{0},{1},{2},{2}]{3}\n", kBatch, channels, stage.side, layout),
      1.0 / (kBatch * stage.side * stage.side), mask ? "y" : "0", layout));
}
double of_join(std::int64_t bytes, Stage stage) {
  return static_cast<double>(bytes) / static_cast<double>(stage.join_bytes());
}

// The masked gradient is written, and read with what was normalised.
TEST(Counts, NormalisedAddedRectifiedBackwardAlone) {
  for (const char* target : {"x86:avx512", "x86:avx2", "cuda:sm_90"}) {
    for (const Stage stage : kStages) {
      const auto tensors = [&](bool mask) {
        return of_join(moved(backward_alone(stage, mask, ":nhwc"), stage, target), stage);
      };
      EXPECT_LE(tensors(false), 7) << target << stage.side;
      EXPECT_LE(tensors(true), 6 + 0.25) << target << stage.side;
    }
  }
}

// On chip (R4): where a channel's pixels lie together, in NCHW, and those of all images fit L2, one kernel reads each
// tensor once: forward 3, backward two reads, two writes and the mask. (In NHWC a channel's pixels are on a page each,
// which two passes are faster than: docs/decisions.md.)
TEST(Counts, NormalisedAddedRectifiedOnChip) {
  for (const char* target : {"x86:avx512", "x86:avx2"}) {
    for (const Stage stage : kStages) {
      if (stage.side > 28) continue;
      const ir::Graph forward = ir::parse_graph(fmt::format(
          R"(graph @join(%x: f32[{0},{1},{2},{2}], %s: f32[{1}], %t: f32[{1}], %side: f32[{0},{1},{2},{2}]) {{
  %0 = batch_norm_train(%x, %s, %t) : f32[{0},{1},{2},{2}]
  %1 = add(%0, %side) : f32[{0},{1},{2},{2}]
  %2 = relu(%1) : f32[{0},{1},{2},{2}]
  return %2
}})",
          kBatch, 4 * stage.channels, stage.side));
      EXPECT_LE(of_join(moved(forward, stage, target), stage), 3) << target << stage.side;
      EXPECT_LE(of_join(moved(backward_alone(stage, true, ""), stage, target), stage), 4 + 0.25)
          << target << stage.side;
    }
  }
}

// Layers of a convolution, a bias and relu. Forward nothing is added; backward the masked gradient is what the input
// gradient writes, and the mask costs its bits.
TEST(Counts, BiasAndActivation) {
  for (const Stage stage : kStages) {
    const std::string type = fmt::format("f32[{},{},{},{}]:nhwc", kBatch, stage.channels, stage.side, stage.side);
    const auto layers = [&](int n, bool training) {
      std::string parameters = fmt::format("%r0: {}", type), ops;
      std::vector<std::string> wanted{"r0"};
      for (int i = 1; i <= n; ++i) {
        parameters += fmt::format(", %w{0}: f32[{1},{1},3,3], %b{0}: f32[{1}]", i, stage.channels);
        wanted.insert(wanted.end(), {fmt::format("w{}", i), fmt::format("b{}", i)});
        ops += fmt::format("  %c{} = conv2d(%r{}, %w{}) {{padding=[1,1,1,1]}} : {}\n", i, i - 1, i, type);
        ops += fmt::format("  %a{0} = bias_add(%c{0}, %b{0}) : {1}\n  %r{0} = relu(%a{0}) : {1}\n", i, type);
      }
      const ir::Graph graph =
          ir::parse_graph(fmt::format("graph @layers({}) {{\n{}  return %r{}\n}}", parameters, ops, n));
      return training ? ir::differentiate(graph, wanted) : graph;
    };
    const auto added = [&](bool training, const char* target) {
      const auto of = [&](int n) { return moved(layers(n, training), stage, target); };
      const double convolutions = training ? 6 : 2;
      return 4 * static_cast<double>(of(3) - of(2)) / static_cast<double>(stage.join_bytes()) - convolutions;
    };
    for (const char* target : {"x86:avx512", "x86:avx2", "cuda:sm_90", "cuda:sm_90,cudnn=1", "cuda:sm_90,cudnn=2"})
      EXPECT_LE(added(false, target), 0) << target << stage.side;
    for (const char* target : {"x86:avx512", "x86:avx2"})
      EXPECT_LE(added(true, target), 2 * kMask) << target << stage.side;
    EXPECT_LE(added(true, "cuda:sm_90"), 2 * 0.25) << stage.side;  // a mask of a byte an element
    // cuDNN has neither mask nor sums in a precompiled engine; those compiled at run time read the relu's output for
    // the mask, and add up the bias's gradient.
    EXPECT_LE(added(true, "cuda:sm_90,cudnn=1"), 3) << stage.side;
    EXPECT_LE(added(true, "cuda:sm_90,cudnn=2"), 1) << stage.side;
  }
}

}  // namespace
}  // namespace fusejit::scheduler
