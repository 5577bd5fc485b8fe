// The part of the CUDA driver's C interface that fusejit calls, declared here, so that building needs no toolkit:
// handles, the constants used, and Driver, the table of functions. A test may fill the table with functions of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusejit::runtime::cuda {

using CuResult = int;             // kSuccess or one of the codes in error.cpp
using CuDevice = int;             // an ordinal's handle
using CuPointer = std::uint64_t;  // an address on the device
using CuContext = struct CuContextHandle*;
using CuStream = struct CuStreamHandle*;
using CuEvent = struct CuEventHandle*;
using CuModule = struct CuModuleHandle*;
using CuFunction = struct CuFunctionHandle*;
using CuGraph = struct CuGraphHandle*;
using CuGraphNode = struct CuGraphNodeHandle*;
using CuGraphExec = struct CuGraphExecHandle*;

constexpr CuResult kSuccess = 0;
constexpr CuResult kOutOfMemory = 2;
constexpr CuResult kStubLibrary = 34;
constexpr CuResult kNoDevice = 100;
constexpr CuResult kNotReady = 600;

constexpr unsigned kStreamNonBlocking = 1;  // independent of the legacy default stream
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kHostAllocPortable = 1;  // pinned for every context
constexpr int kCaptureThreadLocal = 1;      // other threads may go on calling the driver
constexpr int kCaptureStatusNone = 0;
constexpr int kCaptureStatusActive = 1;

// CUdevice_attribute
enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kClockRateKhz = 13,
  kMultiprocessorCount = 16,
  kMemoryClockRateKhz = 36,
  kMemoryBusWidthBits = 37,
  kL2CacheBytes = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedMemoryPerBlockOptin = 97,
};

// CUfunction_attribute
enum FunctionAttribute : int {
  kFunctionMaxThreadsPerBlock = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicSharedBytes = 8,
};

// CUDA_KERNEL_NODE_PARAMS_v2
struct CuKernelNodeParams {
  CuFunction function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  CuContext context = nullptr;
};

// One function of the driver: the versioned name that the library exports, and its address.
template <typename... Parameters>
struct Call {
  const char* symbol;
  CuResult (*function)(Parameters...) = nullptr;
};

// member, exported name, parameter types
#define FJ_DRIVER_CALLS(CALL)                                                                                   \
  CALL(init, "cuInit", unsigned)                                                                                \
  CALL(driver_get_version, "cuDriverGetVersion", int*)                                                          \
  CALL(get_error_name, "cuGetErrorName", CuResult, const char**)                                                \
  CALL(get_error_string, "cuGetErrorString", CuResult, const char**)                                            \
  CALL(device_get_count, "cuDeviceGetCount", int*)                                                              \
  CALL(device_get, "cuDeviceGet", CuDevice*, int)                                                               \
  CALL(device_get_name, "cuDeviceGetName", char*, int, CuDevice)                                                \
  CALL(device_get_attribute, "cuDeviceGetAttribute", int*, int, CuDevice)                                       \
  CALL(device_total_memory, "cuDeviceTotalMem_v2", std::size_t*, CuDevice)                                      \
  CALL(primary_context_retain, "cuDevicePrimaryCtxRetain", CuContext*, CuDevice)                                \
  CALL(primary_context_release, "cuDevicePrimaryCtxRelease_v2", CuDevice)                                       \
  CALL(context_set_current, "cuCtxSetCurrent", CuContext)                                                       \
  CALL(memory_get_info, "cuMemGetInfo_v2", std::size_t*, std::size_t*)                                          \
  CALL(memory_allocate, "cuMemAlloc_v2", CuPointer*, std::size_t)                                               \
  CALL(memory_free, "cuMemFree_v2", CuPointer)                                                                  \
  CALL(host_allocate, "cuMemHostAlloc", void**, std::size_t, unsigned)                                          \
  CALL(host_free, "cuMemFreeHost", void*)                                                                       \
  CALL(copy_to_device, "cuMemcpyHtoDAsync_v2", CuPointer, const void*, std::size_t, CuStream)                   \
  CALL(copy_to_host, "cuMemcpyDtoHAsync_v2", void*, CuPointer, std::size_t, CuStream)                           \
  CALL(copy_on_device, "cuMemcpyDtoDAsync_v2", CuPointer, CuPointer, std::size_t, CuStream)                     \
  CALL(fill_bytes, "cuMemsetD8Async", CuPointer, unsigned char, std::size_t, CuStream)                          \
  CALL(stream_create, "cuStreamCreate", CuStream*, unsigned)                                                    \
  CALL(stream_destroy, "cuStreamDestroy_v2", CuStream)                                                          \
  CALL(stream_synchronize, "cuStreamSynchronize", CuStream)                                                     \
  CALL(stream_wait_event, "cuStreamWaitEvent", CuStream, CuEvent, unsigned)                                     \
  CALL(event_create, "cuEventCreate", CuEvent*, unsigned)                                                       \
  CALL(event_destroy, "cuEventDestroy_v2", CuEvent)                                                             \
  CALL(event_record, "cuEventRecord", CuEvent, CuStream)                                                        \
  CALL(event_query, "cuEventQuery", CuEvent)                                                                    \
  CALL(event_synchronize, "cuEventSynchronize", CuEvent)                                                        \
  CALL(event_elapsed_time, "cuEventElapsedTime", float*, CuEvent, CuEvent)                                      \
  CALL(module_load_data, "cuModuleLoadData", CuModule*, const void*)                                            \
  CALL(module_unload, "cuModuleUnload", CuModule)                                                               \
  CALL(module_get_function, "cuModuleGetFunction", CuFunction*, CuModule, const char*)                          \
  CALL(function_get_attribute, "cuFuncGetAttribute", int*, int, CuFunction)                                     \
  CALL(function_set_attribute, "cuFuncSetAttribute", CuFunction, int, int)                                      \
  CALL(launch_kernel, "cuLaunchKernel", CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
       unsigned, CuStream, void**, void**)                                                                      \
  CALL(stream_begin_capture, "cuStreamBeginCapture_v2", CuStream, int)                                          \
  CALL(stream_end_capture, "cuStreamEndCapture", CuStream, CuGraph*)                                            \
  CALL(stream_get_capture_info, "cuStreamGetCaptureInfo_v2", CuStream, int*, std::uint64_t*, CuGraph*,          \
       const CuGraphNode**, std::size_t*)                                                                       \
  CALL(graph_instantiate, "cuGraphInstantiateWithFlags", CuGraphExec*, CuGraph, unsigned long long)             \
  CALL(graph_set_kernel_node, "cuGraphExecKernelNodeSetParams_v2", CuGraphExec, CuGraphNode,                    \
       const CuKernelNodeParams*)                                                                               \
  CALL(graph_launch, "cuGraphLaunch", CuGraphExec, CuStream)                                                    \
  CALL(graph_exec_destroy, "cuGraphExecDestroy", CuGraphExec)                                                   \
  CALL(graph_destroy, "cuGraphDestroy", CuGraph)

struct Driver {
#define FJ_DRIVER_MEMBER(member, symbol, ...) Call<__VA_ARGS__> member{symbol};
  FJ_DRIVER_CALLS(FJ_DRIVER_MEMBER)
#undef FJ_DRIVER_MEMBER
};

// visit(call) for every function of the table, in the order above.
template <typename Visit>
void for_each_call(Driver& driver, Visit visit) {
#define FJ_DRIVER_VISIT(member, ...) visit(driver.member);
  FJ_DRIVER_CALLS(FJ_DRIVER_VISIT)
#undef FJ_DRIVER_VISIT
}

}  // namespace fusejit::runtime::cuda
