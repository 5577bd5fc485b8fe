// GroupKernel: what every lowering shares: the buffers of a group's kernel, its iteration space and its expressions.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "ir/kernel/builder.h"
#include "scheduler/lower/expression/expression.h"
#include "scheduler/lower/lower.h"

namespace fusejit::scheduler {

enum class Vectors : std::uint8_t { some, whole };

class GroupKernel {
 public:
  // `merge`: dims of the domain are merged into axes where all accesses allow it. `lanes`: 0 for the target's.
  GroupKernel(const LowerContext& context, const Group& group, bool merge, int lanes = 0);

  ir::KernelBuilder& builder() { return builder_; }
  Expression& expression() { return *expression_; }
  const Space& space() const { return space_; }
  const LowerContext& context() const { return context_; }
  const Group& group() const { return group_; }
  const ir::Graph& graph() const { return context_.graph; }
  int lanes() const { return lanes_; }
  // Of a schedule: what the epilogue's sums are finished with.
  void set_lanes(int lanes) { lanes_ = lanes; }
  // Of a schedule: what a thread of the phase may take, 0: nothing is said.
  void bound_registers(std::size_t phase, std::int64_t registers);

  // The point that expressions are evaluated at: the kernel's expression of every axis.
  void move_to(std::vector<ir::Index> axis_values) { axis_values_ = std::move(axis_values); }
  const std::vector<ir::Index>& point() const { return axis_values_; }
  // The logical index of the point in the domain, over placeholders.
  LogicalIndex here() const { return point_of(group_.domain, group_.domain.shape); }
  // Evaluates a value of the domain's elements here in its compute type.
  ir::Arg value(int node);
  // Evaluates the group's stores and `also` here, then stores: every load comes before the first store, because a store
  // may overwrite, in place, what another value of the group still reads at this element.
  // `vectors`: the lanes are a whole vector, the first at a multiple of lanes() along the last axis; then values that
  // no cache would keep are stored around the caches.
  void store_all(const std::vector<int>& also = {}, Vectors vectors = Vectors::some);
  // The value is read here, not computed.
  bool comes_from_memory(int node) const;
  // A hint that an element of `node` is needed soon, or the elements in memory that it is computed from. No index names
  // a lane.
  void prefetch(int node, const LogicalIndex& at, ir::PrefetchKind kind = ir::PrefetchKind::l1);
  // The same for everything that the group reads or stores element by element, here; the point names no lane.
  void prefetch_elements(Vectors stored = Vectors::some);
  // The same for `elements` along the last axis from `point` on, of every value that comes from memory: that no cache
  // holds, and that is read at the point itself.
  void prefetch_streams(const std::vector<ir::Index>& point, std::int64_t elements);
  // Values of the domain's size that the group reads at every element.
  int elements_read() const;
  // Of one of the values that the group stores element by element.
  std::int64_t largest_stored_bytes() const;
  bool stores_bits() const;
  // Stores this element of what a copy of the anchor's first operand stores (Group::copies).
  void store_copies(const LogicalIndex& at, Vectors vectors);
  // A hint that store_copies() comes there soon.
  void prefetch_copies(const LogicalIndex& at);
  // Binds the anchor's value at the point and stores what the group stores there.
  void store_anchor(ir::Arg value);
  // a*b + c, in one rounding where the target has an instruction for it.
  ir::Arg multiply_add(ir::Arg a, ir::Arg b, ir::Arg c, DType type);
  // Stores a value of the reduced class (a reduction or final) for the kept part of the point.
  void store_class(int node, ir::Arg value);
  // Index of a class-shaped value: its dims above 1 are the kept dims of the domain, in order.
  LogicalIndex class_index(int node) const;
  // Points at the element with these domain indices (one per logical dim).
  void move_to_dims(const std::vector<ir::Index>& dims);
  // Domain dim as an index expression of the kernel.
  ir::Index dim(int d) const;
  // A buffer that is no graph value.
  ir::MemId extra_buffer(ir::MemKind access, DType dtype, std::vector<std::int64_t> dims, int value_id);

  // From now on Expression::stored_pair() reads this operand of the anchor by words, if it can be.
  void read_pairs(int node);
  // The memory of those words, physical dims; -1: it is not read by them.
  ir::MemId words_of(int node) const;

  LoweredKernel finish() &&;

 private:
  struct Buffer {
    ir::MemId memory = -1;
    Declaration declaration;
    bool seen = false;  // in the domain's shape (seen_over), not its own
  };
  Buffer& buffer(int node);
  bool begins_on_line(int node) const;
  std::vector<ir::Index> place(const Buffer& buffer, const std::vector<ir::Index>& physical) const;
  ir::ValueId load_pair(int node, const std::vector<ir::Index>& words);
  ir::Index resolve(const ir::Index& index) const;
  void store_at(int node, const Type& type, const LogicalIndex& at, ir::Arg value, Vectors vectors = Vectors::some);
  // All that is read of the value, or stored, is the element being computed.
  bool is_own_element(int node, const std::vector<Access>& accesses) const;
  bool exceeds_caches(const Buffer& buffer) const;
  bool bypasses_caches(const Buffer& buffer) const;
  bool has_lanes_last(int node, const Buffer& buffer) const;

  const LowerContext& context_;
  const Group& group_;
  Space space_;
  int lanes_;
  ir::KernelBuilder builder_;
  std::unique_ptr<Expression> expression_;
  std::vector<ir::Index> axis_values_;
  std::map<int, std::vector<Access>> accesses_;
  std::map<int, Buffer> buffers_;
  std::set<int> read_by_elements_;
  std::map<int, ir::MemId> pairs_;  // read by words, two elements each
  std::vector<std::pair<ir::MemId, int>> order_;
  std::set<std::size_t> scheduled_phases_;
};

// Lanes of a vector loop over values of these dtypes.
int vector_lanes(const Target& target, bool only_wide);
// Elements of the widest access that a CUDA thread may make to every value of the group.
int cuda_lanes(const LowerContext& context, const Group& group);
// What the user calls the group's ops.
std::string kernel_name(const LowerContext& context, const Group& group);

}  // namespace fusejit::scheduler
