#include "tools/fusejit-dump/repro/repro_program.h"

#include <fmt/format.h>

namespace fusejit::tools {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string quoted_or_null(const std::string& text) { return text.empty() ? "nullptr" : quoted(text); }

}  // namespace

std::string repro_header(const Repro& repro) {
  std::string text =
      "// What main.cpp has to know of the kernel.\n#pragma once\n\n#include <cstdint>\n\n"
      "struct Buffer {\n  const char* label;\n  const char* dtype;\n  long width, bytes;   // of an element (b1: a "
      "byte), of all\n"
      "  const char* before;  // files: what the kernel finds and what it leaves; null: it does not read, or write\n"
      "  const char* after;\n};\n"
      "using Entry = void(const void* const* arguments, const std::uint64_t* scalars, std::int64_t task, void* "
      "scratch,\n"
      "                   void* work);\n"
      "struct Phase {\n  Entry* entry;\n  long tasks;\n};\n\n";
  for (std::size_t i = 0; i < repro.tasks.size(); ++i) text += fmt::format("extern \"C\" Entry phase_{};\n", i);
  text += fmt::format("\nconstexpr const char* kName = {};\nconstexpr Buffer kBuffers[] = {{\n", quoted(repro.name));
  for (const ReproBuffer& buffer : repro.buffers) {
    text += fmt::format("    {{{}, {}, {}, {}, {}, {}}},\n", quoted(buffer.label),
                        quoted(std::string(fusejit::name(buffer.dtype))), bytes(buffer.dtype), buffer.bytes,
                        quoted_or_null(buffer.before), quoted_or_null(buffer.after));
  }
  text += "};\nconstexpr Phase kPhases[] = {\n";
  for (std::size_t i = 0; i < repro.tasks.size(); ++i)
    text += fmt::format("    {{phase_{}, {}}},\n", i, repro.tasks[i]);
  return text + fmt::format(
                    "}};\nconstexpr long kScratchBytes = {}, kWorkBytes = {}, kMovedBytes = {};\n"
                    "constexpr double kFlop = {:.1f};\n"
                    "constexpr bool kTiles = {};  // of AMX, for which the system is asked first\n",
                    repro.scratch_bytes, repro.work_bytes, repro.moved_bytes, repro.flop, repro.has_tiles);
}

std::string repro_readme(const Repro& repro) {
  std::string text = fmt::format("# {}\n\nMade by `{}` for {}.\n\n", repro.name, repro.origin, repro.target);
  text +=
      "```\ncmake -S . -B build && cmake --build build && build/repro      # runs, compares, times; needs no "
      "fusejit\n```\n\n"
      "- `kernel.kir`: the loops, in fusejit's loop language; `kernel.s`: what was made of them. Edit it and run "
      "again.\n"
      "- `buffers/`: the bytes of each buffer parameter before and after.\n";
  text +=
      repro.is_interpreted
          ? "  What is expected after is what the loops mean: the kernel interpreter computed it.\n"
          : "  What is expected after is what this code wrote when the folder was made: the kernel is too long to be\n"
            "  interpreted. A smaller batch of the same network is not.\n";
  if (repro.has_graph) {
    text += fmt::format(
        "- `graph.fj`, `inputs.npz`, `expected.npz`: what the kernel means, as a graph of ops, each computed by "
        "itself:\n\n"
        "```\nfusejit-dump run graph.fj --inputs inputs.npz --check expected.npz --rtol {:g} --atol {:.2g}\n```\n",
        repro.relative, repro.absolute);
  } else {
    text += "- There is no graph of what it means: it does a part of an op, or writes a form that no graph has.\n";
  }
  return text;
}

}  // namespace fusejit::tools
