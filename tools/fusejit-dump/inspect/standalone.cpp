#include "tools/fusejit-dump/inspect/standalone.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <unordered_map>

#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "ir/kernel/cost/cost.h"
#include "tools/fusejit-dump/rows.h"

namespace fusejit::tools {
namespace {

// What a compiler without CUDA reads in front of the text: attributes are nothing, threads and what they do together
// are declared. So the text is checked, searched and completed as any other; to run it is the task of a definition of
// these (fusejit's own tests have one).
constexpr std::string_view kPlain = R"(#if !defined(__CUDACC__) && !defined(FJ_DYNAMIC_SHARED)
#include <math.h>
#include <string.h>
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static
#define FJ_DYNAMIC_SHARED(name) extern __align__(16) unsigned char name[]
extern thread_local struct fj_place { unsigned x, y, z; } threadIdx, blockIdx;
void __syncthreads();
void __threadfence();
unsigned atomicAdd(unsigned* p, unsigned n);
template <class T> T __shfl_sync(unsigned mask, T x, int source, int width);
template <class T> T __shfl_down_sync(unsigned mask, T x, int delta, int width);
template <class To, class From> inline To fj_bits_as(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
inline unsigned __float_as_uint(float x) { return fj_bits_as<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return fj_bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return fj_bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return fj_bits_as<double>(x); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
#endif
)";

std::string symbol_of(std::string_view name) {
  std::string text = "kernel_";
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text;
}

std::string standalone_heading(const scheduler::Plan& plan, const std::vector<DifferentKernel>& kernels,
                               const char* comment) {
  const std::string what =
      kernels.size() == 1 ? std::string("one kernel") : fmt::format("{} different kernels", kernels.size());
  return fmt::format("{0} {1} of the {2} of @{3} on {4}, rules={5}.\n", comment, what, plan.steps.size(), plan.name,
                     plan.target.str(), name(plan.rules));
}

std::string launches(const codegen::cuda::CudaSource& source) {
  std::string text;
  for (const codegen::cuda::CudaLaunch& l : source.launches)
    text += fmt::format("// {}<<<dim3({}), dim3({}), {}>>>\n", l.entry, fmt::join(l.grid, ", "),
                        fmt::join(l.block, ", "), l.shared_bytes);
  if (source.launches.size() > 1) text += "//   one launch after the other on one stream, with the same arguments\n";
  if (source.work_bytes > 0)
    text += fmt::format("//   work: {} bytes, aligned to 64, whatever is in them\n", source.work_bytes);
  if (source.counter_bytes > 0)
    text +=
        fmt::format("//   counter: {} bytes, zero before the first run, and zero after each\n", source.counter_bytes);
  return text;
}

codegen::cuda::CudaSource source_of(const DifferentKernel& one) {
  return codegen::cuda::emit(*one.code.kernel, one.code.symbol.substr(symbol_of("").size()), one.names);
}

std::string cuda_heading(const scheduler::Plan& plan) {
  const std::string required = fmt::format("{}", fmt::join(codegen::cuda::kRequiredOptions, " "));
  const int sm = plan.target.compute_capability;
  return fmt::format(
      "// Products and sums are rounded one by one, so the compiler must not contract them:\n"
      "//   nvcc -cubin -arch=sm_{0} {1} --diag-suppress=177 -o k.cubin k.cu\n"
      "//   NVRTC: --gpu-architecture=sm_{0} {1}; for ncu also -lineinfo\n"
      "//   c++ -std=c++17 -ffp-contract=off -x c++ -c k.cu, to have it checked without CUDA\n"
      "// Above each kernel: what it stands for, then its launches, name<<<grid, block, bytes of shared memory>>>. "
      "They "
      "take\n// addresses of buffers that do not overlap, in the order of the parameters; numbers by value.\n",
      sm, required);
}

std::string tasks(const DifferentKernel& one) {
  const std::vector<std::int64_t> counts = ir::cost(*one.code.kernel).tasks;
  std::string text;
  for (std::size_t phase = 0; phase < counts.size(); ++phase)
    text += fmt::format("; @{}_phase_{}: {} tasks\n", one.code.symbol, phase, counts[phase]);
  return text;
}

}  // namespace

std::vector<DifferentKernel> different_kernels(const Planned& planned, const std::vector<int>& steps) {
  const scheduler::Plan& plan = planned.plan;
  const std::vector<ParameterNames> names = parameter_names(planned);
  std::vector<DifferentKernel> all;
  std::unordered_map<std::string, std::size_t> known;
  std::set<std::string> taken;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const scheduler::PlanStep& step = plan.steps[s];
    const auto [at, is_new] = known.emplace(ir::kernel_key_text(*step.kernel), all.size());
    if (is_new) {
      const std::string name = symbol_of(step.name);
      std::string symbol = name;
      for (int i = 2; !taken.insert(symbol).second; ++i) symbol = fmt::format("{}_{}", name, i);
      all.push_back({{step.kernel.get(), symbol}, {}, names[s]});
    }
    all[at->second].steps.push_back(static_cast<int>(s));
  }
  std::erase_if(all, [&](const DifferentKernel& one) {
    return std::none_of(steps.begin(), steps.end(),
                        [&](int s) { return std::find(one.steps.begin(), one.steps.end(), s) != one.steps.end(); });
  });
  return all;
}

std::string legends(const scheduler::Plan& plan, const DifferentKernel& one, const char* comment) {
  std::string text;
  for (const int s : one.steps) {
    const bool named = plan.target.isa == Isa::cuda && s == one.steps[0];
    const std::string lines =
        legend(plan, plan.steps[static_cast<std::size_t>(s)], comment, named ? one.names : ParameterNames());
    const std::size_t words = std::string_view(comment).size() + 1;
    text += fmt::format("{} kernel {} of the plan, {}", comment, s, lines.substr(words));
  }
  return text;
}

std::vector<std::string> entries(const scheduler::Plan& plan, const DifferentKernel& one) {
  std::vector<std::string> list;
  if (plan.target.isa == Isa::cuda) {
    for (const codegen::cuda::CudaLaunch& launch : source_of(one).launches) list.push_back(launch.entry);
  } else {
    for (std::size_t phase = 0; phase < one.code.kernel->phases.size(); ++phase)
      list.push_back(fmt::format("{}_phase_{}", one.code.symbol, phase));
  }
  return list;
}

std::vector<SymbolKernel> codes(const std::vector<DifferentKernel>& kernels) {
  std::vector<SymbolKernel> list;
  for (const DifferentKernel& one : kernels) list.push_back(one.code);
  return list;
}

std::string standalone_cuda(const scheduler::Plan& plan, const std::vector<DifferentKernel>& kernels) {
  std::string text = standalone_heading(plan, kernels, "//") + cuda_heading(plan);
  text += kPlain;
  text += codegen::cuda::prelude();
  for (const DifferentKernel& one : kernels) {
    const codegen::cuda::CudaSource source = source_of(one);
    text += "\n" + legends(plan, one, "//") + launches(source) + source.text;
  }
  return text;
}

std::string standalone_llvm(const scheduler::Plan& plan, const std::vector<DifferentKernel>& kernels) {
  std::string text = standalone_heading(plan, kernels, ";");
  text +=
      "; Products and sums are rounded one by one, so the compiler must not contract them:\n"
      ";   llc -O2 -relocation-model=pic -fp-contract=off -filetype=obj -o k.o k.ll\n"
      ";   clang -c -ffp-contract=off -o k.o k.ll, of LLVM 19 or later, as llc and opt\n"
      "; A function runs one task of one phase of a kernel: (addresses of the buffers, numbers of 8 bytes each, number "
      "of the\n"
      "; task, scratch of the thread, work of the run); both memories are aligned to 64. Phases follow each other.\n";
  for (const DifferentKernel& one : kernels) text += "\n" + legends(plan, one, ";") + tasks(one);
  return text + "\n" + x86_module(ModuleForm::llvm, codes(kernels), plan.target);
}

}  // namespace fusejit::tools
