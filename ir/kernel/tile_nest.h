// Tile loops (kernel-ir.md §5): the one form that a `tile` loop has, a product of matrices of bf16 pairs as loops whose
// order of sums is that of a matrix unit. Lowering writes it, verify asks whether it is one, emitters read its parts.
//
//     for %i in 0..14 tile {
//       for %j in 0..32 {
//         local %sum : f32[] register = 0
//         for %r in 0..3 {                                 any loops over terms, or none
//           local %even : f32[] register = 0
//           local %odd : f32[] register = 0
//           for %k in 0..16 {                              pairs: 2 to 16
//             %a = load %x[..] : u32      %b = load %w[..] : u32
//             %e = load %even[] : f32     %e1 = fma_low(%a, %b, %e) : f32      store %even[], %e1
//             %o = load %odd[] : f32      %o1 = fma_high(%a, %b, %o) : f32     store %odd[], %o1
//           }
//           %e2 = load %even[] : f32      %o2 = load %odd[] : f32     %t = add_flushed(%e2, %o2) : f32
//           %s = load %sum[] : f32        %s1 = add_flushed(%s, %t) : f32      store %sum[], %s1
//         }
//         %v = load %sum[] : f32
//         store %m[..], %v
//       }
//     }
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/builder.h"

namespace fusejit::ir {

struct TileNest {
  const ForStmt *rows, *columns, *pairs;
  std::vector<const ForStmt*> terms;  // around the pairs, outermost first
  const Place *a, *b, *sums;
};

// Nothing, if the loop is not of that form.
std::optional<TileNest> tile_nest(const ForStmt& loop);
// The first thing that a matrix unit cannot do of it, as a sentence; empty: there is none.
std::string refused_by_matrix_unit(const Kernel& kernel, const TileNest& nest);

inline constexpr std::int64_t kTileRows = 16, kTileColumns = 16, kTilePairs = 16;
// So many rows of a run are tiles of equal height, the fewest; the last may have some of the one before again.
constexpr std::int64_t tiles_of_rows(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }
constexpr std::int64_t height_of_tiles(std::int64_t rows) {
  return (rows + tiles_of_rows(rows) - 1) / tiles_of_rows(rows);
}

// Rows come in runs, each of which is tiles: in a run a factor's rows and those of the sums are steps apart.
struct TileRows {
  std::int64_t run, step_of_a, step_of_sums;
};
// Nothing, if they do not.
std::optional<TileRows> rows_of_tiles(const Kernel& kernel, const TileNest& nest);

// Writes one: sums[i, j] = the products over `terms` (extents, outermost first) and the pairs of each. The places are
// asked for once, with the loops' variables: `at` of the terms.
struct TileProduct {
  std::int64_t rows, columns, pairs;
  std::vector<std::int64_t> terms;
  MemId a, b, sums;
  std::function<std::vector<Index>(const Index& row, const std::vector<Index>& at, const Index& pair)> place_of_a;
  std::function<std::vector<Index>(const std::vector<Index>& at, const Index& pair, const Index& column)> place_of_b;
  std::function<std::vector<Index>(const Index& row, const Index& column)> place_of_sum;
};
void write_tile_nest(KernelBuilder& builder, const TileProduct& product);

}  // namespace fusejit::ir
