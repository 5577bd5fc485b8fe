// Products of panels in a block's shared memory: how the threads of a CUDA block compute a tile of a contraction
// together. A schedule that binds loops to threads and has panels is of this form:
//
//   schedule {
//     vector k 4 x 1                                   x 2: vectors that lie as far apart as threads are many
//     tile n*p*q 8                                     rows that a thread holds, of all combinations of these
//     unroll c 16                                      terms that a panel has at a time
//     registers 128
//     task grid.y k/64, grid.x n*p*q/64, block.x k
//     inner block.y n*p*q stride 8, n*p*q, r, s, c     thread t of eight has rows t, t + 8, ...
//     panel a c, b c                                   both operands are copied inside of the loop over c
//     pack b 64
//   }
//
// Where threads hold neighbouring rows, "block.y n*p*q/8" is the last loop of tasks but one. A sum may be cut ("grid.z
// n*p*q/784", of what panels are of) and is combined then; else grid.z has the groups.
#pragma once

#include <string>
#include <vector>

#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

struct SharedPanels {
  std::vector<int> rows, terms;  // dims of the contraction that rows and terms are combinations of, the last fastest
  std::vector<int> around;       // reduced dims of loops around the panels, outermost first
  std::vector<int> groups;       // parallel dims of the second operand beside the outputs
  std::int64_t held = 1;         // rows of a thread
  std::int64_t row_threads = 1,
               output_threads = 1;  // of a thread's vectors each is output_threads vectors behind the last
  std::int64_t terms_at_once = 1;
  std::int64_t terms_of_part = 0;  // 0: no sum is cut
  bool strided = false;            // a thread's rows are row_threads apart
  std::int64_t rows_of_block() const { return held * row_threads; }
};

// Of a schedule that check_shared_panels() has nothing against.
SharedPanels shared_panels(const ir::Contraction& contraction, const Schedule& schedule);

// The first rule that is broken, as a sentence. `sums`: the group reduces over the results.
std::string check_shared_panels(const ir::Contraction& contraction, const Schedule& schedule, bool sums);

// Elements from one row of a panel to the next: rows that threads read side by side begin in different banks.
std::int64_t pitch_of_panel(std::int64_t elements, std::int64_t bytes_of_element);

}  // namespace fusejit::scheduler
