#include "scheduler/lower/group_kernel.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/base/check.h"
#include "scheduler/choose/choose.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/lower/cuda/registers.h"
#include "scheduler/lower/split.h"
#include "scheduler/names/steps.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Index;
using ir::MemKind;

int vector_lanes(const Target& target, bool only_wide) { return only_wide ? target.lanes32() / 2 : target.lanes32(); }

std::string kernel_name(const LowerContext& context, const Group& group) {
  return name_by_ops(context.graph, computed_nodes(context.graph, context.grouping.stored, group));
}

namespace {

// The element being computed, of what the group sees a value as.
Access own_element(const Group& group, int node, const Type& value) {
  const Type seen = seen_in(group, node, value);
  return {node, in_memory(seen, point_in(group, node, value)), physical_dims(seen), false};
}

// What lies in the memory that a value stands in: the concatenation around it, in place, or the value itself.
const Type& memory_type(const LowerContext& context, int node) {
  const int root = context.grouping.homes[static_cast<std::size_t>(node)].root;
  return context.graph.value(root >= 0 ? root : node).type();
}

// All accesses of a group by value; class-shaped members count as touching no axis in particular.
std::map<int, std::vector<Access>> group_accesses(const LowerContext& context, const Group& group,
                                                  std::set<int>& class_values) {
  std::map<int, std::vector<Access>> accesses;
  const auto add = [&](Access access) {
    if (context.grouping.homes[static_cast<std::size_t>(access.node)].root >= 0)
      access.dims = physical_dims(memory_type(context, access.node));
    auto& list = accesses[access.node];
    if (std::find(list.begin(), list.end(), access) == list.end()) list.push_back(access);
  };
  const auto id = static_cast<int>(&group - context.grouping.groups.data());
  for (const auto* list : {&group.stores, &group.inner, &group.reductions}) {
    for (const int node : *list) {
      const std::vector<Access>& own = context.grouping.accesses[static_cast<std::size_t>(node)];
      if (ir::op_def(context.graph.value(node)->op).is_contraction()) {
        // The tile itself: its operands are read by the anchor's own loops, at other points than the domain's.
        for (const Access& access : own) class_values.insert(access.node);
      } else {
        for (const Access& access : own) {
          if (context.grouping.group_of[static_cast<std::size_t>(access.node)] == id) continue;
          const Type& read = context.graph.value(access.node).type();
          add(group.anchor >= 0 && is_identity(access, group.domain, read) ? own_element(group, access.node, read)
                                                                           : access);
        }
      }
      if (list == &group.reductions) class_values.insert(node);
      if (list != &group.stores) continue;
      add(own_element(group, node, context.graph.value(node).type()));
    }
  }
  for (const auto* list : {&group.finals, &group.copies}) {  // at other points than the domain's, as operands are
    for (const int node : *list) {
      class_values.insert(node);
      for (const Access& access : context.grouping.accesses[static_cast<std::size_t>(node)])
        class_values.insert(access.node);
    }
  }
  return accesses;
}

bool any_bits(const LowerContext& context, const Group& group) {
  return std::any_of(group.stores.begin(), group.stores.end(),
                     [&](int node) { return memory_dtype(context.graph, context.grouping, node) == DType::b1; });
}

bool only_wide_values(const LowerContext& context, const std::map<int, std::vector<Access>>& accesses) {
  return !accesses.empty() && std::all_of(accesses.begin(), accesses.end(), [&](const auto& entry) {
    return bits(memory_dtype(context.graph, context.grouping, entry.first)) == 64;
  });
}

}  // namespace

int cuda_lanes(const LowerContext& context, const Group& group) {
  std::set<int> class_values;
  int widest = 2;  // bytes; more than 8 lanes take too many registers
  // The last dim that is a loop at all: lanes run along it. What stays the same there may have any width.
  const int last = innermost_dim(group.domain);
  for (const auto& [node, list] : group_accesses(context, group, class_values)) {
    const bool runs = std::any_of(list.begin(), list.end(), [&](const Access& access) {
      return access.whole || last < 0 || std::any_of(access.index.begin(), access.index.end(), [&](const Index& i) {
               return i.mentions(kPlaceholder + last);
             });
    });
    if (runs || list.empty())
      widest = std::max(widest, static_cast<int>(bits(memory_dtype(context.graph, context.grouping, node)) / 8));
  }
  if (any_bits(context, group)) return 8;  // a byte of them
  const bool sums_only = group.anchor >= 0 && !ir::op_def(context.graph.value(group.anchor)->op).packs_second;
  if (sums_only) widest = std::max(widest, 4);  // its sums are written by whole accesses
  return 16 / widest;
}

GroupKernel::GroupKernel(const LowerContext& context, const Group& group, bool merge, int lanes)
    : context_(context), group_(group), builder_(kernel_name(context, group), context.target.isa) {
  std::set<int> class_values;
  accesses_ = group_accesses(context, group, class_values);
  std::vector<Access> all;
  for (const auto& [node, list] : accesses_) all.insert(all.end(), list.begin(), list.end());
  const int outputs = group.anchor >= 0 ? group.domain.shape.rank() - 1 : -1;  // the lanes of a matrix's tile
  space_ = make_space(group.domain, all, group.reduced, outputs);
  if (!merge) {
    space_.axes.clear();
    for (const int d : physical_order(group.domain)) {
      const bool reduced = !group.reduced.empty() && group.reduced[static_cast<std::size_t>(d)];
      if (group.domain.shape[d] != 1) space_.axes.push_back({{d}, group.domain.shape[d], reduced});
    }
  }
  if (space_.axes.empty() && !group.reductions.empty())
    space_.axes.push_back({{}, 1, true});  // one element is a row too
  for (const auto& [node, list] : accesses_)
    if (!list.empty()) read_by_elements_.insert(node);
  for (const int node : class_values) accesses_[node].clear();  // declared by plain dims
  lanes_ = lanes > 0 ? lanes : vector_lanes(context.target, only_wide_values(context, accesses_));

  ExpressionHooks hooks;
  hooks.is_stored = [this](int node) { return comes_from_memory(node); };
  hooks.load = [this](int node, const std::vector<Index>& physical, bool through_views) -> Arg {
    const Buffer& from = buffer(node);
    const std::vector<Index>& index = from.seen ? accesses_.at(node)[0].index : physical;
    return builder_.load(from.memory, place(from, index), through_views);
  };
  hooks.load_pair = [this](int node, const std::vector<Index>& words) { return load_pair(node, words); };
  hooks.resolve = [this](const Index& index) { return resolve(index); };
  hooks.varies_by_lane = [this](const Index& index) {
    // On CUDA every axis may run along the threads of a block.
    for (const Axis& axis : space_.axes) {
      if (context_.target.isa != Isa::cuda && &axis != &space_.axes.back()) continue;
      for (const int d : axis.dims) {
        if (index.mentions(kPlaceholder + d)) return true;
      }
    }
    return false;
  };
  hooks.ranges = [this](const ir::IndexAtom& atom) -> std::optional<ir::Interval> {
    const int d = atom.kind == ir::AtomKind::variable ? atom.id - kPlaceholder : -1;
    if (d < 0) return std::nullopt;
    return ir::Interval{0, group_.domain.shape[d] - 1};
  };
  expression_ = std::make_unique<Expression>(context_.graph, builder_, hooks);
}

// Of what lies in a concatenation, the first channel may not.
bool GroupKernel::begins_on_line(int node) const {
  const Home& home = context_.grouping.homes[static_cast<std::size_t>(node)];
  return home.channel * bits(context_.graph.value(node).type().dtype) % (64 * 8) == 0;
}

GroupKernel::Buffer& GroupKernel::buffer(int node) {
  int value = node;
  const auto alias = context_.in_place.find(node);
  if (alias != context_.in_place.end()) value = alias->second;
  const auto known = buffers_.find(value);
  if (known != buffers_.end()) return known->second;
  const auto contains = [](const std::vector<int>& in, int n) {
    return std::find(in.begin(), in.end(), n) != in.end();
  };
  const bool in_home = context_.grouping.homes[static_cast<std::size_t>(node)].root >= 0;
  const Type& own = memory_type(context_, value);
  const auto& list = accesses_[node];
  Buffer made;
  made.seen = list.size() == 1 && list[0].dims != physical_dims(own);
  const Type type = made.seen ? seen_over(group_.domain, own) : own;
  made.declaration = list.size() == 1 ? declare(space_, type, list[0]) : declare_unmerged(type);
  const bool written = contains(group_.stores, node) || contains(group_.reductions, node) ||
                       contains(group_.finals, node) || contains(group_.copies, node);
  bool updated = alias != context_.in_place.end() || (written && in_home);  // others write what lies between
  for (const auto& [output, input] : context_.in_place) updated |= input == value && (contains(group_.stores, output));
  // What a device allocates is aligned; on the CPU a caller's buffer may start anywhere.
  const bool aligned = (context_.target.isa == Isa::cuda || context_.plan_owned[static_cast<std::size_t>(value)]) &&
                       begins_on_line(value);
  const std::int64_t align = aligned ? 64 : 0;
  made.memory = builder_.buffer(updated   ? MemKind::update
                                : written ? MemKind::write
                                          : MemKind::read,
                                memory_dtype(context_.graph, context_.grouping, value), made.declaration.dims, align);
  order_.push_back({made.memory, value});
  return buffers_[value] = made;
}

ir::MemId GroupKernel::extra_buffer(MemKind access, DType dtype, std::vector<std::int64_t> dims, int value_id) {
  const ir::MemId memory = builder_.buffer(access, dtype, std::move(dims), 64);
  order_.push_back({memory, value_id});
  return memory;
}

// A value that the plan places, so that its words are aligned; nothing here writes it, and only the anchor reads it.
void GroupKernel::read_pairs(int node) {
  const Type &own = context_.graph.value(node).type(), &type = memory_type(context_, node);
  const auto is_odd = [](const Type& t) { return innermost_dim(t) < 0 || t.shape[innermost_dim(t)] % 2 != 0; };
  const auto is_it = [node](const auto& alias) { return alias.first == node || alias.second == node; };
  const std::span<const int> operands = context_.graph.operands(group_.anchor);
  if (bits(type.dtype) != 16 || is_odd(own) || is_odd(type) || !comes_from_memory(node) || !begins_on_line(node) ||
      !context_.plan_owned[static_cast<std::size_t>(node)] || read_by_elements_.contains(node) ||
      std::any_of(context_.in_place.begin(), context_.in_place.end(), is_it) ||
      std::count(operands.begin(), operands.end(), node) != 1 || buffers_.contains(node))
    return;
  std::vector<std::int64_t> dims = physical_dims(type);
  dims.back() /= 2;
  pairs_[node] = extra_buffer(MemKind::read, DType::u32, std::move(dims), node);
}

ir::MemId GroupKernel::words_of(int node) const {
  const auto pair = pairs_.find(node);
  return pair == pairs_.end() ? -1 : pair->second;
}

ir::ValueId GroupKernel::load_pair(int node, const std::vector<Index>& words) {
  const ir::MemId memory = words_of(node);
  if (memory < 0) return -1;
  std::vector<Index> place;
  for (const Index& word : words) place.push_back(resolve(word));
  return builder_.load(memory, place);
}

Index GroupKernel::dim(int d) const {
  for (std::size_t a = 0; a < space_.axes.size(); ++a) {
    const Axis& axis = space_.axes[a];
    const auto found = std::find(axis.dims.begin(), axis.dims.end(), d);
    if (found == axis.dims.end()) continue;
    std::int64_t inner = 1;
    for (auto it = found + 1; it != axis.dims.end(); ++it) inner *= group_.domain.shape[*it];
    const Index quotient = axis_values_[a] / inner;
    return found == axis.dims.begin() ? quotient : quotient % group_.domain.shape[d];
  }
  return 0;
}

void GroupKernel::move_to_dims(const std::vector<Index>& dims) {
  axis_values_.clear();
  for (const Axis& axis : space_.axes) {
    Index value = 0;
    for (const int d : axis.dims) value = value * group_.domain.shape[d] + dims[static_cast<std::size_t>(d)];
    axis_values_.push_back(value);
  }
}

Index GroupKernel::resolve(const Index& index) const {
  return index.substitute([&](const ir::IndexAtom& leaf) -> std::optional<Index> {
    if (leaf.kind != ir::AtomKind::variable || leaf.id < kPlaceholder) return std::nullopt;
    return dim(leaf.id - kPlaceholder);
  });
}

std::vector<Index> GroupKernel::place(const Buffer& buffer, const std::vector<Index>& physical) const {
  std::vector<Index> index;
  for (const Declaration::Dim& source : buffer.declaration.sources) {
    index.push_back(source.axis >= 0 ? axis_values_[static_cast<std::size_t>(source.axis)]
                                     : resolve(physical[static_cast<std::size_t>(source.physical)]));
  }
  return index;
}

LogicalIndex GroupKernel::class_index(int node) const {
  std::vector<int> kept;
  for (int d = 0; d < group_.domain.shape.rank(); ++d) {
    const bool reduced = !group_.reduced.empty() && group_.reduced[static_cast<std::size_t>(d)];
    if (!reduced && group_.domain.shape[d] != 1) kept.push_back(d);
  }
  LogicalIndex at;
  std::size_t next = 0;
  for (const std::int64_t extent : context_.graph.value(node).type().shape) {
    at.push_back(extent == 1 ? Index(0) : placeholder(kept[next++]));
  }
  return at;
}

bool GroupKernel::comes_from_memory(int node) const {
  if (!context_.grouping.stored[static_cast<std::size_t>(node)]) return false;
  const auto own = static_cast<int>(&group_ - context_.grouping.groups.data());
  return context_.grouping.group_of[static_cast<std::size_t>(node)] != own;
}

bool GroupKernel::exceeds_caches(const Buffer& buffer) const {
  const ir::Memory& memory = builder_.memory(buffer.memory);
  return scheduler::exceeds_caches(context_.target, bytes(memory.dtype, memory.elements()));
}

// Whole vectors of a large value that is only written here: a plain store would read every line first, and what comes
// last would evict what comes first before anything reads it.
bool GroupKernel::bypasses_caches(const Buffer& buffer) const {
  const ir::Memory& memory = builder_.memory(buffer.memory);
  const std::int64_t vector = lanes_ * bits(memory.dtype) / 8;
  if (memory.kind != MemKind::write || memory.align < 64 || memory.dims.empty() || vector < 16 || vector > 64)
    return false;
  if (context_.target.isa == Isa::cuda || context_.target.isa == Isa::any) return false;
  return exceeds_caches(buffer) && (memory.dims.size() == 1 || memory.dims.back() % lanes_ == 0);
}

// A vector's lanes lie side by side, as those of a copy do along the operand's last dim.
bool GroupKernel::has_lanes_last(int node, const Buffer& buffer) const {
  return std::find(group_.copies.begin(), group_.copies.end(), node) != group_.copies.end() ||
         buffer.declaration.sources.back().axis == static_cast<int>(space_.axes.size()) - 1;
}

void GroupKernel::store_at(int node, const Type& type, const LogicalIndex& at, Arg value, Vectors vectors) {
  const Arg converted = expression_->convert(value, type.dtype);
  const Buffer& to = buffer(node);
  builder_.store(to.memory, place(to, in_memory(type, at)), converted,
                 vectors == Vectors::whole && has_lanes_last(node, to) && bypasses_caches(to));
}

Arg GroupKernel::value(int node) {
  const Type& type = context_.graph.value(node).type();
  return expression_->value(
      node, turned_in(group_, node).empty() ? point_of(group_.domain, type.shape) : point_in(group_, node, type));
}

void GroupKernel::store_all(const std::vector<int>& also, Vectors vectors) {
  for (const int node : group_.stores) value(node);
  for (const int node : also) value(node);
  for (const int node : group_.stores) {
    const Type& own = context_.graph.value(node).type();
    store_at(node, seen_in(group_, node, own), point_in(group_, node, own), value(node), vectors);
  }
}

void GroupKernel::store_copies(const LogicalIndex& at, Vectors vectors) {
  for (const int node : group_.copies) expression_->value(node, at);
  for (const int node : group_.copies)
    store_at(node, context_.graph.value(node).type(), at, expression_->value(node, at), vectors);
}

void GroupKernel::prefetch_copies(const LogicalIndex& at) {
  for (const int node : group_.copies) {
    const Type& type = context_.graph.value(node).type();
    if (memory_dtype(context_.graph, context_.grouping, node) == DType::b1) continue;  // a line has many
    const Buffer& to = buffer(node);
    if (!bypasses_caches(to)) builder_.prefetch(to.memory, place(to, in_memory(type, at)), ir::PrefetchKind::write);
  }
}

void GroupKernel::store_anchor(Arg value) {
  expression_->nested([&] {
    expression_->bind(group_.anchor, here(), value);
    store_all();
  });
}

Arg GroupKernel::multiply_add(Arg a, Arg b, Arg c, DType type) {
  if (context_.target.has_fma()) return builder_.def(ir::Op::fma, {a, b, c}, type);
  return builder_.def(ir::Op::add, {Arg(builder_.def(ir::Op::mul, {a, b}, type)), c}, type);
}

void GroupKernel::prefetch(int node, const LogicalIndex& at, ir::PrefetchKind kind) {
  const Shape& shape = context_.graph.value(node).type().shape;
  std::vector<int> from{node};
  for (std::size_t i = 0; i < from.size(); ++i) {  // grows
    const Type& type = context_.graph.value(from[i]).type();
    if (comes_from_memory(from[i])) {
      std::vector<Index> physical;
      for (const int d : physical_order(type))
        physical.push_back(type.shape[d] == 1 ? Index(0) : at[static_cast<std::size_t>(d)]);
      if (const auto pair = pairs_.find(from[i]); pair != pairs_.end()) {
        for (Index& index : physical) index = resolve(index);
        physical.back() = physical.back() / 2;
        builder_.prefetch(pair->second, physical, kind);
        continue;
      }
      const Buffer& of_node = buffer(from[i]);
      builder_.prefetch(of_node.memory, place(of_node, physical), kind);
    } else if (ir::op_def(context_.graph.value(from[i])->op).family == ir::Family::elementwise) {
      for (const int operand : context_.graph.operands(from[i]))
        if (operand >= 0 && context_.graph.value(operand).type().shape == shape &&
            std::find(from.begin(), from.end(), operand) == from.end())
          from.push_back(operand);
    }
  }
}

bool GroupKernel::is_own_element(int node, const std::vector<Access>& accesses) const {
  const Type seen = seen_in(group_, node, context_.graph.value(node).type());
  const bool has_home = context_.grouping.homes[static_cast<std::size_t>(node)].root >= 0;
  return accesses.size() == 1 && (has_home || accesses[0].dims == physical_dims(seen)) &&
         is_element(group_, accesses[0], seen);
}

int GroupKernel::elements_read() const {
  return static_cast<int>(std::count_if(accesses_.begin(), accesses_.end(), [&](const auto& entry) {
    const auto& [node, list] = entry;
    return comes_from_memory(node) && is_own_element(node, list);
  }));
}

std::int64_t GroupKernel::largest_stored_bytes() const {
  std::int64_t largest = 0;
  for (const int node : group_.stores) largest = std::max(largest, context_.graph.value(node).type().bytes());
  return largest;
}

bool GroupKernel::stores_bits() const { return any_bits(context_, group_); }

void GroupKernel::prefetch_elements(Vectors stored) {
  std::set<ir::MemId> done;  // what is overwritten in place is read and stored
  for (const auto& [node, list] : accesses_) {
    if (!is_own_element(node, list)) continue;
    const Buffer& of_node = buffer(node);
    if (!done.insert(of_node.memory).second) continue;
    const bool written = builder_.memory(of_node.memory).kind != MemKind::read;
    if (written && stored == Vectors::whole && bypasses_caches(of_node) && has_lanes_last(node, of_node)) continue;
    builder_.prefetch(of_node.memory, place(of_node, list[0].index),
                      written ? ir::PrefetchKind::write : ir::PrefetchKind::l1);
  }
}

void GroupKernel::prefetch_streams(const std::vector<Index>& point, std::int64_t elements) {
  if (context_.target.isa == Isa::cuda || context_.target.isa == Isa::any) return;
  const std::vector<Index> before = std::exchange(axis_values_, point);
  const int last = static_cast<int>(space_.axes.size()) - 1;
  for (const auto& [node, list] : accesses_) {
    if (!comes_from_memory(node) || list.size() != 1) continue;
    const Buffer& from = buffer(node);
    const std::vector<Declaration::Dim>& sources = from.declaration.sources;
    const bool at_point = !sources.empty() && sources.back().axis == last &&
                          std::all_of(sources.begin(), sources.end(), [](const auto& d) { return d.axis >= 0; });
    if (!at_point || !exceeds_caches(from)) continue;
    const std::int64_t line = 64 * 8 / bits(builder_.memory(from.memory).dtype);
    unrolled(builder_, std::max<std::int64_t>(1, elements / line), [&](Index i) {
      std::vector<Index> at = place(from, {});
      at.back() = at.back() + i * line;
      builder_.prefetch(from.memory, at, ir::PrefetchKind::l1);
    });
  }
  axis_values_ = before;
}

void GroupKernel::store_class(int node, Arg value) {
  store_at(node, context_.graph.value(node).type(), class_index(node), value);
}

void GroupKernel::bound_registers(std::size_t phase, std::int64_t registers) {
  builder_.bound_registers(phase, static_cast<int>(registers));
  scheduled_phases_.insert(phase);
}

LoweredKernel GroupKernel::finish() && {
  LoweredKernel lowered;
  std::sort(order_.begin(), order_.end());
  for (const auto& [memory, value] : order_) lowered.values.push_back(value);
  if (context_.target.isa == Isa::cuda) cuda::bound_registers(builder_, scheduled_phases_);
  lowered.kernel = scheduler::finish(context_, std::move(builder_));
  return lowered;
}

}  // namespace fusejit::scheduler
