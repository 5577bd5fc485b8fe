#include "runtime/kernel_cache.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>

#include "ir/base/check.h"

#ifdef FUSEJIT_X86
#include "codegen/x86/compile.h"
#endif

namespace fusejit::runtime {
namespace {

KernelCache::Compiled compile(const ir::Kernel& kernel, const Target& target) {
#ifdef FUSEJIT_X86
  return codegen::x86::compile(kernel, target);
#else
  (void)kernel;
  throw UnsupportedError("this build has no x86 code generator (FUSEJIT_X86=OFF); target " + target.str());
#endif
}

std::string toolchain() {
#ifdef FUSEJIT_X86
  return codegen::x86::toolchain();
#else
  return "";
#endif
}

// A thread with a stack large enough for the register allocator on unrolled kernels.
class BigThread {
 public:
  explicit BigThread(std::function<void()> body) : body_(std::move(body)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20);
    started_ = pthread_create(&thread_, &attributes, [](void* self) -> void* { return static_cast<BigThread*>(self)->body_(), nullptr; }, this) == 0;
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

}  // namespace

std::vector<KernelCache::Compiled> KernelCache::get(const std::vector<std::shared_ptr<const ir::Kernel>>& kernels,
                                                    const Target& target, int threads) {
  const std::string machine = target.str() + toolchain();
  std::vector<Compiled> result(kernels.size());
  std::map<ir::Hash, std::vector<std::size_t>> missing;  // one job a key
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const ir::Hash key = ir::hash_text(ir::kernel_key_text(*kernels[i]) + machine);
    result[i] = find(key);
    if (!result[i]) missing[key].push_back(i);
  }
  struct Job {
    ir::Hash key;
    const std::vector<std::size_t>* places;
    Compiled done;
    std::exception_ptr error;
  };
  std::vector<Job> jobs;
  for (const auto& [key, places] : missing) jobs.push_back({key, &places, nullptr, nullptr});
  // The longest texts first: they take the longest.
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t j = next++; j < jobs.size(); j = next++) {
      try {
        jobs[j].done = compile(*kernels[jobs[j].places->front()], target);
      } catch (...) {
        jobs[j].error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::unique_ptr<BigThread>> workers;
    for (std::size_t t = 0; t < std::min<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)), jobs.size()); ++t) {
      workers.push_back(std::make_unique<BigThread>(work));
    }
  }
  for (const Job& job : jobs) {
    if (job.error) std::rethrow_exception(job.error);
    insert(job.key, job.done);
    for (const std::size_t place : *job.places) result[place] = job.done;
  }
  return result;
}

KernelCache::Compiled KernelCache::find(const ir::Hash& key) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  ++statistics_.hits;
  order_.splice(order_.begin(), order_, found->second.age);
  return found->second.kernel;
}

void KernelCache::insert(const ir::Hash& key, const Compiled& kernel) {
  std::lock_guard lock(mutex_);
  ++statistics_.compiled;
  statistics_.compile_milliseconds += kernel->compile_milliseconds;
  if (entries_.count(key)) return;
  order_.push_front(key);
  entries_[key] = {kernel, order_.begin()};
  if (entries_.size() > capacity_) {
    entries_.erase(order_.back());
    order_.pop_back();
  }
}

KernelCacheStatistics KernelCache::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace fusejit::runtime
