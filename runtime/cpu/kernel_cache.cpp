#include "runtime/cpu/kernel_cache.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <unordered_set>
#include <utility>

#include "ir/base/check.h"
#include "ir/base/placed_error.h"
#include "runtime/cpu/code_names.h"
#include "runtime/disk/disk_cache.h"
#include "runtime/disk/explain.h"
#include "runtime/profiler.h"

#ifdef FUSEJIT_X86
#include "codegen/x86/compile.h"
#include "runtime/disk/entries/kernel_entry.h"
#endif

namespace fusejit::runtime {
namespace {

// A thread with a stack large enough for the register allocator on unrolled kernels.
class BigThread {
 public:
  explicit BigThread(std::function<void()> body) : body_(std::move(body)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20);
    started_ = pthread_create(
                   &thread_, &attributes,
                   [](void* self) -> void* { return static_cast<BigThread*>(self)->body_(), nullptr; }, this) == 0;
    pthread_attr_destroy(&attributes);
    if (!started_) body_();
  }
  ~BigThread() {
    if (started_) pthread_join(thread_, nullptr);
  }
  BigThread(const BigThread&) = delete;
  BigThread& operator=(const BigThread&) = delete;

 private:
  std::function<void()> body_;
  pthread_t thread_{};
  bool started_ = false;
};

// Until all are there, or given up. Says once what is still missing when the time is over.
void wait_patiently(const std::vector<std::shared_future<KernelCache::Compiled>>& found,
                    const std::vector<std::shared_ptr<const ir::Kernel>>& kernels,
                    const std::vector<std::string>& names, const KernelCache::Patience& patience) {
  const auto start = std::chrono::steady_clock::now();
  const auto over = start + patience.until;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].wait_until(over) == std::future_status::ready) continue;
    std::unordered_set<const ir::Kernel*> missing;
    for (std::size_t j = i; j < found.size(); ++j) {
      if (found[j].wait_for(std::chrono::seconds(0)) != std::future_status::ready) missing.insert(kernels[j].get());
    }
    if (missing.empty()) return;
    patience.say(fmt::format("{} of its kernels are still being compiled after {} s, the first is {}", missing.size(),
                             std::chrono::round<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count(),
                             names.empty() ? kernels[i]->name : names[i]));
    return;
  }
}

}  // namespace

bool KernelCache::can_compile() {
#ifdef FUSEJIT_X86
  return codegen::x86::can_generate();
#else
  return true;  // as well as ever
#endif
}

std::vector<KernelCache::Compiled> KernelCache::get(const std::vector<std::shared_ptr<const ir::Kernel>>& kernels,
                                                    const Target& target, int threads, Missing missing,
                                                    const std::vector<std::string>& names, const Patience* patience) {
  std::vector<std::shared_future<Compiled>> found(kernels.size());
  std::vector<Job> jobs;
  std::unordered_map<const ir::Kernel*, std::size_t> first;  // the steps of a plan share kernels
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t j = next++; j < jobs.size(); j = next++) {
      try {
        make(jobs[j], target, missing);
      } catch (...) {
        give_up(jobs[j]);
      }
    }
  };
  try {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const auto [known, is_new] = first.emplace(kernels[i].get(), i);
      const Isa isa = kernels[i]->isa == Isa::any ? target.isa : kernels[i]->isa;
      found[i] = is_new ? find_or_claim(kernels[i].get(), names.empty() ? kernels[i]->name : names[i], isa, jobs)
                        : found[known->second];
    }
    std::vector<std::unique_ptr<BigThread>> workers;
    for (std::size_t t = 0; t < std::min<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)), jobs.size());
         ++t) {
      workers.push_back(std::make_unique<BigThread>(work));
    }
    if (patience) wait_patiently(found, kernels, names, *patience);
  } catch (...) {  // without memory for all of that, nobody may wait for what nobody makes
    for (Job& job : jobs) give_up(job);
    throw;
  }
  // Own work is done: now waiting for what others compile can hold nobody up.
  std::vector<Compiled> result;
  for (std::size_t i = 0; i < found.size(); ++i) {
    try {
      result.push_back(found[i].get());
    } catch (const Error& error) {
      if (names.empty()) throw;
      ir::throw_with_sentence(error, fmt::format("{}: {}", names[i], error.what()));
    }
  }
  return result;
}

std::shared_future<KernelCache::Compiled> KernelCache::find_or_claim(const ir::Kernel* kernel, const std::string& step,
                                                                     Isa isa, std::vector<Job>& jobs) {
  std::string text = ir::kernel_key_text(*kernel);
  const ir::Hash key = ir::hash_text(text + std::string(name(isa)));
  std::lock_guard lock(mutex_);
  if (const Compiled* found = kernels_.find(key)) {
    ++statistics_.hits;
    std::promise<Compiled> ready;
    ready.set_value(*found);
    return ready.get_future().share();
  }
  if (const auto found = making_.find(key); found != making_.end()) return found->second;
  jobs.push_back({key, kernel, step, std::move(text), {}});
  return making_[key] = jobs.back().promise.get_future().share();
}

#ifdef FUSEJIT_X86
void KernelCache::make(Job& job, const Target& target, Missing missing) {
  const Isa isa = job.kernel->isa == Isa::any ? target.isa : job.kernel->isa;
  std::optional<disk::CacheKey> key;
  if (disk_ || missing == Missing::refuse) key = disk::kernel_key(std::move(job.text), isa);
  const auto finds = [&] {
    const ProfileScope scope("disk", job.kernel->name);
    const auto entry = disk_->find(*key);
    const auto code = entry ? disk::object_in(*entry, job.kernel->name) : std::nullopt;
    if (code) {
      try {
        return finish(job, codegen::x86::load(*code), true), true;
      } catch (const DeviceError& error) {  // an object that LLVM does not take is compiled again
        if (!codegen::x86::host_supports(isa)) throw;
        disk_->refused(*key, error.what());
      }
    } else if (entry) {
      disk_->refused(*key, "it is no kernel's object");
    }
    return false;
  };
  if (disk_ && finds()) return;
  if (missing == Missing::refuse) {
    throw UserError(fmt::format("frozen: kernel @{} would have to be compiled; {}", job.kernel->name,
                                disk_ ? explain(*disk_, *key).text : "there is no cache on disk"));
  }
  const bool quick = missing == Missing::compile_quickly;
  const disk::Handle turn = disk_ && !quick ? disk_->take_turn(*key) : disk::Handle();
  if (turn && disk_->contains(*key) && finds()) return;
  const auto start = std::chrono::steady_clock::now();
  const codegen::x86::ObjectCode code = [&] {
    const ProfileScope scope("codegen", job.kernel->name);
    return codegen::x86::generate_object(*job.kernel, target,
                                         quick ? codegen::x86::Effort::quick : codegen::x86::Effort::full);
  }();
  const ProfileScope scope("load", job.kernel->name);
  auto compiled = std::make_shared<codegen::CompiledKernel>(*codegen::x86::load(code));
  compiled->compile_milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  compiled->is_quick = quick;
  if (disk_ && !quick) disk_->put(*key, disk::kernel_sections(code));
  finish(job, std::move(compiled), false);
}
#else
void KernelCache::make(Job&, const Target& target, Missing) {
  throw UnsupportedError("this build has no x86 code generator (FUSEJIT_X86=OFF); target " + target.str());
}
#endif

void KernelCache::finish(Job& job, Compiled kernel, bool was_loaded) {
  kernel = named_code(std::move(kernel), job.name);
  std::list<Compiled> gone;  // released after the lock
  {
    std::lock_guard lock(mutex_);
    ++(was_loaded ? statistics_.loaded : statistics_.compiled);
    statistics_.compile_milliseconds += kernel->compile_milliseconds;
    making_.erase(job.key);
    if (!kernel->is_quick) kernels_.add(job.key, kernel, kernel->code_bytes + kOwnBytes, gone);
  }
  job.promise.set_value(std::move(kernel));
  job.is_done = true;
}

// The next one who wants the kernel tries again.
void KernelCache::give_up(Job& job) noexcept {
  if (std::exchange(job.is_done, true)) return;
  {
    std::lock_guard lock(mutex_);
    making_.erase(job.key);
  }
  job.promise.set_exception(std::current_exception());
}

KernelCacheStatistics KernelCache::statistics() const {
  std::lock_guard lock(mutex_);
  KernelCacheStatistics now = statistics_;
  now.evictions = kernels_.evictions();
  return now;
}

}  // namespace fusejit::runtime
