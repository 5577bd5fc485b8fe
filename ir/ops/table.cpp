// op_def and op_named over the rows of ir/ops. That every enumerator has a file, and every file its rows in order, is
// checked at compile time (ops/rows.h); here the files are put together.
#include <array>
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/ops/rows.h"

namespace fusejit::ir {
namespace {

using Rows = std::span<const OpDef> (*)();
constexpr Rows kFiles[] = {
    arithmetic_rows, function_rows, rounding_rows, logic_rows,  // element-wise
    composite_rows,  norm_rows,     loss_rows,     derived_rows, reduce_rows, view_rows,
    gather_rows,     anchor_rows,   pool_rows,     source_rows,  kernel_rows,
};

struct Table {
  std::array<const OpDef*, static_cast<std::size_t>(Op::count_)> rows{};
  std::unordered_map<std::string_view, Op> names;
};

const Table& table() {
  static const Table& table = *new const Table([] {  // never destroyed: threads may outlive what is
    Table t;
    for (Rows file : kFiles)
      for (const OpDef& row : file()) {
        t.rows[static_cast<std::size_t>(row.op)] = &row;
        if (row.family != Family::leaf) t.names.emplace(row.name, row.op);
      }
    return t;
  }());
  return table;
}

// A child that is forked while another thread makes it would wait for that for ever.
[[maybe_unused]] const Table& made_before_any_fork = table();

}  // namespace

const OpDef& op_def(Op op) {
  const std::size_t i = static_cast<std::size_t>(op);
  FJ_ASSERT(i < table().rows.size() && table().rows[i], "op {} has no row", i);
  return *table().rows[i];
}

std::optional<Op> op_named(std::string_view name) {
  const auto found = table().names.find(name);
  if (found == table().names.end()) return std::nullopt;
  return found->second;
}

}  // namespace fusejit::ir
