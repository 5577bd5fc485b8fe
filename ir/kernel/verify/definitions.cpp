// V8: every id is defined once and before its use, and used in its scope only.
#include <algorithm>

#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

class Definitions {
 public:
  explicit Definitions(const Kernel& kernel)
      : k_(kernel),
        values_(kernel.values.size()),
        memories_(kernel.memories.size()),
        variables_(static_cast<std::size_t>(kernel.variable_count)) {}

  void run() {
    for (const KernelParam& p : k_.params) {
      if (p.memory >= 0) {
        define(memories_, p.memory, "memory");
      } else {
        define(values_, p.scalar, "value");
      }
    }
    for (MemId work : k_.works) define(memories_, work, "memory");
    for (const Phase& phase : k_.phases) block(phase.body);
  }

 private:
  enum State : std::uint8_t { unseen, visible, gone };
  struct Scoped {
    std::vector<State>* states;
    int id;
  };

  State& state(std::vector<State>& states, int id, const char* what) {
    if (id < 0 || static_cast<std::size_t>(id) >= states.size())
      broken(at_, "V8", fmt::format("{} {} is outside the kernel's table", what, id));
    return states[static_cast<std::size_t>(id)];
  }
  void define(std::vector<State>& states, int id, const char* what) {
    State& s = state(states, id, what);
    if (s != unseen) broken(at_, "V8", fmt::format("{} {} is defined twice", what, id));
    s = visible;
    scope_.push_back({&states, id});
  }
  void use(std::vector<State>& states, int id, const char* what) {
    const State s = state(states, id, what);
    if (s == unseen) broken(at_, "V8", fmt::format("{} {} is used before its definition", what, id));
    if (s == gone) broken(at_, "V8", fmt::format("{} {} is used outside its block", what, id));
  }
  void use(const Arg& arg) {
    if (!arg.is_literal()) use(values_, arg.value, "value");
  }
  void use(const Index& index) {
    index.for_each_leaf([&](const IndexAtom& leaf) {
      if (leaf.kind == AtomKind::variable) return use(variables_, leaf.id, "loop variable");
      use(values_, leaf.id, "value");
      const DType t = k_.values[static_cast<std::size_t>(leaf.id)];
      if (!is_int(t) || is_narrow_int(t))
        broken(at_, "V8", fmt::format("a value in an index is i32 or i64, not {}", name(t)));
    });
  }
  void block(const Block& b, const ForStmt* loop = nullptr) {
    const std::size_t mark = scope_.size();
    if (loop) define(variables_, loop->variable, "loop variable");
    for (const Stmt& stmt : b.statements) statement(stmt);
    for (const Arg& arg : b.yields) use(arg);
    for (; scope_.size() > mark; scope_.pop_back())
      (*scope_.back().states)[static_cast<std::size_t>(scope_.back().id)] = gone;
  }
  void statement(const Stmt& stmt) {
    at_ = stmt.at;
    for_each_index(stmt, [&](const Index& index) { use(index); });
    if (const Place* place = touched(stmt)) use(memories_, place->memory, "memory");
    if (const auto* prefetch = std::get_if<PrefetchStmt>(&stmt.node)) use(memories_, prefetch->place.memory, "memory");
    if (const auto* local = std::get_if<LocalStmt>(&stmt.node)) {
      define(memories_, local->memory, "memory");
    } else if (const auto* loop = std::get_if<ForStmt>(&stmt.node)) {
      block(loop->body, loop);
    } else if (const auto* choice = std::get_if<IfStmt>(&stmt.node)) {
      if (choice->condition >= 0) use(values_, choice->condition, "value");
      block(choice->then_block);
      block(choice->else_block);
    } else {
      for_each_arg(stmt, [&](const Arg& arg) { use(arg); });
    }
    at_ = stmt.at;
    for (ValueId id : results(stmt)) define(values_, id, "value");
  }

  const Kernel& k_;
  std::vector<State> values_, memories_, variables_;
  std::vector<Scoped> scope_;
  Position at_;
};

bool is_lanes(const ForStmt& loop) {
  return (loop.binding == Binding::vector || is_block_axis(loop.binding)) && loop.high[0].constant() > 1;
}

}  // namespace

void verify_definitions(const Kernel& kernel) { Definitions(kernel).run(); }

std::vector<bool> varying_values(const Kernel& kernel) {
  std::vector<bool> varying(kernel.values.size());
  std::vector<bool> local_varies(kernel.memories.size());
  const auto is_varying = [&](const Arg& a) { return !a.is_literal() && varying[static_cast<std::size_t>(a.value)]; };
  const auto lane_place = [&](const Place& p, const Path& path) {
    for (const Index& i : p.index)
      if (varies(i, path, varying)) return true;
    return false;
  };
  // Locals carry values around loops: repeated until nothing is added.
  for (bool changed = true; changed;) {
    changed = false;
    const auto mark = [&](std::vector<bool>& set, int id) {
      if (set[static_cast<std::size_t>(id)]) return;
      set[static_cast<std::size_t>(id)] = true;
      changed = true;
    };
    // A branch or loop that some take and some do not.
    const auto chosen = [&](const Path& path) {
      return std::any_of(path.begin(), path.end(), [&](const Enclosing& e) {
        bool found = false;
        if (e.choice) {
          found = e.choice->condition >= 0 && varying[static_cast<std::size_t>(e.choice->condition)];
          for (const Compare& c : e.choice->compares) found = found || varies(c.left, path, varying);
        } else {
          for (const auto* bounds : {&e.loop->low, &e.loop->high})
            for (const Index& i : *bounds) found = found || varies(i, path, varying);
        }
        return found;
      });
    };
    for_each_with_path(kernel, [&](const Stmt& stmt, const Path& path, std::size_t) {
      bool varies_here = false;
      for_each_arg(stmt, [&](const Arg& a) { varies_here = varies_here || is_varying(a); });
      if (const auto* load = std::get_if<LoadStmt>(&stmt.node)) {
        varies_here = lane_place(load->place, path) || local_varies[static_cast<std::size_t>(load->place.memory)];
      } else if (const auto* index = std::get_if<IndexStmt>(&stmt.node)) {
        varies_here = varies(index->index, path, varying);
      } else if (const auto* choice = std::get_if<IfStmt>(&stmt.node)) {
        varies_here = varies_here || (choice->condition >= 0 && varying[static_cast<std::size_t>(choice->condition)]);
        for (const Compare& c : choice->compares) varies_here = varies_here || varies(c.left, path, varying);
      } else if (const auto* loop = std::get_if<ForStmt>(&stmt.node)) {
        // The tree's result is uniform, unless other lanes or threads around have trees of their own.
        if (is_lanes(*loop)) {
          varies_here = varies_here && std::any_of(path.begin(), path.end(),
                                                   [](const Enclosing& e) { return e.loop && is_lanes(*e.loop); });
        }
      } else if (const auto* store = std::get_if<StoreStmt>(&stmt.node)) {
        const Memory& m = kernel.memories[static_cast<std::size_t>(store->place.memory)];
        if (m.is_local() && !lane_place(store->place, path) && (varies_here || chosen(path)))
          mark(local_varies, store->place.memory);
      }
      if (varies_here)
        for (ValueId id : results(stmt)) mark(varying, id);
    });
  }
  return varying;
}

}  // namespace fusejit::ir
