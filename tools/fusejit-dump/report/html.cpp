// html: all that the other subcommands say of a plan, as one page that needs nothing beside it.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "frontend/io/files.h"
#include "tools/fusejit-dump/markup.h"
#include "tools/fusejit-dump/report/report.h"

namespace fusejit::tools {
namespace {

// Of so many kernels or more, assembly is written only where it is asked for: it takes seconds and megabytes.
constexpr std::int64_t kManyKernels = 60;

// Nothing is loaded from anywhere, whatever a text on the page says.
constexpr std::string_view kPolicy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

std::string page(const Report& report) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n";
  out += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\"/>\n", kPolicy);
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n";
  out += fmt::format("<title>@{} on {}</title>\n<style>\n{}</style>\n</head>\n<body>\n", escaped(report.plan().name),
                     escaped(name(report.plan().target.isa)), std::string(page_style()) + kind_styles());
  out += head_part(report) + "<main>\n" + bytes_part(report) + times_part(report) + picture_part(report) +
         kernels_part(report) + roofline_part(report) + refused_part(report) + code_part(report) + "</main>\n";
  return out + fmt::format("<script>/*<![CDATA[*/\n{}/*]]>*/</script>\n</body>\n</html>\n", page_script());
}

}  // namespace

int html(const HtmlOptions& options, Invocation& invocation) {
  if (!options.output.empty()) io::check_writable(options.output);
  static_cast<void>(parse_target(options.target));
  Source source = read_source(invocation, options);
  if (options.measure) source.fixed.clear();  // as it is run
  const Planned planned = make_plan(std::move(source), options);
  const scheduler::Plan& plan = planned.plan;
  Report report;
  report.source = options.source;
  report.planned = &planned;
  report.rows = rows_of(plan, false);
  const bool few = different(report.rows) < kManyKernels && can_compile(plan.target);
  report.compiled = options.code || (few && !options.no_code);
  if (report.compiled) report.rows = rows_of(plan, true);
  if (options.measure) {
    if (plan.target != Target::host())
      throw UsageError{
          fmt::format("--measure: this machine is {}, the plan is for {}", Target::host().str(), plan.target.str())};
    const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    report.machine = runtime::roofline(plan.target, threads);
    constexpr int kSteps = 5;
    Running running(planned.source, options, threads);
    report.times = measure(running, kSteps);
  }
  return put_into(options.output, page(report));
}

}  // namespace fusejit::tools
