#include "fusejit/target.h"

#include <array>
#include <optional>

#include "ir/base/check.h"
#include "ir/base/number.h"

namespace fusejit {
namespace {

constexpr std::array<std::string_view, 7> kIsaNames = {"x86:avx512", "x86:avx512bf16", "x86:amx", "x86:avx2",
                                                       "x86:v2",     "cuda",           "any"};

// A constant of Target in its text: "l1=32k".
struct Field {
  std::string_view name;
  std::int64_t Target::*bytes = nullptr;  // one of the five is set
  int Target::*number = nullptr;
  bool Target::*flag = nullptr;
  CudnnMode Target::*cudnn = nullptr;
  WinogradMode Target::*winograd = nullptr;
  std::int64_t min = 0;
  std::int64_t max = 0;
  bool if_set = false;  // left out of the text where it is 0
};
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr std::array<Field, 10> kFields = {{
    {.name = "l1", .bytes = &Target::l1_bytes, .min = 1, .max = kMaxBytes},
    {.name = "l2", .bytes = &Target::l2_bytes, .min = 1, .max = kMaxBytes},
    {.name = "l3", .bytes = &Target::l3_bytes, .min = 1, .max = kMaxBytes},
    {.name = "fma", .number = &Target::fma_per_cycle, .min = 1, .max = 4},
    {.name = "tasks", .number = &Target::tasks, .min = 1, .max = 1 << 16},
    {.name = "dot2", .flag = &Target::dot2_is_faster, .min = 0, .max = 1, .if_set = true},
    {.name = "cudnn", .cudnn = &Target::cudnn, .min = 0, .max = 2, .if_set = true},
    {.name = "strict", .flag = &Target::strict_f32, .min = 0, .max = 1, .if_set = true},
    {.name = "winograd", .winograd = &Target::winograd, .min = 0, .max = 2, .if_set = true},
    {.name = "fastnorm", .flag = &Target::fast_norm, .min = 0, .max = 1, .if_set = true},
}};

std::string size_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"", "k", "m", "g"};
  std::size_t unit = 0;
  while (bytes % 1024 == 0 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

// "7", or "32k" where a unit may follow; nothing if it is neither or too large.
std::optional<std::int64_t> read_size(std::string_view text, bool with_unit) {
  std::uint64_t factor = 1;
  constexpr std::string_view kUnits = "kmg";
  const std::size_t unit = with_unit && !text.empty() ? kUnits.find(text.back()) : std::string_view::npos;
  if (unit != std::string_view::npos) {
    factor = std::uint64_t{1024} << (10 * unit);
    text.remove_suffix(1);
  }
  const std::optional<std::uint64_t> number = ir::read_decimal_integer(text);
  if (!number || *number > static_cast<std::uint64_t>(kMaxBytes) / factor) return std::nullopt;
  return static_cast<std::int64_t>(*number * factor);
}

// "l1=1k" into the field that it names.
void read_field(std::string_view item, std::string_view whole, Target& target) {
  const std::size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  for (const Field& field : kFields) {
    if (equals == std::string_view::npos || field.name != name) continue;
    const std::optional<std::int64_t> value = read_size(item.substr(equals + 1), field.bytes != nullptr);
    FJ_CHECK(value && *value >= field.min && *value <= field.max, "target '{}': {} must be a number from {} to {}",
             whole, name, field.min, field.max);
    if (field.bytes) target.*field.bytes = *value;
    if (field.number) target.*field.number = static_cast<int>(*value);
    if (field.cudnn) target.*field.cudnn = static_cast<CudnnMode>(*value);
    if (field.winograd) target.*field.winograd = static_cast<WinogradMode>(*value);
    if (field.flag) target.*field.flag = *value != 0;
    return;
  }
  throw UserError(fmt::format(
      "target '{}': '{}' is none of l1=, l2=, l3=, fma=, tasks=, dot2=, cudnn=, strict=, winograd=, fastnorm=", whole,
      item));
}

// The part before the first comma: "x86:avx2", "cuda:sm_90", "host".
Target read_machine(std::string_view machine, std::string_view whole) {
  if (machine == "host") return Target::host();
  Target target;
  constexpr std::string_view kSm = "cuda:sm_";
  if (machine.starts_with(kSm)) {
    const std::optional<std::uint64_t> capability = ir::read_decimal_integer(machine.substr(kSm.size()));
    FJ_CHECK(capability && *capability >= 10 && *capability < 1000, "target '{}': no such compute capability", whole);
    target.isa = Isa::cuda;
    target.compute_capability = static_cast<int>(*capability);
    return target;
  }
  for (std::size_t i = 0; i < kIsaNames.size(); ++i) {
    if (kIsaNames[i] != machine) continue;
    target.isa = static_cast<Isa>(i);
    return target;
  }
  throw UserError(fmt::format(
      "target '{}': '{}' is none of x86:avx512, x86:avx512bf16, x86:amx, x86:avx2, x86:v2, cuda, cuda:sm_NN, any, host",
      whole, machine));
}

}  // namespace

std::string_view name(Isa isa) { return kIsaNames[static_cast<std::size_t>(isa)]; }

bool has_fma(Isa isa) { return isa != Isa::x86_v2; }

bool has_bf16(Isa isa) { return isa == Isa::x86_avx512bf16 || isa == Isa::x86_amx; }

bool has_avx512(Isa isa) { return isa == Isa::x86_avx512 || has_bf16(isa); }

int Target::vector_registers() const { return has_avx512(isa) ? 32 : 16; }

int Target::lanes32() const {
  constexpr std::array<int, 7> kLanes = {16, 16, 16, 8, 4, 4, 1};
  return kLanes[static_cast<std::size_t>(isa)];
}

std::string Target::str() const {
  std::string text(name(isa));
  if (compute_capability != 0) text += fmt::format(":sm_{}", compute_capability);
  for (const Field& field : kFields) {
    const std::int64_t value = field.bytes      ? this->*field.bytes
                               : field.number   ? this->*field.number
                               : field.cudnn    ? static_cast<int>(this->*field.cudnn)
                               : field.winograd ? static_cast<int>(this->*field.winograd)
                                                : this->*field.flag;
    if (field.if_set && value == 0) continue;
    text += fmt::format(",{}={}", field.name, field.bytes ? size_text(value) : std::to_string(value));
  }
  return text;
}

Target Target::parse(std::string_view text) {
  std::size_t comma = text.find(',');
  Target target = read_machine(text.substr(0, comma), text);
  while (comma != std::string_view::npos) {
    const std::size_t start = comma + 1;
    comma = text.find(',', start);
    read_field(text.substr(start, comma == std::string_view::npos ? comma : comma - start), text, target);
  }
  return target;
}

}  // namespace fusejit
