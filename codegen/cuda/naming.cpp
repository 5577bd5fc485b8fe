// What things are called in the text: parameters as their owner says, else as in the kernel's text; strides once, as
// constants of their array.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "codegen/cuda/emitter.h"

namespace fusejit::codegen::cuda {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Names that the text itself uses or may use: v7, i0, l1, w0, q2, m3, and a few words.
bool is_reserved(const std::string& name) {
  constexpr std::string_view kNumbered = "ilmpqvw", kWords[] = {"t", "i", "pool", "work", "counter", "shared"};
  const bool numbered = name.size() > 1 && kNumbered.find(name[0]) != std::string_view::npos && is_digit(name[1]);
  return numbered || name.starts_with("fj_") ||
         std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords);
}

bool is_identifier(const std::string& name) {
  return !name.empty() && !is_digit(name[0]) && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  });
}

// Of the dim of an array, in elements.
std::int64_t stride_of(const ir::Memory& memory, std::size_t dim) {
  std::int64_t stride = 1;
  for (std::size_t d = dim + 1; d < memory.dims.size(); ++d) stride *= memory.dims[d];
  return stride;
}

std::string stride_name(const Emitter& e, ir::MemId memory, std::size_t dim) {
  const std::vector<std::string>& axes = e.axes[static_cast<std::size_t>(memory)];
  return fmt::format("{}_{}", memory_name(e, memory), axes.empty() ? fmt::format("s{}", dim) : axes[dim]);
}

bool has_word(const std::string& text, const std::string& word) {
  const auto is_part = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_part(text[at - 1]), ends = !is_part(text[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

// Of a buffer or work memory, in elements, largest first, with their names; those of 1 left out.
std::vector<std::pair<std::int64_t, std::string>> strides(const Emitter& e, ir::MemId memory) {
  const ir::Memory& m = e.kernel.memories[static_cast<std::size_t>(memory)];
  std::vector<std::pair<std::int64_t, std::string>> list;
  for (std::size_t d = 0; d < m.dims.size() && !m.is_local(); ++d) {
    const std::int64_t stride = stride_of(m, d);
    if (m.dims[d] > 1 && stride > 1 && stride <= INT32_MAX) list.emplace_back(stride, stride_name(e, memory, d));
  }
  return list;
}

}  // namespace

void name_parameters(Emitter& e, std::span<const ParameterName> given) {
  e.memory_names.resize(e.kernel.memories.size());
  e.axes.resize(e.kernel.memories.size());
  for (std::size_t m = 0; m < e.memory_names.size(); ++m)
    e.memory_names[m] = e.facts.names.memory(static_cast<ir::MemId>(m)).substr(1);
  for (std::size_t i = 0; i < e.kernel.params.size() && i < given.size(); ++i) {
    const ir::MemId memory = e.kernel.params[i].memory;
    const std::string& name = given[i].name;
    if (memory < 0 || !is_identifier(name) || is_reserved(name) || !e.taken.insert(name).second) continue;
    const auto m = static_cast<std::size_t>(memory);
    e.memory_names[m] = name;
    if (given[i].axes.size() == e.kernel.memories[m].dims.size()) e.axes[m] = given[i].axes;
  }
}

std::string new_name(Emitter& e, const std::string& wish) {
  std::string name = wish;
  for (int i = 2; !e.taken.insert(name).second; ++i) name = fmt::format("{}_{}", wish, i);
  return name;
}

std::string memory_name(const Emitter& e, ir::MemId id) { return e.memory_names[static_cast<std::size_t>(id)]; }

std::string factor_text(const Emitter& e, ir::MemId memory, std::int64_t factor) {
  if (memory >= 0) {
    for (const auto& [stride, name] : strides(e, memory))
      if (factor % stride == 0) return factor == stride ? name : fmt::format("{}*{}", factor / stride, name);
  }
  return std::to_string(factor);
}

void declare_strides(const Emitter& e, const std::string& body, ir::Writer& out) {
  for (std::size_t m = 0; m < e.kernel.memories.size(); ++m) {
    const ir::Memory& memory = e.kernel.memories[m];
    std::vector<std::string> list;
    for (const auto& [stride, name] : strides(e, static_cast<ir::MemId>(m)))
      if (has_word(body, name)) list.push_back(fmt::format("{} = {}", name, stride));
    if (!list.empty()) {
      out.line(fmt::format("constexpr int {};  // {}[{}]", fmt::join(list, ", "), e.memory_names[m],
                           fmt::join(memory.dims, ", ")));
    }
  }
}

}  // namespace fusejit::codegen::cuda
