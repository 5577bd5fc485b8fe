// Device: where values live and plans run, by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fusejit {

struct Device {
  enum class Kind : std::uint8_t { cpu, cuda };

  Kind kind = Kind::cpu;
  int ordinal = 0;  // of several of a kind; 0 on the CPU

  Device() = default;
  // "cpu", "cuda" (the first), "cuda:1". UserError for another name; whether the device is there is seen at first use.
  explicit Device(std::string_view name);
  // What the constructor reads: "cpu", "cuda:0".
  std::string str() const;
  bool is_cpu() const { return kind == Kind::cpu; }
  friend bool operator==(const Device&, const Device&) = default;
};

}  // namespace fusejit
