// graph: a picture of what was recorded, or of the plan made of it.
#include <fmt/format.h>

#include "frontend/io/files.h"
#include "tools/fusejit-dump/markup.h"
#include "tools/fusejit-dump/picture/draw.h"
#include "tools/fusejit-dump/planned.h"

namespace fusejit::tools {
namespace {

std::string page(const Picture& picture) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>{}</title>"
      "<style>body {{ margin: 0; }} @media (prefers-color-scheme: dark) {{ body {{ background: #12161d; }} "
      "}}</style></head>\n<body>\n{}</body></html>\n",
      escaped(picture.title), svg(picture));
}

// What --format says, else what the name of the file ends in.
std::string format_of(const GraphOptions& options) {
  if (!options.format.empty()) return options.format;
  for (const char* format : {"dot", "html"})
    if (options.output.ends_with(std::string(".") + format)) return format;
  return "svg";
}

}  // namespace

int graph(const GraphOptions& options, Invocation& invocation) {
  if (!options.output.empty()) io::check_writable(options.output);
  const Picture picture = [&] {
    if (options.stage == "before") return picture_of(read_source(invocation, options).graph);
    const Planned planned = make_plan(invocation, options);
    return picture_of(planned.plan, planned.source.graph);
  }();
  const std::string format = format_of(options);
  return put_into(options.output, format == "dot" ? dot(picture) : format == "html" ? page(picture) : svg(picture));
}

}  // namespace fusejit::tools
