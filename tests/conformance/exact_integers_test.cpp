// Integers beyond 2^53 and at the ends of i64 are what they are written as, in every form of literal and on every
// engine.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "codegen/x86/compile.h"
#include "runtime/session.h"

namespace fusejit {
namespace {

using runtime::Buffer;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(), kLeast = -kMost - 1;
constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;

constexpr const char* kText = R"(graph @literals(%x: i64[2]) {
  %0 = constant() {shape=[6], dtype=i64, data=[9007199254740993,9223372036854775807,-9223372036854775808,-9007199254740993,0,7]} : i64[6]
  %1 = full() {shape=[2], value=9007199254740993, dtype=i64} : i64[2]
  %2 = full() {shape=[2], value=9223372036854775807, dtype=i64} : i64[2]
  %3 = full() {shape=[2], value=-9223372036854775808, dtype=i64} : i64[2]
  %4 = pad(%x) {low=[1], high=[0], value=9007199254740993} : i64[3]
  %5 = pad(%x) {low=[0], high=[1], value=9223372036854775807} : i64[3]
  %6 = clamp(%x) {min=-9007199254740993, max=9007199254740993} : i64[2]
  %7 = bitwise_xor(%x, 9007199254740993) : i64[2]
  %8 = maximum(%x, 9007199254740992) : i64[2]
  %9 = maximum(%8, 9007199254740993) : i64[2]
  %10 = add(%2, %x) : i64[2]
  %11 = full() {shape=[2], value=1e+16, dtype=i64} : i64[2]
  %12 = slice(%0) {starts=[0], stops=[2], steps=[1]} : i64[2]
  %13 = sub(%12, %x) : i64[2]
  return %0, %1, %2, %3, %4, %5, %6, %7, %9, %10, %11, %13
}
)";

// Of x = [5, -kMost].
const std::vector<std::vector<std::int64_t>>& wanted() {
  static const auto& values = *new std::vector<std::vector<std::int64_t>>{
      {kOdd, kMost, kLeast, -kOdd, 0, 7},
      {kOdd, kOdd},
      {kMost, kMost},
      {kLeast, kLeast},
      {kOdd, 5, -kMost},
      {5, -kMost, kMost},
      {5, -kOdd},
      {5 ^ kOdd, -kMost ^ kOdd},
      {kOdd, kOdd},
      {kLeast + 4, 0},
      {10000000000000000, 10000000000000000},
      {kOdd - 5, -2},
  };
  return values;
}

void expect_exact(const runtime::SessionOptions& options, const std::string& where) {
  const ir::Graph graph = ir::parse_graph(kText);
  const Buffer x = Buffer::allocate(graph.parameters()[0].type());
  const std::int64_t values[] = {5, -kMost};
  std::memcpy(x.data(), values, sizeof values);
  const std::vector<Buffer> results = runtime::Session(options).run(graph, std::vector<Buffer>{x});
  ASSERT_EQ(results.size(), wanted().size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    const auto* data = static_cast<const std::int64_t*>(results[r].data());
    EXPECT_EQ(std::vector<std::int64_t>(data, data + results[r].type().elements()), wanted()[r])
        << where << ", result " << r;
  }
}

TEST(ExactIntegers, OnTheGraphInterpreter) {
  expect_exact({.engine = runtime::Engine::graph_interpreter, .threads = 1}, "graph interpreter");
}

TEST(ExactIntegers, InEveryKernel) {
  for (const char* name : {"x86:avx512", "x86:avx2", "x86:v2", "cuda:sm_90"}) {
    for (const scheduler::Rules rules : {scheduler::Rules::all, scheduler::Rules::none}) {
      runtime::SessionOptions options{.target = Target::parse(name), .rules = rules, .threads = 1};
      if (codegen::x86::host_supports(options.target.isa)) expect_exact(options, name);
      options.engine = runtime::Engine::kernel_interpreter;
      expect_exact(options, std::string("kernels for ") + name);
    }
  }
}

TEST(ExactIntegers, TextKeepsThem) {
  const ir::Graph graph = ir::parse_graph(kText);
  const std::string text = print(graph);
  EXPECT_NE(text.find("data=[9007199254740993,9223372036854775807,-9223372036854775808,"), std::string::npos) << text;
  EXPECT_EQ(print(ir::parse_graph(text)), text);
  EXPECT_EQ(ir::hash(ir::parse_graph(text)), ir::hash(graph));
}

TEST(ExactIntegers, ThatDoNotFitAreRefused) {
  const auto refusal = [](const std::string& node) {
    try {
      ir::parse_graph("graph @g() {\n  %0 = " + node + "\n  return %0\n}");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refusal("full() {shape=[1], value=2147483648, dtype=i32} : i32[1]").find("i32 cannot hold"),
            std::string::npos);
  EXPECT_NE(refusal("full() {shape=[1], value=1e+19, dtype=i64} : i64[1]").find("i64 cannot hold"), std::string::npos);
  EXPECT_NE(refusal("full() {shape=[1], value=nan, dtype=i64} : i64[1]").find("i64 cannot hold"), std::string::npos);
  EXPECT_NE(refusal("constant() {shape=[2], dtype=i32, data=[9007199254740993,0]} : i32[2]").find("i32 cannot hold"),
            std::string::npos);
  EXPECT_NE(refusal("constant() {shape=[1], dtype=i64, data=[9223372036854775808]} : i64[1]").find("64 bits"),
            std::string::npos);
}

}  // namespace
}  // namespace fusejit
