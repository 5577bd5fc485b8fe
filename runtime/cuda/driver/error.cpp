#include "runtime/cuda/driver/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fusejit::runtime::cuda {
namespace {

struct Code {
  CuResult code;
  const char* name;
  bool sticky;
  const char* advice;
};
constexpr const char* kRestart =
    "the device is lost to this process, values on it are gone; the CPU still works, start the process anew to use the "
    "device again";
constexpr const char* kBadKernel =
    "a kernel went wrong and the device is lost to this process; the CPU still works; compute-sanitizer names the "
    "kernel";
constexpr const char* kNewerDriver = "the driver is older than the compiler of the kernels; update the driver";

// The codes that a run can meet, ordered; any other is described by the driver's own words alone.
constexpr std::array<Code, 42> kCodes = {{
    {1, "CUDA_ERROR_INVALID_VALUE", false, "this is a bug in fusejit"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", false, "use a smaller batch, or free memory that other programs hold"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", false, "a process that was forked cannot use the driver; fork before first use"},
    {4, "CUDA_ERROR_DEINITIALIZED", true, "the process is ending"},
    {34, "CUDA_ERROR_STUB_LIBRARY", false, "take the toolkit's stubs folder out of LD_LIBRARY_PATH"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", false, kNewerDriver},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", false, "another process uses the device alone; see nvidia-smi"},
    {100, "CUDA_ERROR_NO_DEVICE", false, "see nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {101, "CUDA_ERROR_INVALID_DEVICE", false, "see `fusejit doctor` for the devices there are"},
    {200, "CUDA_ERROR_INVALID_IMAGE", false, "the compiled kernel is damaged, or newer than the driver"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", false, "another library destroyed the device's context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", false, "the kernel was compiled for another architecture than this device's"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", true, "the device's memory failed; see nvidia-smi -q"},
    {218, "CUDA_ERROR_INVALID_PTX", false, kNewerDriver},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", true, "a link between devices failed; see nvidia-smi nvlink -e"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", false, kNewerDriver},
    {226, "CUDA_ERROR_CONTAINED", true, kRestart},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", false, "see the system's log (dmesg)"},
    {400, "CUDA_ERROR_INVALID_HANDLE", false, "this is a bug in fusejit"},
    {500, "CUDA_ERROR_NOT_FOUND", false, "the compiled module lacks what was asked for"},
    {600, "CUDA_ERROR_NOT_READY", false, "the device is still at work"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", true, kBadKernel},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", false, "the kernel needs more registers or threads than a block has"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", true, "a kernel ran longer than the display allows; use a device without one"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", true, kRestart},
    {710, "CUDA_ERROR_ASSERT", true, kBadKernel},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", true, kBadKernel},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", true, kBadKernel},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", true, kBadKernel},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", true, kBadKernel},
    {718, "CUDA_ERROR_INVALID_PC", true, kBadKernel},
    {719, "CUDA_ERROR_LAUNCH_FAILED", true, kBadKernel},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", true, kBadKernel},
    {800, "CUDA_ERROR_NOT_PERMITTED", false, "the operation is not allowed here"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", false, "start the services of the driver (nvidia-fabricmanager)"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", false, "driver library and kernel module differ; restart the machine"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", false,
     "this device needs the real driver, not the compatibility one"},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", true, kRestart},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", false, "a call cannot be part of a CUDA graph"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", false, "a call cannot be part of a CUDA graph"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", true, kRestart},
    {999, "CUDA_ERROR_UNKNOWN", false,
     "see the system's log (dmesg); nvidia-smi -r or a restart of the machine may help"},
}};

const Code* find(CuResult code) {
  const auto* found = std::find_if(kCodes.begin(), kCodes.end(), [&](const Code& c) { return c.code == code; });
  return found != kCodes.end() ? found : nullptr;
}

}  // namespace

std::string error_name(const Driver& driver, CuResult code) {
  const char* name = nullptr;
  if (driver.get_error_name.function && driver.get_error_name.function(code, &name) == kSuccess && name) return name;
  const Code* known = find(code);
  return known ? known->name : fmt::format("error {}", code);
}

std::string describe(const Driver& driver, std::string_view symbol, CuResult code) {
  if (symbol.ends_with("_v2")) symbol.remove_suffix(3);  // the version in an exported name is of no interest
  const char* text = nullptr;
  if (!driver.get_error_string.function || driver.get_error_string.function(code, &text) != kSuccess) text = nullptr;
  std::string sentence = fmt::format("{}: {} ({})", symbol, error_name(driver, code), code);
  if (text) sentence += fmt::format(": {}", text);
  if (const Code* known = find(code)) sentence += fmt::format("; {}", known->advice);
  return sentence;
}

bool is_sticky(CuResult code) {
  const Code* known = find(code);
  return known && known->sticky;
}

}  // namespace fusejit::runtime::cuda
