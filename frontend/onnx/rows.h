// What ONNX's ops mean: a row for each op and range of op sets, with a function that says it in ops of ops.h. Rows are
// the only list of ops here; docs/onnx.md shows them.
#pragma once

#include <climits>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/graph.h"

namespace fusejit::onnx {

class Call;  // call.h

struct AttributeRule {
  const char* name;
  Kind kind;
  // The values that are understood, separated by bars ("NOTSET|SAME_UPPER", "0", a list of integers if each is one of
  // them); empty: all.
  const char* only = "";
};

struct Row {
  const char* op;
  int since = 13, until = INT_MAX;  // op sets whose meaning this is
  int least = 1, most = 1;          // operands
  int results = 1;                  // that may be used
  std::vector<AttributeRule> attributes = {};
  std::vector<int> numbers = {};     // operands that are read as plain numbers, while it is recorded
  std::vector<int> statistics = {};  // operands that the training form updates, and no optimiser
  bool of_shapes = false;            // reads the shapes of its operands alone
  std::vector<Tensor> (*mean)(const Call& call) = nullptr;
};

// All rows, in alphabetical order of ops.
const std::vector<Row>& rows();
// The row of an op in an op set, or null.
const Row* find_row(std::string_view op, int opset);
// True if some op set has it.
bool is_known(std::string_view op);

// The families that rows() is made of: ops/*.cpp.
std::vector<Row> elementwise_rows();
std::vector<Row> activation_rows();
std::vector<Row> reduction_rows();
std::vector<Row> shape_rows();
std::vector<Row> part_rows();
std::vector<Row> index_rows();
std::vector<Row> product_rows();
std::vector<Row> pool_rows();
std::vector<Row> resize_rows();
std::vector<Row> norm_rows();

}  // namespace fusejit::onnx
