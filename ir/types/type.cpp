#include "fusejit/type.h"

#include <fmt/format.h>

namespace fusejit {

std::string Type::str() const {
  return fmt::format("{}{}{}", name(dtype), shape.str(), layout == Layout::nhwc ? ":nhwc" : "");
}

}  // namespace fusejit
