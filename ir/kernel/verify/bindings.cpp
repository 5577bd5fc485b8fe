// V4: what the bindings of loops require, and which isa has them.
#include <algorithm>
#include <bit>
#include <map>

#include "ir/kernel/tile_nest.h"
#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

constexpr std::int64_t kMaxUnroll = 64, kMaxUnrolled = 4096, kMaxLanes = 64, kMaxThreads = 1024, kMaxLaneBytes = 512;

bool is_parallel_nest(Binding b) { return b == Binding::threads || is_grid_axis(b); }
bool is_x86(Isa isa) { return isa != Isa::cuda && isa != Isa::any; }

// 0..E with constant E, or nothing.
std::optional<std::int64_t> constant_extent(const ForStmt& loop) {
  if (loop.low.size() != 1 || loop.high.size() != 1 || !(loop.low[0] == Index(0)) || !loop.high[0].is_constant())
    return std::nullopt;
  return loop.high[0].constant();
}

class Bindings {
 public:
  explicit Bindings(const Kernel& kernel) : k_(kernel), varying_(varying_values(kernel)) {}

  void run() {
    for (const Phase& phase : k_.phases) nest(phase);
    for_each_with_path(k_, [&](const Stmt& stmt, const Path& path, std::size_t phase) {
      at_ = stmt.at;
      if (const auto* loop = std::get_if<ForStmt>(&stmt.node)) return statement(*loop, path, phase);
      if (const auto* def = std::get_if<DefStmt>(&stmt.node)) only_in_tiles(*def, path);
      if (const auto* store = std::get_if<StoreStmt>(&stmt.node))
        require(!store->non_temporal || is_x86(k_.isa), "nt stores exist on x86 only");
      if (const auto* prefetch = std::get_if<PrefetchStmt>(&stmt.node))
        for (const Index& index : prefetch->place.index)
          require(!varies(index, path, varying_) || k_.isa == Isa::cuda, "a prefetch names a lane");
    });
    for (std::size_t p = 0; p < k_.phases.size(); ++p) registers(k_.phases[p], p);
  }

 private:
  template <class... Ts>
  void require(bool holds, fmt::format_string<Ts...> text, Ts&&... args) const {
    if (!holds) broken(at_, "V4", fmt::format(text, std::forward<Ts>(args)...));
  }

  // A phase is one parallel nest and nothing else, or holds no parallel loop.
  void nest(const Phase& phase) {
    const std::vector<Stmt>* level = &phase.body.statements;
    Binding last = Binding::none;
    int threads = 0;
    bool has_grid = false;
    for (;;) {
      at_ = level->empty() ? at_ : level->front().at;
      const auto* loop = level->empty() ? nullptr : std::get_if<ForStmt>(&level->front().node);
      if (!loop || !is_parallel_nest(loop->binding)) break;
      require(level == &phase.body.statements ? level->size() == 1 : true,
              "a phase with a {} loop holds nothing beside it", name(loop->binding));
      require(++threads <= 3, "more than three {} loops are nested", name(loop->binding));
      if (is_grid_axis(loop->binding)) {
        require(!has_grid || loop->binding < last, "grid loops are nested z, y, x");
        has_grid = true;
      }
      require(last == Binding::none || is_grid_axis(last) == is_grid_axis(loop->binding),
              "threads and grid loops are not mixed");
      last = loop->binding;
      nest_loops_.push_back(loop);
      level = &loop->body.statements;
      if (level->size() != 1) break;
    }
    require(k_.isa != Isa::cuda || has_grid, "a phase on cuda has a grid loop");
  }

  // A block of whole warps with so many registers a thread fits a multiprocessor.
  void registers(const Phase& phase, std::size_t number) {
    if (phase.registers == 0) return;
    at_ = phase.body.statements.empty() ? Position{} : phase.body.statements.front().at;
    require(k_.isa == Isa::cuda, "a phase has registers on cuda only");
    require(phase.registers >= kLeastRegisters && phase.registers <= kMostRegisters,
            "a thread has {} to {} registers, not {}", kLeastRegisters, kMostRegisters, phase.registers);
    std::int64_t threads = 1;
    for (const auto& [axis, extent] : axes_[number]) threads *= extent;
    require(blocks_that_fit(threads, phase.registers) > 0, "{} threads with {} registers each are more than 65536",
            threads, phase.registers);
  }

  void statement(const ForStmt& loop, const Path& path, std::size_t phase) {
    bounds(loop, path);
    const bool tree = loop.binding == Binding::vector || is_block_axis(loop.binding);
    require(loop.combiners.empty() || !is_parallel_nest(loop.binding), "{} loops do not reduce", name(loop.binding));
    if (loop.combiners.size() > 0 && tree) {
      const std::optional<std::int64_t> extent = constant_extent(loop);
      require(extent && *extent > 0 && std::has_single_bit(static_cast<std::uint64_t>(*extent)),
              "a reduce over lanes or a block has a power of two of them");
    }
    switch (loop.binding) {
      case Binding::none:
        require(loop.copies == 0 || k_.isa == Isa::cuda, "a loop has a number of copies on cuda only");
        require(loop.copies <= kMaxUnroll, "a loop of {} copies, at most {} are allowed", loop.copies, kMaxUnroll);
        return;
      case Binding::unroll:
        return unroll(loop, path);
      case Binding::vector:
        return vector(loop, path);
      case Binding::tile:
        return tile(loop, path);
      case Binding::threads:
      case Binding::grid_x:
      case Binding::grid_y:
      case Binding::grid_z:
        return parallel(loop);
      default:
        return thread_block(loop, path, phase);
    }
  }

  void bounds(const ForStmt& loop, const Path& path) {
    const auto lane = std::find_if(path.begin(), path.end(), [](const Enclosing& e) {
      return e.loop && (e.loop->binding == Binding::vector || is_block_axis(e.loop->binding));
    });
    if (lane == path.end()) return;
    // Blocks meet at barriers, so all threads must come to a block loop; a thread may have bounds of its own for other
    // loops, but the lanes of one run in lockstep.
    const bool meets = is_block_axis(loop.binding) || holds_block_loop(loop.body);
    for (const auto* side : {&loop.low, &loop.high})
      for (const Index& index : *side)
        require(meets ? !varies(index, path, varying_) : !names_lane(index, path),
                "the bounds of a loop name a lane or block axis around it");
  }
  // A lane, or a value that is not the same everywhere, below a vector loop.
  bool names_lane(const Index& index, const Path& path) const {
    bool in_vector = false, found = false;
    for (const Enclosing& e : path) {
      if (!e.loop || e.loop->binding != Binding::vector) continue;
      in_vector = true;
      found = found || index.mentions(e.loop->variable);
    }
    index.for_each_leaf([&](const IndexAtom& leaf) {
      found = found || (leaf.kind == AtomKind::value && varying_[static_cast<std::size_t>(leaf.id)]);
    });
    return in_vector && found;
  }
  static bool holds_block_loop(const Block& body) {
    bool found = false;
    for_each_stmt(body, [&](const Stmt& stmt) {
      const auto* loop = std::get_if<ForStmt>(&stmt.node);
      found = found || (loop && is_block_axis(loop->binding));
    });
    return found;
  }

  void unroll(const ForStmt& loop, const Path& path) {
    std::int64_t copies = unrolled_extent(loop);
    require(copies <= kMaxUnroll, "an unroll loop has {} copies, at most {} are allowed", copies, kMaxUnroll);
    for (const Enclosing& e : path)
      if (e.loop && e.loop->binding == Binding::unroll) copies *= std::max<std::int64_t>(1, unrolled_extent(*e.loop));
    require(copies <= kMaxUnrolled, "nested unroll loops have {} copies, at most {} are allowed", copies, kMaxUnrolled);
  }
  std::int64_t unrolled_extent(const ForStmt& loop) const {
    std::int64_t low = INT64_MIN, high = INT64_MAX;
    for (const Index& i : loop.low)
      require(i.is_constant(), "an unroll loop has constant bounds"), low = std::max(low, i.constant());
    for (const Index& i : loop.high)
      require(i.is_constant(), "an unroll loop has constant bounds"), high = std::min(high, i.constant());
    return std::max<std::int64_t>(0, high - low);
  }

  void vector(const ForStmt& loop, const Path& path) {
    require(k_.isa != Isa::any, "a kernel on any has no vector loops");
    const std::optional<std::int64_t> lanes = constant_extent(loop);
    require(lanes && *lanes >= 2 && *lanes <= kMaxLanes && std::has_single_bit(static_cast<std::uint64_t>(*lanes)),
            "a vector loop runs over 0..L with L = 2, 4, ..., 64");
    for (const Enclosing& e : path)
      require(!e.loop || e.loop->binding != Binding::vector, "a vector loop inside a vector loop");
    for_each_stmt(loop.body, [&](const Stmt& stmt) {
      for (ValueId id : results(stmt)) {
        const DType t = k_.values[static_cast<std::size_t>(id)];
        require(*lanes * bytes(t) <= kMaxLaneBytes, "{} lanes of {} are more than {} bytes", *lanes, name(t),
                kMaxLaneBytes);
      }
    });
  }

  void tile(const ForStmt& loop, const Path& path) {
    require(k_.isa == Isa::x86_amx, "a tile loop on {}", name(k_.isa));
    const std::optional<TileNest> nest = tile_nest(loop);
    require(nest.has_value(), "a tile loop is no product of matrices (tile_nest.h)");
    const std::string refused = refused_by_matrix_unit(k_, *nest);
    require(refused.empty(), "a tile loop: {}", refused);
    for (const Enclosing& e : path)
      require(!e.loop || e.loop->binding != Binding::vector, "a tile loop inside a vector loop");
  }
  // Parts of one instruction of a matrix unit.
  void only_in_tiles(const DefStmt& s, const Path& path) {
    if (s.op != Op::fma_low && s.op != Op::fma_high && s.op != Op::add_flushed) return;
    const bool in_tile = std::any_of(path.begin(), path.end(),
                                     [](const Enclosing& e) { return e.loop && e.loop->binding == Binding::tile; });
    require(in_tile, "{} outside a tile loop", name(s.op));
  }

  void parallel(const ForStmt& loop) {
    require(loop.binding == Binding::threads ? is_x86(k_.isa) : k_.isa == Isa::cuda, "a {} loop on {}",
            name(loop.binding), name(k_.isa));
    require(constant_extent(loop).has_value(), "a {} loop runs over 0..T with constant T", name(loop.binding));
    require(std::find(nest_loops_.begin(), nest_loops_.end(), &loop) != nest_loops_.end(),
            "{} loops are directly nested and outermost in their phase", name(loop.binding));
  }

  void thread_block(const ForStmt& loop, const Path& path, std::size_t phase) {
    require(k_.isa == Isa::cuda, "a {} loop on {}", name(loop.binding), name(k_.isa));
    const std::optional<std::int64_t> extent = constant_extent(loop);
    require(extent && *extent > 0, "a {} loop runs over 0..B with constant B", name(loop.binding));
    bool in_grid = false;
    for (const Enclosing& e : path) {
      if (e.choice) {
        bool uniform = e.choice->condition < 0 || !varying_[static_cast<std::size_t>(e.choice->condition)];
        for (const Compare& c : e.choice->compares) uniform = uniform && !varies(c.left, path, varying_);
        require(uniform, "a {} loop stands under an if that names a lane or block axis", name(loop.binding));
        continue;
      }
      require(e.loop->binding != loop.binding, "a {} loop inside a {} loop", name(loop.binding), name(loop.binding));
      in_grid = in_grid || is_grid_axis(e.loop->binding);
    }
    require(in_grid, "a {} loop stands under grid loops", name(loop.binding));
    std::map<Binding, std::int64_t>& axes = axes_[phase];
    const auto [at, inserted] = axes.emplace(loop.binding, *extent);
    require(inserted || at->second == *extent, "{} has {} threads here and {} elsewhere in its phase",
            name(loop.binding), *extent, at->second);
    std::int64_t threads = 1;
    for (const auto& axis : axes) threads *= std::min(axis.second, kMaxThreads + 1);
    require(threads <= kMaxThreads, "a block has {} threads, at most {} are allowed", threads, kMaxThreads);
  }

  const Kernel& k_;
  const std::vector<bool> varying_;
  std::vector<const ForStmt*> nest_loops_;
  std::map<std::size_t, std::map<Binding, std::int64_t>> axes_;
  Position at_ = {1, 1};
};

}  // namespace

void verify_bindings(const Kernel& kernel) { Bindings(kernel).run(); }

}  // namespace fusejit::ir
