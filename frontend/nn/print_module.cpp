// A module as text, in the form of PyTorch's.
#include <cxxabi.h>

#include <cstdlib>
#include <ostream>
#include <typeinfo>

#include "frontend/nn/module_tree.h"
#include "ir/base/check.h"

namespace fusejit::nn {

std::string kind_of(const Module& module) {
  const char* const mangled = typeid(module).name();
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr), std::free);
  const std::string name = text ? text.get() : mangled;
  std::size_t start = 0;  // behind the last "::" that is in no brackets
  int open = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(' || name[i] == '{') ++open;
    if (name[i] == '>' || name[i] == ')' || name[i] == '}') --open;
    if (name[i] == ':' && open == 0) start = i + 1;
  }
  return name.substr(start);
}

void Module::describe(const Tree& tree, const std::string& kind, int depth, std::string& text) {
  FJ_CHECK(depth < kDeepest, "modules are nested more than {} deep", kDeepest);
  const std::string indent(2 * static_cast<std::size_t>(depth), ' ');
  text += kind + "(";
  const char* comma = "";
  for (const auto& [name, value] : tree.values) {
    text += fmt::format("{}{}: {}", comma, name, value.value().type().str());
    comma = ", ";
  }
  for (const auto& [name, child] : tree.children) {
    text += fmt::format("\n{}  ({}): ", indent, name);
    describe(*child, child->kind, depth + 1, text);
  }
  text += tree.children.empty() ? ")" : "\n" + indent + ")";
}

std::string Module::str() const {
  std::string text;
  describe(*tree_, kind_of(*this), 0, text);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Module& module) { return out << module.str(); }

}  // namespace fusejit::nn
