// CpuExecutor: runs the steps of a plan in order on the thread pool.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "codegen/compiled_kernel.h"
#include "runtime/cpu/kernel_cache.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/executor.h"

namespace fusejit::runtime {

// The pool runs one region at a time, so one plan runs at a time.
struct Workers {
  explicit Workers(int threads) : pool(threads) {}
  ThreadPool pool;
  std::mutex running;
};

class CpuExecutor : public Executor {
 public:
  using Kernels = std::vector<std::shared_ptr<const codegen::CompiledKernel>>;
  // `kernels`: one a step; none: the kernel interpreter. `cache`: where the full code of quick ones comes from.
  CpuExecutor(std::shared_ptr<const scheduler::Plan> plan, Kernels kernels, Workers& workers, Checks checks = {},
              std::shared_ptr<KernelCache> cache = nullptr);

  Ran run(const ir::Graph& graph, std::span<const Buffer> arguments) override;
  bool is_quick() const override;
  std::shared_ptr<Executor> with_full_code(const std::stop_token& stop) const override;

 private:
  const std::shared_ptr<const scheduler::Plan> plan_;
  const Kernels kernels_;
  const std::vector<ir::Hash> derivations_;  // one a plan value: what a derived one is kept as (Buffer::keep)
  const RunReport planned_;
  Workers& workers_;
  Checks checks_;
  const std::shared_ptr<KernelCache> cache_;
};

}  // namespace fusejit::runtime
