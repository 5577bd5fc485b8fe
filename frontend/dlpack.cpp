#include "fusejit/dlpack.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "frontend/evaluation/evaluation.h"
#include "frontend/host_memory.h"
#include "fusejit/runtime.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

// Keeps what was handed over; its deleter is called when the last of these goes, with an exception too.
template <class Managed>
std::shared_ptr<void> owner_of(Managed* managed) {
  return {managed, [](void* given) {
            auto* one = static_cast<Managed*>(given);
            if (one->deleter) one->deleter(one);
          }};
}

DLDataType data_type_of(DType dtype) {
  const auto code = [&]() -> DLDataTypeCode {
    if (dtype == DType::boolean) return kDLBool;
    if (dtype == DType::bf16) return kDLBfloat;
    if (is_float(dtype)) return kDLFloat;
    return is_signed(dtype) ? kDLInt : kDLUInt;
  };
  return {static_cast<std::uint8_t>(code()), static_cast<std::uint8_t>(bits(dtype)), 1};
}

std::string text_of(const DLDataType& type) {
  static constexpr const char* kNames[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const std::string code = type.code < std::size(kNames) ? kNames[type.code] : fmt::format("type {}, ", type.code);
  return fmt::format("{}{}{}", code, type.bits, type.lanes == 1 ? "" : fmt::format(" in {} lanes", type.lanes));
}

DType dtype_from(const DLDataType& type) {
  for (const DType dtype : {boolean, i8, u8, i16, i32, i64, f16, bf16, f32, f64}) {
    const DLDataType own = data_type_of(dtype);
    if (own.code == type.code && own.bits == type.bits && own.lanes == type.lanes) return dtype;
  }
  throw UserError(
      fmt::format("from_dlpack: {} is no dtype of tensors (which are bool, int8, uint8, int16, int32, int64, "
                  "float16, bfloat16, float32, float64)",
                  text_of(type)));
}

Device device_from(const DLDevice& device) {
  switch (static_cast<std::int32_t>(device.device_type)) {
    case kDLCPU:
    case kDLCUDAHost:
      return {};
    case kDLCUDA:
      FJ_CHECK(device.device_id >= 0, "from_dlpack: there is no CUDA device {}", device.device_id);
      return Device(fmt::format("cuda:{}", device.device_id));
    default:
      throw UserError(fmt::format(
          "from_dlpack: the memory is of DLPack's device type {}; only that of the host (1, 3) and of CUDA devices (2) "
          "can be used",
          static_cast<std::int32_t>(device.device_type)));
  }
}

StridedMemory memory_of(const DLTensor& tensor) {
  const DType dtype = dtype_from(tensor.dtype);
  FJ_CHECK(tensor.ndim >= 0 && tensor.ndim <= kMaxRank, "from_dlpack: the rank is {}, it must be 0 to {}", tensor.ndim,
           kMaxRank);
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  FJ_CHECK(tensor.shape || rank == 0, "from_dlpack: there is no shape, for rank {}", rank);
  const Shape shape(std::span<const std::int64_t>(tensor.shape, rank));
  const std::vector<std::int64_t> row_major = strides_of({dtype, shape});
  std::uintptr_t address = 0;
  FJ_CHECK(!__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(tensor.data), tensor.byte_offset, &address),
           "from_dlpack: the byte_offset {} leads beyond every address (x: {})", tensor.byte_offset,
           Type{dtype, shape}.str());
  FJ_CHECK(tensor.data || shape.elements() == 0, "from_dlpack: the memory is null (x: {})", Type{dtype, shape}.str());
  return strided_memory("from_dlpack", reinterpret_cast<const void*>(address), dtype, shape,
                        tensor.strides && rank > 0 ? std::span<const std::int64_t>(tensor.strides, rank) : row_major);
}

// Keeps `owner` as long as the memory is needed.
Tensor imported(const DLTensor& tensor, const std::shared_ptr<void>& owner) {
  const Device device = device_from(tensor.device);
  const StridedMemory memory = memory_of(tensor);
  if (memory.shape.elements() == 0) return tensor_of(place(runtime::Buffer::allocate(memory.type()), device));
  const auto order = dense_order(memory);
  const auto keep = [owner] {};
  if (device.is_cpu()) {
    if (!order || !memory.is_aligned()) return tensor_of(gathered(memory));
    return view_of(memory, *order, [&](const Type& type) { return borrowed(memory.elements, type, keep); });
  }
  if (!order) {
    throw UnsupportedError(
        fmt::format("from_dlpack: the elements do not fill their memory on {} in a row; copy them to where they do (x: "
                    "{})",
                    device.str(), memory.type().str()));
  }
  return view_of(memory, *order, [&](const Type& type) {
    return tensor_of(borrow_on(device, reinterpret_cast<std::uintptr_t>(memory.elements), type, keep));
  });
}

// What an exported tensor points into.
template <class Managed>
struct Exported {
  runtime::Buffer buffer;
  std::array<std::int64_t, kMaxRank> shape{}, strides{};
  Managed managed{};
};

template <class Managed>
Managed* exported(const Tensor& tensor) {
  auto made = std::make_unique<Exported<Managed>>();
  made->buffer = buffer_of(tensor);
  const Type& type = made->buffer.type();
  const Device device = made->buffer.device();
  if (!device.is_cpu()) synchronize(device);
  std::copy(type.shape.begin(), type.shape.end(), made->shape.begin());
  const std::vector<std::int64_t> strides = strides_of(type);
  std::copy(strides.begin(), strides.end(), made->strides.begin());
  DLTensor& out = made->managed.dl_tensor;
  out.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(made->buffer.address()));
  out.device = {device.is_cpu() ? kDLCPU : kDLCUDA, device.ordinal};
  out.ndim = type.shape.rank();
  out.dtype = data_type_of(type.dtype);
  out.shape = made->shape.data();
  out.strides = made->strides.data();
  made->managed.manager_ctx = made.get();
  made->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager_ctx); };
  return &made.release()->managed;
}

}  // namespace

Tensor from_dlpack(DLManagedTensor* managed) {
  FJ_CHECK(managed, "from_dlpack: there is no tensor, the pointer is null");
  return imported(managed->dl_tensor, owner_of(managed));
}

Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  FJ_CHECK(managed, "from_dlpack: there is no tensor, the pointer is null");
  const std::shared_ptr<void> owner = owner_of(managed);
  FJ_CHECK(managed->version.major == DLPACK_MAJOR_VERSION,
           "from_dlpack: the tensor is of version {}.{} of DLPack, only those of version {} can be read",
           managed->version.major, managed->version.minor, DLPACK_MAJOR_VERSION);
  return imported(managed->dl_tensor, owner);
}

DLManagedTensor* to_dlpack(const Tensor& tensor) { return exported<DLManagedTensor>(tensor); }

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor) {
  auto* managed = exported<DLManagedTensorVersioned>(tensor);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  return managed;
}

}  // namespace fusejit
