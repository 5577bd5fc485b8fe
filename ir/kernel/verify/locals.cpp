// V5: registers are indexed by constants and lanes, scratch fits and stands where it may.
#include <algorithm>
#include <map>

#include "ir/kernel/verify/thread_dims.h"
#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

constexpr std::int64_t kMaxRegisters = 64;
constexpr std::int64_t kMaxScratch = std::int64_t{16} << 20;  // of an x86 task
constexpr std::int64_t kMaxShared = 48 << 10;                 // of a CUDA block, static

class Locals {
 public:
  explicit Locals(const Kernel& kernel) : k_(kernel), names_(kernel) {}

  void run() {
    for_each_with_path(k_, [&](const Stmt& stmt, const Path& path, std::size_t) {
      at_ = stmt.at;
      if (const auto* local = std::get_if<LocalStmt>(&stmt.node)) return declare(local->memory, path);
      if (const Place* place = touched(stmt)) use(*place, path, std::holds_alternative<StoreStmt>(stmt.node));
      if (const auto* prefetch = std::get_if<PrefetchStmt>(&stmt.node))
        require(memory(prefetch->place.memory).kind != MemKind::register_local, "a prefetch of a register local");
    });
    for (const auto& [id, local] : locals_) {
      const Memory& m = memory(id);
      if (m.kind != MemKind::register_local) continue;
      const std::int64_t elements = elements_of_thread(m, static_cast<int>(local.axes.size()));
      const std::int64_t rows = local.lanes > 0 ? elements / local.lanes : elements;
      at_ = local.at;
      require(rows <= kMaxRegisters, "register local {} has {} elements, at most {} are allowed", names_.memory(id),
              rows, kMaxRegisters);
    }
    for (const Phase& phase : k_.phases) {
      const std::int64_t limit = k_.isa == Isa::cuda ? kMaxShared : kMaxScratch;
      const std::int64_t live = scratch_bytes(phase.body, k_);
      at_ = phase.body.statements.empty() ? Position{1, 1} : phase.body.statements[0].at;
      require(live <= limit, "{} bytes of scratch are live at once, the limit is {}", live, limit);
    }
  }

 private:
  struct Local {
    Position at;
    std::size_t depth = 0;   // of its declaration in paths
    std::int64_t lanes = 0;  // > 0: the last dim is a row of lanes
    bool is_used = false;
    std::vector<Binding> axes = {};  // of a block's threads, that its leading dims are
  };

  const Memory& memory(MemId id) const { return k_.memories[static_cast<std::size_t>(id)]; }
  template <class... Ts>
  void require(bool holds, fmt::format_string<Ts...> text, Ts&&... args) const {
    if (!holds) broken(at_, "V5", fmt::format(text, std::forward<Ts>(args)...));
  }

  void declare(MemId id, const Path& path) {
    locals_[id] = {at_, path.size()};
    if (memory(id).kind != MemKind::scratch_local) return;
    for (const Enclosing& e : path) {
      if (!e.loop) continue;
      require(e.loop->binding != Binding::vector, "scratch {} inside a vector loop", names_.memory(id));
      require(!is_block_axis(e.loop->binding), "scratch {} inside a block loop", names_.memory(id));
    }
  }

  static const ForStmt* loop_of(VarId variable, const Path& path) {
    for (const Enclosing& e : path)
      if (e.loop && e.loop->variable == variable) return e.loop;
    return nullptr;
  }

  void use(const Place& place, const Path& path, bool stores) {
    const Memory& m = memory(place.memory);
    if (m.kind != MemKind::register_local) return;
    Local& local = locals_.at(place.memory);
    const std::vector<Binding> axes = thread_axes(place, path, local, m);
    require(
        !local.is_used || axes == local.axes,
        "register local {}: each access names the same axes of the block first, so that a thread has its own elements",
        names_.place(place));
    local.is_used = true, local.axes = axes;
    for (std::size_t i = local.depth; stores && i < path.size(); ++i) {  // what one thread stores no other has
      const ForStmt* loop = path[i].loop;
      if (!loop || !is_block_axis(loop->binding) || loop->high[0].constant() == 1) continue;
      require(std::find(axes.begin(), axes.end(), loop->binding) != axes.end(),
              "register local {} is stored inside of {}, which its index does not begin with", names_.place(place),
              name(loop->binding));
    }
    bool lane_row = false;
    for (std::size_t d = axes.size(); d < place.index.size(); ++d) {
      const Index& index = place.index[d];
      const bool last = d + 1 == place.index.size();
      const std::optional<VarId> variable = only_variable(index);
      if (last && variable && declared_outside_lanes(*variable, path, local, m)) {
        lane_row = true;
        continue;
      }
      index.for_each_leaf([&](const IndexAtom& leaf) {
        const ForStmt* loop = leaf.kind == AtomKind::variable ? loop_of(leaf.id, path) : nullptr;
        require(loop && loop->binding == Binding::unroll,
                "register local {} is indexed by something that is no constant after unrolling", names_.place(place));
      });
    }

    if (lane_row) local.lanes = m.dims.back();
  }
  // Leading dims that are variables of block loops inside of the declaration.
  std::vector<Binding> thread_axes(const Place& place, const Path& path, const Local& local, const Memory& m) const {
    std::vector<Binding> axes;
    for (const Index& index : place.index) {
      const std::optional<VarId> variable = only_variable(index);
      const ForStmt* loop = variable ? loop_of(*variable, path) : nullptr;
      if (!loop || !is_block_axis(loop->binding)) break;
      const bool inside = std::any_of(path.begin() + static_cast<std::ptrdiff_t>(local.depth), path.end(),
                                      [&](const Enclosing& e) { return e.loop == loop; });
      require(inside, "register local {} is indexed by {}, and declared inside of its loop", names_.place(place),
              name(loop->binding));
      require(m.dims[axes.size()] == loop->high[0].constant(),
              "register local {} has {} elements along {}, which has {} threads", names_.place(place),
              m.dims[axes.size()], name(loop->binding), loop->high[0].constant());
      axes.push_back(loop->binding);
    }
    return axes;
  }
  bool declared_outside_lanes(VarId variable, const Path& path, const Local& local, const Memory& m) const {
    for (std::size_t i = local.depth; i < path.size(); ++i) {
      const ForStmt* loop = path[i].loop;
      if (!loop || loop->variable != variable || loop->binding != Binding::vector) continue;
      require(loop->high[0].constant() == m.dims.back(),
              "the last dim of a register local has {} elements for {} lanes", m.dims.back(), loop->high[0].constant());
      return true;
    }
    return false;
  }

  const Kernel& k_;
  const Names names_;
  std::map<MemId, Local> locals_;
  Position at_;
};

}  // namespace

std::int64_t scratch_bytes(const Block& block, const Kernel& kernel) {
  std::int64_t declared = 0, most = 0;
  const auto add = [&](std::int64_t inner) { most = std::max(most, declared + inner); };
  for (const Stmt& stmt : block.statements) {
    if (const auto* local = std::get_if<LocalStmt>(&stmt.node)) {
      const Memory& m = kernel.memories[static_cast<std::size_t>(local->memory)];
      if (m.kind == MemKind::scratch_local) declared += (bytes(m.dtype, m.elements()) + 63) / 64 * 64;
      add(0);
    } else if (const auto* loop = std::get_if<ForStmt>(&stmt.node)) {
      add(scratch_bytes(loop->body, kernel));
    } else if (const auto* choice = std::get_if<IfStmt>(&stmt.node)) {
      add(std::max(scratch_bytes(choice->then_block, kernel), scratch_bytes(choice->else_block, kernel)));
    }
  }
  return most;
}

void verify_locals(const Kernel& kernel) { Locals(kernel).run(); }

}  // namespace fusejit::ir
