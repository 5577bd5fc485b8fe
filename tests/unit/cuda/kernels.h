// The kernels of these tests: the CUDA ones among the worked kernels at toy size, and one for each construct of the
// language under tests/kernels/cuda.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "codegen/cuda/emit.h"
#include "tests/support/operands.h"

namespace fusejit::test {

inline std::vector<std::string> cuda_kernel_files() {
  std::vector<std::string> files = {"toy/a_scale_relu_cuda.kir", "toy/c_bn_stats_cuda.kir",
                                    "toy/j_relu_dropout_grad_cuda.kir"};
  const std::string folder = std::string(FUSEJIT_SOURCE_DIR) + "/tests/kernels/cuda";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".kir") files.push_back("cuda/" + entry.path().filename().string());
  std::sort(files.begin() + 3, files.end());
  return files;
}

inline ir::Kernel cuda_kernel(const std::string& file) {
  const ir::Kernel kernel = ir::parse_kernel(kernel_text(file));
  ir::verify(kernel);
  return kernel;
}

// Gathers read indices: most of them within the tables of these kernels.
inline Operands cuda_operands(const ir::Kernel& kernel, Values values, std::uint64_t seed) {
  Operands operands = random_operands(kernel, values, seed);
  std::size_t i = 0;
  for (const ir::KernelParam& p : kernel.params) {
    if (p.memory < 0) continue;
    const ir::Memory& m = kernel.memories[static_cast<std::size_t>(p.memory)];
    if (m.dtype == DType::i64 && m.kind == ir::MemKind::read)
      for (std::int64_t at = 0; at < m.elements(); ++at)
        ir::store_element(
            operands.buffers[i].data(), m.dtype, at,
            ir::Scalar::of(static_cast<std::int64_t>(seed * 31 + static_cast<std::uint64_t>(at) * 7) % 9 - 1));
    ++i;
  }
  return operands;
}

// Steps between neighbouring floats from a to b.
inline double ulp_distance(ir::Scalar a, ir::Scalar b) {
  const std::uint64_t sign = std::uint64_t{1} << (bits(a.dtype) - 1);
  const auto place = [&](ir::Scalar s) { return (s.bits & sign) != 0 ? 0 - (s.bits & ~sign) : s.bits; };
  return std::abs(static_cast<double>(static_cast<std::int64_t>(place(a) - place(b))));
}

// As difference(), but buffer `i` may be `ulp(i)` steps off.
template <class F>
std::string difference_in_ulp(const ir::Kernel& kernel, const Operands& expected, const Operands& actual,
                              const F& ulp) {
  std::size_t i = 0;
  for (const ir::KernelParam& p : kernel.params) {
    if (p.memory < 0) continue;
    const ir::Memory& m = kernel.memories[static_cast<std::size_t>(p.memory)];
    if (!actual.buffers[i].guard_intact()) return fmt::format("buffer {}: written beyond its end", i);
    for (std::int64_t at = 0; at < m.elements(); ++at) {
      const ir::Scalar e = ir::load_element(expected.buffers[i].data(), m.dtype, at);
      const ir::Scalar a = ir::load_element(actual.buffers[i].data(), m.dtype, at);
      if (e == a || (is_nan(e) && is_nan(a))) continue;
      if (is_float(m.dtype) && !is_nan(e) && !is_nan(a) && ulp_distance(e, a) <= ulp(i)) continue;
      return fmt::format("buffer {} element {}: expected {} ({:#x}), got {} ({:#x})", i, at, ir::literal_text(e),
                         e.bits, ir::literal_text(a), a.bits);
    }
    ++i;
  }
  return "";
}

}  // namespace fusejit::test
