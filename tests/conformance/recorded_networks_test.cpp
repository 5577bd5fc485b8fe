// Random networks in training that PyTorch computed (tests/reference/random_networks): the graph interpreter and
// machine code, with every rule, with none and with each rule left out, against its losses and gradients. Nothing is
// shared with lowering or differentiation; tests/reference/random_networks.py holds 5,000 more against PyTorch where it
// is installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/conformance/recorded.h"

namespace fusejit {
namespace {

Recorded load(const std::string& stem) {
  Recorded out;
  out.expected = io::read_npz(stem + ".out.npz");
  std::vector<std::string> trained;
  for (const io::NamedArray& array : out.expected)
    if (array.name.starts_with("d_")) trained.push_back(array.name.substr(2));
  out.file = io::open_graph(io::read_graph(stem + ".fj"), trained);
  std::vector<io::NamedArray> inputs = io::read_npz(stem + ".in.npz");
  double largest = 0;
  for (const io::NamedArray& array : out.expected) {
    if (array.dtype != f64) continue;
    for (std::int64_t i = 0; i < array.shape.elements(); ++i)
      largest = std::max(largest, std::fabs(ir::load_element(array.bytes.data(), f64, i).as_double()));
    if (!array.name.starts_with("out")) continue;
    // Gradients are the loss's, the first result's; the others are running statistics.
    ir::Array cotangent({f64, array.shape});
    if (array.name == "out0") cotangent.as<double>()[0] = 1;
    inputs.push_back({"d_" + array.name, f64, array.shape, cotangent.bytes});
  }
  out.arguments = io::bind_arguments(out.file, inputs, stem);
  out.tolerance = {1e-9, 1e-11 * largest};
  return out;
}

TEST(RecordedNetworks, AgreeWithPyTorch) {
  static constexpr const char* kLeftOut[] = {"-R1", "-R2", "-R3", "-R4", "-R5", "-R6", "-R7", "-R8", "-R9", "inductor"};
  const std::filesystem::path folder = std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/random_networks";
  std::vector<std::filesystem::path> graphs;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".fj") graphs.push_back(entry.path());
  std::sort(graphs.begin(), graphs.end());
  ASSERT_GE(graphs.size(), std::size(kLeftOut));
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const Recorded recorded = load((folder / graphs[i].stem()).string());
    const auto expect = [&](const std::vector<ir::Array>& got, const std::string& engine) {
      const auto found = io::differences(recorded.file, got, recorded.expected, recorded.tolerance, "expected");
      EXPECT_TRUE(found.empty()) << graphs[i].filename() << ", " << engine << ": " << found.front();
    };
    expect(ir::interpret(recorded.file.graph, recorded.arguments), "graph interpreter");
    for (const char* rules : {"all", "none", kLeftOut[i % std::size(kLeftOut)]}) {
      runtime::Session session({.rules = scheduler::parse_rules(rules), .threads = 2});
      expect(results_of(session, recorded), std::string("rules=") + rules);
    }
  }
}

}  // namespace
}  // namespace fusejit
