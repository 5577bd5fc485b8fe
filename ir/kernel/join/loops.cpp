#include "ir/kernel/join/loops.h"

#include <optional>
#include <utility>

#include "ir/kernel/walk.h"

namespace fusejit::ir {
namespace {

// Into `outer` rounds of an inner loop.
void split(ForStmt& loop, std::int64_t outer, int& variables) {
  const std::int64_t rest = loop.high[0].constant() / outer;
  ForStmt inner = loop;
  inner.variable = variables++;
  inner.high = {Index(rest)};
  const Index element = Index::variable(loop.variable) * rest + Index::variable(inner.variable);
  const auto substitute = [&](const IndexAtom& leaf) {
    return leaf.kind == AtomKind::variable && leaf.id == loop.variable ? std::optional(element) : std::nullopt;
  };
  for_each_stmt(inner.body,
                [&](Stmt& stmt) { for_each_index(stmt, [&](Index& index) { index = index.substitute(substitute); }); });
  loop.high = {Index(outer)};
  loop.body = {};
  loop.body.statements.push_back({std::move(inner), {}});
}

}  // namespace

bool is_shared_out(Binding binding) { return binding == Binding::threads || is_grid_axis(binding); }

std::int64_t rounds_of(const ForStmt& loop) {
  const bool known = loop.results.empty() && loop.low == std::vector{Index(0)} && loop.high.size() == 1 &&
                     loop.high[0].is_constant() && (loop.binding == Binding::none || is_shared_out(loop.binding));
  return known ? loop.high[0].constant() : 0;
}

void split_alike(ForStmt& a, ForStmt& b, int& of_a, int& of_b) {
  const std::int64_t rounds_a = rounds_of(a), rounds_b = rounds_of(b);
  if (rounds_a <= 1 || rounds_b <= 1 || rounds_a == rounds_b) return;
  if (rounds_a > rounds_b && rounds_a % rounds_b == 0) split(a, rounds_b, of_a);
  if (rounds_b > rounds_a && rounds_b % rounds_a == 0) split(b, rounds_a, of_b);
}

}  // namespace fusejit::ir
