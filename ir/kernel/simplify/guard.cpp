// Loads through views and windows that V3 does not prove to be inside become conditional.
#include "ir/kernel/prove.h"
#include "ir/kernel/simplify/simplify.h"

namespace fusejit::ir {
namespace {

class Guard {
 public:
  explicit Guard(Kernel& kernel) : k_(kernel) {}

  bool run() {
    for (Phase& phase : k_.phases) block(phase.body);
    return changed_;
  }

 private:
  void block(Block& b) {
    for (Stmt& stmt : b.statements) {
      if (auto* load = std::get_if<LoadStmt>(&stmt.node)) {
        if (load->through_views) guard(stmt, *load);
      } else if (auto* loop = std::get_if<ForStmt>(&stmt.node)) {
        path_.push_back({loop, nullptr, false});
        block(loop->body);
        path_.pop_back();
      } else if (auto* choice = std::get_if<IfStmt>(&stmt.node)) {
        path_.push_back({nullptr, choice, false});
        block(choice->then_block);
        path_.back().in_else = true;
        block(choice->else_block);
        path_.pop_back();
      }
    }
  }

  void guard(Stmt& stmt, const LoadStmt& load) {
    const std::vector<std::int64_t>& dims = k_.memories[static_cast<std::size_t>(load.place.memory)].dims;
    const Facts facts(path_);
    std::vector<Compare> open;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const Index& index = load.place.index[d];
      const Index varying = index - Index(index.constant());
      if (!facts.proves_non_negative(index)) open.push_back({varying, CompareKind::ge, -index.constant()});
      if (!facts.proves_non_negative(Index(dims[d] - 1) - index))
        open.push_back({varying, CompareKind::lt, dims[d] - index.constant()});
    }
    if (open.empty()) return;
    changed_ = true;
    const DType type = k_.values[static_cast<std::size_t>(load.result)];
    const auto inside = static_cast<ValueId>(k_.values.size());
    k_.values.push_back(type);
    IfStmt choice{{load.result}, -1, std::move(open), {}, {}};
    LoadStmt moved = load;
    moved.result = inside;
    choice.then_block.statements.push_back({std::move(moved), stmt.at});
    choice.then_block.yields = {Arg(inside)};
    choice.else_block.yields = {Arg(cast(Scalar::of(0.0), type))};
    stmt.node = std::move(choice);
  }

  Kernel& k_;
  Path path_;
  bool changed_ = false;
};

}  // namespace

bool guard_views(Kernel& kernel) { return Guard(kernel).run(); }

}  // namespace fusejit::ir
