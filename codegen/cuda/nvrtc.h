// NVRTC, loaded at run time: CUDA C++ -> cubin for an exact architecture, or PTX for people to read. Needs neither a
// driver nor a device. The library is looked for as FUSEJIT_NVRTC (a path); else libnvrtc.so.13, then .12, each also
// where
// `./dev setup --cuda` puts it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusejit::codegen::cuda {

// What a program must be compiled with, as NVRTC and nvcc spell it: arithmetic is as written, no contraction; that
// denormals are kept and division and root correctly rounded is their default.
inline constexpr std::array<std::string_view, 2> kRequiredOptions = {"--std=c++17", "--fmad=false"};

// What ptxas said of one entry.
struct Resources {
  std::string entry;
  int registers = 0;              // per thread
  std::int64_t spill_bytes = 0;   // stores and loads
  std::int64_t stack_bytes = 0;   // local memory per thread
  std::int64_t shared_bytes = 0;  // static, per block
};

struct CudaBinary {
  int compute_capability = 0;
  std::string cubin;
  std::vector<Resources> entries;  // in the order of the text
  double compile_milliseconds = 0;
};

struct NvrtcState {
  bool available = false;
  std::string why_not;  // one sentence, with what to do
  std::string library;  // as it was opened
  int major = 0, minor = 0;
  std::vector<int> architectures;  // compute capabilities it can compile for, ascending
};

// Looked up once per process.
const NvrtcState& nvrtc();
// What nvrtc() would be if the library were looked for at `path` only (empty: as it is by default).
NvrtcState look_for_nvrtc(const std::string& path);

// What besides the text decides about the binary: version and options, for cache keys.
std::string nvrtc_identity();

// Compiles a program (emit.h) for sm_<compute_capability>. Throws UnsupportedError if NVRTC is not there or does not
// know the architecture, DeviceError with log, the lines it names and the text if the program does not compile. Safe to
// call from several threads at a time.
CudaBinary compile(std::string_view program, int compute_capability);
std::string compile_to_ptx(std::string_view program, int compute_capability);

}  // namespace fusejit::codegen::cuda
