// Finding the CUDA driver: dlopen of libcuda.so.1 (or what FUSEJIT_CUDA_DRIVER names), its table of functions, and
// whether it can be used. Nothing here throws: a machine without a GPU is an ordinary machine.
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/driver/driver_api.h"

namespace fusejit::runtime::cuda {

// The oldest driver that has every function of the table, as cuDriverGetVersion counts: 12.0, driver 525.
constexpr int kOldestDriver = 12000;

struct DriverState {
  std::shared_ptr<const Driver> driver;  // null unless there is a driver with a device
  std::string why_not;                   // a sentence with what to try, where there is none
  std::string path;                      // of the library that was opened; empty: none
  int version = 0;                       // 13000 for CUDA 13.0; 0: unknown
  int devices = 0;
};

// Opens `library`, or if that is null what FUSEJIT_CUDA_DRIVER names, or else libcuda.so.1. The library stays open.
DriverState open_driver(const char* library = nullptr);
// What a filled table says of its driver: initialises it, asks for version and devices.
DriverState examine_driver(const Driver& table, const std::string& path);
// open_driver() once per process.
const DriverState& installed_driver();

// "13.0" for 13000
std::string cuda_version_text(int version);

}  // namespace fusejit::runtime::cuda
