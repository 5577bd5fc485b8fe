// Domain: what a group without an anchor computes, as far as a schedule asks: the axes that its loops go over, what it
// adds up over the reduced ones, and what its pooling gradients look at. Its text:
//
//   [nhw, c]; c 64 | nhw 50176; sums add f32, welford f64
//   [n, h, w, c]; n 16, h 112, w 112, c 64; maxima h w
//   [n, h, w, c]; c 64 | n 16, h 56, w 56; sums add f32; windows h 2, w 2
//   [n, h, w, c]; n 16, h 56, w 56, c 64; pools h
//
// Axes stand in the order of memory, neighbours of the last side by side; dims that every access treats alike are one
// axis. Parallel ones are said before the bar, reduced ones behind it.
#pragma once

#include <string>
#include <vector>

#include "ir/kernel/combiner.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

struct DomainAxis {
  std::string name;
  std::int64_t extent = 1;
  bool reduced = false;
  friend bool operator==(const DomainAxis&, const DomainAxis&) = default;
};

struct Domain {
  // Of one thing that is reduced, for each element of the parallel axes.
  struct Sum {
    ir::Combiner combiner;
    DType type;  // that elements are added in
    bool is_position() const { return combiner == ir::Combiner::argmax || combiner == ir::Combiner::argmin; }
    bool may_be_long() const { return combiner == ir::Combiner::add && type == DType::f32; }
  };
  std::vector<DomainAxis> axes;
  std::vector<Sum> sums;  // none: a point-wise group
  // Pixels of each window of a max pool whose gradient is taken, where windows do not overlap and fill the image:
  // whoever visits them one after the other, and nothing else, finds the window's maximum once.
  std::vector<Extent> windows;
  // Rows and columns of a max pool whose gradient is taken and whose windows overlap: their maxima may be kept.
  std::string maxima_rows, maxima_columns;
  // Rows of the results of a max pool that is computed, each of windows that lie below one another.
  std::string pooled_rows;

  // -1 if there is none.
  int find(const std::string& name) const;
  const DomainAxis& axis(const std::string& name) const { return axes[static_cast<std::size_t>(find(name))]; }
  std::int64_t elements() const;
};

std::string str(const Domain& domain);

// Rows of the windows that are passed over under this schedule, a row of which it may fetch ahead; empty: none are.
const std::string& rows_of_windows(const Domain& domain, const Schedule& schedule);

// The first rule that the schedule breaks, as a sentence; empty: it can be built and gives the right numbers.
std::string check(const Domain& domain, const Schedule& schedule, const Target& target);

}  // namespace fusejit::scheduler
