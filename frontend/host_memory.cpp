// Values from host memory and back: copies, borrowed memory, and reading in place.
#include "frontend/host_memory.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "fusejit/host.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"
#include "ir/base/hash.h"

namespace fusejit {
namespace {

std::string strides_text(std::span<const std::int64_t> strides) {
  std::string text;
  for (const std::int64_t s : strides) text += fmt::format("{}{}", text.empty() ? "" : ",", s);
  return "[" + text + "]";
}

std::string text_of(const StridedMemory& memory) {
  return fmt::format("x: {} with strides {}", memory.type().str(),
                     strides_text(std::span(memory.strides).first(static_cast<std::size_t>(memory.shape.rank()))));
}

std::int64_t stride(const StridedMemory& memory, std::int64_t axis) {
  return memory.strides[static_cast<std::size_t>(axis)];
}

// Offsets of the elements, and that they are there in 64 bits of bytes.
bool reach(StridedMemory& memory) {
  const std::int64_t item = bytes(memory.dtype);
  for (int axis = 0; axis < memory.shape.rank(); ++axis) {
    std::int64_t steps = 0;
    if (__builtin_mul_overflow(memory.shape[axis] - 1, stride(memory, axis), &steps)) return false;
    std::int64_t& end = steps < 0 ? memory.lowest : memory.highest;
    if (__builtin_add_overflow(end, steps, &end)) return false;
  }
  const auto first = reinterpret_cast<std::uintptr_t>(memory.elements);
  std::int64_t low = 0, high = 0, count = 0;
  std::uintptr_t address = 0;
  return !__builtin_mul_overflow(memory.lowest, item, &low) && !__builtin_add_overflow(memory.highest, 1, &count) &&
         !__builtin_mul_overflow(count, item, &high) && !__builtin_add_overflow(first, high, &address) &&
         !__builtin_add_overflow(first, low, &address);
}

// The axes but the last one are counted through, the last one is a loop.
template <std::size_t kItem>
void gather(const StridedMemory& memory, std::byte* to) {
  const int outer = memory.shape.rank() - 1;
  const std::int64_t width = outer < 0 ? 1 : memory.shape[outer], step = outer < 0 ? 1 : stride(memory, outer);
  const auto* first = static_cast<const std::byte*>(memory.elements);
  std::array<std::int64_t, kMaxRank> index{};
  std::int64_t from = 0;
  for (std::int64_t rows = memory.shape.elements() / width; rows > 0; --rows) {
    for (std::int64_t i = 0; i < width; ++i, to += kItem)
      std::memcpy(to, first + (from + i * step) * static_cast<std::int64_t>(kItem), kItem);
    for (int axis = outer - 1; axis >= 0; --axis) {
      std::int64_t& at = index[static_cast<std::size_t>(axis)];
      from += stride(memory, axis);
      if (++at < memory.shape[axis]) break;
      from -= at * stride(memory, axis);
      at = 0;
    }
  }
}

// Host memory as a tensor on the default device.
Tensor made(const runtime::Buffer& buffer) { return tensor_of(place(buffer, default_device())); }

}  // namespace

bool StridedMemory::is_aligned() const {
  return reinterpret_cast<std::uintptr_t>(elements) % static_cast<std::uintptr_t>(bytes(dtype)) == 0;
}

std::vector<std::int64_t> strides_of(const Type& type) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(type.shape.rank()));
  const std::array<int, 4> nhwc = {0, 2, 3, 1};
  std::int64_t step = 1;
  for (int place = type.shape.rank() - 1; place >= 0; --place) {
    const int axis = type.layout == Layout::nhwc ? nhwc[static_cast<std::size_t>(place)] : place;
    strides[static_cast<std::size_t>(axis)] = std::exchange(step, step * std::max<std::int64_t>(type.shape[axis], 1));
  }
  return strides;
}

StridedMemory strided_memory(const char* caller, const void* elements, DType dtype, const Shape& shape,
                             std::span<const std::int64_t> strides) {
  FJ_CHECK(is_tensor_dtype(dtype), "{}: {} is no dtype of tensors", caller, name(dtype));
  StridedMemory memory{elements, dtype, shape, {}};
  FJ_CHECK(strides.size() == static_cast<std::size_t>(shape.rank()), "{}: there are {} strides {} for rank {} (x: {})",
           caller, strides.size(), strides_text(strides), shape.rank(), memory.type().str());
  std::copy(strides.begin(), strides.end(), memory.strides.begin());
  if (shape.elements() == 0) return memory;
  FJ_CHECK(elements, "{}: the memory is null ({})", caller, text_of(memory));
  FJ_CHECK(reach(memory), "{}: elements lie beyond every address ({})", caller, text_of(memory));
  return memory;
}

std::optional<std::vector<std::int64_t>> dense_order(const StridedMemory& memory) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(memory.shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (memory.shape.elements() == 0) return order;
  const auto is_walked = [&](std::int64_t axis) {
    return memory.shape[static_cast<int>(axis)] > 1 && stride(memory, axis) != 0;
  };
  const auto walked = std::stable_partition(order.begin(), order.end(), [&](auto axis) { return !is_walked(axis); });
  std::stable_sort(walked, order.end(), [&](auto a, auto b) { return stride(memory, a) > stride(memory, b); });
  std::int64_t next = 1;
  for (auto axis = order.end(); axis != walked;) {
    if (stride(memory, *--axis) != next) return std::nullopt;
    next *= memory.shape[static_cast<int>(*axis)];
  }
  // Axes along which memory does not go on may stand anywhere.
  if (std::is_sorted(walked, order.end())) std::sort(order.begin(), order.end());
  return order;
}

Tensor view_of(const StridedMemory& memory, std::span<const std::int64_t> order,
               const std::function<Tensor(const Type& as_it_lies)>& borrow) {
  const bool is_empty = memory.shape.elements() == 0;
  std::vector<std::int64_t> extents, place_of(order.size());
  bool repeats = false;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int64_t extent = memory.shape[static_cast<int>(order[k])];
    const bool is_repeated = !is_empty && extent > 1 && stride(memory, order[k]) == 0;
    repeats |= is_repeated;
    extents.push_back(is_repeated ? 1 : extent);
    place_of[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
  }
  Tensor tensor = borrow({memory.dtype, Shape(std::span<const std::int64_t>(extents)), Layout::standard});
  if (!std::is_sorted(order.begin(), order.end())) tensor = permute(tensor, place_of);
  return repeats ? expand(tensor, {memory.shape.begin(), memory.shape.end()}) : tensor;
}

runtime::Buffer gathered(const StridedMemory& memory) {
  runtime::Buffer buffer = runtime::Buffer::allocate(memory.type());
  if (memory.shape.elements() == 0) return buffer;
  auto* to = static_cast<std::byte*>(buffer.data());
  switch (bytes(memory.dtype)) {
    case 1:
      gather<1>(memory, to);
      break;
    case 2:
      gather<2>(memory, to);
      break;
    case 4:
      gather<4>(memory, to);
      break;
    default:
      gather<8>(memory, to);
  }
  return buffer;
}

Tensor borrowed(const void* elements, const Type& type, std::function<void()> deleter) {
  ir::Value value = leaf(runtime::Buffer::borrow(const_cast<void*>(elements), type, std::move(deleter)));
  Attachment* note = attachment(value.get());
  note->borrowed = true;
  if (context().check_borrowed)
    note->checksum = ir::hash_bytes(elements, static_cast<std::size_t>(type.bytes())).low | 1;
  return tensor_of(std::move(value), false, 0, Device());
}

Tensor from_host(const void* elements, const Shape& shape, DType dtype) {
  const StridedMemory memory = strided_memory("from_host", elements, dtype, shape, strides_of({dtype, shape}));
  runtime::Buffer buffer = runtime::Buffer::allocate(memory.type());
  if (buffer.bytes() > 0) std::memcpy(buffer.data(), elements, static_cast<std::size_t>(buffer.bytes()));
  return made(buffer);
}

Tensor from_host(const void* elements, const Shape& shape, DType dtype, const std::vector<std::int64_t>& strides) {
  return made(gathered(strided_memory("from_host", elements, dtype, shape, strides)));
}

void check_within(const Shape& shape, DType dtype, const std::vector<std::int64_t>& strides, std::size_t values) {
  static const char anywhere = 0;
  const StridedMemory memory = strided_memory("from_host", &anywhere, dtype, shape, strides);
  FJ_CHECK(shape.elements() == 0 ||
               (memory.lowest >= 0 && static_cast<std::uint64_t>(memory.highest) < static_cast<std::uint64_t>(values)),
           "from_host: elements {} to {} are meant, {} values given ({})", memory.lowest, memory.highest, values,
           text_of(memory));
}

Tensor borrow(void* elements, const Shape& shape, DType dtype, std::function<void()> deleter) {
  return borrow(elements, shape, dtype, strides_of({dtype, shape}), std::move(deleter));
}

Tensor borrow(void* elements, const Shape& shape, DType dtype, const std::vector<std::int64_t>& strides,
              std::function<void()> deleter) {
  const StridedMemory memory = strided_memory("borrow", elements, dtype, shape, strides);
  FJ_CHECK(memory.is_aligned(),
           "borrow: the memory is not aligned to the {} bytes of an element; from_host copies it "
           "({})",
           bytes(dtype), text_of(memory));
  const auto order = dense_order(memory);
  FJ_CHECK(order, "borrow: the elements do not fill their memory in a row; from_host copies them ({})",
           text_of(memory));
  return view_of(memory, *order, [&](const Type& type) { return borrowed(elements, type, std::move(deleter)); });
}

const void* Tensor::elements_in_place(DType as) const {
  const runtime::Buffer buffer = buffer_of(*this);
  FJ_CHECK(buffer.type().dtype == as, "span: the elements are no {} (x: {})", name(as), type().str());
  FJ_CHECK(buffer.device().is_cpu(), "span: the elements are on {}; .to(\"cpu\") copies them (x: {})",
           buffer.device().str(), type().str());
  FJ_CHECK(buffer.type().layout == Layout::standard,
           "span: the elements are not row-major in memory; host_view() has their strides (x: {})", type().str());
  return buffer.data();
}

HostMemory host_memory(const Tensor& tensor, DType as) {
  const auto buffer = std::make_shared<runtime::Buffer>(buffer_of(tensor).on_host());
  const Type& type = buffer->type();
  FJ_CHECK(type.dtype == as, "host_view: the elements are no {} (x: {})", name(as), type.str());
  HostMemory memory{{buffer, buffer->data()}, type.shape, {}};
  const std::vector<std::int64_t> strides = strides_of(type);
  std::copy(strides.begin(), strides.end(), memory.strides.begin());
  return memory;
}

void refuse_index(const HostMemory& memory, std::span<const std::int64_t> index) {
  throw UserError(fmt::format("host_view: there is no element {} (shape {})", strides_text(index), memory.shape.str()));
}

}  // namespace fusejit
