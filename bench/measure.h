// What the measuring programs share: medians of interleaved runs, the FMA peak, and the kernels of a plan one by one.
//
// Times are processor time of the slowest worker of each parallel phase, because that leaves out other programs on a
// shared machine; wall time stands beside it.
#pragma once

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codegen/x86/compile.h"
#include "ir/kernel/kernel.h"
#include "runtime/cpu/kernel_cache.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/roofline.h"
#include "runtime/cpu/thread_pool.h"
#include "scheduler/make_plan.h"

namespace fusejit::bench {

inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

struct Timing {
  std::vector<double> wall, processor;  // milliseconds, one a run
  double best() const { return quantile(processor, 0); }
  double median() const { return quantile(processor, 0.5); }
};

inline double thread_milliseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

using runtime::Block;
inline Block take(std::int64_t bytes) { return Block(runtime::allocate(std::max<std::int64_t>(bytes, 64))); }

// Memory of the workers, grown to what the kernels want.
class Workers {
 public:
  explicit Workers(int threads) : pool_(threads), spent_(static_cast<std::size_t>(threads)) {}
  int threads() const { return pool_.threads(); }
  runtime::ThreadPool& pool() { return pool_; }

  // Runs all phases and adds one entry to `timing`.
  void run(const codegen::CompiledKernel& kernel, const std::vector<const void*>& args, void* work, Timing& timing) {
    reserve(kernel.scratch_bytes);
    const auto start = std::chrono::steady_clock::now();
    double processor = 0;
    for (const codegen::CompiledPhase& phase : kernel.phases) {
      std::fill(spent_.begin(), spent_.end(), 0);
      Region region{*this, phase, args.data(), work};
      pool_.run(phase.tasks, &Workers::share, &region);
      processor += *std::max_element(spent_.begin(), spent_.end());
    }
    timing.wall.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    timing.processor.push_back(processor);
  }

 private:
  struct Region {
    Workers& workers;
    const codegen::CompiledPhase& phase;
    const void* const* args;
    void* work;
  };
  static void share(void* context, int worker, std::int64_t first, std::int64_t last) {
    const Region& region = *static_cast<const Region*>(context);
    auto* scratch = static_cast<std::byte*>(region.workers.scratch_.get()) + worker * region.workers.stride_;
    const double start = thread_milliseconds();
    for (std::int64_t task = first; task < last; ++task) {
      region.phase.entry(region.args, nullptr, task, scratch, region.work);
    }
    // A worker has several shares.
    region.workers.spent_[static_cast<std::size_t>(worker)] += thread_milliseconds() - start;
  }
  void reserve(std::int64_t bytes) {
    if (scratch_ && bytes <= stride_) return;
    stride_ = (bytes + 4096) / 4096 * 4096;
    scratch_ = take(stride_ * threads());
  }

  runtime::ThreadPool pool_;
  std::vector<double> spent_;
  Block scratch_;
  std::int64_t stride_ = 0;
};

// The FMA peak in turn with what is measured: the upper quartile of its runs, as others disturb some.
class PeakInTurn {
 public:
  explicit PeakInTurn(const Target& target) : peak_(target) {}
  void measure(Workers& workers) {
    for (int run = 0; run < 4; ++run) runs_.push_back(peak_.gflops(workers.pool()));
  }
  double gflops() const { return quantile(runs_, 0.75); }

 private:
  runtime::FmaPeak peak_;
  std::vector<double> runs_;
};

// A plan with memory and machine code; every step is timed by itself.
class TimedPlan {
 public:
  TimedPlan(const ir::Graph& graph, const scheduler::PlanOptions& options, int compile_threads = 2)
      : plan_(scheduler::make_plan(graph, options)), timings_(plan_.steps.size()), arena_(take(plan_.arena_bytes)) {
    std::vector<std::shared_ptr<const ir::Kernel>> kernels;
    for (const scheduler::PlanStep& step : plan_.steps) kernels.push_back(step.kernel);
    runtime::KernelCache cache;
    code_ = cache.get(kernels, options.target, compile_threads);
    std::memset(arena_.get(), 0, static_cast<std::size_t>(plan_.arena_bytes));
    std::mt19937 random(1);
    for (const scheduler::PlanValue& value : plan_.values) {
      const bool own = value.storage == scheduler::Storage::argument || value.storage == scheduler::Storage::donated ||
                       value.storage == scheduler::Storage::result || value.storage == scheduler::Storage::derived;
      if (!own) {
        addresses_.push_back(value.storage == scheduler::Storage::constant
                                 ? const_cast<std::byte*>(value.data.data())
                                 : static_cast<std::byte*>(arena_.get()) + value.offset);
        continue;
      }
      blocks_.push_back(take(value.bytes));
      addresses_.push_back(blocks_.back().get());
      std::memset(addresses_.back(), 0, static_cast<std::size_t>(value.bytes));
      if (value.dtype != DType::f32) continue;
      std::uniform_real_distribution<float> number(0.05f, 0.5f);  // positive: an optimiser's state stays so
      auto* data = static_cast<float*>(addresses_.back());
      for (std::int64_t i = 0; i < value.bytes / 4; ++i) data[i] = number(random);
    }
  }
  void measure(Workers& workers) {
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      std::vector<const void*> args;
      for (const int v : plan_.steps[s].values) args.push_back(addresses_[static_cast<std::size_t>(v)]);
      workers.run(*code_[s], args, static_cast<std::byte*>(arena_.get()) + plan_.steps[s].work_offset, timings_[s]);
    }
  }
  void forget() { std::fill(timings_.begin(), timings_.end(), Timing()); }
  const scheduler::Plan& plan() const { return plan_; }
  const Timing& timing(std::size_t step) const { return timings_[step]; }
  const codegen::CompiledKernel& code(std::size_t step) const { return *code_[step]; }

 private:
  scheduler::Plan plan_;
  std::vector<runtime::KernelCache::Compiled> code_;
  std::vector<Timing> timings_;
  Block arena_;
  std::vector<Block> blocks_;
  std::vector<void*> addresses_;
};

}  // namespace fusejit::bench
