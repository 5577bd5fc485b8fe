#include "runtime/cpu/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/base/placed_error.h"
#include "ir/kernel/interp/interp.h"
#include "runtime/cpu/memory.h"
#include "runtime/profiler.h"
#include "runtime/results.h"

namespace fusejit::runtime {
namespace {

using scheduler::Plan;
using scheduler::PlanStep;
using scheduler::PlanValue;
using scheduler::Storage;

Block take(std::int64_t bytes) { return bytes > 0 ? Block(allocate(bytes)) : Block(); }

// Quiet NaN in f32 and f64 (and bf16); all ones is also NaN in f16.
void fill_nan(void* bytes, std::int64_t count) { std::memset(bytes, 0xff, static_cast<std::size_t>(count)); }

class Run {
 public:
  Run(const Plan& plan, const CpuExecutor::Kernels& kernels, const std::vector<ir::Hash>& derivations,
      const RunReport& planned, std::span<const Buffer> arguments, std::vector<Buffer>& results, ThreadPool& pool,
      const Checks& checks)
      : plan_(plan),
        kernels_(kernels),
        derivations_(derivations),
        planned_(planned),
        arguments_(arguments),
        results_(results),
        pool_(pool),
        checks_(checks) {}

  RunReport operator()() {
    bind();
    const int steps = static_cast<int>(plan_.steps.size());
    RunReport report = planned_;
    const int loss = plan_.results.empty() ? -1 : last_write(plan_.results[0]);
    const auto start = std::chrono::steady_clock::now();
    for (int s = 0; s < steps; ++s) {
      const auto derived = derived_.find(s);
      if (derived == derived_.end()) {
        run_step(s);
      } else if (derived->second.kept) {
        --report.kernels;
      } else {
        run_step(s);
        keep(derived->second);
      }
      if (checks_.poison) poison_freed(s);
      if (s == loss) report.end_of_first_result_bytes = scheduler::live_arena_bytes_after(plan_, s) + held_outside_;
    }
    const auto end = std::chrono::steady_clock::now();
    report.kernel_milliseconds = std::chrono::duration<double, std::milli>(end - start).count();
    return report;
  }

 private:
  const PlanValue& value(int id) const { return plan_.values[static_cast<std::size_t>(id)]; }
  int last_write(int id) const { return value(id).first_step; }

  // Takes all memory that the run needs: once the first kernel may have overwritten what was donated, nothing fails.
  void bind() {
    for (const PlanValue& planned : plan_.values) {
      if (planned.storage != Storage::arena) held_outside_ += planned.bytes;
    }
    if (!checks_.separate_values) arena_ = take(plan_.arena_bytes);
    if (checks_.poison && arena_) fill_nan(arena_.get(), plan_.arena_bytes);
    auto* base = static_cast<std::byte*>(arena_.get());
    addresses_.resize(plan_.values.size());
    for (std::size_t v = 0; v < plan_.values.size(); ++v) {
      const PlanValue& planned = plan_.values[v];
      switch (planned.storage) {
        case Storage::argument:
        case Storage::donated:
          addresses_[v] = arguments_[static_cast<std::size_t>(planned.index)].data();
          break;
        case Storage::result:
          addresses_[v] = results_[static_cast<std::size_t>(planned.index)].data();
          break;
        case Storage::derived:
          bind_derived(v);
          break;
        case Storage::constant:
          addresses_[v] = const_cast<std::byte*>(planned.data.data());
          break;
        case Storage::arena:
          if (checks_.separate_values) {
            blocks_.push_back(take(planned.bytes));
            addresses_[v] = blocks_.back().get();
            if (checks_.poison && planned.bytes > 0) fill_nan(addresses_[v], planned.bytes);
          } else {
            addresses_[v] = base + planned.offset;
          }
          break;
      }
    }
    std::int64_t scratch = 0;
    for (const auto& kernel : kernels_) scratch = std::max(scratch, kernel->scratch_bytes);
    scratch_stride_ = (scratch + 4095) / 4096 * 4096;
    scratch_ = take(scratch_stride_ * pool_.threads());
    std::size_t most = 0;
    for (const PlanStep& step : plan_.steps) most = std::max(most, step.values.size());
    buffers_.reserve(most);
  }

  struct Derived {
    std::size_t value;  // of the plan
    Buffer buffer;
    bool kept;  // by an earlier run
  };
  // What is kept with the argument, or memory for it.
  void bind_derived(std::size_t v) {
    const PlanValue& planned = plan_.values[v];
    Derived derived{v, arguments_[static_cast<std::size_t>(planned.index)].derived(derivations_[v]), true};
    if (!derived.buffer) {
      derived.buffer = Buffer::allocate({planned.dtype, Shape{planned.bytes * 8 / bits(planned.dtype)}});
      derived.kept = false;
    }
    addresses_[v] = derived.buffer.data();
    derived_.emplace(planned.first_step, std::move(derived));
  }
  void keep(const Derived& derived) {
    const Buffer& argument = arguments_[static_cast<std::size_t>(plan_.values[derived.value].index)];
    try {
      argument.keep(derivations_[derived.value], derived.buffer);
    } catch (const std::bad_alloc&) {  // the next run computes it again: this one must not end half way
    }
  }

  void run_step(int s) {
    if (checks_.observe) checks_.observe(s, addresses_, false);
    run_and_note(s);
    if (checks_.observe) checks_.observe(s, addresses_, true);
  }

  void run_and_note(int s) {
    Profiler& profiler = Profiler::the();
    if (!profiler.is_on()) return step(s);
    const std::int64_t begin = Profiler::now();
    step(s);
    const std::int64_t end = Profiler::now();
    const PlanStep& planned = plan_.steps[static_cast<std::size_t>(s)];
    profiler.add({"launch", planned.name, begin, end, 0, planned.ops, planned.layer,
                  planned.read_bytes + planned.written_bytes, planned.flop,
                  scheduler::live_arena_bytes_after(plan_, s) + held_outside_, false});
  }

  void step(int s) {
    const PlanStep& planned = plan_.steps[static_cast<std::size_t>(s)];
    try {
      step(s, planned);
    } catch (const Error& error) {
      ir::throw_with_sentence(error, fmt::format("{}: {}", planned.name, error.what()));
    }
  }

  void step(int s, const PlanStep& planned) {
    std::vector<void*>& buffers = buffers_;
    buffers.clear();
    for (const int v : planned.values) buffers.push_back(addresses_[static_cast<std::size_t>(v)]);
    if (checks_.kernel_interpreter) {
      ir::interpret(*planned.kernel, buffers, {}, {checks_.order, 1, true});
      return;
    }
    const codegen::CompiledKernel& kernel = *kernels_[static_cast<std::size_t>(s)];
    Block own_work;
    void* work = nullptr;
    FJ_ASSERT(kernel.work_bytes <= planned.work_bytes, "@{} wants {} bytes of work, the plan has {}", kernel.name,
              kernel.work_bytes, planned.work_bytes);
    if (planned.work_bytes > 0) {
      if (checks_.separate_values) {
        own_work = take(kernel.work_bytes);
        work = own_work.get();
      } else {
        work = static_cast<std::byte*>(arena_.get()) + planned.work_offset;
      }
      if (checks_.poison) fill_nan(work, kernel.work_bytes);
    }
    for (const codegen::CompiledPhase& phase : kernel.phases) launch(phase, buffers, work);
  }

  void launch(const codegen::CompiledPhase& phase, const std::vector<void*>& buffers, void* work) {
    struct Context {
      const codegen::CompiledPhase& phase;
      const void* const* args;
      void* work;
      std::byte* scratch;
      std::int64_t stride;
      const std::vector<std::int64_t>& order;
    };
    order_.clear();
    if (checks_.order != TaskOrder::ascending) {
      for (std::int64_t t = phase.tasks - 1; t >= 0; --t) order_.push_back(t);
      if (checks_.order == TaskOrder::shuffled) std::shuffle(order_.begin(), order_.end(), random_);
    }
    Context context{phase, buffers.data(), work, static_cast<std::byte*>(scratch_.get()), scratch_stride_, order_};
    pool_.run(
        phase.tasks,
        [](void* raw, int worker, std::int64_t first, std::int64_t last) {
          const Context& c = *static_cast<const Context*>(raw);
          for (std::int64_t t = first; t < last; ++t) {
            const std::int64_t task = c.order.empty() ? t : c.order[static_cast<std::size_t>(t)];
            c.phase.entry(c.args, nullptr, task, c.scratch + worker * c.stride, c.work);
          }
        },
        &context);
  }

  void poison_freed(int s) {
    for (std::size_t v = 0; v < plan_.values.size(); ++v) {
      const scheduler::PlanValue& freed = value(static_cast<int>(v));
      if (freed.storage == Storage::arena && freed.inside < 0 && freed.last_step == s)
        fill_nan(addresses_[v], freed.bytes);
    }
  }

  const Plan& plan_;
  const CpuExecutor::Kernels& kernels_;
  const std::vector<ir::Hash>& derivations_;
  const RunReport& planned_;
  std::span<const Buffer> arguments_;
  std::vector<Buffer>& results_;
  ThreadPool& pool_;
  const Checks& checks_;
  Block arena_, scratch_;
  std::vector<Block> blocks_;
  std::vector<void*> addresses_;
  std::vector<void*> buffers_;                // of the step that runs
  std::unordered_map<int, Derived> derived_;  // by the step that computes it
  std::int64_t scratch_stride_ = 0, held_outside_ = 0;
  std::vector<std::int64_t> order_;
  std::mt19937_64 random_{1};
};

// Equal kernels compute equal bytes of equal arguments, in whatever plan.
std::vector<ir::Hash> name_derivations(const Plan& plan) {
  std::vector<ir::Hash> names(plan.values.size());
  for (std::size_t v = 0; v < names.size(); ++v) {
    const PlanValue& value = plan.values[v];
    if (value.storage != Storage::derived) continue;
    const ir::Kernel& kernel = *plan.steps[static_cast<std::size_t>(value.first_step)].kernel;
    names[v] = ir::hash_text(plan.target.str() + '\n' + ir::kernel_key_text(kernel));
  }
  return names;
}

}  // namespace

CpuExecutor::CpuExecutor(std::shared_ptr<const Plan> plan, Kernels kernels, Workers& workers, Checks checks,
                         std::shared_ptr<KernelCache> cache)
    : plan_(std::move(plan)),
      kernels_(std::move(kernels)),
      derivations_(name_derivations(*plan_)),
      planned_(report_of(*plan_)),
      workers_(workers),
      checks_(std::move(checks)),
      cache_(std::move(cache)) {
  checks_.kernel_interpreter |= kernels_.empty();
}

Ran CpuExecutor::run(const ir::Graph& graph, std::span<const Buffer> arguments) {
  std::vector<Buffer> here;
  if (std::any_of(arguments.begin(), arguments.end(), [](const Buffer& a) { return !a.device().is_cpu(); })) {
    for (const Buffer& argument : arguments) here.push_back(argument.on_host());
    arguments = here;
  }
  Ran ran;
  ran.results = bind_results(
      *plan_, graph, arguments, [](const Type& type) { return Buffer::allocate(type); },
      [](const Buffer& to, const std::vector<std::byte>& data) { std::memcpy(to.data(), data.data(), data.size()); });
  const std::lock_guard one_at_a_time(workers_.running);
  ran.report = Run(*plan_, kernels_, derivations_, planned_, arguments, ran.results, workers_.pool, checks_)();
  return ran;
}

bool CpuExecutor::is_quick() const {
  return std::any_of(kernels_.begin(), kernels_.end(), [](const auto& kernel) { return kernel->is_quick; });
}

std::shared_ptr<Executor> CpuExecutor::with_full_code(const std::stop_token& stop) const {
  Kernels kernels = kernels_;
  for (std::size_t s = 0; s < kernels.size(); ++s) {
    if (stop.stop_requested()) return nullptr;
    if (kernels[s]->is_quick) kernels[s] = cache_->get({plan_->steps[s].kernel}, plan_->target, 1)[0];
  }
  return std::make_shared<CpuExecutor>(plan_, std::move(kernels), workers_, checks_, cache_);
}

}  // namespace fusejit::runtime
