#include "ir/kernel/verify/verify.h"

#include <optional>

namespace fusejit::ir {
namespace {

void walk(const Block& block, Path& path, std::size_t phase, const PathVisitor& visit) {
  for (const Stmt& stmt : block.statements) {
    visit(stmt, path, phase);
    if (const auto* loop = std::get_if<ForStmt>(&stmt.node)) {
      path.push_back({loop, nullptr, false});
      walk(loop->body, path, phase, visit);
      path.pop_back();
    } else if (const auto* choice = std::get_if<IfStmt>(&stmt.node)) {
      for (const bool in_else : {false, true}) {
        path.push_back({nullptr, choice, in_else});
        walk(in_else ? choice->else_block : choice->then_block, path, phase, visit);
        path.pop_back();
      }
    }
  }
}

void check_rules(const Kernel& kernel) {
  verify_definitions(kernel);
  verify_types(kernel);
  verify_bindings(kernel);
  verify_locals(kernel);
  verify_bounds(kernel);
  verify_alignment(kernel);
  verify_writes(kernel);
  verify_stores(kernel);
}

void check(const Kernel& kernel) {
  try {
    check_rules(kernel);
  } catch (const UserError& error) {  // index arithmetic beyond 62 bits
    broken({1, 1}, "V3", error.what());
  }
}

bool has_positions(const Kernel& kernel) {
  for (const Phase& phase : kernel.phases)
    if (!phase.body.statements.empty()) return phase.body.statements[0].at.line > 0;
  return false;
}

}  // namespace

void broken(Position at, std::string_view rule, const std::string& sentence) {
  throw InternalError(fmt::format("{}:{}: {}: {}", at.line, at.column, rule, sentence));
}

void for_each_with_path(const Kernel& kernel, const PathVisitor& visit) {
  Path path;
  for (std::size_t i = 0; i < kernel.phases.size(); ++i) walk(kernel.phases[i].body, path, i, visit);
}

const Place* touched(const Stmt& stmt) {
  if (const auto* load = std::get_if<LoadStmt>(&stmt.node)) return &load->place;
  if (const auto* store = std::get_if<StoreStmt>(&stmt.node)) return &store->place;
  return nullptr;
}

bool varies(const Index& index, const Path& path, const std::vector<bool>& varying) {
  bool result = false;
  index.for_each_leaf([&](const IndexAtom& leaf) {
    if (leaf.kind == AtomKind::value) {
      result = result || varying[static_cast<std::size_t>(leaf.id)];
      return;
    }
    for (const Enclosing& e : path)
      if (e.loop && e.loop->variable == leaf.id)
        result = result || e.loop->binding == Binding::vector || is_block_axis(e.loop->binding);
  });
  return result;
}

void verify(const Kernel& kernel) {
  if (has_positions(kernel)) return check(kernel);
  try {
    check(kernel);
  } catch (const InternalError&) {
    std::optional<Kernel> written;
    try {
      written = parse_kernel(print(kernel));
    } catch (const ParseError&) {  // too wrong to be read back: no parameter, for one
    }
    if (written) check(*written);  // the same error with the positions of the canonical text
    throw;
  }
}

}  // namespace fusejit::ir
