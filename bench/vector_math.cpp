// Nanoseconds per element of every function as an element-wise kernel in L1, for each x86 target of this processor,
// with the time of compilation, beside glibc's libmvec where it is installed and has the function.
//
//   bin/vector_math --only tanh
#include <dlfcn.h>
#include <fmt/format.h>
#include <immintrin.h>

#include <chrono>
#include <random>

#include "bench/command_line/options.h"
#include "codegen/x86/compile.h"
#include "ir/kernel/kernel.h"
#include "tests/support/fragment_table.h"

namespace {

using namespace fusejit;
using Clock = std::chrono::steady_clock;

constexpr int kElements = 2048;

struct Buffers {
  alignas(64) std::byte x[3][kElements * 8];
};

std::string kernel_text(const test::FunctionCase& c, DType dtype, Isa isa, int lanes) {
  const std::string_view t = name(dtype);
  std::string params, loads, args;
  for (int i = 0; i < c.arguments; ++i) {
    params += fmt::format("%x{}: {}[{}] read align 64, ", i, t, kElements);
    loads += fmt::format("%v{} = load %x{}[%i*{} + %l] : {}  ", i, i, lanes, t);
    args += fmt::format("{}%v{}", i ? ", " : "", i);
  }
  return fmt::format(
      "kernel @k({}%y: {}[{}] write align 64) on {} {{ phase {{ for %i in 0..{} {{ for %l in 0..{} vector {{ "
      "{}%r = {}({}) : {}  store %y[%i*{} + %l], %r }} }} }} }}",
      params, t, kElements, name(isa), kElements / lanes, lanes, loads, ir::name(c.op), args, t, lanes);
}

// Nanoseconds per element: the least of several runs.
template <class Run>
double nanoseconds(Run run) {
  double best = 1e30;
  for (int trial = 0; trial < 15; ++trial) {
    const auto start = Clock::now();
    for (int i = 0; i < 20; ++i) run();
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count() / 20 / kElements);
  }
  return best;
}

template <class T>
void fill(Buffers& b, const ir::OpDef& row) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> draw(row.domain_low, row.domain_high);
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < kElements; ++i) reinterpret_cast<T*>(b.x[k])[i] = static_cast<T>(draw(random));
}

using Vector16 = __m512 (*)(__m512);

__attribute__((target("avx512f"))) void apply16(Vector16 f, const float* x, float* y) {
  for (int i = 0; i < kElements; i += 16) _mm512_store_ps(y + i, f(_mm512_load_ps(x + i)));
}

// libmvec's function of 16 floats, or null.
Vector16 libmvec(std::string_view function) {
  static void* const library = dlopen("libmvec.so.1", RTLD_NOW);
  if (!library || !codegen::x86::host_supports(Isa::x86_avx512)) return nullptr;
  return reinterpret_cast<Vector16>(dlsym(library, fmt::format("_ZGVeN16v_{}f", function).c_str()));
}

std::string measure(const test::FunctionCase& c, DType dtype, Isa isa, Buffers& b) {
  if (!codegen::x86::host_supports(isa)) return fmt::format("{:>16}", "-");
  const int lanes = (isa == Isa::x86_avx512 ? 16 : isa == Isa::x86_avx2 ? 8 : 4) / (dtype == f64 ? 2 : 1);
  const auto compiled = codegen::x86::compile(ir::parse_kernel(kernel_text(c, dtype, isa, lanes)), Target{});
  const void* args[3] = {b.x[0], c.arguments == 2 ? b.x[1] : b.x[2], b.x[2]};
  const double ns = nanoseconds([&] { compiled->phases[0].entry(args, nullptr, 0, nullptr, nullptr); });
  return fmt::format("{:8.3f} ({:5.1f})", ns, compiled->compile_milliseconds);
}

}  // namespace

int main(int argc, char** argv) {
  std::string only;
  const auto end =
      fusejit::bench::read_options(argc, argv, "nanoseconds per element of the functions, (milliseconds to compile)",
                                   {{"--only", &only, "one function"}});
  if (end) return *end;
  const auto buffers = std::make_unique<Buffers>();
  fmt::print("{:13} {:4} {:>16} {:>16} {:>16} {:>10}\n", "function", "", "avx512", "avx2", "v2", "libmvec");
  for (const DType dtype : {f32, f64}) {
    for (const test::FunctionCase& c : test::function_cases()) {
      if (!only.empty() && ir::name(c.op) != only) continue;
      const ir::OpDef& row = ir::op_def(c.op);
      dtype == f32 ? fill<float>(*buffers, row) : fill<double>(*buffers, row);
      std::string line = fmt::format("{:13} {:4}", ir::name(c.op), name(dtype));
      for (const Isa isa : {Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2})
        line += " " + measure(c, dtype, isa, *buffers);
      const Vector16 peer = dtype == f32 && c.arguments == 1 ? libmvec(ir::name(c.op)) : nullptr;
      if (peer) {
        const auto* x = reinterpret_cast<const float*>(buffers->x[0]);
        auto* y = reinterpret_cast<float*>(buffers->x[2]);
        line += fmt::format(" {:10.3f}", nanoseconds([&] { apply16(peer, x, y); }));
      }
      fmt::print("{}\n", line);
    }
  }
}
