// Reductions: accumulators of serial loops, trees over lanes and over an axis of a block.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/cuda/barriers.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/text.h"

namespace fusejit::codegen::cuda {
namespace {

constexpr std::int64_t kPoolBytes = 16 << 10;  // of lanes that are reduced at once, unless one lane takes more

DType dtype(const Emitter& e, ir::ValueId id) { return e.kernel.values[static_cast<std::size_t>(id)]; }

// Calls visit(combiner, its first component, how many).
template <class F>
void for_each_combiner(const ir::ForStmt& s, const F& visit) {
  std::size_t first = 0;
  for (ir::Combiner combiner : s.combiners) {
    const auto count = static_cast<std::size_t>(ir::components(combiner));
    visit(combiner, first, count);
    first += count;
  }
}

// In lanes, the components of one combiner are arrays if any of them differs between lanes.
void decide_arrays(Emitter& e, const ir::ForStmt& s) {
  if (e.vector == nullptr || e.in_lane) return;
  for_each_combiner(s, [&](ir::Combiner, std::size_t first, std::size_t count) {
    bool any = false;
    for (std::size_t i = first; i < first + count; ++i)
      any = any || varies(e, ir::Arg(s.results[i])) || varies(e, s.body.yields[i]);
    for (std::size_t i = first; i < first + count; ++i) e.array[static_cast<std::size_t>(s.results[i])] = any;
  });
}

std::vector<std::string> texts(const Emitter& e, const ir::ForStmt& s, std::size_t first, std::size_t count,
                               bool yields) {
  std::vector<std::string> list;
  for (std::size_t i = first; i < first + count; ++i)
    list.push_back(yields ? text(e, s.body.yields[i]) : text(e, s.results[i]));
  return list;
}

bool is_array(const Emitter& e, ir::ValueId id) { return e.array[static_cast<std::size_t>(id)]; }

// The operands of a tree over lanes have names of their own: the result is a scalar.
std::string operand_name(const Emitter& e, const ir::ForStmt& s, std::size_t i) {
  return name(e, s.results[i]) + (s.binding == ir::Binding::vector ? "_lanes" : "");
}

std::int64_t state_bytes(const Emitter& e, const ir::ForStmt& s, std::size_t first, std::size_t count) {
  std::int64_t bytes_used = 0, align = 1;
  for (std::size_t i = first; i < first + count; ++i) {
    const std::int64_t size = bytes(dtype(e, s.results[i]));
    align = std::max(align, size);
    bytes_used = (bytes_used + size - 1) / size * size + size;
  }
  return (bytes_used + align - 1) / align * align;
}

void emit_block_tree(Emitter& e, const ir::ForStmt& s, ir::Combiner combiner, std::size_t first, std::size_t count) {
  const auto axis = static_cast<std::size_t>(s.binding) - static_cast<std::size_t>(ir::Binding::block_x);
  const std::int64_t extent = s.high[0].constant(), threads = e.threads();
  if (extent == 1) return;
  std::int64_t stride = 1;
  for (std::size_t a = 0; a < axis; ++a) stride *= e.block[a];
  const bool lanes = is_array(e, s.results[first]);
  const std::int64_t lane_count = lanes ? e.lane_count() : 1, state = state_bytes(e, s, first, count);
  std::int64_t chunk = lane_count;
  while (chunk > 1 && threads * chunk * state > kPoolBytes) chunk /= 2;
  const bool meets = meets_in_shared_memory(extent, stride);
  const std::int64_t pool = !meets ? 0 : stride > 1 ? threads * chunk * state : threads / 32 * lane_count * state;
  e.pool_bytes = std::max(e.pool_bytes, pool);
  e.uses_thread = true;
  std::vector<std::string> names;
  for (std::size_t i = first; i < first + count; ++i) names.push_back(name(e, s.results[i]));
  e.out.line(fmt::format("fj_reduce_block{}<{}, {}, {}, {}{}>(t, {}, {});", lanes ? "_lanes" : "",
                         combiner_name(combiner), extent, stride, threads, lanes ? fmt::format(", {}", chunk) : "",
                         meets ? "pool" : "nullptr", fmt::join(names, ", ")));
}

}  // namespace

void declare_accumulators(Emitter& e, const ir::ForStmt& s) {
  decide_arrays(e, s);
  for_each_combiner(s, [&](ir::Combiner combiner, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      const DType type = dtype(e, s.results[i]);
      const std::string start = literal(ir::identity(combiner, static_cast<int>(i - first), type)),
                        id = name(e, s.results[i]);
      if (is_array(e, s.results[i])) {
        e.out.line(
            fmt::format("fj_lanes<{0}, {1}> {2} = fj_splat<{1}>({3});", type_name(type), e.lane_count(), id, start));
      } else {
        e.out.line(fmt::format("{} {} = {};", type_name(type), id, start));
      }
    }
  });
}

Tail accumulation(Emitter& e, const ir::ForStmt& s) {
  Tail tail;
  tail.args = s.body.yields;
  const auto accumulate = [&e, &s](bool arrays) {
    for_each_combiner(s, [&](ir::Combiner combiner, std::size_t first, std::size_t count) {
      if (is_array(e, s.results[first]) != arrays) return;
      e.out.line(combination(combiner, dtype(e, s.results[first]), texts(e, s, first, count, false),
                             texts(e, s, first, count, true)));
    });
  };
  const bool lockstep = e.vector != nullptr && !e.in_lane;
  const bool any =
      lockstep && std::any_of(s.results.begin(), s.results.end(), [&](auto id) { return is_array(e, id); });
  if (any) tail.lanes = [accumulate] { accumulate(true); };
  if (!s.results.empty())
    tail.uniform = [accumulate, lockstep] {
      accumulate(false);
      if (!lockstep) accumulate(true);
    };
  return tail;
}

Tail tree_operands(Emitter& e, const ir::ForStmt& s) {
  Tail tail;
  if (s.results.empty()) return tail;
  const bool vector = s.binding == ir::Binding::vector;
  tail.args = s.body.yields;
  if (!vector) decide_arrays(e, s);
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    const std::string type(type_name(dtype(e, s.results[i])));
    if (vector || is_array(e, s.results[i])) {
      e.out.line(fmt::format("fj_lanes<{}, {}> {};", type, e.lane_count(), operand_name(e, s, i)));
    } else {
      e.out.line(fmt::format("{} {};", type, operand_name(e, s, i)));
    }
  }
  const auto assign = [&e, &s, vector](bool arrays) {
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      if ((vector || is_array(e, s.results[i])) != arrays) continue;
      const std::string lane = arrays ? "[" + variable_name(e, e.vector->variable) + "]" : "";
      e.out.line(fmt::format("{}{} = {};", operand_name(e, s, i), lane, text(e, s.body.yields[i])));
    }
  };
  const bool any =
      vector || std::any_of(s.results.begin(), s.results.end(), [&](ir::ValueId id) { return is_array(e, id); });
  if (any) tail.lanes = [assign] { assign(true); };
  tail.uniform = [assign] { assign(false); };
  return tail;
}

void emit_tree(Emitter& e, const ir::ForStmt& s) {
  for_each_combiner(s, [&](ir::Combiner combiner, std::size_t first, std::size_t count) {
    if (s.binding != ir::Binding::vector) return emit_block_tree(e, s, combiner, first, count);
    std::vector<std::string> names;
    for (std::size_t i = first; i < first + count; ++i) names.push_back(operand_name(e, s, i));
    e.out.line(fmt::format("fj_reduce_lanes<{}>({});", combiner_name(combiner), fmt::join(names, ", ")));
    for (std::size_t i = first; i < first + count; ++i) define(e, s.results[i], operand_name(e, s, i) + "[0]");
  });
}

}  // namespace fusejit::codegen::cuda
