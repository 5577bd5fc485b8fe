#include "tests/support/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace fusejit::test {

double special(std::mt19937_64& random) {
  const double table[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-42, -1e-45, 6e-8, 1.0, -1.0, 3.4e38, 65519, 65520};
  return table[random() % std::size(table)];
}

ir::Scalar random_scalar(DType dtype, Values values, std::mt19937_64& random) {
  if (dtype == DType::boolean) return ir::Scalar::of(random() % 2 == 0);
  if (!is_float(dtype)) return {dtype, random() & ~std::uint64_t{0} >> (64 - bits(dtype))};
  const bool odd = values == Values::special && random() % 4 == 0;
  return ir::cast(ir::Scalar::of(odd ? special(random) : std::normal_distribution<double>()(random)), dtype);
}

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

double half_way(DType half, std::uint64_t bits, int step) {
  const double value = ir::cast(ir::Scalar{half, bits}, DType::f64).f64();
  const double next = ir::cast(ir::Scalar{half, (bits + 1) & 0xffff}, DType::f64).f64();
  if (!std::isfinite(value) || !std::isfinite(next)) return value;
  const double middle = (value + next) / 2;
  return step == 0 ? middle : std::nextafter(middle, step < 0 ? -INFINITY : INFINITY);
}

Memory::Memory(std::int64_t bytes, std::int64_t align)
    : storage_(static_cast<std::size_t>(bytes + kGuard + 256), std::byte{0}), size_(bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
  data_ = storage_.data() + ((address + 127) / 128 * 128 - address) + align;
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
    const std::int64_t align = memory.align > 0 ? memory.align : bytes(memory.dtype);
    Memory& buffer =
        operands.buffers.emplace_back(bytes(memory.dtype, memory.elements()), std::min<std::int64_t>(align, 64));
    buffer.defined = memory.kind != ir::MemKind::write;
    if (buffer.defined) fill(buffer, memory.dtype, values, random);
  }
  return operands;
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
    // Lanes behind the last bit store 0 (kernel-ir.md, V1).
    const std::int64_t rest = memory.elements() % 8;
    if (memory.dtype == DType::b1 && memory.kind == ir::MemKind::write && rest != 0) {
      const auto last = static_cast<const std::uint8_t*>(actual.buffers[i].data())[memory.elements() / 8];
      if (last >> rest != 0) return fmt::format("buffer {}: bits {:#x} in the last byte, which has {}", i, last, rest);
    }
    ++i;
  }
  return "";
}

}  // namespace fusejit::test
