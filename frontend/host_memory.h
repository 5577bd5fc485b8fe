// Memory that is not ours, with a stride for each axis: how much of it is meant, whether views can say it, and a copy.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fusejit/tensor.h"
#include "runtime/buffer.h"

namespace fusejit {

struct StridedMemory {
  const void* elements = nullptr;  // the one of index [0,...,0]
  DType dtype = DType::f32;
  Shape shape;
  std::array<std::int64_t, kMaxRank> strides{};  // in elements
  std::int64_t lowest = 0, highest = 0;          // offsets of elements, from that one

  Type type() const { return {dtype, shape, Layout::standard}; }
  bool is_aligned() const;  // as kernels read elements
};

// UserError, of `caller`, for a dtype that is none of tensors, another number of strides than axes, null memory for
// more than no elements, or elements that no address reaches.
StridedMemory strided_memory(const char* caller, const void* elements, DType dtype, const Shape& shape,
                             std::span<const std::int64_t> strides);
// Of the axes of the logical shape, in elements.
std::vector<std::int64_t> strides_of(const Type& type);

// The axes from the outermost in memory to the innermost, as they are if that is an order of the memory too; where the
// elements fill their memory without holes, each once or repeated along axes of stride 0.
std::optional<std::vector<std::int64_t>> dense_order(const StridedMemory& memory);
// Memory that has such an order: views of a tensor on it. `borrow` makes that one, of the elements as they lie there.
Tensor view_of(const StridedMemory& memory, std::span<const std::int64_t> order,
               const std::function<Tensor(const Type& as_it_lies)>& borrow);
// A row-major copy, of any strides.
runtime::Buffer gathered(const StridedMemory& memory);

// A leaf on the cpu that reads the memory of somebody else.
Tensor borrowed(const void* elements, const Type& type, std::function<void()> deleter);

}  // namespace fusejit
