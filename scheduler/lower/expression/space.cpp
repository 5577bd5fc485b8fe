#include "scheduler/lower/expression/space.h"

#include <algorithm>
#include <set>

#include "scheduler/lower/expression/expression.h"

namespace fusejit::scheduler {

std::vector<int> physical_order(const Type& type) {
  if (type.layout == Layout::nhwc) return {0, 2, 3, 1};
  std::vector<int> order(static_cast<std::size_t>(type.shape.rank()));
  for (int d = 0; d < type.shape.rank(); ++d) order[static_cast<std::size_t>(d)] = d;
  return order;
}

int innermost_dim(const Type& type) {
  int last = -1;
  for (const int d : physical_order(type))
    if (type.shape[d] != 1) last = d;
  return last;
}

std::vector<std::int64_t> physical_dims(const Type& type) {
  std::vector<std::int64_t> dims;
  for (const int d : physical_order(type)) dims.push_back(type.shape[d]);
  return dims;
}

std::vector<ir::Index> in_memory(const Type& type, const std::vector<ir::Index>& at) {
  std::vector<ir::Index> physical;
  for (const int d : physical_order(type)) physical.push_back(at[static_cast<std::size_t>(d)]);
  return physical;
}

int plain_dim(const ir::Index& index) {
  if (index.constant() != 0 || index.terms().size() != 1) return -1;
  const ir::IndexTerm& term = index.terms()[0];
  const bool plain = term.coefficient == 1 && term.atom.kind == ir::AtomKind::variable && term.atom.id >= kPlaceholder;
  return plain ? term.atom.id - kPlaceholder : -1;
}

std::vector<ir::Index> point_of(const Type& domain, const Shape& shape) {
  std::vector<ir::Index> point;
  for (int d = 0; d < domain.shape.rank(); ++d) point.push_back(domain.shape[d] == 1 ? ir::Index(0) : placeholder(d));
  if (shape == domain.shape) return point;
  const ir::RangeOf ranges = [&](const ir::IndexAtom& atom) -> std::optional<ir::Interval> {
    const int d = atom.kind == ir::AtomKind::variable ? atom.id - kPlaceholder : -1;
    if (d < 0) return std::nullopt;
    return ir::Interval{0, domain.shape[d] - 1};
  };
  return simplified(reshaped(point, domain.shape, shape, ranges), ranges);
}

Type seen_over(const Type& domain, const Type& value) {
  if (value.shape == domain.shape || value.layout != Layout::standard) return value;
  return {value.dtype, domain.shape, Layout::standard};
}

bool is_identity(const Access& access, const Type& domain, const Type& value) {
  if (access.whole || value.elements() != domain.elements() || value.elements() == 0) return false;
  const std::vector<int> order = physical_order(value);
  if (value.shape != domain.shape) {
    const std::vector<ir::Index> point = point_of(domain, value.shape);
    for (std::size_t p = 0; p < order.size(); ++p)
      if (!(access.index[p] == point[static_cast<std::size_t>(order[p])])) return false;
    return true;
  }
  for (std::size_t p = 0; p < order.size(); ++p) {
    const int extent_one = value.shape[order[p]] == 1;
    if (!extent_one && plain_dim(access.index[p]) != order[p]) return false;
    if (extent_one && !(access.index[p].is_constant() || plain_dim(access.index[p]) == order[p])) return false;
  }
  return true;
}

namespace {

// Physical dims of an access that matter, as domain dims; -1 where the index is not plain (or is a constant).
std::vector<int> plain_dims(const Access& access) {
  std::vector<int> dims;
  for (const ir::Index& index : access.index) dims.push_back(plain_dim(index));
  return dims;
}

// True if this access moves through `outer` and `inner` as through one axis: neither occurs, or `inner` follows
// directly.
bool allows_merge(const Access& access, const Shape& domain, int outer, int inner) {
  const std::vector<int> dims = plain_dims(access);
  int outer_at = -1, inner_at = -1, uses = 0;
  for (std::size_t p = 0; p < access.index.size(); ++p) {
    const bool mentions_outer = access.index[p].mentions(kPlaceholder + outer),
               mentions_inner = access.index[p].mentions(kPlaceholder + inner);
    uses += mentions_outer + mentions_inner;
    if (dims[p] == outer) outer_at = static_cast<int>(p);
    if (dims[p] == inner) inner_at = static_cast<int>(p);
  }
  if (uses == 0) return true;
  if (uses != 2 || outer_at < 0 || inner_at < 0 || inner_at < outer_at) return false;
  if (access.dims[static_cast<std::size_t>(outer_at)] != domain[outer] ||
      access.dims[static_cast<std::size_t>(inner_at)] != domain[inner]) {
    return false;
  }
  for (int p = outer_at + 1; p < inner_at; ++p) {  // between them only dims of extent 1
    if (access.dims[static_cast<std::size_t>(p)] != 1) return false;
  }
  return true;
}

}  // namespace

Space make_space(const Type& domain, const std::vector<Access>& accesses, const std::vector<bool>& reduced, int apart) {
  Space space{domain, {}};
  for (const int dim : physical_order(domain)) {
    const std::int64_t extent = domain.shape[dim];
    if (extent == 1) continue;
    const bool is_reduced = !reduced.empty() && reduced[static_cast<std::size_t>(dim)];
    if (!space.axes.empty() && space.axes.back().reduced == is_reduced && dim != apart) {
      Axis& last = space.axes.back();
      const bool merge = std::all_of(accesses.begin(), accesses.end(), [&](const Access& access) {
        return allows_merge(access, domain.shape, last.dims.back(), dim);
      });
      if (merge) {
        last.dims.push_back(dim), last.extent *= extent;
        continue;
      }
    }
    space.axes.push_back({{dim}, extent, is_reduced});
  }
  return space;
}

Declaration declare(const Space& space, const Type& value, const Access& access) {
  Declaration declaration;
  const std::vector<std::int64_t> dims = physical_dims(value);
  const std::vector<int> plain = plain_dims(access);
  std::set<int> done;
  for (std::size_t p = 0; p < dims.size(); ++p) {
    if (dims[p] == 1 && access.index[p].is_constant()) continue;
    int axis = -1;
    for (std::size_t a = 0; a < space.axes.size(); ++a) {
      const auto& in = space.axes[a].dims;
      if (plain[p] >= 0 && std::find(in.begin(), in.end(), plain[p]) != in.end()) axis = static_cast<int>(a);
    }
    if (axis >= 0 && done.count(axis)) continue;  // an inner dim of a merged axis that has been declared
    const bool whole = axis >= 0 && (space.axes[static_cast<std::size_t>(axis)].dims.size() > 1 ||
                                     dims[p] == space.axes[static_cast<std::size_t>(axis)].extent);
    if (whole) {
      done.insert(axis);
      declaration.dims.push_back(space.axes[static_cast<std::size_t>(axis)].extent);
      declaration.sources.push_back({axis, -1});
    } else {
      declaration.dims.push_back(dims[p]);
      declaration.sources.push_back({-1, static_cast<int>(p)});
    }
  }
  return declaration;
}

Declaration declare_unmerged(const Type& value) {
  Declaration declaration;
  declaration.dims = physical_dims(value);
  for (std::size_t p = 0; p < declaration.dims.size(); ++p) declaration.sources.push_back({-1, static_cast<int>(p)});
  return declaration;
}

}  // namespace fusejit::scheduler
