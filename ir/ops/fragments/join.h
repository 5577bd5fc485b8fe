// kJoin<a, b, ...>: the texts one after the other, at compile time, so that fragments can share a beginning.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace fusejit::ir::fragments {

template <const std::string_view&... parts>
struct Joined {
  static constexpr auto kText = [] {
    std::array<char, (parts.size() + ... + 0)> text{};
    std::size_t end = 0;
    const auto append = [&](std::string_view part) {
      for (const char c : part) text[end++] = c;
    };
    (append(parts), ...);
    return text;
  }();
};
template <const std::string_view&... parts>
inline constexpr std::string_view kJoin{Joined<parts...>::kText.data(), Joined<parts...>::kText.size()};

}  // namespace fusejit::ir::fragments
