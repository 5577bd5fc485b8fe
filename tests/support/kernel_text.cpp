#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/operands.h"

namespace fusejit::test {

std::string kernel_text(const std::string& file) {
  std::ifstream in(std::string(FUSEJIT_SOURCE_DIR) + "/tests/kernels/" + file);
  if (!in) throw std::runtime_error("no such kernel text: " + file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace fusejit::test
