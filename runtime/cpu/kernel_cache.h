// KernelCache: kernel text + isa -> machine code, in memory, and below it on disk. Equal groups of different layers
// share one entry. A compile happens outside the lock, once per key, in parallel over the kernels of a plan.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/compiled_kernel.h"
#include "fusejit/target.h"
#include "ir/base/hash.h"
#include "ir/base/lru_cache.h"
#include "ir/kernel/kernel.h"

namespace fusejit::runtime {

namespace disk {
class DiskCache;
}

struct KernelCacheStatistics {
  std::int64_t hits = 0;
  std::int64_t loaded = 0;  // from disk
  std::int64_t compiled = 0;
  double compile_milliseconds = 0;  // summed over kernels
  std::int64_t evictions = 0;
};

class KernelCache {
 public:
  using Compiled = std::shared_ptr<const codegen::CompiledKernel>;
  // `disk`: where kernels outlive the process; may be null.
  explicit KernelCache(std::size_t capacity = 4096, std::shared_ptr<disk::DiskCache> disk = nullptr)
      : disk_(std::move(disk)), kernels_(capacity, kMostBytes) {}

  // What happens to a kernel that is missing.
  enum class Missing : std::uint8_t {
    compile,
    compile_quickly,  // into slower code, which is not kept: the next one finds it missing again
    refuse            // UserError
  };
  // What is said of a compilation that takes so long that a user wonders; the sentence has no name of the graph.
  struct Patience {
    std::chrono::milliseconds until = std::chrono::seconds(30);
    std::function<void(const std::string& sentence)> say;
  };
  // Machine code for every kernel, compiling what is missing on up to `threads` threads. Throws what the compiler
  // throws. `names`: of the steps that ask for them, for errors, profilers and debuggers; may be empty.
  std::vector<Compiled> get(const std::vector<std::shared_ptr<const ir::Kernel>>& kernels, const Target& target,
                            int threads, Missing missing = Missing::compile, const std::vector<std::string>& names = {},
                            const Patience* patience = nullptr);
  KernelCacheStatistics statistics() const;
  // False once the process is ending: then get() throws UnsupportedError for what is not there yet.
  static bool can_compile();

 private:
  // A kernel that this call loads or compiles.
  struct Job {
    ir::Hash key;
    const ir::Kernel* kernel;
    std::string name;  // of the step that wants it
    std::string text;  // kernel_key_text
    std::promise<Compiled> promise;
    bool is_done = false;
  };
  // What is there or being made; else a new job and its result.
  std::shared_future<Compiled> find_or_claim(const ir::Kernel* kernel, const std::string& step, Isa isa,
                                             std::vector<Job>& jobs);
  void make(Job& job, const Target& target, Missing missing);
  void finish(Job& job, Compiled kernel, bool was_loaded);
  void give_up(Job& job) noexcept;

  // Of machine code, and what the linker keeps of a kernel beside it. A kernel that a plan has stays with the plan.
  static constexpr std::int64_t kMostBytes = 256 << 20, kOwnBytes = 32 << 10;
  const std::shared_ptr<disk::DiskCache> disk_;
  mutable std::mutex mutex_;
  ir::LruCache<Compiled> kernels_;
  std::unordered_map<ir::Hash, std::shared_future<Compiled>, ir::HashOfHash> making_;
  KernelCacheStatistics statistics_;
};

}  // namespace fusejit::runtime
