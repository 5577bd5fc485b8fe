#include <fmt/format.h>

#include "ir/base/number.h"
#include "tools/fusejit-dump/markup.h"
#include "tools/fusejit-dump/picture/draw.h"

namespace fusejit::tools {

std::string dot(const Picture& picture) {
  std::string out =
      fmt::format("digraph \"{0}\" {{\n  label=\"{0}\"; labelloc=t; rankdir=TB; fontname=\"sans-serif\";\n",
                  dot_escaped(picture.title));
  out += "  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=10];\n";
  out += "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#64748b\"];\n";
  for (std::size_t b = 0; b < picture.boxes.size(); ++b) {
    const Box& box = picture.boxes[b];
    std::string label = dot_escaped(box.title);
    for (const std::string& word : box.words) label += "\\n" + dot_escaped(word);
    if (!box.note.empty()) label += "\\n" + dot_escaped(box.note);
    const KindLook& kind = look(box.kind);
    out += fmt::format("  b{} [label=\"{}\", fillcolor=\"{}40\", color=\"{}\", tooltip=\"{}\"];\n", b, label,
                       kind.colour, kind.colour, dot_escaped(box.whole));
  }
  for (std::size_t f = 0; f < picture.flows.size(); ++f) {
    const Flow& flow = picture.flows[f];
    const auto end = [&](int box, const char* rim) {
      if (box >= 0) return fmt::format("b{}", box);
      out += fmt::format("  {}{} [label=\"{}\", shape=plaintext, style=\"\"];\n", rim, f, dot_escaped(flow.name));
      return fmt::format("{}{}", rim, f);
    };
    const std::string from = end(flow.from, "in"), to = end(flow.to, "out");
    out += fmt::format("  {} -> {} [label=\"{}\", tooltip=\"{}, {} bytes\"];\n", from, to, ir::bytes_text(flow.bytes),
                       dot_escaped(flow.name), flow.bytes);
  }
  return out + "}\n";
}

}  // namespace fusejit::tools
