// Compares driver_api.h with the toolkit's headers: every function's parameters, and every number. Empty where there
// are none.
#if __has_include(<cudaTypedefs.h>)
#include <cudaTypedefs.h>

#include <cstddef>
#include <type_traits>

#include "runtime/cuda/driver/driver_api.h"

namespace fusejit::runtime::cuda {
namespace {

// Handles have types of their own on each side: what counts is how a parameter is passed.
template <typename Ours, typename Theirs>
constexpr bool kPassedTheSame = sizeof(Ours) == sizeof(Theirs) &&
                                std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>&& std::is_floating_point_v<Ours> ==
                                    std::is_floating_point_v<Theirs>;

template <typename... Ours, typename Result, typename... Theirs>
constexpr bool same(Call<Ours...>, Result (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) return (kPassedTheSame<Ours, Theirs> && ...);
  return false;
}

#define FJ_SAME(member, function) static_assert(same(decltype(Driver::member){}, PFN_##function{}))
FJ_SAME(init, cuInit_v2000);
FJ_SAME(driver_get_version, cuDriverGetVersion_v2020);
FJ_SAME(get_error_name, cuGetErrorName_v6000);
FJ_SAME(get_error_string, cuGetErrorString_v6000);
FJ_SAME(device_get_count, cuDeviceGetCount_v2000);
FJ_SAME(device_get, cuDeviceGet_v2000);
FJ_SAME(device_get_name, cuDeviceGetName_v2000);
FJ_SAME(device_get_attribute, cuDeviceGetAttribute_v2000);
FJ_SAME(device_total_memory, cuDeviceTotalMem_v3020);
FJ_SAME(primary_context_retain, cuDevicePrimaryCtxRetain_v7000);
FJ_SAME(primary_context_release, cuDevicePrimaryCtxRelease_v11000);
FJ_SAME(context_set_current, cuCtxSetCurrent_v4000);
FJ_SAME(memory_get_info, cuMemGetInfo_v3020);
FJ_SAME(memory_allocate, cuMemAlloc_v3020);
FJ_SAME(memory_free, cuMemFree_v3020);
FJ_SAME(host_allocate, cuMemHostAlloc_v2020);
FJ_SAME(host_free, cuMemFreeHost_v2000);
FJ_SAME(copy_to_device, cuMemcpyHtoDAsync_v3020);
FJ_SAME(copy_to_host, cuMemcpyDtoHAsync_v3020);
FJ_SAME(copy_on_device, cuMemcpyDtoDAsync_v3020);
FJ_SAME(fill_bytes, cuMemsetD8Async_v3020);
FJ_SAME(stream_create, cuStreamCreate_v2000);
FJ_SAME(stream_destroy, cuStreamDestroy_v4000);
FJ_SAME(stream_synchronize, cuStreamSynchronize_v2000);
FJ_SAME(stream_wait_event, cuStreamWaitEvent_v3020);
FJ_SAME(event_create, cuEventCreate_v2000);
FJ_SAME(event_destroy, cuEventDestroy_v4000);
FJ_SAME(event_record, cuEventRecord_v2000);
FJ_SAME(event_query, cuEventQuery_v2000);
FJ_SAME(event_synchronize, cuEventSynchronize_v2000);
FJ_SAME(event_elapsed_time, cuEventElapsedTime_v2000);
FJ_SAME(module_load_data, cuModuleLoadData_v2000);
FJ_SAME(module_unload, cuModuleUnload_v2000);
FJ_SAME(module_get_function, cuModuleGetFunction_v2000);
FJ_SAME(function_get_attribute, cuFuncGetAttribute_v2020);
FJ_SAME(function_set_attribute, cuFuncSetAttribute_v9000);
FJ_SAME(launch_kernel, cuLaunchKernel_v4000);
FJ_SAME(stream_begin_capture, cuStreamBeginCapture_v10010);
FJ_SAME(stream_end_capture, cuStreamEndCapture_v10000);
FJ_SAME(stream_get_capture_info, cuStreamGetCaptureInfo_v11030);
FJ_SAME(graph_instantiate, cuGraphInstantiateWithFlags_v11040);
FJ_SAME(graph_set_kernel_node, cuGraphExecKernelNodeSetParams_v12000);
FJ_SAME(graph_launch, cuGraphLaunch_v10000);
FJ_SAME(graph_exec_destroy, cuGraphExecDestroy_v10000);
FJ_SAME(graph_destroy, cuGraphDestroy_v10000);
#undef FJ_SAME

using Node = CUDA_KERNEL_NODE_PARAMS_v2;
static_assert(sizeof(CuKernelNodeParams) == sizeof(Node));
static_assert(offsetof(CuKernelNodeParams, function) == offsetof(Node, func));
static_assert(offsetof(CuKernelNodeParams, grid_x) == offsetof(Node, gridDimX));
static_assert(offsetof(CuKernelNodeParams, grid_z) == offsetof(Node, gridDimZ));
static_assert(offsetof(CuKernelNodeParams, block_x) == offsetof(Node, blockDimX));
static_assert(offsetof(CuKernelNodeParams, block_z) == offsetof(Node, blockDimZ));
static_assert(offsetof(CuKernelNodeParams, shared_bytes) == offsetof(Node, sharedMemBytes));
static_assert(offsetof(CuKernelNodeParams, arguments) == offsetof(Node, kernelParams));
static_assert(offsetof(CuKernelNodeParams, extra) == offsetof(Node, extra));
static_assert(offsetof(CuKernelNodeParams, kernel) == offsetof(Node, kern));
static_assert(offsetof(CuKernelNodeParams, context) == offsetof(Node, ctx));

#define FJ_SAME(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
FJ_SAME(kSuccess, CUDA_SUCCESS);
FJ_SAME(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
FJ_SAME(kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
FJ_SAME(kNoDevice, CUDA_ERROR_NO_DEVICE);
FJ_SAME(kNotReady, CUDA_ERROR_NOT_READY);
FJ_SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
FJ_SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
FJ_SAME(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
FJ_SAME(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
FJ_SAME(kCaptureStatusNone, CU_STREAM_CAPTURE_STATUS_NONE);
FJ_SAME(kCaptureStatusActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
FJ_SAME(kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
FJ_SAME(kMaxSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
FJ_SAME(kWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
FJ_SAME(kClockRateKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
FJ_SAME(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
FJ_SAME(kMemoryClockRateKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
FJ_SAME(kMemoryBusWidthBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
FJ_SAME(kL2CacheBytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
FJ_SAME(kMaxThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
FJ_SAME(kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
FJ_SAME(kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
FJ_SAME(kMaxRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
FJ_SAME(kMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
FJ_SAME(kFunctionMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
FJ_SAME(kFunctionSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
FJ_SAME(kFunctionLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
FJ_SAME(kFunctionRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
FJ_SAME(kFunctionMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
#undef FJ_SAME

}  // namespace
}  // namespace fusejit::runtime::cuda
#endif
