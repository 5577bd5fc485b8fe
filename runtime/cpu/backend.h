// CpuBackend: plans on this machine's processor: machine code on a pool of threads, or the kernel interpreter.
#pragma once

#include <memory>

#include "runtime/backend.h"
#include "runtime/cpu/executor.h"
#include "runtime/cpu/kernel_cache.h"
#include "runtime/disk/plan_store.h"
#include "runtime/tune.h"

namespace fusejit::runtime {

struct CpuBackendOptions {
  int threads = 1;
  std::shared_ptr<KernelCache> kernels = nullptr;   // null: one of its own
  std::shared_ptr<disk::DiskCache> disk = nullptr;  // where plans, and kernels of that one, outlive the process
  bool frozen = false;                              // what is in no cache is a UserError
  Checks checks = {};
  Tune tune = Tune::off;
  std::function<void(const std::string& line)> log = {};  // what tuning did
};

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(CpuBackendOptions options);

  std::optional<Planned> plan(const ir::Graph& graph, scheduler::PlanOptions wanted,
                              const std::stop_token& stop) override;
  std::shared_ptr<Executor> prepare(const Planned& planned, const PrepareOptions& options) override;
  Target target() const override { return Target::host(); }
  bool keeps_derived() const override { return true; }
  bool is_failure(const Error&) const override { return false; }
  KernelCounts kernels() const override;

  Buffer place(const Buffer& buffer) override { return buffer.on_host(); }
  Buffer borrow(std::uint64_t address, const Type& type, std::function<void()> deleter) override {
    return Buffer::borrow(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), type, std::move(deleter));
  }
  void synchronize() override {}  // who asked has waited
  MemoryStatistics memory() const override;
  void reset_peak_memory() override;
  void release_memory() override;
  void limit_memory(std::int64_t bytes) override;

 private:
  const bool frozen_;
  const Checks checks_;
  const Tune tune_;
  const std::function<void(const std::string& line)> log_;
  const int threads_;
  const std::shared_ptr<KernelCache> kernels_;
  const disk::PlanStore store_;
  Workers workers_;
};

}  // namespace fusejit::runtime
