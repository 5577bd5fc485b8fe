// Sums of very many f32 terms, all alike, which is where a chain of additions errs most: to one side. Off by at most
// 1e-6, the same bits for any number of threads, and on the kernel interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/x86/compile.h"
#include "runtime/session.h"
#include "tests/conformance/compare.h"

namespace fusejit {
namespace {

using runtime::Buffer;

Buffer filled(const Type& type, float value) {
  const Buffer buffer = Buffer::allocate(type);
  std::fill_n(static_cast<float*>(buffer.data()), type.elements(), value);
  return buffer;
}

struct Case {
  const char* name;
  std::string text;
  double terms;  // of every element of the result
  bool product;
};

std::vector<Case> cases(std::int64_t terms) {
  const auto rows = [&](std::int64_t n) {
    return fmt::format("graph @g(%x: f32[{0},{1}]) {{\n  %0 = sum(%x) {{dim=[1]}} : f32[{0}]\n  return %0\n}}", n,
                       terms / n);
  };
  const auto n = static_cast<double>(terms);
  return {
      {"row", rows(1), n, false},
      {"row_and_tail",
       fmt::format("graph @g(%x: f32[{0}]) {{\n  %0 = mean(%x) {{dim=[0]}} : f32[]\n  return %0\n}}", terms + 7), 1,
       false},
      {"rows", rows(100), n / 100, false},
      {"squares_and_their_largest",
       fmt::format("graph @g(%x: f32[{0}]) {{\n  %0 = square(%x) : f32[{0}]\n  %1 = sum(%0) {{dim=[0]}} : f32[]\n"
                   "  %2 = amax(%x) {{dim=[0]}} : f32[]\n  %3 = div(%1, %2) : f32[]\n  return %3\n}}",
                   terms),
       n, false},
  };
}

std::vector<Case> products(std::int64_t terms) {
  const auto n = static_cast<double>(terms);
  return {
      {"matmul",
       fmt::format("graph @g(%x: f32[3,{0}], %w: f32[{0},5]) {{\n  %0 = matmul(%x, %w) : f32[3,5]\n  return %0\n}}",
                   terms),
       n, true},
      {"linear",
       fmt::format("graph @g(%x: f32[2,{0}], %w: f32[16,{0}]) {{\n  %0 = linear(%x, %w) : f32[2,16]\n  return %0\n}}",
                   terms),
       n, true},
  };
}

std::vector<Buffer> run(const ir::Graph& graph, const runtime::SessionOptions& options) {
  std::vector<Buffer> arguments;
  for (const ir::Value& parameter : graph.parameters())
    arguments.push_back(filled(parameter.type(), arguments.empty() ? 0.7182818f : 0.3f));
  return runtime::Session(options).run(graph, arguments);
}

void expect_right(const Case& c, const runtime::SessionOptions& options, const std::string& where) {
  const ir::Graph graph = ir::parse_graph(c.text);
  const std::vector<Buffer> results = run(graph, options);
  const double each = double{0.7182818f} * (c.product ? double{0.3f} : 1), want = c.terms * each;
  const auto* got = static_cast<const float*>(results[0].data());
  for (std::int64_t i = 0; i < results[0].type().elements(); ++i)
    ASSERT_LE(std::abs(got[i] - want) / want, 1e-6) << c.name << " " << where << ", element " << i;
}

TEST(LongSums, OfOneKindOfTermsAreRight) {
  for (const char* name : {"x86:avx512", "x86:avx2", "x86:v2"}) {
    runtime::SessionOptions options{.target = Target::parse(name), .threads = 1};
    if (!codegen::x86::host_supports(options.target.isa)) continue;
    for (const Case& c : cases(10'000'000)) expect_right(c, options, name);
    for (const Case& c : products(1'000'000)) expect_right(c, options, name);
  }
}

TEST(LongSums, DoNotDependOnThreads) {
  std::vector<Case> all = cases(10'000'000);
  for (Case& c : products(1'000'000)) all.push_back(std::move(c));
  for (const Case& c : all) {
    const ir::Graph graph = ir::parse_graph(c.text);
    const std::vector<Buffer> one = run(graph, {.threads = 1});
    EXPECT_TRUE(testing::same_bits(one, run(graph, {.threads = 3}))) << c.name;
  }
}

// Fewer terms, because an interpreter is slow: enough to be cut into blocks on each target.
TEST(LongSums, OnTheKernelInterpreterAreTheSame) {
  for (const char* name : {"x86:avx512,tasks=4", "x86:v2,tasks=4", "cuda:sm_90"}) {
    const Target target = Target::parse(name);
    std::vector<Case> all = cases(400'000);
    for (Case& c : products(60'000)) all.push_back(std::move(c));
    for (const Case& c : all) {
      const runtime::SessionOptions options{
          .target = target, .engine = runtime::Engine::kernel_interpreter, .threads = 1};
      expect_right(c, options, std::string("kernels for ") + name);
      if (!codegen::x86::host_supports(target.isa)) continue;
      const ir::Graph graph = ir::parse_graph(c.text);
      EXPECT_TRUE(testing::same_bits(run(graph, {.target = target, .threads = 1}), run(graph, options))) << c.name;
    }
  }
}

}  // namespace
}  // namespace fusejit
