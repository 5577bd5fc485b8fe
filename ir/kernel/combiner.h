// What a reduction combines with (kernel-ir.md §5), a row a combiner: its name, components, and what each starts from.
// Both interpreters, verify, the emitters and lowering read this table.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/base/scalar.h"
#include "ir/op.h"

namespace fusejit::ir {

std::string_view name(Combiner combiner);
std::optional<Combiner> combiner_named(std::string_view name);
// 1; argmax and argmin: value and index; welford: n, mean and M2.
int components(Combiner combiner);
// The element of `dtype` that a component starts from: comb(identity, x) is x, but for the sign of a zero that is
// added.
Scalar identity(Combiner combiner, int component, DType dtype);
// True if components of these dtypes can be combined.
bool combines(Combiner combiner, std::span<const DType> types);
// The op that combines the elements of a combiner of one component; the comparison by which an element of argmax or
// argmin wins. Welford has neither.
Op combining_op(Combiner combiner);

}  // namespace fusejit::ir
