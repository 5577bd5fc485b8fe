#include "scheduler/schedule/winograd.h"

namespace fusejit::scheduler {

std::optional<WinogradDims> winograd_dims(const ir::Contraction& c) {
  WinogradDims dims;
  const auto dim = [&](int d) { return c.dims[static_cast<std::size_t>(d)]; };
  std::size_t windows = 0;
  for (std::size_t i = 0; i < c.a.index.size(); ++i) {
    const ir::DimSum& sum = c.a.index[i];
    if (sum.terms.size() == 1) {
      int& part = dim(sum.terms[0].dim).reduced ? dims.c : dims.n;
      if (part >= 0 || sum.terms[0].coefficient != 1 || sum.constant != 0) return std::nullopt;
      part = sum.terms[0].dim;
      continue;
    }
    if (sum.terms.size() != 2 || ++windows > 2) return std::nullopt;
    int result = sum.terms[0].dim, tap = sum.terms[1].dim;
    if (dim(result).reduced) std::swap(result, tap);
    if (dim(result).reduced || !dim(tap).reduced || dim(tap).extent != kWinogradTaps) return std::nullopt;
    if (sum.coefficient_of(result) != 1 || sum.coefficient_of(tap) != 1) return std::nullopt;
    (windows == 1 ? dims.rows : dims.columns) = i;
    (windows == 1 ? dims.p : dims.q) = result;
    (windows == 1 ? dims.r : dims.s) = tap;
  }
  if (windows < 2 || dims.c < 0) return std::nullopt;
  for (std::size_t i = 0; i < c.dims.size(); ++i) {
    const int d = static_cast<int>(i);
    if (d == dims.n || d == dims.p || d == dims.q || d == dims.r || d == dims.s || d == dims.c) continue;
    if (c.dims[i].reduced || c.a.mentions(d) || dims.k >= 0) return std::nullopt;
    dims.k = d;
  }
  if (dims.k < 0) return std::nullopt;
  for (const int d : {dims.n, dims.p, dims.q})
    if (d >= 0 && c.b.mentions(d)) return std::nullopt;
  for (const int d : {dims.k, dims.r, dims.s, dims.c})
    if (!c.b.mentions(d)) return std::nullopt;
  return dims;
}

}  // namespace fusejit::scheduler
