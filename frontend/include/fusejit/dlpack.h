// DLPack: tensors from other libraries and to them, without a copy (docs/interop.md). Not part of fusejit.h.
//
//   fj::Tensor x = fj::from_dlpack(fj::to_dlpack(fj::ones({2, 3})));
//
// The structs below are DLPack's own, of version 1.0, declared here so that nothing else is needed; where
// <dlpack/dlpack.h> is included first, its declarations are used. Memory that two libraries see is for reading by both:
// values of tensors never change, and what is imported must not change either.
#pragma once

#include <cstdint>

#include "fusejit/tensor.h"

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_  // what follows stands for that header

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)  // who gets it must not write
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)  // made for this exchange: nobody else has it

extern "C" {

typedef struct {
  std::uint32_t major;  // another one is another ABI, of which only the deleter can be used
  std::uint32_t minor;
} DLPackVersion;

typedef enum : std::int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,  // pinned memory of the host
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  std::int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U
} DLDataTypeCode;

typedef struct {
  std::uint8_t code;  // a DLDataTypeCode
  std::uint8_t bits;  // of a lane
  std::uint16_t lanes;
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
} DLTensor;

// Until version 1.
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);  // may be null
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);  // may be null
  std::uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

}  // extern "C"
#endif

struct DLManagedTensorVersioned;  // which a <dlpack/dlpack.h> before version 0.9 lacks

namespace fusejit {

// The tensor, which is ours from now on: its deleter is called once, on any thread, when nothing needs the memory any
// more, and at once if it is refused or copied. Memory of the host and of CUDA devices is used where it is; strides
// that fill their memory in some order of the axes, or are 0, become views. On the host all others are copied (a pitch,
// negative strides, elements that are not aligned). Work that computes the elements must be done. On cpu, or the
// device. Every dtype that tensors have. UserError for another one, another device, major version, rank over 8, null
// memory and so on; UnsupportedError for strides on a device that no view says; DeviceError.
Tensor from_dlpack(DLManagedTensor* managed);
Tensor from_dlpack(DLManagedTensorVersioned* managed);

// The value, evaluated, where it is: who gets it calls the deleter, on any thread, when it needs the memory no more,
// and must not write there; the newer form says so by its flag. On a device the value is there when this returns.
DLManagedTensor* to_dlpack(const Tensor& tensor);
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor);

}  // namespace fusejit
