#include "frontend/onnx/rows.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace fusejit::onnx {

const std::vector<Row>& rows() {
  static const auto& all = *new const std::vector<Row>([] {
    std::vector<Row> rows;
    for (const auto family : {elementwise_rows, activation_rows, reduction_rows, shape_rows, part_rows, index_rows,
                              product_rows, pool_rows, resize_rows, norm_rows}) {
      const std::vector<Row> some = family();
      rows.insert(rows.end(), some.begin(), some.end());
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      const int order = std::strcmp(a.op, b.op);
      return order != 0 ? order < 0 : a.since < b.since;
    });
    return rows;
  }());
  return all;
}

const Row* find_row(std::string_view op, int opset) {
  const auto found = std::find_if(rows().begin(), rows().end(), [&](const Row& row) {
    return op == row.op && opset >= row.since && opset <= row.until;
  });
  return found == rows().end() ? nullptr : &*found;
}

bool is_known(std::string_view op) {
  return std::any_of(rows().begin(), rows().end(), [&](const Row& row) { return op == row.op; });
}

}  // namespace fusejit::onnx
