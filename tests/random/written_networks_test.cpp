// Random networks in training as files, for engines that are not ours: tests/reference/random_networks.py has PyTorch
// compute them. FUSEJIT_WRITE_NETWORKS=folder writes those of FUSEJIT_RANDOM_NETWORKS=first-last there; without it a
// few are written and read back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "frontend/io/graph_file.h"
#include "tests/random/generate/network_check.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::testing {
namespace {

// All in f64: `stem`.fj, the loss and the running statistics; .in.npz, arguments; .out.npz, what the graph interpreter
// has for the loss, the statistics, and every gradient, updated parameter and state of the optimiser, under the names
// of TrainingGraph with `_` for spaces.
void write_network(const std::string& stem, std::uint64_t seed) {
  const Network network = random_network(seed);
  const TrainingGraph made = training_graph(network);
  const ir::Graph wide = in_f64(made.graph);
  const std::vector<ir::Array> arguments = network_arguments(wide, made.graph, seed);
  const auto write = [&](const char* ending, const std::vector<ir::Array>& arrays, const auto& name) {
    std::vector<io::NamedArray> named;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      named.push_back({name(i), arrays[i].type.dtype, arrays[i].type.shape, arrays[i].bytes});
    io::write_npz(stem + ending, named);
  };
  std::ofstream(stem + ".fj") << "; " << network.str() << "\n" << ir::print(in_f64(made.forward));
  write(".in.npz", arguments, [&](std::size_t i) { return wide.parameter_name(i); });
  write(".out.npz", ir::interpret(wide, arguments), [&](std::size_t i) {
    std::string name = made.results[i];
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
  });
}

TEST(RandomNetworks, AreWritten) {
  const char* folder = std::getenv("FUSEJIT_WRITE_NETWORKS");
  if (folder == nullptr) GTEST_SKIP() << "FUSEJIT_WRITE_NETWORKS names no folder";
  unsigned long long first = 1, last = 5000;
  if (const char* wanted = std::getenv("FUSEJIT_RANDOM_NETWORKS")) std::sscanf(wanted, "%llu-%llu", &first, &last);
  for (auto seed = first; seed <= last; ++seed) write_network(std::string(folder) + "/" + std::to_string(seed), seed);
}

// The written graph, differentiated as any other, gives what the step gives.
TEST(RandomNetworks, AreReadBack) {
  const TemporaryFolder folder;
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    if (random_network(seed).optimizer != Optimizer::none) continue;
    const std::string stem = folder / std::to_string(seed);
    write_network(stem, seed);
    std::vector<io::NamedArray> want = io::read_npz(stem + ".out.npz"), arguments = io::read_npz(stem + ".in.npz");
    std::vector<std::string> trained;
    const std::string prefix = "gradient_of_";
    for (io::NamedArray& array : want) {
      if (!array.name.starts_with(prefix)) continue;
      trained.push_back(array.name.substr(prefix.size()));
      array.name = "d_" + trained.back();
    }
    const io::GraphFile file = io::open_graph(io::read_graph(stem + ".fj"), trained);
    const std::size_t forward = file.results.size() - trained.size();
    for (std::size_t i = 0; i < forward; ++i) {
      want[i].name = file.results[i];
      io::NamedArray cotangent{"d_" + file.results[i], want[i].dtype, want[i].shape, {}};
      ir::Array values({f64, cotangent.shape});
      values.as<double>()[0] = i == 0 ? 1 : 0;  // of the loss, not of the statistics
      cotangent.bytes = values.bytes;
      arguments.push_back(cotangent);
    }
    const auto got = ir::interpret(file.graph, io::bind_arguments(file, arguments, "inputs"));
    const auto found = io::differences(file, got, want, {1e-9, 1e-12}, "written");
    EXPECT_TRUE(found.empty()) << random_network(seed).str() << ": " << found.front();
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

}  // namespace
}  // namespace fusejit::testing
