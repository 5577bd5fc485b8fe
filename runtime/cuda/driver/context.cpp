#include "runtime/cuda/driver/context.h"

#include <fmt/format.h>

#include <array>

namespace fusejit::runtime::cuda {
namespace {

int attribute(const Driver& driver, DeviceAttribute which, CuDevice device) {
  int value = 0;
  call(driver, driver.device_get_attribute, &value, static_cast<int>(which), device);
  return value;
}

// An attribute that newer devices may not tell.
int attribute_or_zero(const Driver& driver, DeviceAttribute which, CuDevice device) {
  int value = 0;
  return driver.device_get_attribute.function(&value, which, device) == kSuccess ? value : 0;
}

}  // namespace

DeviceProperties device_properties(const Driver& driver, int ordinal) {
  CuDevice device = 0;
  call(driver, driver.device_get, &device, ordinal);
  DeviceProperties result;
  std::array<char, 256> name = {};
  call(driver, driver.device_get_name, name.data(), static_cast<int>(name.size()) - 1, device);
  result.name = name.data();
  std::size_t bytes = 0;
  call(driver, driver.device_total_memory, &bytes, device);
  result.memory_bytes = static_cast<std::int64_t>(bytes);
  const auto ask = [&](DeviceAttribute which) { return attribute(driver, which, device); };
  result.compute_capability = ask(kComputeCapabilityMajor) * 10 + ask(kComputeCapabilityMinor);
  result.multiprocessors = ask(kMultiprocessorCount);
  result.threads_per_multiprocessor = ask(kMaxThreadsPerMultiprocessor);
  result.registers_per_multiprocessor = ask(kMaxRegistersPerMultiprocessor);
  result.threads_per_block = ask(kMaxThreadsPerBlock);
  result.shared_bytes_per_block = ask(kMaxSharedMemoryPerBlock);
  result.shared_bytes_per_block_optin = ask(kMaxSharedMemoryPerBlockOptin);
  result.l2_bytes = ask(kL2CacheBytes);
  const double clock = 1e3 * attribute_or_zero(driver, kMemoryClockRateKhz, device);
  const double width = attribute_or_zero(driver, kMemoryBusWidthBits, device) / 8.0;
  result.memory_gigabytes_per_second = 2 * clock * width * 1e-9;
  return result;
}

Target device_target(const DeviceProperties& properties) {
  return Target::parse(fmt::format("cuda:sm_{}", properties.compute_capability));
}

DeviceContext::DeviceContext(std::shared_ptr<const Driver> driver, int ordinal)
    : driver_(std::move(driver)), ordinal_(ordinal), properties_(device_properties(*driver_, ordinal)) {
  cuda::call(*driver_, driver_->device_get, &device_, ordinal);
  cuda::call(*driver_, driver_->primary_context_retain, &context_, device_);
}

DeviceContext::~DeviceContext() { driver_->primary_context_release.function(device_); }

void DeviceContext::enter() {
  if (lost_) {
    const std::lock_guard lock(mutex_);
    throw DeviceError(fmt::format("{} was lost by an earlier error: {}", name(), lost_by_));
  }
  const CuResult code = driver_->context_set_current.function(context_);
  if (code != kSuccess) fail(driver_->context_set_current.symbol, code);
}

void DeviceContext::fail(std::string_view symbol, CuResult code) {
  DriverError error(*driver_, symbol, code);
  if (is_sticky(code)) {
    const std::lock_guard lock(mutex_);
    if (!lost_) lost_by_ = error.what();
    lost_ = true;
  }
  throw error;
}

}  // namespace fusejit::runtime::cuda
