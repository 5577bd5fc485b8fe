// Names of machine code for GDB.
#pragma once

#include <memory>
#include <span>

#include "runtime/cpu/code_names.h"

namespace fusejit::runtime {

// Functions that GDB knows while it lives: `break layer1_0_conv2_bn`, names in a backtrace.
class GdbSymbols {
 public:
  explicit GdbSymbols(std::span<const CodeName> names);
  ~GdbSymbols();
  GdbSymbols(const GdbSymbols&) = delete;
  GdbSymbols& operator=(const GdbSymbols&) = delete;

 private:
  struct Entry;
  const std::unique_ptr<Entry> entry_;
};

}  // namespace fusejit::runtime
