// Graphs that reach every path of the scheduler, on every engine.
#include "tests/conformance/engines.h"

#include <gtest/gtest.h>

#include "tests/conformance/graphs_of_bytes.h"

namespace fusejit {
namespace {

using testing::GraphCase;

class Engines : public ::testing::TestWithParam<GraphCase> {};

TEST_P(Engines, Agree) {
  const ir::Graph graph = ir::parse_graph(GetParam().text);
  EXPECT_EQ(testing::compare_engines(graph, 1), "") << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(Graphs, Engines, ::testing::ValuesIn(testing::every_graph_case()),
                         [](const ::testing::TestParamInfo<GraphCase>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusejit
