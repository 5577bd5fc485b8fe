// Every case of tests/reference on the graph interpreter: what PyTorch computed in f64 from the same inputs. And: the
// passes between capture and scheduling leave the results as they are.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "fusejit/target.h"
#include "ir/passes/passes.h"
#include "tests/conformance/recorded.h"

namespace fusejit {
namespace {

const std::string kFolder = std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/";

const std::vector<nlohmann::json>& cases() {
  static const std::vector<nlohmann::json> all = [] {
    std::ifstream in(kFolder + "manifest.json");
    const nlohmann::json manifest = nlohmann::json::parse(in);
    return std::vector<nlohmann::json>(manifest.at("cases").begin(), manifest.at("cases").end());
  }();
  return all;
}

Recorded load(const nlohmann::json& c) {
  Recorded out;
  out.file = io::open_graph(io::read_graph(kFolder + c.at("graph").get<std::string>()),
                            c.at("grad").get<std::vector<std::string>>());
  std::vector<io::NamedArray> inputs;
  if (!c.at("inputs").is_null()) inputs = io::read_npz(kFolder + c.at("inputs").get<std::string>());
  out.arguments = io::bind_arguments(out.file, inputs, "inputs");
  out.expected = io::read_expected(out.file, kFolder + c.at("expected").get<std::string>());
  out.tolerance = {c.at("rtol").get<double>(), c.at("atol").get<double>()};
  return out;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += "\n  " + line;
  return out;
}

// One test a folder keeps the listing short; a failure names the case.
class Reference : public ::testing::TestWithParam<std::string> {};

TEST_P(Reference, AgreesWithPyTorch) {
  int count = 0;
  for (const nlohmann::json& c : cases()) {
    const std::string graph = c.at("graph");
    if (!graph.starts_with(GetParam() + "/")) continue;
    ++count;
    try {
      const Recorded loaded = load(c);
      ir::verify(loaded.file.graph);
      EXPECT_EQ(ir::parse_graph(ir::print(loaded.file.graph)), loaded.file.graph) << graph;
      const auto got = ir::interpret(loaded.file.graph, loaded.arguments);
      const auto found = io::differences(loaded.file, got, loaded.expected, loaded.tolerance, "expected");
      EXPECT_TRUE(found.empty()) << graph << joined(found);
      io::GraphFile optimised = loaded.file;
      optimised.graph = ir::optimise(loaded.file.graph, Target());
      EXPECT_EQ(ir::parse_graph(ir::print(optimised.graph)), optimised.graph) << graph;
      const auto after = ir::interpret(optimised.graph, loaded.arguments);
      const auto changed = io::differences(optimised, after, loaded.expected, loaded.tolerance, "expected");
      EXPECT_TRUE(changed.empty()) << graph << " after the passes" << joined(changed);
    } catch (const std::exception& error) {
      ADD_FAILURE() << graph << ": " << error.what();
    }
  }
  EXPECT_GT(count, 0) << "no case in this folder";
}

TEST_P(Reference, CompiledAgreesWithPyTorch) {
  runtime::Session session({.threads = 2});
  for (const nlohmann::json& c : cases()) {
    const std::string graph = c.at("graph");
    if (!graph.starts_with(GetParam() + "/")) continue;
    try {
      const Recorded loaded = load(c);
      const std::vector<ir::Array> got = results_of(session, loaded);
      const auto found = io::differences(loaded.file, got, loaded.expected, loaded.tolerance, "expected");
      EXPECT_TRUE(found.empty()) << graph << " compiled" << joined(found);
    } catch (const std::exception& error) {
      ADD_FAILURE() << graph << " compiled: " << error.what();
    }
  }
}

// Blocks as they are planned for a device, with and without cuDNN, on the interpreter of kernels.
TEST(ReferenceOnDevices, PlansOfBlocksAgreeWithPyTorch) {
  for (const nlohmann::json& c : cases()) {
    const std::string graph = c.at("graph");
    if (!graph.starts_with("blocks/")) continue;
    const Recorded loaded = load(c);
    for (const char* target : {"cuda:sm_90", "cuda:sm_90,cudnn=1"}) {
      for (const scheduler::Rules rules : {scheduler::Rules::all, scheduler::Rules::none}) {
        runtime::Session session({.target = Target::parse(target),
                                  .engine = runtime::Engine::kernel_interpreter,
                                  .rules = rules,
                                  .threads = 1});
        const std::vector<ir::Array> got = results_of(session, loaded);
        const auto found = io::differences(loaded.file, got, loaded.expected, loaded.tolerance, "expected");
        EXPECT_TRUE(found.empty()) << graph << " on " << target << " rules=" << scheduler::name(rules) << joined(found);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, Reference,
                         ::testing::Values("elementwise", "composite", "reductions", "views", "anchors", "pools",
                                           "norms", "losses", "half", "random", "blocks"),
                         [](const auto& info) { return info.param; });

TEST(Reference, EveryOpHasACase) {
  std::set<std::string> seen;
  for (const nlohmann::json& c : cases())
    for (const auto& op : c.at("ops")) seen.insert(op.get<std::string>());
  for (int i = 0; i < static_cast<int>(ir::Op::count_); ++i) {
    const ir::OpDef& row = ir::op_def(static_cast<ir::Op>(i));
    if (row.family == ir::Family::leaf || row.family == ir::Family::kernel) continue;
    EXPECT_TRUE(seen.contains(std::string(row.name))) << row.name << " is in no reference case";
  }
}

}  // namespace
}  // namespace fusejit
