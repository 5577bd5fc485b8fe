// The lines by which two texts differ, as `diff -u` writes them.
#pragma once

#include <string>
#include <string_view>

namespace fusejit::tools {

// Hunks "@@ -first,count +first,count @@" with three lines around each change; empty for equal texts. The fewest lines,
// but for texts that differ in thousands of them, where the whole middle counts as changed.
std::string line_diff(std::string_view before, std::string_view after);

}  // namespace fusejit::tools
