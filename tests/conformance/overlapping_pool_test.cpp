// Gradients of max pools whose windows overlap: on x86 the first maxima of a few rows of windows are kept, and
// a pixel adds what it gets in the order of the windows over it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "codegen/x86/compile.h"
#include "ir/passes/grad.h"
#include "runtime/session.h"
#include "tests/conformance/compare.h"

namespace fusejit {
namespace {

using runtime::Buffer;

struct Pool {
  const char* name;
  int kernel[2], stride[2], dilation[2];
  int padding[4];  // above, left, below, right
};
void PrintTo(const Pool& pool, std::ostream* out) { *out << pool.name; }

const Pool kPools[] = {
    {"k3_s2_padded", {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}}, {"k3_s1_padded", {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {"k3_s2", {3, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}},        {"k5x3_s2", {5, 3}, {2, 2}, {1, 1}, {2, 1, 2, 1}},
    {"dilated", {3, 3}, {2, 1}, {2, 2}, {1, 1, 1, 1}},      {"k2_s1", {2, 2}, {1, 1}, {1, 1}, {0, 1, 1, 0}},
    {"k7_s3", {7, 7}, {3, 3}, {1, 1}, {3, 3, 3, 3}},        {"rows_only", {3, 1}, {1, 1}, {1, 1}, {1, 0, 1, 0}},
    {"columns_only", {2, 5}, {2, 2}, {1, 1}, {0, 2, 0, 1}}, {"edges_only", {5, 5}, {4, 4}, {2, 2}, {2, 2, 2, 2}},
};

struct Image {
  int images, channels, height, width;
};

int outputs(const Pool& pool, int axis, int in) {
  return (in + pool.padding[axis] + pool.padding[axis + 2] - (pool.kernel[axis] - 1) * pool.dilation[axis] - 1) /
             pool.stride[axis] +
         1;
}

std::string attributes(const Pool& p) {
  return fmt::format("{{kernel_size=[{},{}], stride=[{},{}], padding=[{},{},{},{}], dilation=[{},{}]}}", p.kernel[0],
                     p.kernel[1], p.stride[0], p.stride[1], p.padding[0], p.padding[1], p.padding[2], p.padding[3],
                     p.dilation[0], p.dilation[1]);
}

// The gradient of relu's pool; half of the pooled values are equal.
ir::Graph gradient(const Pool& pool, const Image& i, const char* dtype) {
  const std::string x = fmt::format("{}[{},{},{},{}]:nhwc", dtype, i.images, i.channels, i.height, i.width);
  const std::string y = fmt::format("{}[{},{},{},{}]:nhwc", dtype, i.images, i.channels, outputs(pool, 0, i.height),
                                    outputs(pool, 1, i.width));
  return ir::parse_graph(
      fmt::format("graph @g(%x: {0}, %dy: {1}) {{\n  %0 = mul(%x, 2) : {0}\n  %1 = relu(%0) : {0}\n"
                  "  %2 = max_pool2d_grad(%1, %dy) {2} : {0}\n  %3 = add(%2, %0) : {0}\n  return %2, %3\n}}",
                  x, y, attributes(pool)));
}

// The same below a batch norm, whose two sums are over the pixels.
ir::Graph with_sums(const Pool& pool, const Image& i, const char* dtype) {
  const std::string x = fmt::format("{}[{},{},{},{}]:nhwc", dtype, i.images, i.channels, i.height, i.width);
  const std::string y = fmt::format("{}[{},{},{},{}]:nhwc", dtype, i.images, i.channels, outputs(pool, 0, i.height),
                                    outputs(pool, 1, i.width));
  const ir::Graph forward = ir::parse_graph(
      fmt::format("graph @g(%x: {0}, %s: {3}[{4}], %b: {3}[{4}]) {{\n  %0 = batch_norm_train(%x, %s, %b) : {0}\n"
                  "  %1 = relu(%0) : {0}\n  %2 = max_pool2d(%1) {2} : {1}\n  %3 = square(%2) : {1}\n  return %3\n}}",
                  x, y, attributes(pool), dtype, i.channels));
  return ir::differentiate(forward, {"x", "s", "b"});
}

// Moments, whose shift is taken before any window is looked through; sums of each image.
ir::Graph reduced(const Pool& pool, const Image& i, const char* op) {
  const std::string text = ir::print(gradient(pool, i, "f64"));
  const bool moments = std::string_view(op) == "var";
  return ir::parse_graph(text.substr(0, text.find("  %3")) +
                         fmt::format("  %3 = {}(%2) {{dim=[{}2,3]{}}} : f64[{}{}]\n  return %2, %3\n}}", op,
                                     moments ? "0," : "", moments ? ", correction=0" : "",
                                     moments ? "" : fmt::format("{},", i.images), i.channels));
}

const Image kImages[] = {{3, 19, 11, 13}, {1, 83, 17, 9}};

// "" or where the first result is not the graph interpreter's; of tasks and threads no result depends.
std::string wrong(const ir::Graph& graph) {
  const std::vector<Buffer> arguments = testing::random_arguments(graph, 7);
  const auto run = [&](runtime::SessionOptions options) {
    return runtime::Session(std::move(options)).run(graph, arguments);
  };
  const std::vector<Buffer> want = run({.engine = runtime::Engine::graph_interpreter, .threads = 1});
  const DType dtype = graph.value(0).type().dtype;
  const double rounding = dtype == DType::f64 ? 1e-10 : dtype == DType::f32 ? 1e-5 : 2e-2;
  for (const char* target : {"x86:avx512,tasks=7", "x86:avx2,tasks=5", "x86:v2,tasks=1"}) {
    runtime::SessionOptions options{.target = Target::parse(target), .threads = 3};
    if (!codegen::x86::host_supports(options.target.isa)) options.engine = runtime::Engine::kernel_interpreter;
    const double off = testing::excess(run(options), want, {rounding, rounding});
    if (off > 0) return fmt::format("off by {} on {}", off, target);
  }
  return "";
}

// The first result of gradient() in f32: the windows over a pixel row by row, each row's sum by itself.
std::vector<float> added_in_order(const Pool& pool, const Image& i, const std::vector<Buffer>& arguments) {
  const auto* x = static_cast<const float*>(arguments[0].data());
  const auto* dy = static_cast<const float*>(arguments[1].data());
  const int rows = outputs(pool, 0, i.height), columns = outputs(pool, 1, i.width);
  const auto pixel = [&](int n, int c, int h, int w) { return ((n * i.height + h) * i.width + w) * i.channels + c; };
  const auto first_maximum = [&](int n, int c, int p, int q) {
    float best = -INFINITY;
    int place = -1;
    for (int r = 0; r < pool.kernel[0]; ++r) {
      for (int s = 0; s < pool.kernel[1]; ++s) {
        const int h = p * pool.stride[0] + r * pool.dilation[0] - pool.padding[0];
        const int w = q * pool.stride[1] + s * pool.dilation[1] - pool.padding[1];
        if (h < 0 || h >= i.height || w < 0 || w >= i.width) continue;
        const float value = std::max(x[pixel(n, c, h, w)] * 2, 0.0f);
        if (value > best) best = value, place = pixel(n, c, h, w);
      }
    }
    return place;
  };
  // By window row, pixel: the sum over that row's windows. A row that is not over a pixel leaves 0.
  std::vector<float> sum(static_cast<std::size_t>(i.images * i.height * i.width * i.channels));
  for (int n = 0; n < i.images; ++n) {
    for (int p = 0; p < rows; ++p) {
      std::vector<float> of_row(sum.size());
      for (int q = 0; q < columns; ++q) {
        for (int c = 0; c < i.channels; ++c)
          of_row[static_cast<std::size_t>(first_maximum(n, c, p, q))] +=
              dy[((n * rows + p) * columns + q) * i.channels + c];
      }
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += of_row[k];
    }
  }
  return sum;
}

class OverlappingPool : public ::testing::TestWithParam<Pool> {};

TEST_P(OverlappingPool, AddsInTheOrderOfTheWindows) {
  for (const Image& image : kImages) {
    const ir::Graph graph = gradient(GetParam(), image, "f32");
    const std::vector<Buffer> arguments = testing::random_arguments(graph, 3);
    const std::vector<float> want = added_in_order(GetParam(), image, arguments);
    for (const char* target : {"x86:avx512,tasks=7", "x86:avx2,tasks=3", "x86:v2,tasks=2"}) {
      runtime::SessionOptions options{.target = Target::parse(target), .threads = 2};
      if (!codegen::x86::host_supports(options.target.isa)) options.engine = runtime::Engine::kernel_interpreter;
      const Buffer got = runtime::Session(std::move(options)).run(graph, arguments)[0];
      EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0) << target << "\n"
                                                                                      << ir::print(graph);
    }
  }
}

TEST_P(OverlappingPool, AgreesWithTheGraphInterpreter) {
  for (const char* dtype : {"f64", "bf16"}) EXPECT_EQ(wrong(gradient(GetParam(), kImages[0], dtype)), "") << dtype;
  for (const Image& image : kImages) EXPECT_EQ(wrong(with_sums(GetParam(), image, "f64")), "");
  for (const char* op : {"var", "sum"}) EXPECT_EQ(wrong(reduced(GetParam(), kImages[1], op)), "") << op;
}

INSTANTIATE_TEST_SUITE_P(Windows, OverlappingPool, ::testing::ValuesIn(kPools),
                         [](const ::testing::TestParamInfo<Pool>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusejit
