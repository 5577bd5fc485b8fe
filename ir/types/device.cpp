#include "fusejit/device.h"

#include "ir/base/check.h"
#include "ir/base/number.h"

namespace fusejit {
namespace {

constexpr std::string_view kCuda = "cuda:";
constexpr std::uint64_t kMostDevices = 1024;

}  // namespace

Device::Device(std::string_view name) {
  if (name == "cpu") return;
  kind = Kind::cuda;
  if (name == "cuda") return;
  const auto number =
      name.starts_with(kCuda) ? ir::read_decimal_integer(name.substr(kCuda.size())) : std::optional<std::uint64_t>();
  FJ_CHECK(number && *number < kMostDevices, "device '{}' is none of cpu, cuda, cuda:N", name);
  ordinal = static_cast<int>(*number);
}

std::string Device::str() const { return is_cpu() ? "cpu" : fmt::format("cuda:{}", ordinal); }

}  // namespace fusejit
