#include "fusejit/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ir/base/check.h"

namespace fusejit {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) {
  FJ_CHECK(dims.size() <= kMaxRank, "a shape has at most {} dimensions, not {}", kMaxRank, dims.size());
  // Empty dimensions count as one here, so that no stride computed from a shape can overflow.
  std::int64_t product = 1;
  for (const std::int64_t extent : dims) {
    FJ_CHECK(extent >= 0, "the shape [{}] has a negative extent", fmt::join(dims, ","));
    const std::int64_t factor = std::max<std::int64_t>(extent, 1);
    FJ_CHECK(factor <= kMaxElements / product, "the shape [{}] has more than 2^40 elements", fmt::join(dims, ","));
    product *= factor;
  }
  std::copy(dims.begin(), dims.end(), dims_.begin());
  rank_ = static_cast<int>(dims.size());
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : dims()) product *= extent;
  return product;
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(dims(), ",")); }

bool broadcast_shapes(const Shape& a, const Shape& b, Shape& result) {
  std::array<std::int64_t, kMaxRank> dims{};
  const int rank = std::max(a.rank(), b.rank());
  for (int from_right = 1; from_right <= rank; ++from_right) {
    const std::int64_t x = from_right <= a.rank() ? a[a.rank() - from_right] : 1;
    const std::int64_t y = from_right <= b.rank() ? b[b.rank() - from_right] : 1;
    if (x != y && x != 1 && y != 1) return false;
    dims[static_cast<std::size_t>(rank - from_right)] = x == 1 ? y : x;
  }
  result = Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
  return true;
}

}  // namespace fusejit
