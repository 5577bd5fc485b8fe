// Tile loops: products of matrices in the tile registers of AMX. Two tiles of rows by two of columns are summed up at
// once, so that every tile of factors that is loaded is multiplied twice.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "codegen/x86/emit/emitter.h"
#include "ir/base/check.h"
#include "ir/kernel/tile_nest.h"

namespace fusejit::codegen::x86 {
namespace {

using ir::TileNest;
using llvm::Value;

constexpr std::int64_t kWord = 4, kAtOnce = 2;  // bytes of an element of a tile; tiles of rows, and of columns
constexpr std::uint8_t kSums = 0, kRows = 4, kColumns = 6;  // the first register of each kind

std::int64_t extent(const ir::ForStmt& loop) { return loop.high[0].constant(); }
ir::TileRows rows_of(const Emitter& e, const TileNest& nest) { return *ir::rows_of_tiles(e.kernel, nest); }

// What ldtilecfg reads: palette 1, then the bytes of a row and the rows of each register.
struct Configuration {
  std::int64_t height, pairs;
  friend bool operator==(const Configuration&, const Configuration&) = default;
};
Configuration configuration_of(const Emitter& e, const TileNest& nest) {
  return {ir::height_of_tiles(rows_of(e, nest).run), extent(*nest.pairs)};
}

void configure(Emitter& e, const Configuration& c) {
  std::vector<std::uint8_t> bytes(64);
  bytes[0] = 1;
  const auto set = [&](std::size_t tile, std::int64_t rows, std::int64_t columns) {
    bytes[16 + 2 * tile] = static_cast<std::uint8_t>(columns * kWord);
    bytes[48 + tile] = static_cast<std::uint8_t>(rows);
  };
  for (std::size_t i = 0; i < kAtOnce * kAtOnce; ++i) set(kSums + i, c.height, ir::kTileColumns);
  for (std::size_t i = 0; i < kAtOnce; ++i)
    set(kRows + i, c.height, c.pairs), set(kColumns + i, c.pairs, ir::kTileColumns);
  llvm::Module& module = *e.function->getParent();
  llvm::Constant* data = llvm::ConstantDataArray::get(e.b.getContext(), bytes);
  auto* global =
      new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "tiles");
  global->setAlignment(llvm::Align(64));
  e.b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {global});
}

std::vector<TileNest> nests_in(const ir::Block& block) {
  std::vector<TileNest> nests;
  ir::for_each_stmt(block, [&](const ir::Stmt& stmt) {
    const auto* loop = std::get_if<ir::ForStmt>(&stmt.node);
    if (loop && loop->binding == ir::Binding::tile) nests.push_back(*ir::tile_nest(*loop));
  });
  return nests;
}

class TileEmitter {
 public:
  TileEmitter(Emitter& e, const TileNest& nest) : e_(e), nest_(nest), rows_(rows_of(e, nest)) {
    for (const ir::ForStmt* loop : {nest.rows, nest.columns, nest.pairs}) set(*loop, 0, extent(*loop) - 1);
    a_ = flatten(e, *nest.a), b_ = flatten(e, *nest.b), sums_ = flatten(e, *nest.sums);
  }

  void emit() {
    const std::int64_t row_tiles = extent(*nest_.rows) / rows_.run * ir::tiles_of_rows(rows_.run),
                       column_tiles = extent(*nest_.columns) / ir::kTileColumns;
    for (std::int64_t i = 0; i < row_tiles; i += kAtOnce)
      for (std::int64_t j = 0; j < column_tiles; j += kAtOnce)
        block(i, std::min(kAtOnce, row_tiles - i), j, std::min(kAtOnce, column_tiles - j));
  }

 private:
  void set(const ir::ForStmt& loop, std::int64_t first, std::int64_t last) {
    e_.variables[loop.variable] = {VariableKind::constant, first, nullptr, 0, ir::Interval{first, last}};
  }
  // The address of the tile at hand.
  Value* at(const ir::Place& place, const ir::Index& flat) {
    const Affine index = affine(e_, flat);
    FJ_ASSERT(!index.lane_dependent(), "a tile stands in a loop of lanes");
    return address(e_, place.memory, index.uniform, kWord, index.constant * kWord);
  }
  Value* step(std::int64_t elements) { return e_.b.getInt64(static_cast<std::uint64_t>(elements * kWord)); }
  Value* tile(std::int64_t number) { return e_.b.getInt8(static_cast<std::uint8_t>(number)); }

  void block(std::int64_t first_row, std::int64_t rows, std::int64_t first_column, std::int64_t columns) {
    const auto each = [](std::int64_t count, const auto& body) {
      for (std::int64_t i = 0; i < count; ++i) body(i);
    };
    const auto sum = [](std::int64_t i, std::int64_t j) { return kSums + i * kAtOnce + j; };
    const auto to_row = [&](std::int64_t i) {
      const std::int64_t tiles = ir::tiles_of_rows(rows_.run), height = ir::height_of_tiles(rows_.run),
                         run = (first_row + i) / tiles, tile = (first_row + i) % tiles,
                         row = run * rows_.run + std::min(tile * height, rows_.run - height);
      set(*nest_.rows, row, row);
    };
    const auto to_column = [&](std::int64_t j) {
      set(*nest_.columns, (first_column + j) * ir::kTileColumns, (first_column + j) * ir::kTileColumns);
    };
    set(*nest_.pairs, 0, 0);
    each(rows, [&](std::int64_t i) {
      each(columns,
           [&](std::int64_t j) { e_.b.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {tile(sum(i, j))}); });
    });
    over_terms(0, [&] {
      each(columns, [&](std::int64_t j) {
        to_column(j);
        e_.b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {},
                             {tile(kColumns + j), at(*nest_.b, b_), step(b_.coefficient_of(nest_.pairs->variable))});
      });
      each(rows, [&](std::int64_t i) {
        to_row(i);
        e_.b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {},
                             {tile(kRows + i), at(*nest_.a, a_), step(rows_.step_of_a)});
        each(columns, [&](std::int64_t j) {
          e_.b.CreateIntrinsic(llvm::Intrinsic::x86_tdpbf16ps, {},
                               {tile(sum(i, j)), tile(kRows + i), tile(kColumns + j)});
        });
      });
    });
    each(rows, [&](std::int64_t i) {
      each(columns, [&](std::int64_t j) {
        to_row(i), to_column(j);
        e_.b.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {},
                             {tile(sum(i, j)), at(*nest_.sums, sums_), step(rows_.step_of_sums)});
      });
    });
  }

  // Tile registers are no values of LLVM: nothing is carried around these loops.
  void over_terms(std::size_t n, const std::function<void()>& body) {
    if (n == nest_.terms.size()) return body();
    const ir::ForStmt& loop = *nest_.terms[n];
    if (extent(loop) == 1) {
      set(loop, 0, 0);
      return over_terms(n + 1, body);
    }
    llvm::BasicBlock *before = e_.b.GetInsertBlock(), *head = new_block(e_, "terms"), *exit = new_block(e_, "done");
    llvm::Instruction* entry = e_.b.CreateBr(head);
    e_.b.SetInsertPoint(head);
    llvm::PHINode* variable = e_.b.CreatePHI(e_.b.getInt64Ty(), 2);
    variable->addIncoming(e_.b.getInt64(0), before);
    open_scope(e_);
    Scope& scope = e_.scopes.back();
    scope.innermost = n + 1 == nest_.terms.size();
    scope.variable = loop.variable, scope.low = e_.b.getInt64(0), scope.entry = entry;
    e_.variables[loop.variable] = {VariableKind::uniform, 0, variable, static_cast<int>(e_.scopes.size()) - 1,
                                   ir::Interval{0, extent(loop) - 1}};
    over_terms(n + 1, body);
    step_induction_pointers(e_);
    close_scope(e_);
    llvm::BasicBlock* latch = e_.b.GetInsertBlock();
    Value* next = e_.b.CreateNSWAdd(variable, e_.b.getInt64(1));
    variable->addIncoming(next, latch);
    e_.b.CreateCondBr(e_.b.CreateICmpSLT(next, e_.b.getInt64(static_cast<std::uint64_t>(extent(loop)))), head, exit);
    exit->moveAfter(latch);
    e_.b.SetInsertPoint(exit);
  }

  Emitter& e_;
  const TileNest& nest_;
  const ir::TileRows rows_;
  ir::Index a_, b_, sums_;  // the flat elements
};

}  // namespace

// One shape of tiles for the whole phase is set once.
void open_tiles(Emitter& e, const ir::Block& body) {
  const std::vector<TileNest> nests = nests_in(body);
  e.has_tiles = !nests.empty();
  if (nests.empty()) return;
  const Configuration first = configuration_of(e, nests[0]);
  e.tiles_are_alike =
      std::all_of(nests.begin(), nests.end(), [&](const TileNest& nest) { return configuration_of(e, nest) == first; });
  if (e.tiles_are_alike) configure(e, first);
}

void close_tiles(Emitter& e) {
  if (e.has_tiles) e.b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

void emit_tile(Emitter& e, const ir::ForStmt& s) {
  const std::optional<TileNest> nest = ir::tile_nest(s);
  FJ_ASSERT(nest, "a tile loop of another form");
  if (!e.tiles_are_alike) configure(e, configuration_of(e, *nest));
  TileEmitter(e, *nest).emit();
}

}  // namespace fusejit::codegen::x86
