#ifdef FUSEJIT_X86
#include "runtime/disk/entries/kernel_entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "runtime/disk/identity.h"

namespace fusejit::runtime::disk {

CacheKey kernel_key(std::string kernel_key_text, Isa isa) {
  return CacheKey("kernel", {{"kernel", std::move(kernel_key_text)},
                             {"isa", std::string(name(isa))},
                             {"compiler", std::string(source_identity())},
                             {"llvm", codegen::x86::toolchain()}});
}

std::vector<Section> kernel_sections(const codegen::x86::ObjectCode& code) {
  return {{"name", code.name},
          {"object", code.object},
          {"facts", fmt::format("{} {} {} {}", code.scratch_bytes, code.work_bytes, code.ir_instructions,
                                fmt::join(code.tasks, " "))}};
}

std::optional<codegen::x86::ObjectCode> object_in(const Entry& entry, const std::string& name) {
  codegen::x86::ObjectCode code;
  code.name = name;
  code.object = entry.section("object");
  std::vector<std::int64_t> numbers;
  const std::string& facts = entry.section("facts");
  for (const char *at = facts.data(), *end = at + facts.size(); at < end;) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0 || (next < end && *next != ' ')) return std::nullopt;
    numbers.push_back(number);
    at = next < end ? next + 1 : end;
  }
  if (numbers.size() < 3 || code.object.empty()) return std::nullopt;
  code.scratch_bytes = numbers[0], code.work_bytes = numbers[1], code.ir_instructions = numbers[2];
  code.tasks.assign(numbers.begin() + 3, numbers.end());
  for (const Isa isa : {Isa::x86_avx512, Isa::x86_avx512bf16, Isa::x86_amx, Isa::x86_avx2, Isa::x86_v2}) {
    if (fusejit::name(isa) == entry.key.part("isa")) return code.isa = isa, code;
  }
  return std::nullopt;
}

}  // namespace fusejit::runtime::disk
#endif
