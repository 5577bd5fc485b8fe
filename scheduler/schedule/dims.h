// Lists of a contraction's dims, and what one of its indices is made of.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "ir/contraction.h"

namespace fusejit::scheduler {

inline const ir::ContractionDim& dim_of(const ir::Contraction& contraction, int d) {
  return contraction.dims[static_cast<std::size_t>(d)];
}

// Combinations of all elements of these dims.
inline std::int64_t combinations_of(const ir::Contraction& contraction, const std::vector<int>& dims) {
  std::int64_t all = 1;
  for (const int d : dims) all *= dim_of(contraction, d).extent;
  return all;
}

inline std::vector<std::string> names_of(const ir::Contraction& contraction, const std::vector<int>& dims) {
  std::vector<std::string> names;
  for (const int d : dims) names.push_back(dim_of(contraction, d).name);
  return names;
}

// Those of more than one element.
inline std::vector<int> above_one(const ir::Contraction& contraction, const std::vector<int>& dims) {
  std::vector<int> kept;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(kept),
               [&](int d) { return dim_of(contraction, d).extent > 1; });
  return kept;
}

// The index is this dim and nothing else.
inline bool is_dim(const ir::DimSum& index, int dim) {
  return index.terms.size() == 1 && index.constant == 0 && index.coefficient_of(dim) == 1;
}

}  // namespace fusejit::scheduler
