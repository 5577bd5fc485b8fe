// Every different kernel of the page: its loops beside what was made of them.
#include <fmt/format.h>

#include <algorithm>

#include "ir/base/number.h"
#include "tools/fusejit-dump/markup.h"
#include "tools/fusejit-dump/report/report.h"

namespace fusejit::tools {
namespace {

std::string panel(const std::string& title, const std::string& words) {
  return fmt::format("<figure><figcaption>{}</figcaption><pre tabindex=\"0\">{}</pre></figure>\n", title,
                     escaped(words));
}

// Generated texts begin with the loops as comments, which stand beside them here.
std::string without_loops(const std::string& code, std::string_view comment) {
  std::size_t begin = 0;
  while (code.compare(begin, comment.size(), comment) == 0)
    begin = std::min(code.find('\n', begin), code.size() - 1) + 1;
  return code.substr(begin);
}

std::string kernel_text(const Report& report, std::size_t first, const std::vector<std::size_t>& steps,
                        const ParameterNames& names) {
  const scheduler::PlanStep& step = *report.rows[first].step;
  const ir::Kernel& kernel = *step.kernel;
  const Target& target = report.plan().target;
  const bool cuda = target.isa == Isa::cuda;
  std::string links;
  for (const std::size_t s : steps)
    links +=
        fmt::format("{1}<a href=\"#s{0}\">row {0}</a>, <a href=\"#b{0}\">box {0}</a>", s, links.empty() ? "" : "; ");
  const std::string numbers = fmt::format("{}", fmt::join(steps, ", "));
  std::string out = fmt::format(
      "<details id=\"k{}\" class=\"kernel\"><summary><span class=\"chip {}\"></span><b>{}</b> <span class=\"faint\">{} "
      "{}: "
      "{}, {:.3f} GFLOP</span></summary>\n<p>{}</p>\n<div class=\"sides\">\n",
      first, look(kind_of(step)).style, escaped(kernel.name), steps.size() == 1 ? "kernel" : "kernels", numbers,
      ir::bytes_text(report.bytes(first)), step.flop / 1e9, links);
  out += panel("loops", legend(report.plan(), step, ";", names) + ir::print(kernel));
  if (cuda) out += panel("CUDA C++", without_loops(codegen::cuda::emit(kernel, {}, names).text, "//"));
  if (report.compiled)
    out += panel(cuda ? "PTX" : "assembly", without_loops(code_text("asm", kernel, target), cuda ? "//" : "#"));
  return out + "</div></details>\n";
}

}  // namespace

std::string code_part(const Report& report) {
  std::vector<std::vector<std::size_t>> steps(report.rows.size());
  for (std::size_t s = 0; s < report.rows.size(); ++s) steps[report.rows[s].same_as].push_back(s);
  const std::vector<ParameterNames> names = parameter_names(*report.planned);
  std::string out = "<section id=\"code\">\n<h2>Code</h2>\n";
  if (!report.compiled) out += "<p>Written without --asm: no assembly, no PTX.</p>\n";
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (!steps[s].empty()) out += kernel_text(report, s, steps[s], names[s]);
  return out + "</section>\n";
}

}  // namespace fusejit::tools
