// Target: the machine that code is generated for, as nominal constants. Measured figures never enter it, because it is
// part of every key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fusejit {

// Instruction sets that there is a generator for.
enum class Isa : std::uint8_t { x86_avx512, x86_avx512bf16, x86_amx, x86_avx2, x86_v2, cuda, any };

// "x86:avx512", "x86:avx512bf16", "x86:amx" (which is avx512bf16 with tile registers), "x86:avx2", "x86:v2", "cuda",
// "any"
std::string_view name(Isa isa);
// Whether there is a multiplication and addition with one rounding.
bool has_fma(Isa isa);
// Whether there are registers of 512 bits; instructions on bf16 of that width.
bool has_avx512(Isa isa);
bool has_bf16(Isa isa);

// What cuDNN does in plans for a CUDA device.
enum class CudnnMode : std::uint8_t {
  off,
  precompiled,  // convolutions are its calls, with what its precompiled engines do beside them
  compiled      // also with what the engines do that it compiles at run time
};

// Where convolutions of up to 3x3 taps go through Winograd's minimal filtering, computed in f32 on processors: fewer
// products, with errors of a few 1e-5 of the results' size instead of 1e-6.
enum class WinogradMode : std::uint8_t {
  off,
  automatic,  // where it is expected to be faster
  always      // wherever it can be used
};

struct Target {
  Isa isa = Isa::x86_avx2;
  std::int64_t l1_bytes = 32 << 10;  // per core
  std::int64_t l2_bytes = 1 << 20;   // per core
  std::int64_t l3_bytes = 32 << 20;  // shared
  int fma_per_cycle = 1;             // vector FMAs a core starts per cycle at full vector width
  int tasks = 64;                    // parallel tasks that lowering aims at; independent of the number of threads. Of
                                     // the host: 16 for each of its processors, a power of two, at least 32
  int compute_capability = 0;        // cuda only: 90 for sm_90
  bool dot2_is_faster = false;       // vdpbf16ps beats f32 FMA on widened values (Zen 4: yes)
  CudnnMode cudnn = CudnnMode::off;  // cuda only
  // Beside cuDNN: convolutions of f32 values are generated kernels all the same. Where cuDNN may not round to TF32
  // those are faster: a step of ResNet-50 by 1.15, of MobileNet-v2 by 2 (docs/gpu.md).
  bool strict_f32 = false;
  WinogradMode winograd = WinogradMode::off;
  // Beside cuDNN: statistics of f16 convolutions are what its engines leave, sums of values and of their squares.
  bool fast_norm = false;

  // Elements of a 4-byte type in one vector register: 16, 8 or 4 (cuda: 4 in a 16-byte access).
  int lanes32() const;
  // That code for one task may keep values in; for cuda, where a compiler shares out what there is, as many as lowering
  // counts on.
  int vector_registers() const;
  bool has_fma() const { return fusejit::has_fma(isa); }
  // "x86:avx512,l1=32k,l2=1m,l3=32m,fma=1,tasks=64", then ",dot2=1", ",cudnn=1" or 2 (CudnnMode),
  // ",strict=1", ",winograd=1" or 2 (WinogradMode) and ",fastnorm=1" if they are not 0: every constant, part of cache
  // keys.
  std::string str() const;
  // Reads what str() writes, with any constant left out: "x86:avx512", "x86:avx2,l1=1k,tasks=7", "cuda:sm_90",
  // "host", "host,tasks=7". Throws UserError.
  static Target parse(std::string_view text);
  // The processor that this process runs on.
  static Target host();
  friend bool operator==(const Target&, const Target&) = default;
};

}  // namespace fusejit
