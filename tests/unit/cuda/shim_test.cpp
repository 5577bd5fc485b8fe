// Generated CUDA text on the CPU: every kernel equals the interpreter bit for bit, whatever the order of threads.
#include "tests/support/cuda_shim/shim.h"

#include <gtest/gtest.h>

#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

constexpr ir::TaskOrder kOrders[] = {ir::TaskOrder::ascending, ir::TaskOrder::descending, ir::TaskOrder::shuffled};

std::vector<codegen::cuda::CudaSource> sources_of(const std::vector<ir::Kernel>& kernels) {
  std::vector<codegen::cuda::CudaSource> sources;
  for (const ir::Kernel& kernel : kernels) sources.push_back(codegen::cuda::emit(kernel));
  return sources;
}

TEST(CudaShim, EveryKernelEqualsTheInterpreterInEveryThreadOrder) {
  const std::vector<std::string> files = cuda_kernel_files();
  std::vector<ir::Kernel> kernels;
  for (const std::string& file : files) kernels.push_back(cuda_kernel(file));
  Shim shim(sources_of(kernels));
  shim.open();
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    SCOPED_TRACE(files[k]);
    // exp is CUDA's own; its error is carried through a sum.
    const double ulp = files[k].find("softmax") != std::string::npos ? 32 : 0;
    const Values values = ulp > 0 ? Values::ordinary : Values::special;
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      Operands expected = cuda_operands(kernels[k], values, seed);
      run_interpreted(kernels[k], expected);
      for (const ir::TaskOrder order : kOrders) {
        Operands actual = cuda_operands(kernels[k], values, seed);
        shim.run(k, actual, order);
        ASSERT_EQ(difference_in_ulp(kernels[k], expected, actual, [&](std::size_t) { return ulp; }), "")
            << "seed " << seed << " order " << static_cast<int>(order) << "\n"
            << shim.sources()[k].text;
      }
    }
  }
}

// What these tests are for: without its barriers a kernel is wrong in some order.
TEST(CudaShim, AMissingBarrierShows) {
  const ir::Kernel kernel = cuda_kernel("cuda/prefix.kir");
  std::vector<codegen::cuda::CudaSource> sources = sources_of({kernel});
  int removed = 0;
  for (std::size_t at; (at = sources[0].text.find("__syncthreads();")) != std::string::npos; ++removed)
    sources[0].text.erase(at, 16);
  EXPECT_GT(removed, 2);
  Shim shim(sources);
  shim.open();
  Operands expected = cuda_operands(kernel, Values::ordinary, 1);
  run_interpreted(kernel, expected);
  int wrong = 0;
  for (const ir::TaskOrder order : kOrders) {
    Operands actual = cuda_operands(kernel, Values::ordinary, 1);
    shim.run(0, actual, order);
    wrong += difference(kernel, expected, actual).empty() ? 0 : 1;
  }
  EXPECT_GT(wrong, 0);
}

// A program of its own under the address and undefined-behaviour sanitizers, on heap buffers of exactly their size.
TEST(CudaShim, SanitizersFindNothing) {
  std::vector<ir::Kernel> kernels;
  for (const char* file : {"cuda/bits_tail.kir", "cuda/chain.kir", "cuda/gather_rows.kir", "cuda/missing_axes.kir",
                           "cuda/two_sums.kir", "toy/c_bn_stats_cuda.kir"})
    kernels.push_back(cuda_kernel(file));
  Shim shim(sources_of(kernels));
  std::string main = "int main() {\n";
  int entry = 0;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const codegen::cuda::CudaSource& source = shim.sources()[k];
    std::vector<std::int64_t> sizes;
    for (const ir::KernelParam& p : kernels[k].params)
      if (p.memory >= 0) {
        const ir::Memory& m = kernels[k].memories[static_cast<std::size_t>(p.memory)];
        sizes.push_back(bytes(m.dtype, m.elements()));
      }
    if (source.work_bytes > 0) sizes.push_back(source.work_bytes);
    if (source.counter_bytes > 0) sizes.push_back(source.counter_bytes);
    const std::size_t buffers = static_cast<std::size_t>(source.buffers);
    main += "  {\n    void* buffers[] = {";
    for (std::int64_t size : sizes) main += fmt::format("calloc({}, 1), ", size);
    main += "};\n    unsigned long long number = 0;\n    void* args[] = {";
    for (std::size_t i = 0; i < sizes.size() + source.scalars.size(); ++i) {
      const bool scalar = i >= buffers && i < buffers + source.scalars.size();
      main += scalar ? "&number, " : fmt::format("&buffers[{}], ", i < buffers ? i : i - source.scalars.size());
    }
    main += "};\n";
    for (const codegen::cuda::CudaLaunch& l : source.launches) {
      main += fmt::format(
          "    {{ const long long g[] = {{{}, {}, {}}}, b[] = {{{}, {}, {}}};\n      const char* error = "
          "fj_shim_run({}, args, g, b, {}, 2);\n      if (*error != 0) return puts(error), 1; }}\n",
          l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], entry++, l.shared_bytes);
    }
    main += "    for (void* p : buffers) free(p);\n  }\n";
  }
  main += "}\n";
  const std::string folder = shim.folder().string();
  std::ofstream(folder + "/checked.cpp") << shim.text() << main;
  const std::string options = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all";
  const std::string probe = folder + "/probe";
  std::ofstream(probe + ".cpp") << "int main() {}\n";
  if (!run_command(fmt::format("{} {} {}.cpp -o {} && {}", Shim::compiler(), options, probe, probe, probe),
                   probe + ".log")
           .empty())
    GTEST_SKIP() << "this compiler has no sanitizers";
  ASSERT_EQ(run_command(fmt::format("{} {} {}/checked.cpp -o {}/checked", Shim::compiler(), options, folder, folder),
                        folder + "/log"),
            "");
  EXPECT_EQ(run_command(folder + "/checked", folder + "/log"), "");
}

}  // namespace
}  // namespace fusejit::test
