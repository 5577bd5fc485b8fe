#include "runtime/cpu/backend.h"

#include "runtime/cpu/memory.h"
#include "runtime/cpu/tuner.h"
#include "runtime/cudnn/step.h"

namespace fusejit::runtime {
namespace {

constexpr std::size_t kMostKernels = 4096;

}  // namespace

CpuBackend::CpuBackend(CpuBackendOptions options)
    : frozen_(options.frozen),
      checks_(options.checks),
      tune_(options.tune),
      log_(options.log),
      threads_(options.threads),
      kernels_(options.kernels ? options.kernels : std::make_shared<KernelCache>(kMostKernels, options.disk)),
      store_(checks_.refused_kernel.empty() ? options.disk : nullptr, frozen_),
      workers_(options.threads) {}

std::optional<Planned> CpuBackend::plan(const ir::Graph& graph, scheduler::PlanOptions wanted, const std::stop_token&) {
  wanted.supports = cudnn::supports_step;  // plans for CUDA devices are interpreted as they would be made there
  disk::PlanMaker maker;
  if (tune_ != Tune::off && !wanted.reschedule && wanted.target.isa != Isa::cuda && !checks_.kernel_interpreter) {
    maker.tune = name(tune_);
    maker.make = [&] { return tuned_plan(graph, wanted, {tune_, threads_, kernels_, log_}, workers_); };
  }
  disk::PlanStore::Planned planned = store_.schedule(graph, wanted, maker);
  if (!planned.was_kept) store_.put(graph, wanted, planned.plan, maker);
  return Planned{std::make_shared<const scheduler::Plan>(std::move(planned.plan)), planned.was_kept};
}

std::shared_ptr<Executor> CpuBackend::prepare(const Planned& planned, const PrepareOptions& options) {
  const scheduler::Plan& plan = *planned.plan;
  CpuExecutor::Kernels compiled;
  if (!checks_.kernel_interpreter) {
    std::vector<std::shared_ptr<const ir::Kernel>> wanted;
    std::vector<std::string> names;
    for (const scheduler::PlanStep& step : plan.steps) wanted.push_back(step.kernel), names.push_back(step.name);
    const auto missing = frozen_         ? KernelCache::Missing::refuse
                         : options.quick ? KernelCache::Missing::compile_quickly
                                         : KernelCache::Missing::compile;
    KernelCache::Patience patience;
    patience.say = options.say;
    try {
      compiled = kernels_->get(wanted, plan.target, options.threads, missing, names, options.say ? &patience : nullptr);
    } catch (const UnsupportedError&) {
      if (KernelCache::can_compile()) throw;  // else the process is ending, and its last values are interpreted
    }
  }
  return std::make_shared<CpuExecutor>(planned.plan, std::move(compiled), workers_, checks_, kernels_);
}

KernelCounts CpuBackend::kernels() const {
  const KernelCacheStatistics now = kernels_->statistics();
  return {now.hits, now.loaded, now.compiled, now.evictions};
}

MemoryStatistics CpuBackend::memory() const { return memory_statistics(); }
void CpuBackend::reset_peak_memory() { reset_peak(); }
void CpuBackend::release_memory() { release_cached_memory(); }
void CpuBackend::limit_memory(std::int64_t bytes) { set_memory_limit(bytes); }

}  // namespace fusejit::runtime
