#include "scheduler/schedule/winograd.h"

#include <utility>
#include <vector>

namespace fusejit::scheduler {

std::optional<WinogradDims> winograd_dims(const ir::Contraction& c) {
  WinogradDims dims;
  const auto dim = [&](int d) { return c.dims[static_cast<std::size_t>(d)]; };
  std::vector<std::size_t> windows, singles;  // logical dims of the first operand
  for (std::size_t i = 0; i < c.a.index.size(); ++i) {
    const ir::DimSum& sum = c.a.index[i];
    const bool single = sum.terms.size() == 1;
    if (single && (sum.terms[0].coefficient != 1 || sum.constant != 0)) return std::nullopt;
    (single ? singles : windows).push_back(i);
  }
  if (windows.size() != 2 || singles.empty() || singles.size() > 2) return std::nullopt;

  // A sum over taps, or, of the same form, one over results.
  dims.rows = windows[0], dims.columns = windows[1];
  dims.of_weights = !c.b.weights;
  const auto split = [&](std::size_t index, int& result, int& tap, WinogradAxis& axis) {
    const std::vector<ir::DimSum::Term>& terms = c.a.index[index].terms;
    if (terms.size() != 2 || dim(terms[0].dim).reduced == dim(terms[1].dim).reduced) return false;
    const std::size_t reduced = dim(terms[0].dim).reduced ? 0 : 1;
    const ir::DimSum::Term &of_taps = terms[dims.of_weights ? 1 - reduced : reduced],
                           &of_results = terms[dims.of_weights ? reduced : 1 - reduced];
    tap = of_taps.dim, result = of_results.dim;
    axis = {dim(tap).extent, of_results.coefficient};
    return of_taps.coefficient == 1 && axis.taps <= 3 && (axis.stride == 1 || (axis.stride == 2 && axis.taps == 3));
  };
  if (!split(dims.rows, dims.p, dims.r, dims.down) || !split(dims.columns, dims.q, dims.s, dims.across) ||
      (dims.down.taps == 1 && dims.across.taps == 1))
    return std::nullopt;
  for (const std::size_t i : singles) {
    const int d = c.a.index[i].terms[0].dim;
    int& part = dim(d).reduced == dims.of_weights ? dims.n : dims.c;
    if (part >= 0) return std::nullopt;
    part = d;
  }
  if (dims.c < 0) return std::nullopt;
  for (std::size_t i = 0; i < c.dims.size(); ++i) {
    const int d = static_cast<int>(i);
    if (c.a.mentions(d)) continue;
    if (c.dims[i].reduced || dims.k >= 0) return std::nullopt;
    dims.k = d;
  }
  if (dims.k < 0) return std::nullopt;
  for (std::size_t i = 0; i < c.dims.size(); ++i) {  // of b: outputs and what is summed up
    const int d = static_cast<int>(i);
    if (c.b.mentions(d) != (d == dims.k || c.dims[i].reduced)) return std::nullopt;
  }
  return dims;
}

}  // namespace fusejit::scheduler
