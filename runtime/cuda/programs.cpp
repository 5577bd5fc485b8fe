#include "runtime/cuda/programs.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

namespace fusejit::runtime::cuda {
namespace {

// A program costs about as much as two more kernels in another one; a longer program is more to wait for.
constexpr std::size_t kFewestInProgram = 4;
constexpr std::size_t kMostInProgram = 16;

std::size_t programs_for(std::size_t kernels, int threads) {
  const std::size_t in_parallel = std::min<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)),
                                                        (kernels + kFewestInProgram - 1) / kFewestInProgram);
  return std::max(in_parallel, (kernels + kMostInProgram - 1) / kMostInProgram);
}

}  // namespace

std::vector<std::vector<std::size_t>> divide(std::span<const codegen::cuda::CudaSource> sources, int threads) {
  std::vector<std::vector<std::size_t>> programs(programs_for(sources.size(), threads));
  std::vector<std::size_t> bytes(programs.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto shortest = static_cast<std::size_t>(std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
    programs[shortest].push_back(i);
    bytes[shortest] += sources[i].text.size();
  }
  return programs;
}

std::vector<Program> compile_programs(std::span<const codegen::cuda::CudaSource> sources, int compute_capability,
                                      int threads, const CompileProgram& compile) {
  std::vector<Program> programs;
  for (std::vector<std::size_t>& members : divide(sources, threads)) programs.push_back({std::move(members), {}});
  std::vector<std::exception_ptr> errors(programs.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < programs.size(); i = next++) {
      try {
        std::vector<codegen::cuda::CudaSource> texts;
        for (const std::size_t member : programs[i].members) texts.push_back(sources[member]);
        programs[i].binary = compile(codegen::cuda::program(texts), compute_capability);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < std::min(programs.size(), static_cast<std::size_t>(std::max(threads, 1))); ++t)
      others.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return programs;
}

}  // namespace fusejit::runtime::cuda
