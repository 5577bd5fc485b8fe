// Combiners of reductions (kernel-ir.md §5) on scalars and vectors, and the tree over lanes.
#pragma once

#include <vector>

#include "codegen/x86/emit/convert.h"
#include "ir/kernel/kernel.h"

namespace fusejit::codegen::x86 {

using Components = std::vector<llvm::Value*>;

// The identity of each component, as scalars. `types` are the dtypes of all components of all combiners.
Components identity(Builder& b, const std::vector<ir::Combiner>& combiners, const std::vector<DType>& types);
// comb(left, right), combiner by combiner. `ascending`: positions on the right are greater than those on the left, so
// that of equal elements (argmax, argmin) the left one stays.
Components combine(Builder& b, const std::vector<ir::Combiner>& combiners, const std::vector<DType>& types,
                   const Components& left, const Components& right, bool ascending = false);
// tree(L) over the lanes of `lanes`; the results are scalars.
Components tree(Builder& b, const std::vector<ir::Combiner>& combiners, const std::vector<DType>& types,
                Components lanes);

}  // namespace fusejit::codegen::x86
