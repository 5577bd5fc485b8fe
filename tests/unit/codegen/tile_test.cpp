// Tile loops: what a matrix unit computes has the bits of the loops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/tile_nest.h"
#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

using ir::Index;

struct Shape {
  std::int64_t rows, columns, pairs;
  std::vector<std::int64_t> terms;  // a window's taps and runs of channels, of which any may be one
};

// Products of rows of an image, one behind the other, with weights: each task has a row.
ir::Kernel product_kernel(const Shape& s) {
  ir::KernelBuilder builder("t", Isa::x86_amx);
  constexpr std::int64_t kTasks = 3;
  const std::int64_t taps = s.terms[0], runs = s.terms[1], words = runs * s.pairs;
  const ir::MemId x = builder.buffer(ir::MemKind::read, DType::u32, {kTasks, s.rows + taps - 1, words}, 64),
                  w = builder.buffer(ir::MemKind::read, DType::u32, {taps, words, s.columns}, 64),
                  y = builder.buffer(ir::MemKind::write, DType::f32, {kTasks, s.rows, s.columns}, 64);
  builder.loop(Index(0), Index(kTasks), ir::Binding::threads, [&](Index task) {
    ir::write_tile_nest(builder, {s.rows, s.columns, s.pairs, s.terms, x, w, y,
                                  [&](const Index& row, const std::vector<Index>& at, const Index& pair) {
                                    return std::vector<Index>{task, row + at[0], at[1] * s.pairs + pair};
                                  },
                                  [&](const std::vector<Index>& at, const Index& pair, const Index& column) {
                                    return std::vector<Index>{at[0], at[1] * s.pairs + pair, column};
                                  },
                                  [&](const Index& row, const Index& column) {
                                    return std::vector<Index>{task, row, column};
                                  }});
  });
  return std::move(builder).finish();
}

const Shape kShapes[] = {{14, 32, 16, {3, 2}}, {28, 32, 12, {1, 3}}, {16, 16, 16, {1, 1}}, {45, 48, 2, {3, 5}},
                         {1, 16, 3, {1, 2}},   {52, 64, 10, {2, 2}}, {17, 32, 16, {2, 1}}, {49, 32, 4, {1, 3}}};

// Rows are pixels of rows of seven, whose numbers have two digits, in memory and in the sums. Padded rows are runs.
ir::Kernel product_of_pixels(std::int64_t padding) {
  ir::KernelBuilder builder("t", Isa::x86_amx);
  const ir::MemId x = builder.buffer(ir::MemKind::read, DType::u32, {3, 7, 7 + padding, 32}, 64),
                  w = builder.buffer(ir::MemKind::read, DType::u32, {32, 32}, 64),
                  y = builder.buffer(ir::MemKind::write, DType::f32, {3, 7, 7, 32}, 64);
  builder.loop(Index(0), Index(3), ir::Binding::threads, [&](Index task) {
    ir::write_tile_nest(builder, {35,
                                  32,
                                  16,
                                  {2},
                                  x,
                                  w,
                                  y,
                                  [&](const Index& row, const std::vector<Index>& at, const Index& pair) {
                                    return std::vector<Index>{task, row / 7, row % 7, at[0] * 16 + pair};
                                  },
                                  [&](const std::vector<Index>& at, const Index& pair, const Index& column) {
                                    return std::vector<Index>{at[0] * 16 + pair, column};
                                  },
                                  [&](const Index& row, const Index& column) {
                                    return std::vector<Index>{task, row / 7, row % 7, column};
                                  }});
    // Two rows that no tile has.
    builder.loop(Index(5), Index(7), ir::Binding::none, [&](Index h) {
      builder.loop(Index(0), Index(7), ir::Binding::none, [&](Index i) {
        builder.loop(Index(0), Index(32), ir::Binding::none, [&](Index column) {
          builder.store(y, {task, h, i, column}, ir::KernelBuilder::literal(1, DType::f32));
        });
      });
    });
  });
  return std::move(builder).finish();
}

std::vector<ir::Kernel> product_kernels() {
  std::vector<ir::Kernel> kernels{product_of_pixels(0), product_of_pixels(2)};
  for (const Shape& shape : kShapes) kernels.push_back(product_kernel(shape));
  return kernels;
}

TEST(TileLoops, PrintParseAndVerify) {
  for (const ir::Kernel& kernel : product_kernels()) {
    const std::string text = print(kernel);
    EXPECT_NE(text.find(" tile {"), std::string::npos) << text;
    EXPECT_EQ(print(ir::parse_kernel(text)), text);
    ir::verify(ir::parse_kernel(text));
  }
}

TEST(TileLoops, MatrixUnitHasTheBitsOfTheLoops) {
  if (!codegen::x86::host_supports(Isa::x86_amx)) GTEST_SKIP() << "no tile registers here";
  for (const ir::Kernel& kernel : product_kernels()) {
    const auto compiled = codegen::x86::compile(kernel, Target{.isa = Isa::x86_amx});
    for (const Values values : {Values::ordinary, Values::special}) {
      Operands expected = random_operands(kernel, values, 7), actual = random_operands(kernel, values, 7);
      run_interpreted(kernel, expected);
      run_compiled(*compiled, actual, ir::TaskOrder::shuffled);
      EXPECT_EQ(difference(kernel, expected, actual), "") << print(kernel);
    }
  }
}

// The same bits of code that LLVM was given little time for.
TEST(TileLoops, QuickCodeHasTheSameBits) {
  if (!codegen::x86::host_supports(Isa::x86_amx)) GTEST_SKIP() << "no tile registers here";
  const ir::Kernel kernel = product_kernel(kShapes[1]);
  const auto compiled = codegen::x86::load(
      codegen::x86::generate_object(kernel, Target{.isa = Isa::x86_amx}, codegen::x86::Effort::quick));
  Operands expected = random_operands(kernel, Values::ordinary, 7),
           actual = random_operands(kernel, Values::ordinary, 7);
  run_interpreted(kernel, expected);
  run_compiled(*compiled, actual, ir::TaskOrder::ascending);
  EXPECT_EQ(difference(kernel, expected, actual), "");
}

// Each refusal by one change of a text.
TEST(TileLoops, OtherLoopsAreRefused) {
  std::string text = print(product_kernel(kShapes[0]));
  const auto refused = [&](std::string_view from, std::string_view to, std::string_view sentence) {
    std::string other = text;
    const std::size_t at = other.find(from);
    ASSERT_NE(at, std::string::npos) << from << "\n" << text;
    other.replace(at, from.size(), to);
    try {
      ir::verify(ir::parse_kernel(other));
      ADD_FAILURE() << "accepted:\n" << other;
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find(sentence), std::string::npos) << error.what() << "\n" << other;
    }
  };
  refused("on x86:amx", "on x86:avx512bf16", "a tile loop on x86:avx512bf16");
  refused("fma_low", "fma_high", "no product of matrices");
  refused(" tile {", " {", "fma_low outside a tile loop");
  refused("0..32", "0..24", "24 columns are not whole tiles of 16");
  text = print(product_of_pixels(0));
  refused("%i1 % 7,", "%i1 % 6,", "rows of the first factor or of the sums have no step");
  refused("%i1 / 7,", "%i1 / 5,", "rows of the first factor or of the sums have no step");
}

}  // namespace
}  // namespace fusejit::test
