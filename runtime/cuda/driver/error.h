// Errors of the driver: every call is checked; a failure is a DeviceError with the call, the code's name and text, and
// what to try.
#pragma once

#include <string>
#include <string_view>

#include "fusejit/error.h"
#include "runtime/cuda/driver/driver_api.h"

namespace fusejit::runtime::cuda {

// "CUDA_ERROR_OUT_OF_MEMORY"; the driver's name for it where it has one, else ours, else "error 12345".
std::string error_name(const Driver& driver, CuResult code);

// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; use a smaller batch"
std::string describe(const Driver& driver, std::string_view symbol, CuResult code);

// After such a code the context is lost: every later call on the device fails until the process is started anew.
bool is_sticky(CuResult code);

// The error of a call.
class DriverError : public DeviceError {
 public:
  DriverError(const Driver& driver, std::string_view symbol, CuResult code)
      : DeviceError(describe(driver, symbol, code)), code(code) {}
  CuResult code;
};

// Calls and throws DriverError unless it succeeded.
template <typename... Parameters, typename... Arguments>
void call(const Driver& driver, const Call<Parameters...>& entry, Arguments... arguments) {
  const CuResult code = entry.function(static_cast<Parameters>(arguments)...);
  if (code != kSuccess) throw DriverError(driver, entry.symbol, code);
}

}  // namespace fusejit::runtime::cuda
