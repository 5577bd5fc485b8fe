// Reductions of NaN, infinities, equal elements and zeros of both signs, on every engine: random numbers have none.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codegen/x86/compile.h"
#include "ir/base/scalar.h"
#include "runtime/session.h"
#include "tests/conformance/compare.h"

namespace fusejit {
namespace {

using runtime::Buffer;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A row of 53 numbers from -3 to 3, negative ones in front, with some of them replaced.
struct Row {
  const char* name;
  std::vector<std::pair<int, double>> replaced;
};
const Row kRows[] = {{"numbers", {}},
                     {"nan", {{40, kNan}}},
                     {"two_nans", {{44, kNan}, {9, kNan}}},
                     {"nan_first", {{0, kNan}}},
                     {"infinity", {{17, kInf}}},
                     {"infinity_first", {{0, kInf}}},
                     {"both_infinities", {{3, kInf}, {50, -kInf}}},
                     {"minus_infinity", {{51, -kInf}}},
                     {"equal_maxima", {{7, 9}, {39, 9}, {52, 9}}},
                     {"equal_minima", {{6, -9}, {38, -9}, {51, -9}}}};

void check(const std::string& graph_text, DType dtype, int rows, int columns, bool along_rows) {
  const ir::Graph graph = ir::parse_graph(graph_text);
  Buffer x = Buffer::allocate({dtype, {rows, columns}});
  const int kept = along_rows ? rows : columns, reduced = along_rows ? columns : rows;
  for (int k = 0; k < kept; ++k) {
    const Row& row = kRows[static_cast<std::size_t>(k) % std::size(kRows)];
    for (int i = 0; i < reduced; ++i) {
      double value = 0.125 * ((i * 29) % 49) - (i < 30 ? 7 : 3);
      for (const auto& [at, replacement] : row.replaced) value = at == i ? replacement : value;
      ir::store_element(x.data(), dtype, along_rows ? k * columns + i : i * columns + k,
                        ir::cast(ir::Scalar::of(value), dtype));
    }
  }
  const std::vector<Buffer> arguments{x};
  const auto run = [&](runtime::SessionOptions options) {
    return runtime::Session(std::move(options)).run(graph, arguments);
  };
  const std::vector<Buffer> want = run({.engine = runtime::Engine::graph_interpreter, .threads = 1});
  for (const char* target : {"x86:avx512,tasks=5", "x86:avx2,tasks=3", "x86:v2", "cuda:sm_90"}) {
    runtime::SessionOptions options{.target = Target::parse(target), .threads = 2};
    const bool native = options.target.isa != Isa::cuda && codegen::x86::host_supports(options.target.isa);
    if (!native) options.engine = runtime::Engine::kernel_interpreter;
    const std::vector<Buffer> got = run(options);
    for (std::size_t r = 0; r < want.size(); ++r) {
      for (std::int64_t k = 0; k < want[r].type().elements(); ++k) {
        const ir::Scalar a = ir::load_element(got[r].data(), got[r].type().dtype, k),
                         b = ir::load_element(want[r].data(), want[r].type().dtype, k);
        const double off = std::abs(a.as_double() - b.as_double());
        const bool same = a == b || (std::isnan(a.as_double()) && std::isnan(b.as_double())) || off < 1e-4;
        EXPECT_TRUE(same) << "result " << r << " of " << kRows[static_cast<std::size_t>(k) % std::size(kRows)].name
                          << ": " << a.as_double() << ", not " << b.as_double() << ", on " << target;
      }
    }
  }
}

std::string reductions(const char* dtype, int rows, int columns, int dim) {
  const std::string x = std::string(dtype) + "[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
  const std::string kept = "[" + std::to_string(dim == 1 ? rows : columns) + "]", d = std::to_string(dim);
  const auto line = [&](int number, const char* op, bool list, bool index) {
    return "  %" + std::to_string(number) + " = " + op + "(%x) {dim=" + (list ? "[" + d + "]" : d) +
           "} : " + (index ? "i64" : dtype) + kept + "\n";
  };
  return "graph @g(%x: " + x + ") {\n" + line(0, "argmax", false, true) + line(1, "argmin", false, true) +
         line(2, "amax", true, false) + line(3, "amin", true, false) + line(4, "sum", true, false) +
         line(5, "mean", true, false) + line(6, "var", true, false) + "  return %0, %1, %2, %3, %4, %5, %6\n}";
}

TEST(SpecialValues, AlongRows) {
  check(reductions("f32", 20, 53, 1), DType::f32, 20, 53, true);
  check(reductions("f64", 10, 53, 1), DType::f64, 10, 53, true);
}
TEST(SpecialValues, AlongColumns) {
  check(reductions("f32", 53, 20, 0), DType::f32, 53, 20, false);
  check(reductions("f64", 53, 37, 0), DType::f64, 53, 37, false);
}

}  // namespace
}  // namespace fusejit
