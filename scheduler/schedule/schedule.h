// Schedule: how a contraction is computed, as a value with a text, a parser and a check. What is computed
// (ir/contraction.h) does not depend on it; the order of every sum is read off it.
//
//   schedule {
//     algorithm winograd 4     else direct: F(4x4, 3x3), see below
//     vector k 16 x 2          lanes: two vectors of 16 neighbouring k, kept in registers ...
//     tile q 14                ... times 14 neighbouring q; "s*c 14": 14 combinations of s and c
//     unroll c 4               terms that follow each other without a loop; "within": inside of the tile's elements
//     dot c                    bf16: two neighbouring c are one factor, dot2 adds both products, f32 sums;
//                              "dot c 32": runs of 32 c are rows of a matrix unit, which adds up their products with
//                              16 outputs for each of up to 16 elements of the tile; with "unroll s 7, c 4" and "dot
//                              c 28" seven neighbouring s of four c each, where c may be three: the fourth is 0
//     registers 128            CUDA: what a thread may take; else a block's threads alone bound it
//     task n, p/4              loops that run in parallel, outermost first; p/4: four p a task
//     outer k                  loops around what one vector of partial sums (of the epilogue) is for
//     inner p, q, r, s, c      loops inside of it; where parallel dims end, the register tile begins
//     panel a task, b k        copies in scratch, padding included: of a in every task, of b inside of the outer k;
//                              "panel a p tiles": what a tile reads of each pixel side by side, tile after tile
//     pack b 32                the second operand is laid out beforehand, as it is read, 32 k a block
//     combine c*r*s            partial results are added up in memory, lanes along combinations of c, r and s
//     finish late              a tile waits in scratch, and is finished among the products of the next one of its loop
//     flush c 32               after every 32 terms of c the f32 sums are added to f64 ones
//     fetch p 1                prefetch what will be touched one p further; "fetch k 32": the weights of the next k;
//                              "fetch b p 4": what the next panel of b, four p further, is copied from; "fetch q 4, b",
//                              Winograd: and the packed weights that are read next
//     store stream             results that no cache holds go around the caches
//   }
//
// A loop steps by `/n` elements, and the last loop of a dim by what the registers hold of it. A loop over n*p*q goes
// over all their combinations, q fastest, and counts what the registers hold as one. On CUDA the loops of tasks are
// bound, and one of an epilogue's or result's sum may be:
//
//     task  grid.y k/64, grid.x n*p*q/96, block.x k
//     inner block.y n*p*q stride 8, n*p*q, r, s, c     eight threads take them in turn, and meet in a tree
//     combine n*p*q*k                                  a thread an element, in this order
//
// Winograd's loops inside of a task are fixed (lower/winograd/winograd.h); its schedule says what remains: patches of
// 4x4 results in registers, rows or images of them in a task.
//
//     algorithm winograd 4
//     vector k 16 x 2
//     tile n*p*q 14            products of 14 patches with two vectors of k
//     unroll c 4
//     task n, p/8              two rows of patches
//     outer k/128              at each point they meet the weights of so many outputs
//     pack b 32                the weights at their points
//
// A group without an anchor (domain.h) has schedules of the same form, with fewer lines: check_domain.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fusejit/target.h"
#include "ir/contraction.h"
#include "ir/kernel/kernel.h"

namespace fusejit::ir {
class TokenReader;
}

namespace fusejit::scheduler {

// So many neighbouring elements of a dim; of several dims: so many of their combinations, the last dim fastest.
struct Extent {
  std::vector<std::string> dims;
  std::int64_t count = 1;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// A loop over a dim, or over all combinations of several dims.
struct ScheduledLoop {
  std::vector<std::string> dims;
  std::int64_t step = 0;                  // 0: what the registers hold
  std::int64_t stride = 0;                // above 0: so many iterations, each of which leaves every stride-th element
  ir::Binding bound = ir::Binding::none;  // to an axis of the grid or of a block
  friend bool operator==(const ScheduledLoop&, const ScheduledLoop&) = default;
};

struct Schedule {
  std::int64_t winograd = 0;  // results of a patch along each axis; 0: the direct algorithm
  std::string vector;         // dim of the lanes
  int lanes = 1, vectors = 1;
  std::vector<Extent> tile;    // parallel dims
  std::vector<Extent> unroll;  // reduced dims
  bool unroll_within = false;  // of the tile's elements
  std::string dot;             // reduced dim whose terms dot2 takes two by two, bf16 in f32 sums; empty: one by one
  std::int64_t matrix = 0;     // terms of dot in a row of a matrix unit; 0: dot2
  std::int64_t registers = 0;  // of a thread of a device, at most; 0: nothing is said
  std::vector<ScheduledLoop> tasks, outer, inner;
  // Where what is left of an operand is copied to scratch, padding included: in every task, or inside of the innermost
  // outer loop over a dim. Empty: it is read as it is.
  static constexpr const char* kTask = "task";
  std::string panel_a, panel_b;
  bool tiles_a = false;      // what a tile reads of panel_a lies side by side, element by element of the other dims
  std::string panel_maxima;  // rows, while which pass the first maxima of windows over them are kept in scratch
  std::int64_t pack_b = 0;   // elements of the vector's dim in a block; 0: the operand is read as it is
  std::vector<std::string> combine;  // empty: results are finished in registers
  bool finish_late = false;          // among the products of the next tile
  Extent flush;                      // no dims: sums stay in their type
  Extent fetch;                      // no dims: no prefetch; else the distance
  bool fetch_b = false;              // of the next panel of the second operand alone
  bool fetch_packed = false;         // and the block of packed weights that is read next
  bool stream = false;               // whole vectors of results that no cache holds are stored around the caches

  std::int64_t block() const { return std::int64_t{lanes} * vectors; }
  // Lanes come in so many: a vector's, or those of the threads of a block side by side.
  std::int64_t lanes_together() const;
  // Rows of a matrix unit are neighbouring elements of the last but one reduced dim, all terms of dot of each: taps and
  // channels. (Where partial results are combined, pixels and images: check_matrix.cpp.)
  bool merges_taps() const { return matrix > 0 && combine.empty() && unroll.size() == 2; }
  // Elements of a dim that are held in registers, vectors and unrolled terms included.
  std::int64_t held(const std::string& dim) const;
  // The tile over several dims at once that this dim belongs to, or nullptr.
  const Extent* combinations(const std::string& dim) const;
  // Loops are bound to grids and blocks of threads.
  bool by_threads() const;
  // Which copy operands to shared memory together (shared_panels.h).
  bool shares_panels() const { return by_threads() && !panel_a.empty(); }
  // Register tiles times vectors.
  std::int64_t accumulators() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// What is computed, as its text: a contraction (ir/contraction.h), or what a group without an anchor does (domain.h);
// and how.
enum class Work : std::uint8_t { contraction, domain };
std::string_view name(Work kind);
struct ScheduledWork {
  Work kind = Work::contraction;
  std::string work;
  Schedule schedule;
  friend bool operator==(const ScheduledWork&, const ScheduledWork&) = default;
};

// "schedule { vector k 16 x 2 tile q 14 ... }" on one line.
std::string print(const Schedule& schedule);
// 'contraction "out[...] += ..."'.
std::string print_work(const ScheduledWork& one);
// The schedule on as many lines as above, and the work in front.
std::string print_lines(const ScheduledWork& one);
// Throws ParseError.
Schedule parse_schedule(std::string_view text);
// The next tokens, as part of another text.
Schedule parse_schedule(ir::TokenReader& tokens);
// Whether they are a work and its schedule; that.
bool is_scheduled_work(const ir::TokenReader& tokens);
ScheduledWork parse_scheduled_work(ir::TokenReader& tokens);

// The first rule that the schedule breaks, as a sentence; empty: it can be built and gives the right numbers.
// `sums`: the group reduces over the results.
std::string check(const ir::Contraction& contraction, const Schedule& schedule, const Target& target, bool sums);

// The same of what a panel of the first operand stores by the way: tasks have no element of it in common, and copy all.
std::string check_copy(const ir::Contraction& contraction, const Schedule& schedule);

// In what order the terms of a result are added up, and, with `sums`, the results by the epilogue, as a text that is
// the same for every schedule with this order: they give the same bits on one target. Parts, which are added up last,
// stand before a bar: "terms n/2 | n, r, s, c; results p | q".
std::string sum_order(const ir::Contraction& contraction, const Schedule& schedule, bool sums);

// Parallel loops of a phase on a processor, at most (kernel-ir.md §5).
inline constexpr std::size_t kMostTaskLoops = 3;

struct Domain;

// What there is to choose from for one contraction of an anchor.
struct AnchorChoice {
  const ir::Contraction& contraction;
  const std::vector<Schedule>& candidates;  // best first
  bool sums;                                // the group reduces over the results
  const Schedule& chosen() const { return candidates.front(); }
};

// Other schedules than the chosen ones: for tuning, experiments and tests. `op`: one of the ops of its step
// (PlanStep::ops), the anchor, or, where there is none, the last.
struct Reschedule {
  std::function<Schedule(const std::string& op, const AnchorChoice& choice)> anchor;
  std::function<Schedule(const std::string& op, const Domain& domain, const Schedule& chosen)> domain;
  explicit operator bool() const { return anchor || domain; }
};

}  // namespace fusejit::scheduler
