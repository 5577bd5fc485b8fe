// The backends of a session: where its plans run and where its results live, mostly one. This is the one place that
// chooses.
#pragma once

#include <memory>
#include <mutex>

#include "runtime/backend.h"
#include "runtime/session.h"

namespace fusejit::runtime {

// `options` for values that live on `device`, a CUDA device: plans run and results stay there, whatever the engine. The
// target is the device's unless that of `options` is for cuda. Opens the device. Throws DeviceError, UnsupportedError.
SessionOptions on_device(SessionOptions options, const Device& device);

class Backends {
 public:
  explicit Backends(const SessionOptions& options);
  ~Backends();
  // A device is opened at first use. Throw DeviceError, also in the child of a fork(), and UnsupportedError.
  Backend& of_plans() { return plans_on_device_ ? device() : *host_; }
  Backend& of_results() { return results_on_device_ ? device() : *host_; }
  // Of both.
  KernelCounts kernels() const;
  // The device's; empty where none is open.
  std::string why_no_library() const;
  // On which plans are made and run.
  int threads() const { return threads_; }

 private:
  Backend& device();

  const bool plans_on_device_, results_on_device_;
  const int threads_;
  const SessionOptions options_;
  const int generation_;  // of the process
  const std::unique_ptr<Backend> host_;
  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<Backend> device_;
};

}  // namespace fusejit::runtime
