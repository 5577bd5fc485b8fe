#include "tests/unit/codegen/run_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <regex>
#include <stdexcept>

namespace fusejit::test {

std::string for_isa(const std::string& text, Isa isa) {
  std::string result = std::regex_replace(text, std::regex(R"(on x86:\w+)"), fmt::format("on {}", name(isa)));
  if (isa != Isa::x86_v2) return result;
  return std::regex_replace(result, std::regex(R"(%(\w+) = fma\(([^,]+), ([^,]+), ([^)]+)\) : (f32|f64))"),
                            "%fm$1 = mul($2, $3) : $5  %$1 = add(%fm$1, $4) : $5");
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

}  // namespace fusejit::test
