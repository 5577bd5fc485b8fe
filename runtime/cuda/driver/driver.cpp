#include "runtime/cuda/driver/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "runtime/cuda/driver/error.h"

namespace fusejit::runtime::cuda {
namespace {

constexpr const char* kSoname = "libcuda.so.1";

// The file that a symbol came from: where the loader found the soname.
std::string file_of(const void* symbol, const char* otherwise) {
  Dl_info info;
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : otherwise;
}

std::string why_init_failed(const Driver& driver, CuResult code, const DriverState& state) {
  if (code == kStubLibrary) {
    return fmt::format(
        "{} is the toolkit's stub for linking, not a driver; take its folder out of LD_LIBRARY_PATH and install the "
        "NVIDIA driver",
        state.path);
  }
  if (code == kNoDevice) {
    return fmt::format(
        "the driver {} sees no device; see whether nvidia-smi lists one, whether CUDA_VISIBLE_DEVICES hides it, and "
        "whether the container was given it",
        state.path);
  }
  return fmt::format("{} does not start: {}", state.path, describe(driver, "cuInit", code));
}

}  // namespace

std::string cuda_version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

DriverState examine_driver(const Driver& table, const std::string& path) {
  DriverState state;
  state.path = path;
  if (const CuResult code = table.init.function(0); code != kSuccess) {
    state.why_not = why_init_failed(table, code, state);
    return state;
  }
  if (const CuResult code = table.driver_get_version.function(&state.version); code != kSuccess) {
    state.why_not = fmt::format("{} does not start: {}", path, describe(table, "cuDriverGetVersion", code));
    return state;
  }
  if (state.version < kOldestDriver) {
    state.why_not =
        fmt::format("the driver {} is too old: it is for CUDA {}, {} or newer is needed (driver 525 or newer)", path,
                    cuda_version_text(state.version), cuda_version_text(kOldestDriver));
    return state;
  }
  const CuResult code = table.device_get_count.function(&state.devices);
  if (code != kSuccess || state.devices == 0) {
    state.why_not = code == kSuccess ? why_init_failed(table, kNoDevice, state)
                                     : fmt::format("{}: {}", path, describe(table, "cuDeviceGetCount", code));
    return state;
  }
  state.driver = std::make_shared<const Driver>(table);
  return state;
}

DriverState open_driver(const char* library) {
  DriverState state;
  const char* named = library != nullptr ? library : std::getenv("FUSEJIT_CUDA_DRIVER");
  if (named != nullptr && *named == '\0') named = nullptr;
  const char* wanted = named != nullptr ? named : kSoname;
  void* handle = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    state.why_not = named == nullptr ? fmt::format(
                                           "no CUDA driver: {} was not found; install the NVIDIA driver, or name its "
                                           "library in FUSEJIT_CUDA_DRIVER",
                                           kSoname)
                                     : fmt::format("no CUDA driver: {} cannot be opened ({})", wanted,
                                                   reason ? reason : "no reason");
    return state;
  }
  Driver table;
  const char* missing = nullptr;
  for_each_call(table, [&]<typename... P>(Call<P...>& call) {
    call.function = reinterpret_cast<CuResult (*)(P...)>(dlsym(handle, call.symbol));
    if (call.function == nullptr && missing == nullptr) missing = call.symbol;
  });
  if (missing != nullptr) {
    // Closing a real driver is not safe once it has started threads; this one was never initialised.
    state.path = table.init.function ? file_of(reinterpret_cast<void*>(table.init.function), wanted) : wanted;
    state.why_not = fmt::format("{} has no {}: it is no CUDA driver, or one older than CUDA {} (driver 525)",
                                state.path, missing, cuda_version_text(kOldestDriver));
    dlclose(handle);
    return state;
  }
  return examine_driver(table, file_of(reinterpret_cast<void*>(table.init.function), wanted));
}

const DriverState& installed_driver() {
  static const DriverState& state = *new const DriverState(open_driver());  // never destroyed
  return state;
}

}  // namespace fusejit::runtime::cuda
