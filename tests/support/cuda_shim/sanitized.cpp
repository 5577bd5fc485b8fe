#include "tests/support/cuda_shim/sanitized.h"

#include <fmt/format.h>

#include <fstream>

namespace fusejit::test {
namespace {

// The program's main().
std::string sanitized_main(const std::vector<codegen::cuda::CudaSource>& sources,
                           const std::vector<ir::Kernel>& kernels) {
  std::string text = "int main() {\n";
  int entry = 0;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const codegen::cuda::CudaSource& source = sources[k];
    std::vector<std::int64_t> sizes;
    for (const ir::KernelParam& p : kernels[k].params)
      if (p.memory >= 0) {
        const ir::Memory& m = kernels[k].memories[static_cast<std::size_t>(p.memory)];
        sizes.push_back(bytes(m.dtype, m.elements()));
      }
    if (source.work_bytes > 0) sizes.push_back(source.work_bytes);
    if (source.counter_bytes > 0) sizes.push_back(source.counter_bytes);
    const std::size_t buffers = static_cast<std::size_t>(source.buffers);
    text += "  {\n    void* buffers[] = {";
    // What the host hands out is 64-byte aligned; rounding the size up would hide an overrun.
    for (std::int64_t size : sizes) text += fmt::format("fj_checked_memory({}), ", size);
    text += "};\n    unsigned long long number = 0;\n    void* args[] = {";
    for (std::size_t i = 0; i < sizes.size() + source.scalars.size(); ++i) {
      const bool scalar = i >= buffers && i < buffers + source.scalars.size();
      text += scalar ? "&number, " : fmt::format("&buffers[{}], ", i < buffers ? i : i - source.scalars.size());
    }
    text += "};\n";
    for (const codegen::cuda::CudaLaunch& l : source.launches) {
      text += fmt::format(
          "    {{ const long long g[] = {{{}, {}, {}}}, b[] = {{{}, {}, {}}};\n      const char* error = "
          "fj_shim_run({}, args, g, b, {}, 2);\n      if (*error != 0) return puts(error), 1; }}\n",
          l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], entry++, l.shared_bytes);
    }
    text += "    for (void* p : buffers) free(p);\n  }\n";
  }
  return "static void* fj_checked_memory(size_t bytes) {\n  void* p = nullptr;\n  if (posix_memalign(&p, 64, bytes) != "
         "0) "
         "abort();\n  return memset(p, 0, bytes);\n}\n" +
         text + "}\n";
}

}  // namespace

Sanitized run_sanitized(const Shim& shim, const std::vector<ir::Kernel>& kernels) {
  const std::string folder = shim.folder().string();
  std::ofstream(folder + "/checked.cpp") << shim.text() << sanitized_main(shim.sources(), kernels);
  const std::string options = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all";
  const std::string probe = folder + "/probe";
  std::ofstream(probe + ".cpp") << "int main() {}\n";
  if (!run_command(fmt::format("{} {} {}.cpp -o {} && {}", Shim::compiler(), options, probe, probe, probe),
                   probe + ".log")
           .empty())
    return {"this compiler has no sanitizers", true};
  const std::string compiled = run_command(
      fmt::format("{} {} {}/checked.cpp -o {}/checked", Shim::compiler(), options, folder, folder), folder + "/log");
  return {compiled.empty() ? run_command(folder + "/checked", folder + "/log") : compiled, false};
}

}  // namespace fusejit::test
