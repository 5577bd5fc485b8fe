// extract: one kernel as a file for other tools. What kind of file is told by its suffix.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "codegen/cuda/nvrtc.h"
#include "ir/base/check.h"
#include "tools/fusejit-dump/inspect/standalone.h"
#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/rows.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

using Kernels = std::vector<DifferentKernel>;  // one

std::string loops(const scheduler::Plan& plan, const Kernels& one) {
  return legends(plan, one[0], ";") + ir::print(*one[0].code.kernel);
}
std::string assembly(const scheduler::Plan& plan, const Kernels& one) {
  return legends(plan, one[0], "#") + x86_module(ModuleForm::assembly, codes(one), plan.target);
}
std::string object(const scheduler::Plan& plan, const Kernels& one) {
  return x86_module(ModuleForm::object, codes(one), plan.target);
}
std::string ptx(const scheduler::Plan& plan, const Kernels& one) {
  return legends(plan, one[0], "//") +
         codegen::cuda::compile_to_ptx(standalone_cuda(plan, one), plan.target.compute_capability);
}
std::string cubin(const scheduler::Plan& plan, const Kernels& one) {
  return codegen::cuda::compile(standalone_cuda(plan, one), plan.target.compute_capability).cubin;
}

struct FileKind {
  std::string_view suffix;
  bool cuda, x86;  // targets that have it
  std::string (*content)(const scheduler::Plan& plan, const Kernels& one);
};
constexpr FileKind kKinds[] = {
    {".kir", true, true, loops},    {".cu", true, false, standalone_cuda}, {".ptx", true, false, ptx},
    {".cubin", true, false, cubin}, {".ll", false, true, standalone_llvm}, {".s", false, true, assembly},
    {".o", false, true, object},
};

std::string suffixes(bool FileKind::*has) {
  std::vector<std::string_view> list;
  for (const FileKind& kind : kKinds)
    if (kind.*has) list.push_back(kind.suffix);
  return fmt::format("{}", fmt::join(list, ", "));
}

const FileKind& kind_of_file(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](auto& k) { return k.suffix == suffix; });
  if (found == std::end(kKinds))
    throw UsageError{fmt::format("-o {}: what to write is told by the suffix: {} for x86, {} for cuda", path,
                                 suffixes(&FileKind::x86), suffixes(&FileKind::cuda))};
  return *found;
}

Kernels select_kernel(const Planned& planned, const std::string& kernel) {
  const scheduler::Plan& plan = planned.plan;
  Kernels kernels = different_kernels(planned, select_steps(plan, kernel));
  if (kernels.size() == 1) return kernels;
  std::vector<int> numbers;
  for (const DifferentKernel& one : kernels) numbers.push_back(one.steps[0]);
  constexpr std::size_t kNamed = 8;
  const std::string more = numbers.size() > kNamed ? fmt::format(" and {} more", numbers.size() - kNamed) : "";
  numbers.resize(std::min(numbers.size(), kNamed));
  throw UserError(fmt::format("{} of @{} are different kernels: {}{}; --kernel takes one of these numbers",
                              kernel.empty() ? "the kernels" : "those called " + kernel, plan.name,
                              fmt::join(numbers, ", "), more));
}

}  // namespace

int extract(const ExtractOptions& options, Invocation& invocation) {
  const FileKind& kind = kind_of_file(options.output);
  const Planned planned = make_plan(invocation, options);
  const scheduler::Plan& plan = planned.plan;
  const bool cuda = plan.target.isa == Isa::cuda;
  FJ_CHECK(cuda ? kind.cuda : kind.x86, "-o {}: target {} has no {}; it has {}", options.output, plan.target.str(),
           kind.suffix, suffixes(cuda ? &FileKind::cuda : &FileKind::x86));
  const Kernels one = select_kernel(planned, options.kernel);
  const scheduler::PlanStep& step = plan.steps[static_cast<std::size_t>(one[0].steps[0])];
  const std::string content = kind.content(plan, one);
  put_into(options.output, content);
  const std::string functions =
      kind.content == loops ? "" : fmt::format("{}, ", fmt::join(entries(plan, one[0]), ", "));
  return put(fmt::format("{}: kernel {} {}, {}{} bytes{}\n", options.output, fmt::join(one[0].steps, ", "), step.name,
                         functions, grouped(static_cast<std::int64_t>(content.size())),
                         step.library ? "; where cuDNN is, it does this step" : ""));
}

}  // namespace fusejit::tools
