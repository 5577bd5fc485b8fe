// Models of one op against ONNX Runtime's results, and the rows of ops against their table in docs/onnx.md.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/onnx/rows.h"
#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::onnx {
namespace {

const std::string kOpsFolder = FUSEJIT_SOURCE_DIR "/tests/reference/onnx/";

// Six digits of f32, and of sums that ONNX Runtime takes in another order.
void expect_close(const Tensor& got, const Tensor& want, const std::string& what) {
  EXPECT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.shape().str(), want.shape().str()) << what;
  const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool is_same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    ASSERT_TRUE(is_same || std::abs(a[i] - b[i]) <= 2e-6 + 1e-5 * std::abs(b[i]))
        << what << ", element " << i << ": " << a[i] << " instead of " << b[i];
  }
}

class OnnxOps : public ::testing::Test {
 protected:
  void SetUp() override { set_options({.engine = "graph_interpreter"}); }
  void TearDown() override { set_options({}); }
};

TEST_F(OnnxOps, MeanWhatOnnxRuntimeComputes) {
  const StateDict recorded = fusejit::load(kOpsFolder + "ops.npz");
  int cases = 0;
  for (const std::string& path : testing::files_below(kOpsFolder + "ops", ".onnx")) {
    const std::string name = std::filesystem::path(path).stem();
    SCOPED_TRACE(name);
    try {
      const Model model = load(path);
      std::vector<Tensor> inputs;
      for (const Port& port : model.inputs()) inputs.push_back(recorded.at(name + "." + port.name));
      const std::vector<Tensor> results = model.run(inputs);
      for (std::size_t i = 0; i < results.size(); ++i)
        expect_close(results[i], recorded.at(name + "." + model.results()[i].name), name);
      ++cases;
    } catch (const Error& error) {
      ADD_FAILURE() << name << ": " << error.what();
    }
  }
  EXPECT_GT(cases, 200);
}

// i64 in place of i32 changes nothing that fits; in place of bytes nothing would wrap.
TEST_F(OnnxOps, TakeNarrowIntegersAsDeclared) {
  const Model model = load(kOpsFolder + "ops/Add_uint8.onnx");
  EXPECT_EQ(model.run({ones({2, 4}, u8), full({4}, 255, u8)})[0].to_vector<int>(), std::vector<int>(8));
  EXPECT_NE(testing::error_of([&] {
              model.run({ones({2, 4}, i64), ones({4}, i64)});
            }).find("input 'x0' is i64[2,4], the model says u8[2,4]"),
            std::string::npos);
}

TEST_F(OnnxOps, HaveACaseForEveryRow) {
  std::set<const Row*> seen;
  for (const std::string& path : testing::files_below(kOpsFolder + "ops", ".onnx")) {
    const Graph graph = read_model(path);
    for (const Node& node : graph.nodes) seen.insert(find_row(node.op, graph.opset));
  }
  for (const Row& row : rows()) EXPECT_TRUE(seen.contains(&row)) << row.op << " since op set " << row.since;
}

std::string quoted(const std::string& text) { return "`" + text + "`"; }

// A line of docs/onnx.md: | `Clip` | 13 | |
std::string line_of(const Row& row) {
  std::string attributes;
  for (const AttributeRule& rule : row.attributes) {
    attributes += (attributes.empty() ? "" : ", ") + quoted(rule.name);
    std::string only = rule.only;
    if (only.empty()) continue;
    for (std::size_t bar = only.find('|'); bar != std::string::npos; bar = only.find('|')) only.replace(bar, 1, " or ");
    attributes += " " + only;
  }
  const std::string sets = row.until == INT_MAX     ? std::to_string(row.since)
                           : row.until == row.since ? std::to_string(row.since) + " only"
                                                    : std::to_string(row.since) + " to " + std::to_string(row.until);
  return "| " + quoted(row.op) + " | " + sets + " | " + attributes + (attributes.empty() ? "|" : " |");
}

TEST_F(OnnxOps, StandInTheTableOfTheDocument) {
  std::ifstream in(FUSEJIT_SOURCE_DIR "/docs/onnx.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| `")) lines.push_back(line);
  }
  std::vector<std::string> expected;
  for (const Row& row : rows()) expected.push_back(line_of(row));
  std::string all;
  for (const std::string& line : expected) all += line + "\n";
  EXPECT_EQ(lines, expected) << "the table should be:\n" << all;
}

}  // namespace
}  // namespace fusejit::onnx
