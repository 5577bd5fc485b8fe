// KernelBuilder: how lowering writes kernels. Nested blocks are C++ lambdas; every call appends to the innermost block.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/kernel/walk.h"

namespace fusejit::ir {

// Conditions: a < b, a >= b, a == b.
Compare less(const Index& a, const Index& b);
Compare at_least(const Index& a, const Index& b);
Compare equals(const Index& a, const Index& b);

class KernelBuilder {
 public:
  using Body = std::function<void(Index variable)>;
  using Yielding = std::function<std::vector<Arg>(Index variable)>;

  KernelBuilder(std::string name, Isa isa);

  MemId buffer(MemKind access, DType dtype, std::vector<std::int64_t> dims, std::int64_t align = 0);
  ValueId scalar(DType dtype);
  MemId work(DType dtype, std::vector<std::int64_t> dims, std::int64_t align = 64);
  // Opens the next phase; the first one is opened by the first statement.
  void next_phase();
  // What a thread of a phase may take, 0: nothing is said.
  void bound_registers(std::size_t phase, int registers) { kernel_.phases[phase].registers = registers; }

  MemId local(MemKind kind, DType dtype, std::vector<std::int64_t> dims);
  MemId local(MemKind kind, DType dtype, std::vector<std::int64_t> dims, double init);
  void loop(Index low, Index high, Binding binding, const Body& body);
  void loop(std::vector<Index> low, std::vector<Index> high, Binding binding, const Body& body);
  std::vector<ValueId> reduce(std::vector<Index> low, std::vector<Index> high, Binding binding,
                              std::vector<Combiner> combiners, std::vector<DType> types, const Yielding& body);
  void when(std::vector<Compare> condition, const std::function<void()>& then,
            const std::function<void()>& otherwise = {});
  std::vector<ValueId> choose(std::vector<Compare> condition, std::vector<DType> types,
                              const std::function<std::vector<Arg>()>& then,
                              const std::function<std::vector<Arg>()>& otherwise);
  void when(ValueId condition, const std::function<void()>& then);

  ValueId def(Op op, std::vector<Arg> args, DType result);
  std::vector<ValueId> philox(Arg counter, Arg stream, Arg seed);
  // `through_views`: views made the index, so that a condition is put around the load if its bounds are not proven.
  ValueId load(MemId memory, std::vector<Index> index, bool through_views = false);
  ValueId index(Index expression, DType dtype);
  void store(MemId memory, std::vector<Index> index, Arg value, bool non_temporal = false);
  void prefetch(MemId memory, std::vector<Index> index, PrefetchKind kind);

  // A literal in `dtype`, rounded once from f64.
  static Arg literal(double value, DType dtype);
  DType dtype(const Arg& arg) const;
  // The index as it would be written here, simplified for the ranges of the open loops.
  Index canonical(const Index& index) const;
  // What the open loops say of a variable.
  std::optional<Interval> range(const IndexAtom& atom) const { return ranges_.of(atom); }
  const Memory& memory(MemId id) const { return kernel_.memories[static_cast<std::size_t>(id)]; }

  // What has been written so far satisfies V7.
  bool vectors_aligned() const { return ir::vectors_aligned(kernel_); }
  // What has been written so far, as it was written.
  const Kernel& written() const { return kernel_; }
  // Simplified, and verified with its attributes, of which no value depends.
  Kernel finish(const std::function<void(Kernel&)>& attributes = {}) &&;

 private:
  Block& block();
  template <class Fill>
  void fill(Block& into, const Fill& body);
  void append(decltype(Stmt::node) node);
  ValueId new_value(DType dtype);
  std::vector<ValueId> new_values(const std::vector<DType>& types);
  MemId new_memory(Memory memory);
  std::vector<Index> canonical(std::vector<Index> list) const;
  std::vector<Compare> canonical(std::vector<Compare> compares) const;

  Kernel kernel_;
  VariableRanges ranges_;
  std::vector<Block*> blocks_;  // open ones, outer to inner; a block joins its parent when it is complete
};

}  // namespace fusejit::ir
