// Gate A: the 3x3 convolution and the Winograd kernel of kernel-ir.md §12 at full size against the FMA peak of the same
// run. Contenders are interleaved round by round, on one and on two threads; FLOP are those of the direct convolution
// without padding. More kernel texts with the operands of (f) or (h) can be named to compare variants.
#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "bench/command_line/options.h"
#include "codegen/x86/compile.h"
#include "runtime/cpu/thread_pool.h"

namespace fusejit::bench {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<void, Free>;
// On huge pages, as the runtime's arena is: with small ones the placement of a process moves results by up to 8 %.
Bytes allocate(std::int64_t bytes) {
  constexpr std::int64_t kHuge = 2 << 20;
  const std::size_t size = static_cast<std::size_t>((bytes + kHuge) / kHuge * kHuge);
  Bytes p(std::aligned_alloc(kHuge, size));
  madvise(p.get(), size, MADV_HUGEPAGE);
  std::memset(p.get(), 0, size);
  return p;
}

struct Contender {
  std::string label;
  std::shared_ptr<const codegen::CompiledKernel> code;
  double flop = 0;
  std::vector<Bytes> buffers;
  std::vector<const void*> args;
  std::vector<Bytes> scratch;  // by worker
  Bytes work;
  std::vector<double> wall, processor;  // milliseconds of each round
};

std::string read(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot open " + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Contender load(const std::string& path, double flop) {
  Contender c;
  c.label = path.substr(path.find_last_of('/') + 1);
  const ir::Kernel kernel = ir::parse_kernel(read(path));
  c.code = codegen::x86::compile(kernel, Target::host());
  c.flop = flop;
  std::mt19937 random(1);
  for (const ir::KernelParam& param : kernel.params) {
    if (param.memory < 0) throw std::runtime_error(path + ": scalar parameters are not supported here");
    const ir::Memory& memory = kernel.memories[param.memory];
    c.buffers.push_back(allocate(bytes(memory.dtype, memory.elements())));
    if (memory.dtype == DType::f32) {
      std::uniform_real_distribution<float> value(-0.5f, 0.5f);
      for (std::int64_t i = 0; i < memory.elements(); ++i)
        static_cast<float*>(c.buffers.back().get())[i] = value(random);
    }
    c.args.push_back(c.buffers.back().get());
  }
  for (int worker = 0; worker < 2; ++worker) c.scratch.push_back(allocate(c.code->scratch_bytes));
  c.work = allocate(c.code->work_bytes);
  return c;
}

double thread_milliseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

struct Run {
  Contender& contender;
  const codegen::CompiledPhase* phase;
  double spent[2] = {0, 0};
};

void share(void* context, int worker, std::int64_t first, std::int64_t last) {
  Run& run = *static_cast<Run*>(context);
  const double start = thread_milliseconds();
  for (std::int64_t task = first; task < last; ++task) {
    run.phase->entry(run.contender.args.data(), nullptr, task,
                     run.contender.scratch[static_cast<std::size_t>(worker)].get(), run.contender.work.get());
  }
  run.spent[worker] += thread_milliseconds() - start;  // a worker has several shares
}

// One run of all phases. Processor time is that of the slowest worker of each phase: it leaves out other programs.
void measure(Contender& c, runtime::ThreadPool& pool) {
  const auto start = std::chrono::steady_clock::now();
  double processor = 0;
  for (const codegen::CompiledPhase& phase : c.code->phases) {
    Run run{c, &phase};
    pool.run(phase.tasks, share, &run);
    processor += std::max(run.spent[0], run.spent[1]);
  }
  c.wall.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  c.processor.push_back(processor);
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

void report(std::vector<Contender>& contenders, int threads) {
  const double peak = contenders[0].flop / quantile(contenders[0].processor, 0.5);
  const double base = quantile(contenders[1].processor, 0.5);
  fmt::print("\n{} thread{}\n{:<28} {:>8} {:>17} {:>8} {:>8} {:>8} {:>8}\n", threads, threads > 1 ? "s" : "", "kernel",
             "cpu ms", "10 % .. 90 %", "wall ms", "GFLOP/s", "% peak", "x (f)");
  for (Contender& c : contenders) {
    const double median = quantile(c.processor, 0.5);
    fmt::print("{:<28} {:>8.3f} {:>8.3f}..{:<7.3f} {:>8.3f} {:>8.1f} {:>8.1f} {:>8.2f}\n", c.label, median,
               quantile(c.processor, 0.1), quantile(c.processor, 0.9), quantile(c.wall, 0.5), c.flop / median * 1e-6,
               100 * c.flop / median / peak, base / median);
    c.wall.clear();
    c.processor.clear();
  }
}

}  // namespace
}  // namespace fusejit::bench

int main(int argc, char** argv) {
  using namespace fusejit::bench;
  std::string folder = ".";
  int rounds = 15;
  std::vector<std::string> variants;
  const auto end = read_options(argc, argv, "Gate A: convolution kernels against the FMA peak of the same run",
                                {{"--source", &folder, "root of the source tree, where the kernel texts are"},
                                 {"--rounds", &rounds, "runs of each contender"},
                                 {"variants", &variants, "further kernel texts that compute (f)"}});
  if (end) return *end;
  const double direct = 2.0 * 16 * 166 * 166 * 64 * 64;  // 166 = taps of 56 pixels without padding
  std::vector<Contender> contenders;
  contenders.push_back(load(folder + "/bench/kernels/fma_peak.kir", 2.0 * 64 * 20000 * 48 * 16));
  contenders.push_back(load(folder + "/tests/kernels/f_conv3x3_bn.kir", direct));
  contenders.push_back(load(folder + "/tests/kernels/h_winograd.kir", direct));
  for (const std::string& path : variants) contenders.push_back(load(path, direct));
  for (const Contender& c : contenders) {
    fmt::print("{:<28} compiled in {:>6.1f} ms, {} IR instructions, {} bytes of code, {} KiB scratch\n", c.label,
               c.code->compile_milliseconds, c.code->ir_instructions, c.code->code_bytes, c.code->scratch_bytes / 1024);
  }
  for (int threads : {1, 2}) {
    fusejit::runtime::ThreadPool pool(threads);
    for (int round = -2; round < rounds; ++round) {
      for (Contender& c : contenders) {
        if (round == 0) c.wall.clear(), c.processor.clear();
        measure(c, pool);
      }
    }
    report(contenders, threads);
  }
}
