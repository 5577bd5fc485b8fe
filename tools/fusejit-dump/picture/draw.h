// A picture as text. Both are the same bytes for the same picture.
#pragma once

#include <string>

#include "tools/fusejit-dump/picture/picture.h"

namespace fusejit::tools {

// With an own layered layout. A box is <g id="b4" class="box">, a line <g class="flow" data-from="1" data-to="4"
// data-bytes="…">; what a box gets from or gives to the rim, or a box far away, is listed beside it, <g class="side">.
// UnsupportedError for pictures too large to be looked at.
std::string svg(const Picture& picture);
// For Graphviz, with every argument and result as a node of its own.
std::string dot(const Picture& picture);

}  // namespace fusejit::tools
