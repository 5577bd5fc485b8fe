// Damages texts for tests of parsers: small edits at random places, reproducible from the generator's seed.
#pragma once

#include <random>
#include <string>
#include <string_view>

namespace fusejit {

// One to four edits: another byte, a few bytes gone, a few copied from the start, or some that parsers care about.
inline std::string mutated(std::string_view seed, std::mt19937& random) {
  std::string text(seed);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (std::size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, below(9));
        break;
      case 2:
        text.insert(at, text, below(text.size()), below(9));
        break;
      case 3:
        text[at] = static_cast<char>('0' + below(10));
        break;
      default:
        text.insert(at, std::string(1 + below(3), ";%@.0x\n\"\0e-(}"[below(13)]));
        break;
    }
  }
  return text;
}

}  // namespace fusejit
