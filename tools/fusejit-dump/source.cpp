#include <fmt/format.h>

#include <algorithm>

#include "frontend/io/files.h"
#include "ir/base/check.h"
#include "tools/fusejit-dump/command.h"

namespace fusejit::tools {

std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    names.emplace_back(list.substr(start, comma - start));
    if (names.back().empty()) throw UsageError{fmt::format("--grad {}: a name is empty", list)};
    start = comma + 1;
  }
  return names;
}

Target parse_target(const std::string& text) {
  try {
    return Target::parse(text);
  } catch (const UserError& error) {
    throw UsageError{fmt::format("--target {}: {}", text, error.what())};
  }
}

io::GraphFile open_source(Invocation& invocation, const std::string& path, const std::string& grad) {
  const std::vector<std::string> wrt = grad.empty() ? std::vector<std::string>() : split_names(grad);
  invocation.source = path;
  const ir::Graph graph = io::read_graph(path);
  invocation.graph_text = ir::print(graph);
  return io::open_graph(graph, wrt);
}

}  // namespace fusejit::tools
