// DeviceContext: the primary context of one device, and the one way to call the driver on it. A call makes the context
// current, is checked, and once an error was sticky every later call is refused with the reason: the device is lost,
// the process and the CPU go on.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "fusejit/target.h"
#include "runtime/cuda/driver/error.h"

namespace fusejit::runtime::cuda {

struct DeviceProperties {
  std::string name;
  int compute_capability = 0;  // 90 for sm_90
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int threads_per_block = 0;
  std::int64_t shared_bytes_per_block = 0;        // without asking
  std::int64_t shared_bytes_per_block_optin = 0;  // where a kernel asks for more
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  // Of the data sheet: two transfers a clock over the bus; 0 where the driver does not tell.
  double memory_gigabytes_per_second = 0;
};

// Throws DriverError. Needs no context.
DeviceProperties device_properties(const Driver& driver, int ordinal);
// What code is generated for: nominal constants of the architecture, no measured figure.
Target device_target(const DeviceProperties& properties);

class DeviceContext {
 public:
  // Throws DeviceError if there is no such device, or it cannot be used.
  DeviceContext(std::shared_ptr<const Driver> driver, int ordinal);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const Driver& driver() const { return *driver_; }
  const DeviceProperties& properties() const { return properties_; }
  int ordinal() const { return ordinal_; }
  std::string name() const { return "cuda:" + std::to_string(ordinal_); }

  // Makes the context current on this thread. Throws if the device is lost.
  void enter();
  // The same for destructors: says nothing.
  void make_current() noexcept { driver_->context_set_current.function(context_); }
  // enter(), the call, and a check of its code.
  template <typename... P, typename... A>
  void call(const Call<P...>& entry, A... arguments) {
    enter();
    check(entry.symbol, entry.function(static_cast<P>(arguments)...));
  }
  // The same where a code other than success is an answer too. Throws only if the device is or becomes lost.
  template <typename... P, typename... A>
  CuResult ask(const Call<P...>& entry, A... arguments) {
    enter();
    const CuResult code = entry.function(static_cast<P>(arguments)...);
    if (is_sticky(code)) fail(entry.symbol, code);
    return code;
  }
  // For destructors: gives something back and says nothing. A release that reports an error is not tried again: what
  // the driver reports there are earlier failures. True if nothing was reported.
  template <typename... P, typename... A>
  bool release(const Call<P...>& entry, A... arguments) noexcept {
    make_current();
    return entry.function(static_cast<P>(arguments)...) == kSuccess;
  }
  // Throws DriverError unless `code` is success; after enter() for many calls in a row.
  void check(std::string_view symbol, CuResult code) {
    if (code != kSuccess) fail(symbol, code);
  }
  // Whether the device can still be used.
  bool lost() const { return lost_; }

 private:
  [[noreturn]] void fail(std::string_view symbol, CuResult code);

  std::shared_ptr<const Driver> driver_;
  const int ordinal_;
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  DeviceProperties properties_;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::string lost_by_;  // the error that lost the device; under mutex_
};

}  // namespace fusejit::runtime::cuda
