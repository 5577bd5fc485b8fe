#include "codegen/x86/machine.h"

#include <fmt/format.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>

#include "codegen/x86/compile.h"
#include "codegen/x86/llvm_use.h"
#include "ir/base/check.h"
#include "ir/types/tiles.h"

namespace fusejit::codegen::x86 {
namespace {

constexpr std::array<MachineFacts, 5> kMachines = {{
    {Isa::x86_avx512, "x86-64-v4", "+prfchw", "512", true, true, false},
    {Isa::x86_avx512bf16, "x86-64-v4", "+prfchw,+avx512bf16", "512", true, true, true},
    {Isa::x86_amx, "x86-64-v4", "+prfchw,+avx512bf16,+amx-tile,+amx-bf16", "512", true, true, true},
    {Isa::x86_avx2, "x86-64-v3", "+prfchw", "256", true, true, false},
    {Isa::x86_v2, "x86-64-v2", "", "128", false, false, false},
}};

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

}  // namespace

const MachineFacts& machine_facts(Isa isa) {
  const auto* found =
      std::find_if(kMachines.begin(), kMachines.end(), [&](const MachineFacts& m) { return m.isa == isa; });
  if (found == kMachines.end()) throw UnsupportedError(fmt::format("x86 code cannot be generated for {}", name(isa)));
  return *found;
}

std::unique_ptr<llvm::TargetMachine> target_machine(const MachineFacts& facts, Effort effort) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    end_with_process();
  });
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (target == nullptr) throw DeviceError("LLVM has no x86 target: " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.UnsafeFPMath = false;
  const auto level = effort == Effort::full ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None;
  // Code is linked into this process wherever memory is found, hence position independent.
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      kTriple, facts.cpu, facts.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, /*JIT=*/true));
}

bool host_supports(Isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("lzcnt");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case Isa::x86_v2:
      return v2;
    case Isa::x86_avx2:
      return v3;
    case Isa::x86_avx512:
      return v4;
    case Isa::x86_avx512bf16:
      return v4 && __builtin_cpu_supports("avx512bf16");
    case Isa::x86_amx:
      return v4 && __builtin_cpu_supports("avx512bf16") && may_use_tiles();
    case Isa::cuda:
    case Isa::any:
      return false;
  }
#endif
  return false;
}

}  // namespace fusejit::codegen::x86
