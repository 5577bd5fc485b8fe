// How long the kernels of a plan take on this machine.
#pragma once

#include <vector>

#include "tools/fusejit-dump/measure/running.h"

namespace fusejit::tools {

struct Times {
  std::vector<double> milliseconds;  // of each run
  double median() const { return sorted()[milliseconds.size() / 2]; }
  double lowest() const { return sorted().front(); }
  double highest() const { return sorted().back(); }

 private:
  std::vector<double> sorted() const;
};

struct Measured {
  Times whole;
  std::vector<Times> steps;  // as in the plan
};

// So many steps of each, in turn, after some that are not counted.
std::vector<Measured> measure(const std::vector<Running*>& all, int count);
Measured measure(Running& running, int count);

}  // namespace fusejit::tools
