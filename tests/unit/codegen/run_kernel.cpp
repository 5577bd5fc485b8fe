#include "tests/unit/codegen/run_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace fusejit::test {
namespace {

constexpr std::int64_t kGuard = 256;
constexpr std::byte kGuardByte{0xA5};

double special(std::mt19937_64& random) {
  const double table[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-42, -1e-45, 6e-8, 1.0, -1.0, 3.4e38, 65519, 65520};
  return table[random() % std::size(table)];
}

ir::Scalar random_scalar(DType dtype, Values values, std::mt19937_64& random) {
  if (dtype == DType::boolean) return ir::Scalar::of(random() % 2 == 0);
  if (!is_float(dtype)) return {dtype, bits(dtype) == 32 ? random() & 0xffffffff : random()};
  const bool odd = values == Values::special && random() % 4 == 0;
  return ir::cast(ir::Scalar::of(odd ? special(random) : std::normal_distribution<double>()(random)), dtype);
}

// u32 buffers of the worked kernels hold pairs of bf16: random bits would be NaN too often.
void fill(Memory& memory, DType dtype, Values values, std::mt19937_64& random) {
  if (dtype == DType::b1) {
    for (std::int64_t i = 0; i < memory.size(); ++i)
      static_cast<std::uint8_t*>(memory.data())[i] = static_cast<std::uint8_t>(random());
    return;
  }
  const bool pairs = dtype == DType::u32;
  const DType element = pairs ? DType::bf16 : dtype;
  const std::int64_t count = memory.size() / bytes(element);
  for (std::int64_t i = 0; i < count; ++i)
    ir::store_element(memory.data(), element, i, random_scalar(element, values, random));
}

bool is_nan(ir::Scalar s) { return is_float(s.dtype) && std::isnan(s.as_double()); }

}  // namespace

std::string kernel_text(const std::string& file) {
  std::ifstream in(std::string(FUSEJIT_SOURCE_DIR) + "/tests/kernels/" + file);
  if (!in) throw std::runtime_error("no such kernel text: " + file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string for_isa(const std::string& text, Isa isa) {
  std::string result = std::regex_replace(text, std::regex(R"(on x86:\w+)"), fmt::format("on {}", name(isa)));
  if (isa != Isa::x86_v2) return result;
  return std::regex_replace(result, std::regex(R"(%(\w+) = fma\(([^,]+), ([^,]+), ([^)]+)\) : (f32|f64))"),
                            "%fm$1 = mul($2, $3) : $5  %$1 = add(%fm$1, $4) : $5");
}

Memory::Memory(std::int64_t bytes)
    : storage_(static_cast<std::size_t>(bytes + kGuard + 64), std::byte{0}), size_(bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
  data_ = storage_.data() + ((address + 63) / 64 * 64 - address);
  std::fill_n(data_ + bytes, kGuard, kGuardByte);
}

bool Memory::guard_intact() const {
  return std::all_of(data_ + size_, data_ + size_ + kGuard, [](std::byte b) { return b == kGuardByte; });
}

Operands random_operands(const ir::Kernel& kernel, Values values, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Operands operands;
  for (const ir::KernelParam& param : kernel.params) {
    if (param.memory < 0) {
      operands.scalars.push_back(random_scalar(kernel.values[param.scalar], Values::ordinary, random));
      continue;
    }
    const ir::Memory& memory = kernel.memories[param.memory];
    Memory& buffer = operands.buffers.emplace_back(bytes(memory.dtype, memory.elements()));
    if (memory.kind != ir::MemKind::write) fill(buffer, memory.dtype, values, random);
  }
  return operands;
}

void run_compiled(const codegen::CompiledKernel& compiled, Operands& operands, ir::TaskOrder order) {
  std::vector<const void*> args;
  for (Memory& buffer : operands.buffers) args.push_back(buffer.data());
  std::vector<std::uint64_t> scalars;
  for (const ir::Scalar& s : operands.scalars) scalars.push_back(s.bits);
  Memory scratch(compiled.scratch_bytes), work(compiled.work_bytes);
  for (const codegen::CompiledPhase& phase : compiled.phases) {
    std::vector<std::int64_t> tasks(static_cast<std::size_t>(phase.tasks));
    for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i] = static_cast<std::int64_t>(i);
    if (order == ir::TaskOrder::descending) std::reverse(tasks.begin(), tasks.end());
    if (order == ir::TaskOrder::shuffled) std::shuffle(tasks.begin(), tasks.end(), std::mt19937_64(7));
    for (std::int64_t task : tasks) phase.entry(args.data(), scalars.data(), task, scratch.data(), work.data());
  }
  if (!scratch.guard_intact() || !work.guard_intact())
    throw std::runtime_error("the kernel wrote beyond its scratch or work");
}

void run_interpreted(const ir::Kernel& kernel, Operands& operands) {
  std::vector<void*> args;
  for (Memory& buffer : operands.buffers) args.push_back(buffer.data());
  ir::interpret(kernel, args, operands.scalars);
}

std::string difference(const ir::Kernel& kernel, const Operands& expected, const Operands& actual) {
  std::size_t i = 0;
  for (const ir::KernelParam& param : kernel.params) {
    if (param.memory < 0) continue;
    const ir::Memory& memory = kernel.memories[param.memory];
    if (!actual.buffers[i].guard_intact()) return fmt::format("buffer {}: written beyond its end", i);
    for (std::int64_t at = 0; at < memory.elements(); ++at) {
      const ir::Scalar e = ir::load_element(expected.buffers[i].data(), memory.dtype, at);
      const ir::Scalar a = ir::load_element(actual.buffers[i].data(), memory.dtype, at);
      if (e == a || (is_nan(e) && is_nan(a))) continue;
      return fmt::format("buffer {} element {}: expected {} ({:#x}), got {} ({:#x})", i, at, ir::literal_text(e),
                         e.bits, ir::literal_text(a), a.bits);
    }
    ++i;
  }
  return "";
}

}  // namespace fusejit::test
