// Tensors as text: nested brackets, long axes shortened to three elements at each end.
#include <algorithm>
#include <ostream>

#include "fusejit/tensor.h"
#include "ir/base/scalar.h"

namespace fusejit {
namespace {

constexpr std::int64_t kWhole = 10, kEnds = 3;  // axes up to kWhole elements are printed whole

struct Printer {
  const Shape& shape;
  const std::vector<std::byte>& bytes;
  DType dtype;
  std::string out;

  // Depth is at most the rank, 8.
  void axis(int axis, std::int64_t offset) {
    if (axis == shape.rank()) {
      const ir::Scalar element = ir::load_element(bytes.data(), dtype, offset);
      out += dtype == boolean ? (element.boolean() ? "true" : "false") : ir::literal_text(element);
      return;
    }
    std::int64_t stride = 1;
    for (int a = axis + 1; a < shape.rank(); ++a) stride *= shape[a];
    const bool innermost = axis == shape.rank() - 1;
    out += '[';
    for (std::int64_t i = 0; i < shape[axis]; ++i) {
      if (i > 0) out += innermost ? ", " : ",\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ');
      if (shape[axis] > kWhole && i == kEnds) {
        out += "...";
        i = shape[axis] - kEnds - 1;
        continue;
      }
      this->axis(axis + 1, offset + i * stride);
    }
    out += ']';
  }
};

}  // namespace

std::string Tensor::str() const {
  if (!state_) return "tensor(empty)";
  std::vector<std::byte> bytes(static_cast<std::size_t>(this->bytes()));
  copy_to(bytes.data());
  Printer printer{shape(), bytes, dtype(), {}};
  printer.axis(0, 0);
  return printer.out + " : " + type().str() + (device().is_cpu() ? "" : " on " + device().str());
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.str(); }

}  // namespace fusejit
