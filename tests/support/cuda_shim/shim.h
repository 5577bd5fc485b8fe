// Runs generated CUDA programs on the CPU: the text behind cuda_shim/shim.inc, compiled by this machine's C++ compiler
// into a shared object that this process opens, or into a program of its own under sanitizers. Every access to memory
// is checked (cuda_shim/memory_check.inc).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/emit.h"
#include "tests/support/operands.h"

namespace fusejit::test {

// "" or what the compiler said.
std::string run_command(const std::string& command, const std::filesystem::path& log);

struct ShimMemory {
  void* address;
  std::int64_t bytes;
  bool defined;  // at entry
};

class Shim {
 public:
  // Throws std::runtime_error with the compiler's messages.
  explicit Shim(std::vector<codegen::cuda::CudaSource> sources,
                std::string prelude = std::string(codegen::cuda::prelude()));
  ~Shim();
  Shim(const Shim&) = delete;

  // At -O0 no access is moved or left out by the compiler.
  void open(const char* optimise = "-O1");

  // All launches of one kernel, with threads and blocks in this order.
  void run(std::size_t kernel, Operands& operands, ir::TaskOrder order);

  // Before the first launch of a kernel: the memory that its launches may touch.
  void begin(const std::vector<ShimMemory>& memory);

  // One launch of a kernel on memory of the host: its buffers, then work and counters if it has them. "" or an error.
  std::string launch(std::size_t kernel, std::size_t number, std::span<void* const> pointers,
                     std::span<const std::uint64_t> scalars, ir::TaskOrder order);

  // The whole program for the CPU.
  std::string text() const;
  const std::vector<codegen::cuda::CudaSource>& sources() const { return sources_; }
  const std::filesystem::path& folder() const { return folder_; }
  static std::string compiler();

 private:
  using SetMemory = void (*)(int, void**, const long long*, const unsigned char*);
  using Launch = const char* (*)(int, void**, const long long*, const long long*, long long, int);
  int first_entry(std::size_t kernel) const;

  std::vector<codegen::cuda::CudaSource> sources_;
  std::string prelude_;
  std::filesystem::path folder_;
  Launch launch_ = nullptr;
  SetMemory memory_ = nullptr;
};

}  // namespace fusejit::test
