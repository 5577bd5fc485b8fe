// einsum: the equation as axes, and each joining of two operands as one matrix product, or as products and a sum where
// there is no matrix.
//
// An axis is a number: letters have their place in the alphabet, capitals first, and the axes of "..." count down from
// -1 on the right, so that an order of numbers is PyTorch's order of a result that is not written down.
#include <algorithm>
#include <set>

#include "frontend/ops/axis.h"
#include "frontend/record.h"
#include "fusejit/composed.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

using Axes = std::vector<int>;

// A tensor whose axes have names, none twice.
struct Named {
  Tensor x;
  Axes axes;
  bool has(int axis) const { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }
  std::int64_t extent(int axis) const {
    return x.size(static_cast<int>(std::find(axes.begin(), axes.end(), axis) - axes.begin()));
  }
};

// What messages say about the call.
struct Call {
  const std::string& equation;
  const std::vector<Tensor>& operands;
  [[noreturn]] void refuse(const std::string& sentence) const {
    std::string types;
    for (const Tensor& t : operands) types += (types.empty() ? "" : ", ") + t.type().str();
    throw UserError(fmt::format("einsum: {} ('{}', {})", sentence, equation, types));
  }
};

constexpr int kEllipsis = 1000;  // "..." itself, before it is known how many axes it stands for

Axes read(const Call& call, std::string_view text) {
  Axes axes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c >= 'A' && c <= 'Z') {
      axes.push_back(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      axes.push_back(c - 'a' + 26);
    } else if (text.substr(i, 3) == "...") {
      if (std::count(axes.begin(), axes.end(), kEllipsis) > 0) call.refuse("'...' stands twice in one term");
      axes.push_back(kEllipsis);
      i += 2;
    } else {
      call.refuse(fmt::format("'{}' is no letter", c));
    }
  }
  return axes;
}

// `axes` with "..." as that many axes.
Axes spread(const Axes& axes, int count) {
  Axes all;
  for (const int axis : axes) {
    if (axis != kEllipsis) all.push_back(axis);
    for (int i = count; axis == kEllipsis && i > 0; --i) all.push_back(-i);
  }
  return all;
}

struct Equation {
  std::vector<Axes> terms;
  Axes result;
};

// How many axes "..." stands for in a tensor of that rank.
int ellipsis_of(const Axes& term, int rank) {
  const bool has = std::find(term.begin(), term.end(), kEllipsis) != term.end();
  return has ? rank - static_cast<int>(term.size()) + 1 : 0;
}

Equation parse(const Call& call) {
  const std::string_view text = call.equation;
  const std::size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  Equation equation;
  for (;;) {
    const std::size_t comma = left.find(',');
    equation.terms.push_back(read(call, left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (equation.terms.size() != call.operands.size())
    call.refuse(fmt::format("{} terms for {} operands", equation.terms.size(), call.operands.size()));

  int widest = 0;
  Axes letters;
  for (std::size_t i = 0; i < equation.terms.size(); ++i) {
    Axes& term = equation.terms[i];
    const int rank = call.operands[i].rank(), ellipsis = ellipsis_of(term, rank);
    const Axes all = spread(term, ellipsis);
    if (ellipsis < 0 || static_cast<int>(all.size()) != rank)
      call.refuse(fmt::format("term {} names {} axes, the operand has {}", i, term.size(), rank));
    widest = std::max(widest, ellipsis);
    term = all;
    std::copy_if(all.begin(), all.end(), std::back_inserter(letters), [](int axis) { return axis >= 0; });
  }
  if (arrow == std::string_view::npos) {
    for (int i = widest; i > 0; --i) equation.result.push_back(-i);
    std::sort(letters.begin(), letters.end());
    for (const int axis : letters)
      if (std::count(letters.begin(), letters.end(), axis) == 1) equation.result.push_back(axis);
    return equation;
  }
  equation.result = spread(read(call, text.substr(arrow + 2)), widest);
  for (const int axis : equation.result) {
    if (std::count(equation.result.begin(), equation.result.end(), axis) > 1)
      call.refuse("the result names an axis twice");
    if (axis >= 0 && std::find(letters.begin(), letters.end(), axis) == letters.end())
      call.refuse("the result names an axis that no operand has");
  }
  return equation;
}

// Each axis named once: of one that stands twice, the diagonal.
Named with_diagonals(const Call& call, Tensor x, Axes axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto second = std::find(axes.begin() + static_cast<std::ptrdiff_t>(i) + 1, axes.end(), axes[i]);
    if (second == axes.end()) continue;
    const int axis = axes[i], j = static_cast<int>(second - axes.begin());
    if (x.size(static_cast<int>(i)) != x.size(j)) call.refuse("a letter stands for two extents in one operand");
    x = diagonal(x, 0, static_cast<int>(i), j);
    axes.erase(second);
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    axes.push_back(axis);  // where diagonal() puts it
    --i;
  }
  return {std::move(x), std::move(axes)};
}

// Without the axes for which `goes` holds, summed over in the operand's own dtype.
template <class Goes>
Named without(const Named& n, Goes goes) {
  Dims dims;
  Named left;
  for (std::size_t i = 0; i < n.axes.size(); ++i) {
    if (goes(n.axes[i]))
      dims.push_back(static_cast<std::int64_t>(i));
    else
      left.axes.push_back(n.axes[i]);
  }
  left.x = dims.empty() ? n.x : sum(n.x, dims).to(n.x.dtype());
  return left;
}

// The axes in that order; those that n lacks have extent 1.
Tensor arranged(const Named& n, const Axes& order) {
  Dims dims, shape;
  for (const int axis : order) {
    const auto at = std::find(n.axes.begin(), n.axes.end(), axis);
    if (at != n.axes.end()) dims.push_back(at - n.axes.begin());
    shape.push_back(at == n.axes.end() ? 1 : n.extent(axis));
  }
  return reshape(permute(n.x, dims), shape);
}

std::int64_t product(const Named& n, const Axes& axes) {
  std::int64_t product = 1;
  for (const int axis : axes) product *= n.extent(axis);
  return product;
}

Axes joined(std::initializer_list<Axes> parts) {
  Axes all;
  for (const Axes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The sum of products over the axes that `wanted` lacks.
Named product_of(const Call& call, Named a, Named b, const std::set<int>& wanted) {
  // An extent of 1 beside another repeats: that operand does not depend on the axis.
  for (const int axis : a.axes) {
    if (!b.has(axis) || a.extent(axis) == b.extent(axis)) continue;
    if (a.extent(axis) != 1 && b.extent(axis) != 1)
      call.refuse(fmt::format("an axis has extents {} and {}", a.extent(axis), b.extent(axis)));
  }
  const Named whole_a = a, whole_b = b;
  const auto repeats = [](const Named& n, const Named& other) {
    return [&](int axis) { return other.has(axis) && n.extent(axis) == 1 && other.extent(axis) != 1; };
  };
  a = without(whole_a, repeats(whole_a, whole_b));
  b = without(whole_b, repeats(whole_b, whole_a));
  const auto alone = [&wanted](const Named& other) {
    return [&wanted, &other](int axis) { return !wanted.contains(axis) && !other.has(axis); };
  };
  const Named before = a;
  a = without(before, alone(b));
  b = without(b, alone(before));

  Axes batch, summed_over, rows, columns;
  for (const int axis : a.axes) (!b.has(axis) ? rows : wanted.contains(axis) ? batch : summed_over).push_back(axis);
  std::copy_if(b.axes.begin(), b.axes.end(), std::back_inserter(columns), [&a](int axis) { return !a.has(axis); });
  Named result;
  result.axes = joined({batch, rows, columns});
  const bool is_matrix = !summed_over.empty() && !(rows.empty() && columns.empty()) && is_float(a.x.dtype());
  if (!is_matrix) {
    const Axes all = joined({batch, rows, columns, summed_over});
    if (all.size() > kMaxRank) call.refuse(fmt::format("products have {} axes, more than {}", all.size(), kMaxRank));
    Dims dims;
    for (std::size_t i = result.axes.size(); i < all.size(); ++i) dims.push_back(static_cast<std::int64_t>(i));
    const DType wide = compute_type(a.x.dtype());
    const Tensor products = arranged(a, all).to(wide) * arranged(b, all).to(wide);
    result.x = (dims.empty() ? products : sum(products, dims)).to(a.x.dtype());
    return result;
  }
  const std::int64_t images = product(a, batch), m = product(a, rows), n = product(b, columns),
                     k = product(a, summed_over);
  const Tensor left = arranged(a, joined({batch, rows, summed_over})),
               right = arranged(b, joined({batch, summed_over, columns}));
  const Tensor y = batch.empty() ? matmul(reshape(left, {m, k}), reshape(right, {k, n}))
                                 : matmul(reshape(left, {images, m, k}), reshape(right, {images, k, n}));
  if (result.axes.size() > kMaxRank)
    call.refuse(fmt::format("products have {} axes, more than {}", result.axes.size(), kMaxRank));
  Dims shape;
  for (const int axis : result.axes) shape.push_back(a.has(axis) ? a.extent(axis) : b.extent(axis));
  result.x = reshape(y, shape);
  return result;
}

}  // namespace

Tensor einsum(const std::string& equation, const std::vector<Tensor>& given) {
  FJ_CHECK(!given.empty(), "einsum: there are no operands ('{}')", equation);
  std::vector<Tensor> operands;
  for (const Tensor& t : given) {
    check_defined("einsum", t);
    operands.push_back(autocast(ir::AutocastRule::narrow, t));
  }
  const Call call{equation, operands};
  const Equation parsed = parse(call);
  for (const Tensor& t : operands)
    if (t.dtype() != operands[0].dtype() || t.dtype() == boolean) call.refuse("operands must have one dtype, no bool");
  const CalledAs called("einsum");
  Named so_far = with_diagonals(call, operands[0], parsed.terms[0]);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    std::set<int> wanted(parsed.result.begin(), parsed.result.end());
    for (std::size_t later = i + 1; later < operands.size(); ++later)
      wanted.insert(parsed.terms[later].begin(), parsed.terms[later].end());
    so_far = product_of(call, so_far, with_diagonals(call, operands[i], parsed.terms[i]), wanted);
  }
  const std::set<int> wanted(parsed.result.begin(), parsed.result.end());
  return arranged(without(so_far, [&wanted](int axis) { return !wanted.contains(axis); }), parsed.result);
}

}  // namespace fusejit
