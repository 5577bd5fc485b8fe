// What the emitter needs to know of an instruction set, and the LLVM target machine for it. The processor that runs the
// compiler never enters: the same isa gives the same code everywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "fusejit/target.h"

namespace llvm {
class TargetMachine;
}

namespace fusejit::codegen::x86 {

// How long LLVM may think. The bits that the code computes are the same.
enum class Effort : std::uint8_t {
  full,
  quick  // in two fifths of the time, for code that takes two to three times as long
};

struct MachineFacts {
  Isa isa;
  std::string_view cpu;
  std::string_view features;      // beyond those of cpu
  std::string_view vector_width;  // of the function attribute prefer-vector-width
  bool has_fma;
  bool has_f16c;  // hardware conversion of f16
  bool has_dot2;
};

// UnsupportedError if `isa` is not an x86 one.
const MachineFacts& machine_facts(Isa isa);
// A fresh machine: one compilation, one thread.
std::unique_ptr<llvm::TargetMachine> target_machine(const MachineFacts& facts, Effort effort = Effort::full);

}  // namespace fusejit::codegen::x86
