// The iteration space of a kernel group and the accesses of its expressions to stored values.
//
// A group iterates over the elements of one domain (a shape and a layout). Expressions are followed symbolically: index
// d of the domain is the placeholder variable(d), so an access is one Index per physical dim of the stored value.
// Neighbouring dims of the domain are merged into one axis wherever every access treats them alike.
#pragma once

#include <vector>

#include "fusejit/type.h"
#include "ir/kernel/index.h"

namespace fusejit::scheduler {

// Physical order of the logical dims of a type: {0,2,3,1} for nhwc.
std::vector<int> physical_order(const Type& type);
// The logical dim of more than one element whose elements lie side by side; -1: there is one element in all.
int innermost_dim(const Type& type);
// Extents in physical order.
std::vector<std::int64_t> physical_dims(const Type& type);

// An index of each logical dim, as the dims lie in memory.
std::vector<ir::Index> in_memory(const Type& type, const std::vector<ir::Index>& at);

// Placeholders have ids of their own, so that loop variables of an expression (pooling windows) never meet them.
inline constexpr int kPlaceholder = 1 << 20;
inline ir::Index placeholder(int dim) { return ir::Index::variable(kPlaceholder + dim); }

// One way in which a group's expressions touch a stored value: an Index over placeholders per physical dim.
struct Access {
  int node = -1;
  std::vector<ir::Index> index;
  std::vector<std::int64_t> dims;  // physical extents of the value
  bool whole = false;              // an operand of a tile: every element is read, at any point of the domain
  friend bool operator==(const Access&, const Access&) = default;
};
// The element of the domain that is being computed, as an index of each logical dim of `shape`, which has as many
// elements: its own, or those that a reshape gives it.
std::vector<ir::Index> point_of(const Type& domain, const Shape& shape);
// What a group over `domain` takes a value of as many elements for: a reshape of rows names the same bytes.
Type seen_over(const Type& domain, const Type& value);
// The placeholder that an index is, with coefficient 1 and nothing else; -1 if it is something else.
int plain_dim(const ir::Index& index);
// True if the access touches exactly the element being computed: every dim of the domain, each plain, or what a reshape
// makes of them.
bool is_identity(const Access& access, const Type& domain, const Type& value);

struct Axis {
  std::vector<int> dims;  // logical dims of the domain, outer to inner
  std::int64_t extent = 1;
  bool reduced = false;
};

struct Space {
  Type domain;
  std::vector<Axis> axes;  // in physical order of the domain; dims of extent 1 belong to no axis
};

// Merges dims as far as `accesses` and the `reduced` dims (may be empty) allow; dim `apart` stays an axis of its own.
Space make_space(const Type& domain, const std::vector<Access>& accesses, const std::vector<bool>& reduced,
                 int apart = -1);

// How a stored value is declared in a kernel of this space and indexed: its physical dims, merged like the axes where
// the access is plain. `axis_values[i]` is the kernel's expression of axis i; `dim_values[d]` that of domain dim d.
struct Declaration {
  std::vector<std::int64_t> dims;
  struct Dim {
    int axis = -1;      // a whole axis, or
    int physical = -1;  // this physical dim by its own expression
  };
  std::vector<Dim> sources;
};
Declaration declare(const Space& space, const Type& value, const Access& access);
// Values that several different accesses touch are declared by their plain physical dims.
Declaration declare_unmerged(const Type& value);

}  // namespace fusejit::scheduler
