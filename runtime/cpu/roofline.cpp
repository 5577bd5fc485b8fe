#include "runtime/cpu/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cpu/memory.h"
#include "runtime/cpu/thread_pool.h"

#ifdef FUSEJIT_X86
#include "codegen/x86/compile.h"
#include "ir/kernel/kernel.h"
#endif

namespace fusejit::runtime {
namespace {

constexpr int kRuns = 4;  // of which the best counts

// Seconds of a run, a task for every thread.
template <class Task>
double seconds_of(ThreadPool& pool, const Task& task) {
  const auto start = std::chrono::steady_clock::now();
  pool.run(
      pool.threads(),
      [](void* context, int, std::int64_t first, std::int64_t last) {
        for (std::int64_t t = first; t < last; ++t) (*static_cast<const Task*>(context))(t);
      },
      const_cast<Task*>(&task));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double copy_gigabytes(ThreadPool& pool) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;  // a thread's, beyond every cache of its own
  const Block from(allocate(kBytes * pool.threads())), to(allocate(kBytes * pool.threads()));
  std::memset(from.get(), 1, static_cast<std::size_t>(kBytes * pool.threads()));
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    best = std::min(best, seconds_of(pool, [&](std::int64_t t) {
                      std::memcpy(static_cast<char*>(to.get()) + t * kBytes,
                                  static_cast<const char*>(from.get()) + t * kBytes, kBytes);
                    }));
  }
  return 2e-9 * static_cast<double>(kBytes * pool.threads()) / best;
}

}  // namespace

#ifdef FUSEJIT_X86
FmaPeak::FmaPeak(const Target& target) {
  if (!codegen::x86::host_supports(target.isa) || !target.has_fma()) return;
  constexpr int kTurns = 500000;
  const int lanes = target.lanes32(), accumulators = lanes == 16 ? 24 : 12;
  const ir::Kernel kernel = ir::parse_kernel(fmt::format(R"(
kernel @fma_peak(%x: f32[32] read align 64, %y: f32[1,{1},{0}] write align 64) on {2} {{
  phase {{ for %t in 0..1 threads {{ for %l in 0..{0} vector {{ local %acc: f32[{1}] register = 0
    %a = load %x[%l] : f32  %b = load %x[%l + {0}] : f32
    for %i in 0..{3} {{ for %u in 0..2 unroll {{ for %j in 0..{1} unroll {{
      %0 = load %acc[%j] : f32  %1 = fma(%0, %a, %b) : f32  store %acc[%j], %1 }} }} }}
    for %j in 0..{1} unroll {{ %2 = load %acc[%j] : f32  store %y[%t, %j, %l], %2 }} }} }} }} }})",
                                                         lanes, accumulators, name(target.isa), kTurns));
  code_ = codegen::x86::compile(kernel, target);
  flop_ = 2.0 * kTurns * 2 * accumulators * lanes;
}

double FmaPeak::gflops(ThreadPool& pool) const {
  if (!code_) return 0;
  struct alignas(64) Memory {
    float in[64] = {}, out[24 * 16] = {};
  };
  std::vector<Memory> memory(static_cast<std::size_t>(pool.threads()));
  const double seconds = seconds_of(pool, [&](std::int64_t t) {
    Memory& own = memory[static_cast<std::size_t>(t)];
    const void* args[] = {own.in, own.out};
    code_->phases[0].entry(args, nullptr, 0, nullptr, nullptr);
  });
  return 1e-9 * flop_ * pool.threads() / seconds;
}
#else
FmaPeak::FmaPeak(const Target&) {}
double FmaPeak::gflops(ThreadPool&) const { return 0; }
#endif

Roofline roofline(const Target& target, int threads) {
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::map<std::pair<Isa, int>, Roofline>;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = known.try_emplace({target.isa, threads});
  if (is_new) {
    ThreadPool pool(threads);
    const FmaPeak peak(target);
    for (int run = 0; run < kRuns; ++run) at->second.gflops = std::max(at->second.gflops, peak.gflops(pool));
    at->second.gigabytes_per_second = copy_gigabytes(pool);
  }
  return at->second;
}

}  // namespace fusejit::runtime
