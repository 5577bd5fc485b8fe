#include "ir/contraction.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/check.h"
#include "ir/node.h"

namespace fusejit::ir {

std::int64_t DimSum::coefficient_of(int dim) const {
  for (const Term& term : terms)
    if (term.dim == dim) return term.coefficient;
  return 0;
}

bool ContractionOperand::mentions(int dim) const {
  return std::any_of(index.begin(), index.end(), [&](const DimSum& sum) { return sum.coefficient_of(dim) != 0; });
}

bool ContractionOperand::may_leave(int d, const std::vector<ContractionDim>& dims) const {
  const DimSum& sum = index[static_cast<std::size_t>(d)];
  std::int64_t low = sum.constant, high = sum.constant;
  for (const DimSum::Term& term : sum.terms) {
    const std::int64_t reach =
        term.coefficient * std::max<std::int64_t>(dims[static_cast<std::size_t>(term.dim)].extent - 1, 0);
    (reach < 0 ? low : high) += reach;
  }
  return low < 0 || high >= extents[static_cast<std::size_t>(d)];
}

bool ContractionOperand::is_window(int d, const std::vector<ContractionDim>& dims) const {
  const std::vector<DimSum::Term>& terms = index[static_cast<std::size_t>(d)].terms;
  return std::count_if(terms.begin(), terms.end(), [&](const DimSum::Term& term) {
           return dims[static_cast<std::size_t>(term.dim)].extent > 1;
         }) > 1;
}

bool ContractionOperand::has_windows(const std::vector<ContractionDim>& dims) const {
  for (int d = 0; d < static_cast<int>(index.size()); ++d)
    if (is_window(d, dims) || may_leave(d, dims)) return true;
  return false;
}

bool Contraction::share_index(int a, int b) const {
  return a != b && std::any_of(result.begin(), result.end(), [&](const DimSum& sum) {
           return sum.coefficient_of(a) != 0 && sum.coefficient_of(b) != 0;
         });
}

bool Contraction::lies_behind(int dim, int before) const {
  return dim != before && std::any_of(result.begin(), result.end(), [&](const DimSum& sum) {
           return sum.coefficient_of(before) != 0 && sum.coefficient_of(dim) > sum.coefficient_of(before);
         });
}

int Contraction::find(const std::string& name) const {
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d].name == name) return static_cast<int>(d);
  return -1;
}

std::int64_t Contraction::outputs() const {
  std::int64_t product = 1;
  for (const ContractionDim& dim : dims) product *= dim.reduced ? 1 : dim.extent;
  return product;
}

std::int64_t Contraction::terms() const {
  std::int64_t product = 1;
  for (const ContractionDim& dim : dims) product *= dim.reduced ? dim.extent : 1;
  return product;
}

std::vector<Contraction> contractions_of(const Node& node) {
  const OpDef& row = op_def(node.op);
  FJ_ASSERT(row.contractions != nullptr, "{} is no contraction", row.name);
  std::vector<Contraction> all = row.contractions(node);
  std::erase_if(all, [](const Contraction& c) { return c.outputs() == 0; });

  return all;
}

namespace {

// Where each dim is 0 that has one element.
bool is_same_index(const DimSum& a, const DimSum& b, const std::vector<ContractionDim>& dims) {
  const auto has_terms_of = [&](const DimSum& all, const DimSum& some) {
    return std::all_of(some.terms.begin(), some.terms.end(), [&](const DimSum::Term& term) {
      return dims[static_cast<std::size_t>(term.dim)].extent == 1 || all.coefficient_of(term.dim) == term.coefficient;
    });
  };
  return a.constant == b.constant && has_terms_of(a, b) && has_terms_of(b, a);
}

}  // namespace

std::optional<Contraction> exchanged(const Contraction& contraction) {
  Contraction c = contraction;
  if (c.a.weights || c.b.weights || c.a.index.size() != c.b.index.size()) return std::nullopt;
  for (std::size_t d = 0; d < c.dims.size(); ++d) {  // groups
    const int dim = static_cast<int>(d);
    if (!c.dims[d].reduced && c.a.mentions(dim) && c.b.mentions(dim)) return std::nullopt;
  }
  std::swap(c.a, c.b);
  for (std::size_t d = 0; d < c.a.index.size(); ++d) {
    DimSum &a = c.a.index[d], &b = c.b.index[d];
    if (a.terms.size() == 1 && b.terms.size() == 1) continue;  // no window
    if (!is_same_index(a, b, c.dims)) return std::nullopt;
    std::swap(a, b);  // windows stay the first operand's
  }
  return c;
}

namespace {

std::string str(const DimSum& sum, const std::vector<ContractionDim>& dims) {
  std::string text;
  const auto add = [&](std::int64_t coefficient, const std::string& of) {
    const std::int64_t size = coefficient < 0 ? -coefficient : coefficient;
    text += coefficient < 0 ? (text.empty() ? "-" : " - ") : (text.empty() ? "" : " + ");
    text += of.empty() ? std::to_string(size) : size == 1 ? of : fmt::format("{}*{}", of, size);
  };
  for (const DimSum::Term& term : sum.terms) add(term.coefficient, dims[static_cast<std::size_t>(term.dim)].name);
  if (sum.constant != 0 || text.empty()) add(sum.constant, "");
  return text;
}

std::string str(const std::vector<DimSum>& index, const std::vector<ContractionDim>& dims) {
  std::string text;
  for (const DimSum& sum : index) text += (text.empty() ? "" : ", ") + str(sum, dims);
  return "[" + text + "]";
}

}  // namespace

std::string str(const Contraction& c) {
  std::string parallel, reduced;
  for (const ContractionDim& dim : c.dims) {
    std::string& list = dim.reduced ? reduced : parallel;
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", dim.name, dim.extent);
  }
  return fmt::format("out{} += a{} * b{}; {} | {}", str(c.result, c.dims), str(c.a.index, c.dims),
                     str(c.b.index, c.dims), parallel, reduced);
}

}  // namespace fusejit::ir
