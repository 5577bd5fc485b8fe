// Shape: the extents of a tensor, rank 0 to 8, in logical order (NCHW for images), never allocating.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace fusejit {

// Axes at most.
inline constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  // Throws UserError if the rank exceeds 8, an extent is negative or the product exceeds 2^40 elements.
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  auto begin() const { return dims().begin(); }
  auto end() const { return dims().end(); }
  // Product of the extents; 1 for rank 0.
  std::int64_t elements() const;
  // "[8,64,56,56]"
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// The broadcast of two shapes (NumPy rules), or nothing if they do not match.
bool broadcast_shapes(const Shape& a, const Shape& b, Shape& result);

}  // namespace fusejit
