// Nest: a contraction and its schedule become loops. It knows neither ops nor processors: which loops there are, what
// they step by, what runs in parallel and what is packed is the schedule's; what is computed is the contraction's.
//
// The nest has these stages, outer to inner: loops of tasks, or of grids and blocks; outer loops; one vector loop of
// lanes, in which the epilogue's sums begin and end; inner loops over parallel dims; the register tile; loops over what
// is summed up; the products. Dims that may leave the operand (windows over an image) are kept inside by loop bounds
// where the dim of a sum is looped over last, by copies of the edge tiles where one is held in registers, and by
// conditions otherwise; between threads, whose bounds would differ, by conditions alone.
#pragma once

#include <optional>

#include "scheduler/lower/long_sum.h"
#include "scheduler/lower/nest/build.h"

namespace fusejit::scheduler {

// The direct algorithm.
class Nest : public ContractionLoops {
 public:
  Nest(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled);
  std::int64_t parts() const override;
  void emit(const std::vector<ir::MemId>& work, std::int64_t first_part) override;

 private:
  enum class Kind : std::uint8_t { results_of_task, loop, clear, panel_a, panel_b, lanes, tile };
  struct Loop {
    int dim = -1;           // of the contraction, or of together_
    std::int64_t step = 0;  // elements; of a last loop what the registers hold
    bool last = false;
    bool list = false;  // over a tile's combinations
    std::int64_t stride = 0;
    bool task = false;
    ir::Binding bound = ir::Binding::none;
  };
  struct Stage {
    Kind kind;
    Loop loop;
  };
  // What is left of a dim: base + [0, size), and below the dim's extent where that is not implied.
  struct Range {
    ir::Index base = 0;
    std::int64_t size = 1;
    bool limited = false;
    std::int64_t stride = 1;  // of the elements
  };
  // An operand, and the copy of what a part of the nest reads of it, while there is one.
  struct Panel {
    struct Axis {  // of a logical dim: element `coordinate` is low + coordinate * step
      ir::Index low = 0;
      std::int64_t step = 1, extent = 1;
      bool may_leave = false;
    };
    const ir::ContractionOperand* of = nullptr;
    int value = -1;  // of the graph
    std::vector<Axis> axes = {};
    std::vector<int> order = {};  // logical dims, outermost first
    ir::MemId memory = -1;
    ir::Index first = 0;                     // vector of a row that is copied here
    std::int64_t vectors = 0;                // of a row that are copied side by side
    int tile_axis = -1;                      // the logical dim that tiles are of, if what each reads lies together
    std::int64_t tile = 0;                   // elements of it
    ir::MemId turned = -1;                   // the same with pairs innermost, of a matrix unit's rows
    std::size_t inside = 0, fetched_at = 0;  // stages: the first that reads it; before which the next one is fetched
    bool is_open() const { return memory >= 0; }
  };
  // So many elements of a logical dim, `step` from one to the next.
  struct Run {
    std::size_t axis = 0;
    std::int64_t count = 1, step = 1;
  };
  using Body = std::function<void(ir::Index)>;

  // nest.cpp: stages and loops
  std::int64_t parts_of(const Loop& loop) const;
  std::int64_t range_size(const Loop& loop) const;
  static ir::Binding binding_of(const Loop& loop);
  bool is_summed_by_epilogue(int d) const;
  void walk(std::size_t stage);
  void loop(const Loop& loop, std::size_t next);
  void over_list(std::size_t next);
  void over_elements(const Loop& loop, std::size_t next);
  void over_blocks(const Loop& loop, std::size_t next);
  void over_held(const Loop& loop, std::size_t next);
  void over_strided(const Loop& loop, std::size_t next);
  int together(const std::vector<int>& dims);
  bool is_together(int d) const { return d >= static_cast<int>(c_.dims.size()); }
  Range strided(int d, std::int64_t stride, const ir::Index& first) const;
  void one(int d, const ir::Index& value, const std::function<void()>& body);
  void emit_loop(std::vector<ir::Index> low, std::vector<ir::Index> high, ir::Binding binding, const Body& body);
  // The state of one combination of threads, joined in a tree.
  std::vector<ir::Arg> in_tree(const Loop& loop, const std::vector<ir::Combiner>& combiners,
                               const std::vector<DType>& types,
                               const std::function<std::vector<ir::Arg>(const ir::Index& thread)>& body);
  bool begins_tree(std::size_t stage) const;
  void with(int d, Range of_dim, const std::function<void()>& body);
  ir::Compare is_element(int d, const ir::Index& value) const;
  void at_position(const Loop& loop, const ir::Index& position, const std::function<void()>& body);
  void in_part(const Loop& loop, const ir::Index& i, const std::function<void()>& body);
  bool needs_copies(int d) const;
  void lanes(std::size_t next);

  // window.cpp: indices that may leave the operand
  struct Clip {
    ir::Index low, high;
  };
  int axis_with(const std::vector<bool>& mark, int d) const;
  int pending_axis(int d) const { return axis_with(pending_, d); }
  int partner(int axis, int d) const;
  bool held_in_list(int d) const;
  Clip clip(int axis, int d, const Range& of_dim) const;
  bool stays_inside(int axis, int d, std::int64_t low, std::int64_t high) const;
  void resolved(int axis, const std::function<void()>& body);
  void guard_known(const std::function<void()>& body);
  void with_active(const std::function<bool(const std::vector<std::int64_t>&)>& wanted,
                   const std::function<void()>& body);
  void over_edges(const Loop& loop, int axis, std::size_t next);

  // panel.cpp: copies of operands
  std::int64_t size_in_panel(int d) const;
  void measure(Panel& panel) const;
  std::vector<std::int64_t> dims_of(const Panel& panel) const;
  void in_panel(Panel& panel, std::size_t next);
  bool computes(const Panel& panel) const;
  bool stores(const Panel& panel) const;
  void copy_and_store(const std::vector<ir::Compare>& there, const Panel& panel, const std::vector<ir::Index>& at);
  void fill(Panel& panel);
  bool is_paired(const ir::ContractionOperand& operand, std::size_t axis) const;
  void skip_padding();
  bool has_edges_alone(int axis) const;
  void over_axis(const Panel& panel, std::size_t d, const std::function<void(const ir::Index& i, bool inside)>& body);
  void fill(const Panel& panel, std::size_t n, std::vector<ir::Index>& at, bool zero);
  void fill_tiles(const Panel& panel, std::vector<ir::Index>& at, bool zero);
  std::vector<ir::Index> place_in(const Panel& panel, const std::vector<ir::Index>& at) const;
  void fetch_for_panel(const Panel& panel, std::size_t row, std::vector<ir::Index>& at);
  std::int64_t elements_of(const Panel& panel, std::size_t d) const;
  bool is_whole(const Panel& panel, std::size_t d) const;
  ir::Index turn_of(std::size_t first, std::size_t end, std::int64_t& turns) const;
  std::vector<Run> runs_of(const Panel& panel) const;
  void plan_fetch_of_next(Panel& panel, std::size_t inside) const;
  void fetch_next(const Panel& panel);
  void plan_fetch_of_panel(std::size_t first);
  void fetch_ahead();
  static LogicalIndex index_at(const Panel& panel, const std::vector<ir::Index>& at);
  ir::Arg copied(const Panel& panel, const std::vector<ir::Index>& at);
  ir::Arg zero_factor() const;
  ir::Arg copied_where(const std::vector<ir::Compare>& there, const Panel& panel, const std::vector<ir::Index>& at);
  std::vector<ir::Index> place_in_panel(const Panel& panel) const;
  ir::Arg from_panel(const Panel& panel);

  // tile.cpp: the register tile
  void tile(std::size_t next);
  void tile_in_tree(std::size_t next);
  void over_tile(bool active, const std::function<void(std::vector<ir::Index> at)>& body);
  std::vector<std::pair<std::int64_t, std::int64_t>> alike(int d);
  void over_vectors(const Body& body);
  ir::MemId open_accumulators();
  std::vector<ir::Index> with_vector(std::vector<ir::Index> at, const ir::Index& j) const;
  void each_accumulator(const std::function<void(const std::vector<ir::Index>& element, const ir::Index& j)>& body);
  void real_elements(const std::function<void()>& body);
  void add_terms(std::size_t next);
  void products();
  void over_terms(std::size_t n, const std::vector<ir::Index>& at,
                  const std::function<void(const std::vector<ir::Index>& at)>& body);
  std::vector<ir::Compare> conditions(bool& never) const;
  void add_term(const std::vector<ir::Index>& at, ir::MemId b, const std::vector<ir::Index>& term);
  void multiply();
  void multiply_within();
  void when_inside(const std::function<void()>& body);
  ir::Arg factor(const Panel& panel);
  std::int64_t terms_at_once(int d) const { return d == dot_ ? 2 : 1; }
  ir::Arg element_of_a();
  ir::Arg element_of_b(const ir::Index& j);
  bool may_be_first() const;
  std::vector<ir::Compare> is_first() const;
  void epilogue();
  // late.cpp: a tile that is finished among the products of the next one
  bool finishes_late(const Loop& loop, std::size_t next) const;
  void over_late_tiles(const Loop& loop, std::size_t next, std::int64_t whole);
  void keep_tile();
  void finish_elements(const ir::Index& first, std::int64_t count);
  void finish_part_of_tile();
  bool is_tap(int d) const;
  void fetch_result();
  bool fetches_runs() const;
  void plan_fetch_of_runs();
  void fetch_run();
  std::vector<std::int64_t> elements_beside() const;
  void fetch_new_lines(std::size_t axis, int along);
  bool products_fetch() const { return !s_.combine.empty() && !s_.fetch.dims.empty() && list_dims_.empty(); }
  void fetch_operands();
  bool fetches_weights() const { return !s_.fetch.dims.empty() && s_.fetch.dims[0] == s_.vector; }
  void fetch_weights();
  ir::Arg counted(const ir::Index& thread);
  ir::Arg counted_by_thread(const ir::Index& thread);
  void leave_all_sums(const std::function<std::vector<ir::Arg>(const ir::Index& j)>& state);

  // matrix_panel.cpp: panels of a matrix unit
  bool merges_pairs() const { return s_.matrix > 0 && !s_.combine.empty(); }
  bool merges_words() const { return merges_pairs() || s_.merges_taps(); }
  bool copies_words() const;
  void order_for_matrix_unit(Panel& panel) const;
  std::vector<std::int64_t> merged_dims(const Panel& panel) const;
  std::vector<ir::Index> merged_place(const Panel& panel, const std::vector<ir::Index>& at) const;
  void fill_merged_row(const Panel& panel, std::vector<ir::Index>& at, bool zero);
  ir::Arg merged_pair(const Panel& panel, const std::vector<ir::Index>& at, const ir::Index& pair);
  void clear_rest(const Panel& panel);
  void turn(Panel& panel);
  void over_planes(const Panel& panel, const std::function<void(const std::vector<ir::Index>& at)>& body);

  // matrix.cpp: products of tiles in a matrix unit
  void multiply_in_matrix_unit(std::size_t next);
  void multiply_tile(std::size_t next);
  std::vector<ir::Index> row_of_a() const;
  std::vector<ir::Index> row_of_b(const ir::Index& column);
  std::vector<ir::Index> place_of_sum(const ir::Index& output) const;
  void finish_tile();
  void finish_element(const std::vector<ir::Compare>& first_of_tile, const ir::Index& j);
  std::int64_t rows_of_tile() const;

  // combine.cpp: what is laid out in memory, and partial results there
  std::vector<ir::Index> packed_place(const ir::Index& j) const;
  void results_of_task(std::size_t next);
  std::vector<ir::Index> own_partial_place(const ir::Index& j) const;
  void clear_partial_results();

  const ir::ContractionDim& dim(int d) const { return dims_[static_cast<std::size_t>(d)]; }
  Range& range(int d) { return ranges_[static_cast<std::size_t>(d)]; }
  const Range& range(int d) const { return ranges_[static_cast<std::size_t>(d)]; }
  std::int64_t held(int d) const { return held_[static_cast<std::size_t>(d)]; }
  void with_element(int d, const ir::Index& element, const std::function<void()>& body) override {
    with(d, {element, 1, false, 1}, body);
  }
  ir::Index at(int d) const override { return d == vector_ ? vector_at_ : range(d).base; }
  ir::Index lane_of(const ir::Index& j) const { return range(vector_).base + j * s_.lanes + lane_; }

  const int dot_;       // dim whose terms are taken two by two, or -1
  const DType factor_;  // type of factors
  const bool by_threads_;
  std::vector<ir::ContractionDim> dims_;    // the contraction's, then those of several of them together
  std::vector<std::vector<int>> together_;  // what these are made of
  std::vector<std::int64_t> held_;          // by dim, but for dims of a list
  std::vector<int> list_dims_;              // a tile over several dims at once
  std::vector<int> tile_dims_;              // other tiles
  std::vector<int> unrolled_dims_;          // in the contraction's order
  std::vector<Stage> stages_;

  std::vector<Range> ranges_;
  std::vector<bool> pending_;                    // by logical dim of the first operand: nothing keeps it inside yet
  std::vector<bool> zeros_;                      // the same: what is outside are zeros in its panel, better not read
  std::vector<ir::Index> positions_;             // of inner loops over parallel dims: all 0 at a sum's first element
  std::vector<std::vector<std::int64_t>> list_;  // combinations in registers: values of list_dims_
  std::vector<std::size_t> active_;              // those that this point adds to
  ir::Index lane_ = 0, part_ = 0;
  ir::MemId acc_ = -1;
  Panel panel_a_, panel_b_;
  std::size_t fetch_stage_ = 0;  // before which a turn of these loops fetches its part of a run; 0: none does
  std::vector<int> fetch_turns_;
  static constexpr std::int64_t kMostLinesOfTurn = 2;  // that it fetches, more are a burst
  // The same for what the next task's panel of the first operand is copied from.
  struct Ahead {
    std::size_t first = 0, stage = 0;  // of loops whose turns share it out; before which a turn fetches
    std::size_t row = 0;               // of the panel's order: the dim that tasks cut
    std::int64_t elements = 0;         // of a turn
  };
  Ahead ahead_;
  // The tile before the one at hand, which waits in scratch: [element, vector and lane].
  struct Late {
    ir::MemId kept = -1;
    int dim = -1;
    Range tile;
    ir::Index position;
    bool is_before = false;  // while the next one is multiplied
    std::size_t stage = 0;   // before which a turn of the loop over terms finishes its part
  };
  Late late_;
  bool carried_ = false;     // partial results are added to more than once
  bool state_open_ = false;  // inside of the lanes
  bool tile_open_ = false;
  std::vector<ir::Compare> deferred_;  // conditions of threads, which no other loop of them may stand under
  LongSum long_sum_;
  // Of a matrix unit: a first pass over the tiles multiplies, to sums in scratch of what the task has of these dims.
  bool multiplies_ = false;
  std::vector<int> sum_dims_;
  std::vector<ir::Index> first_of_sums_;
};

}  // namespace fusejit::scheduler
