// Type: what a value of a graph is: dtype, logical shape and layout of its bytes.
#pragma once

#include <string>

#include "fusejit/dtype.h"
#include "fusejit/shape.h"

namespace fusejit {

// The order of the bytes of a rank-4 tensor. Layout never changes values: shapes are NCHW whatever it is.
enum class Layout : std::uint8_t {
  standard,  // row-major in logical order (NCHW, KCRS)
  nhwc       // N,H,W,C in memory; K,R,S,C for a weight
};

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::standard;

  std::int64_t elements() const { return shape.elements(); }
  std::int64_t bytes() const { return fusejit::bytes(dtype, shape.elements()); }
  // "f32[8,64,56,56]:nhwc"
  std::string str() const;
  friend bool operator==(const Type&, const Type&) = default;
};

}  // namespace fusejit
