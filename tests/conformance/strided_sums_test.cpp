// Sums that ride with the input gradient of a strided convolution: it runs as one phase per residue of the stride, and
// every sum beside it (of a bias, a scale, a batch norm's two) is over the pixels of all phases.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/x86/compile.h"
#include "ir/passes/grad.h"
#include "ir/passes/passes.h"
#include "runtime/session.h"
#include "tests/conformance/compare.h"

namespace fusejit {
namespace {

using runtime::Buffer;

constexpr const char* kFronts[] = {"bias", "scale", "batch_norm", "batch_norm_relu"};

struct Channels {
  const char* name;
  int in, out, groups;
};
constexpr Channels kChannels[] = {
    {"dense", 8, 6, 1}, {"odd", 3, 5, 1}, {"grouped", 8, 16, 2}, {"depthwise", 10, 10, 10}};

// x -> front -> convolution, by x and what the front has.
ir::Graph gradient_of(std::string_view front, const Channels& c, int kernel, int stride, const char* dtype) {
  const int h = 9, w = 7, out_h = (h + 2 * (kernel / 2) - kernel) / stride + 1,
            out_w = (w + 2 * (kernel / 2) - kernel) / stride + 1, pad = kernel / 2;
  const std::string x = fmt::format("{}[2,{},{},{}]", dtype, c.in, h, w), per = fmt::format("{}[{}]", dtype, c.in);
  std::string text = fmt::format("graph @g(%x: {}, %w: {}[{},{},{},{}], %s: {}, %b: {}) {{\n", x, dtype, c.out,
                                 c.in / c.groups, kernel, kernel, per, per);
  int last = 0;
  if (front == "bias") {
    text += fmt::format("  %0 = bias_add(%x, %b) : {}\n", x);
  } else if (front == "scale") {
    text += fmt::format("  %0 = reshape(%s) {{shape=[{},1,1]}} : {}[{},1,1]\n  %1 = mul(%x, %0) : {}\n", c.in, dtype,
                        c.in, x);
    last = 1;
  } else {
    text += fmt::format("  %0 = batch_norm_train(%x, %s, %b) : {}\n", x);
    if (front == "batch_norm_relu") text += fmt::format("  %1 = relu(%0) : {}\n", x), last = 1;
  }
  text += fmt::format("  %9 = conv2d(%{}, %w) {{stride=[{},{}], padding=[{},{},{},{}], groups={}}} : {}[2,{},{},{}]\n",
                      last, stride, stride, pad, pad, pad, pad, c.groups, dtype, c.out, out_h, out_w);
  const ir::Graph forward = ir::parse_graph(text + "  return %9\n}");
  return ir::differentiate(forward, {"x", front == "bias" ? "b" : "s"});
}

// "" or where the first result is wrong.
std::string wrong(const ir::Graph& graph, testing::Tolerance tolerance, const char* target, bool machine_code = true) {
  const std::vector<Buffer> arguments = testing::random_arguments(graph, 7);
  const auto run = [&](runtime::SessionOptions options) {
    return runtime::Session(std::move(options)).run(graph, arguments);
  };
  const std::vector<Buffer> want = run({.engine = runtime::Engine::graph_interpreter, .threads = 1});
  runtime::SessionOptions options{.target = Target::parse(target), .threads = 2};
  const bool native =
      machine_code && options.target.isa != Isa::cuda && codegen::x86::host_supports(options.target.isa);
  if (!native) options.engine = runtime::Engine::kernel_interpreter;
  const double off = testing::excess(run(options), want, tolerance);
  return off > 0 ? fmt::format("off by {} on {}", off, target) : "";
}

class StridedSums : public ::testing::TestWithParam<int> {};

TEST_P(StridedSums, AreOverAllPhases) {
  const int stride = GetParam();
  const char* targets[] = {"x86:avx512,tasks=5", "cuda:sm_90", "x86:avx2,tasks=7", "x86:v2,tasks=3"};
  std::size_t next = static_cast<std::size_t>(stride);  // every front meets every target
  for (const char* front : kFronts) {
    for (const Channels& channels : kChannels) {
      for (const int kernel : {1, 3, 5, 7}) {
        const auto agrees = [&](const char* dtype, testing::Tolerance tolerance) {
          const ir::Graph graph = gradient_of(front, channels, kernel, stride, dtype);
          // LLVM would take most of the time; the kernel interpreter has the bits of machine code.
          EXPECT_EQ(wrong(graph, tolerance, targets[next++ % 4], kernel == 3), "")
              << front << " " << channels.name << " k=" << kernel << " stride=" << stride << "\n"
              << ir::print(graph);
        };
        agrees("f64", {1e-11, 1e-11});
        if (kernel == 3) agrees("f32", {2e-5, 1e-4});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strides, StridedSums, ::testing::Values(1, 2, 3, 4));

// A transposed convolution is an input gradient: its batch norm's statistics ride with it forward.
TEST(StridedSums, StatisticsOfATransposedConvolution) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f64[2,6,5,7], %w: f64[6,5,3,3], %s: f64[5], %b: f64[5]) {
  %0 = conv2d_input_grad(%x, %w) {input_size=[10,14], stride=[2,2], padding=[1,1,1,1]} : f64[2,5,10,14]
  %1 = batch_norm_train(%0, %s, %b) : f64[2,5,10,14]
  return %1
})");
  for (const char* target : {"x86:avx512,tasks=5", "x86:avx2", "x86:v2", "cuda:sm_90"})
    EXPECT_EQ(wrong(graph, {1e-11, 1e-11}, target), "");
}

}  // namespace
}  // namespace fusejit
