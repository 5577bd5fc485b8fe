// What people named, as it may stand in XML, HTML and DOT: names, paths and kernel texts may hold any bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fusejit::tools {

// For element content and for attributes between double quotes. What XML has no character for becomes U+FFFD.
std::string escaped(std::string_view text);
// For a string of DOT between double quotes: no escape of DOT's and no entity of HTML's is left to be read in it.
std::string dot_escaped(std::string_view text);
// "%a_very_long_n…": at most so many characters of ASCII.
std::string shortened(const std::string& text, std::size_t most);

}  // namespace fusejit::tools
