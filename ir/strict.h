// FUSEJIT_STRICT=1, which every test runs with: what is made is checked as it is made, and nothing falls back. Here:
// the text of a graph, kernel or plan reads back as itself.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ir/base/check.h"

namespace fusejit::ir {

inline bool is_strict() {
  const char* strict = std::getenv("FUSEJIT_STRICT");
  return strict != nullptr && std::string_view(strict) == "1";
}

// Throws InternalError with the text unless `made` prints, parses and prints the same; does nothing if not strict.
template <class T>
void check_text(const T& made, T (*parse)(std::string_view)) {
  if (!is_strict()) return;
  const std::string text = print(made);
  std::string again;
  try {
    again = print(parse(text));
  } catch (const UserError& error) {
    throw InternalError(fmt::format("its own text is refused: {}\n{}", error.what(), text));
  }
  if (again == text) return;
  const auto [was, is] = std::mismatch(text.begin(), text.end(), again.begin(), again.end());
  const auto line = std::count(text.begin(), was, '\n') + 1;
  throw InternalError(fmt::format("line {} of its text is read back as another one\n{}\n{}", line, text, again));
}

}  // namespace fusejit::ir
