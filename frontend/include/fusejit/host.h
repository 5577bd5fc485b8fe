// Host memory of other libraries as tensors, whatever its strides are, and values of tensors as host memory
// (docs/interop.md). Strides count elements: from an index to the next along axis k it is strides[k] of them.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "fusejit/tensor.h"

namespace fusejit {

// A copy of elements that lie apart: rows of an image with a pitch, as OpenCV has them, column-major matrices, as
// Eigen has them, negative strides and those of 0 too. The first pointer is that of index [0,...,0]. UserError for
// another number of strides than axes, elements beyond every address, and, of a span, elements outside of it.
//   std::vector<float> pitched = {1, 2, 0, 3, 4, 0};  // rows of 2, each in 3
//   fj::Tensor rows = fj::from_host(pitched, {2, 2}, {3, 1});
Tensor from_host(const void* elements, const Shape& shape, DType dtype, const std::vector<std::int64_t>& strides);
void check_within(const Shape& shape, DType dtype, const std::vector<std::int64_t>& strides,
                  std::size_t values);  // internal
template <class T>
Tensor from_host(std::span<const T> values, const Shape& shape, const std::vector<std::int64_t>& strides) {
  check_within(shape, dtype_of<T>(), strides, values.size());
  return from_host(static_cast<const void*>(values.data()), shape, dtype_of<T>(), strides);
}
template <class T>
Tensor from_host(const std::vector<T>& values, const Shape& shape, const std::vector<std::int64_t>& strides) {
  return from_host(std::span<const T>(values), shape, strides);
}

// borrow() of elements that fill their memory in some order of the axes, column-major say, or are repeated by a stride
// of 0: a view of the memory where it is. UserError for others: what has a pitch or negative strides is copied, by
// from_host.
//   float columns[] = {1, 4, 2, 5, 3, 6};
//   fj::Tensor x = fj::borrow(columns, {2, 3}, {1, 2});  // 1 2 3, 4 5 6
Tensor borrow(void* elements, const Shape& shape, DType dtype, const std::vector<std::int64_t>& strides,
              std::function<void()> deleter = {});
template <class T>
Tensor borrow(T* elements, const Shape& shape, const std::vector<std::int64_t>& strides,
              std::function<void()> deleter = {}) {
  return borrow(const_cast<std::remove_const_t<T>*>(elements), shape, dtype_of<std::remove_const_t<T>>(), strides,
                std::move(deleter));
}

struct HostMemory {                      // internal
  std::shared_ptr<const void> elements;  // the first one; holds them all
  Shape shape;
  std::array<std::int64_t, kMaxRank> strides{};
};
HostMemory host_memory(const Tensor& tensor, DType as);                                         // internal
[[noreturn]] void refuse_index(const HostMemory& memory, std::span<const std::int64_t> index);  // internal

// A value's elements, read in place: pointer, shape and strides, as std::mdspan has them. A view holds the memory: it
// is good as long as it, or a copy of it, is there, whatever becomes of tensors and of training steps. Values never
// change, so it is for reading only.
//   fj::HostView<float> view = fj::host_view<float>(fj::ones({2, 3}) * 2);
//   std::cout << view(1, 2) << ' ' << view.strides()[0];  // 2 3
template <class T>
class HostView {
 public:
  explicit HostView(HostMemory memory) : memory_(std::move(memory)) {}  // internal

  const T* data() const { return static_cast<const T*>(memory_.elements.get()); }
  const Shape& shape() const { return memory_.shape; }
  int rank() const { return shape().rank(); }
  // How many elements lead from one index to the next along each axis.
  std::span<const std::int64_t> strides() const { return {memory_.strides.data(), static_cast<std::size_t>(rank())}; }
  // The element of an index for each axis. UserError for one that is out of range, or another number of them; loops
  // that cannot wait for the check use data() and strides().
  template <std::integral... Index>
  const T& operator()(Index... index) const {
    const std::array<std::int64_t, sizeof...(Index)> at{static_cast<std::int64_t>(index)...};
    std::int64_t offset = 0;
    bool is_there = static_cast<int>(at.size()) == rank();
    for (std::size_t axis = 0; is_there && axis < at.size(); ++axis) {
      is_there = at[axis] >= 0 && at[axis] < shape()[static_cast<int>(axis)];
      if (is_there) offset += at[axis] * memory_.strides[axis];
    }
    if (!is_there) refuse_index(memory_, at);
    return data()[offset];
  }

 private:
  HostMemory memory_;
};

// Evaluates; a value on a device is copied to the host. T is the dtype's own type (dtype_of), or std::uint16_t for the
// bits of f16 and bf16; UserError for another dtype.
template <class T>
HostView<T> host_view(const Tensor& tensor) {
  return HostView<T>(host_memory(tensor, element_dtype<T>(tensor.dtype())));
}

}  // namespace fusejit
