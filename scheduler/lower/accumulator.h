// Accumulators: the state of a group's reductions while elements pass, and how partial states are combined.
//
// mean and var of one expression share their moments. Moments are sums of d and d*d in f64, d = x - shift with a shift
// taken from the data, so nothing cancels; a finished partial is (n, mean, M2), merged by Welford in a fixed order
// (design: numerics; ops.md §6). Where all parts take one shift, a partial is the two sums and the shift: they are
// added up as they are, without a division a part, and what they come to is the moments' value at the end.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "scheduler/lower/group_kernel.h"
#include "scheduler/lower/long_sum.h"

namespace fusejit::scheduler {

// One distinct thing that is accumulated; several reduce nodes may share it.
struct Accumulation {
  int expression = -1;                  // graph node whose elements are reduced
  std::vector<ir::Combiner> combiners;  // of the partial state
  std::vector<DType> types;             // of the partial state's components
  bool moments = false;
  bool one_shift = false;  // of moments: for all elements that are reduced together
  // Moments with one shift of 16-bit values: blocks of terms in f32, which hold them exactly enough, then f64. A
  // conversion and two operations in f64 an element would take a device longer than its memory.
  bool in_blocks = false;
  bool is_long() const { return !moments && running != types[0]; }
  // Components of the state of a thread: all but a shift that it has from outside.
  std::ptrdiff_t components() const { return static_cast<std::ptrdiff_t>(types.size()) - (one_shift ? 1 : 0); }
  std::vector<int> nodes;      // reduce nodes that are finished from it
  DType running = DType::f32;  // of the first register: types[0], or f32 where a long sum goes to f64
};

class Accumulators {
 public:
  explicit Accumulators(GroupKernel& kernel);
  const std::vector<Accumulation>& list() const { return list_; }
  // The graph nodes whose elements are accumulated.
  std::vector<int> expressions() const;
  std::vector<ir::Combiner> combiners() const;
  std::vector<DType> types() const;
  // Of 32 bits, that the running states of one element take.
  std::int64_t words() const;

  // Moments take one shift each: before anything else is asked. Then a state has no shift of its own: shifts(), at the
  // first of all elements, comes before open() and goes to with_shifts() when the states of threads have met.
  void share_shifts();
  // Terms of a block, after each of which comes flush(); 0: none are in blocks.
  std::int64_t block_of_moments() const;
  std::vector<ir::Arg> shifts();
  // Of the states of threads that meet: combiners() and types() without the shifts.
  std::vector<ir::Combiner> running_combiners() const;
  std::vector<DType> running_types() const;
  std::vector<ir::Arg> with_shifts(const std::vector<ir::Arg>& running, const std::vector<ir::Arg>& shifts);

  // Registers for `columns` independent states, declared here; `move_to_first` points the kernel at a column's first
  // element, from which shifts are taken.
  struct State {
    std::vector<ir::MemId> registers;  // per component of the running state, moments: shift, sum, sum of squares
    bool independent = false;          // the columns are parts of one state and share its shift
    std::vector<ir::Arg> shifts = {};  // of moments with one shift, in their order
    std::vector<LongSum> long_sums;    // of the sums that are long
  };
  // Sums of f32 are long: before anything else is asked.
  void sum_in_blocks();
  // After each block of terms.
  void flush(const State& state);
  State open(int columns, const std::function<void(const ir::Index& column)>& move_to_first);
  // The same without shifts: set_shifts() at the first element comes before any add().
  State open(int columns) { return open(columns, false); }
  State open_shared(std::vector<ir::Arg> shifts);
  void set_shifts(const State& state, const ir::Index& column);
  // Registers for one state in `count` independent parts, which elements are added to in turn: a sum does not wait for
  // the one before it. `move_to_first` as above. What cannot be joined again, first places, has one part.
  State open_independent(int count, const std::function<void()>& move_to_first);
  // The parts of such a state joined in order, in its column 0.
  void join(const State& state, int count);
  // Adds the element that the kernel points at. `flat` is its position among the reduced elements, for argmax.
  void add(const State& state, const ir::Index& column, const ir::Index& flat);
  // The partial state, components in the order of types(). `count`: elements added, in f64 (moments); a state without
  // elements has mean 0.
  std::vector<ir::Arg> partial(const State& state, const ir::Index& column, ir::Arg count);
  // Values of the reduce nodes from a combined state over `total` elements, bound to their class index; stores those
  // nodes and the finals.
  void finish(const std::vector<ir::Arg>& combined, std::int64_t total);

 private:
  State open(int columns, bool independent);
  ir::Arg shift_of(const Accumulation& accumulation);
  ir::Arg finish_node(const ir::Node& node, const Accumulation& accumulation, const ir::Arg* state, std::int64_t total);
  GroupKernel& kernel_;
  std::vector<Accumulation> list_;
};

}  // namespace fusejit::scheduler
