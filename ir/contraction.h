// Contraction: what an anchor computes, as a value. Lowering reads it and knows no op.
//
//   y[n, k, p, q] += x[n, c, p*2 + r - 1, q*2 + s - 1] * w[k, c, r, s]      r, s and c summed up
//
// Every dim has a name, an extent and a role; every logical index of the result and of the two operands is a sum of
// dims. What falls outside of an operand (padding) adds nothing. Convolutions, each phase of a strided input gradient,
// weight gradients, matrix products and batches of them are all such values; a convolution in groups has a parallel dim
// g, a depthwise one besides an extent of 1 for c.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fusejit/type.h"

namespace fusejit::ir {

struct Node;

struct ContractionDim {
  std::string name;
  std::int64_t extent = 1;
  bool reduced = false;
};

// Sum of coefficient * dim, and a constant. A dim stands in it once at most.
struct DimSum {
  struct Term {
    int dim = 0;  // of Contraction::dims
    std::int64_t coefficient = 1;
  };
  std::vector<Term> terms;
  std::int64_t constant = 0;

  // 0 if the dim is not in it.
  std::int64_t coefficient_of(int dim) const;
};

struct ContractionOperand {
  int operand = 0;            // of the node
  std::vector<DimSum> index;  // by logical dim
  std::vector<std::int64_t> extents;
  // Weights: read for many results, often the same for many runs. It pays to lay them out as they are read.
  bool weights = false;
  DType dtype = DType::f32;

  bool mentions(int dim) const;
  // Logical dim `d` may lie outside of the operand.
  bool may_leave(int d, const std::vector<ContractionDim>& dims) const;
  // Several dims of more than one element make up logical dim `d`, as a pixel and a tap do.
  bool is_window(int d, const std::vector<ContractionDim>& dims) const;
  // A logical dim is one, or may lie outside.
  bool has_windows(const std::vector<ContractionDim>& dims) const;
};

struct Contraction {
  std::vector<ContractionDim> dims;
  ContractionOperand a, b;
  std::vector<DimSum> result;  // by logical dim

  // Some index of the result has both dims, as a convolution's groups and their channels.
  bool share_index(int a, int b) const;
  // ... and an element of `dim` lies behind all those of `before`, unless that runs over.
  bool lies_behind(int dim, int before) const;
  // Number of the dim with this name, -1 if there is none.
  int find(const std::string& name) const;
  // The dim with this name, which is there.
  const ContractionDim& dim(const std::string& name) const { return dims[static_cast<std::size_t>(find(name))]; }
  // Product of the extents of the parallel dims, of the reduced ones.
  std::int64_t outputs() const;
  std::int64_t terms() const;
};

// What the node computes: one contraction, or several that write disjoint elements of one result (the phases of a
// strided input gradient). Those without an element are left out. The row of the node's op says it.
std::vector<Contraction> contractions_of(const Node& node);

// The same sum with the other operand first, where no window and no group is in the way: weight gradients of 1x1.
std::optional<Contraction> exchanged(const Contraction& contraction);

// "y[n, k, p*2, q*2] += x[n, c, p + r - 1, q + s - 1] * w[c, k, r, s]; n 16, k 64, p 28, q 28 | c 64, r 3, s 3"
std::string str(const Contraction& contraction);

}  // namespace fusejit::ir
