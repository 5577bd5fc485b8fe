// save_graph writes what fusejit-dump shows and runs, whether or not it can be compiled.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/io/graph_file.h"
#include "fusejit/fusejit.h"
#include "ir/graph.h"
#include "tests/unit/tools/program.h"

namespace fusejit {
namespace {

namespace fs = std::filesystem;

class SaveGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fusejit_save_graph_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  // fusejit-dump's exit code; what it prints is in "said".
  int dump(const std::string& arguments) const {
    return WEXITSTATUS(std::system((kFusejitDump + " " + arguments + " > " + path("said") + " 2>&1").c_str()));
  }

 private:
  fs::path folder_;
};

TEST_F(SaveGraph, IsReadShownAndRun) {
  if (!fs::exists(kFusejitDump)) GTEST_SKIP() << kFusejitDump << " is not built";
  manual_seed(4);
  nn::Sequential net(nn::Conv2d(2, 3, 3), nn::BatchNorm2d(3), nn::ReLU(), nn::Flatten(), nn::Linear(3 * 4, 2));
  const Tensor x = rand({2, 2, 4, 4}).eval(), target = arange(2).eval();
  const Tensor loss = cross_entropy(net(x), target);
  std::vector<Tensor> wanted{loss};
  for (const Tensor& g : grad(loss, {net.parameters()[0], net.parameters()[4]})) wanted.push_back(g);
  save_graph(path("g.fj"), wanted);
  EXPECT_FALSE(loss.evaluated()) << "nothing is computed";
  const ir::Graph graph = io::read_graph(path("g.fj"));
  EXPECT_EQ(ir::print(graph), read("g.fj"));
  ASSERT_EQ(graph.results().size(), 3u);
  ASSERT_EQ(dump("show " + path("g.fj")), 0) << read("said");

  StateDict inputs;
  for (std::size_t p = 0; p < graph.parameters().size(); ++p) {
    const Type& type = graph.parameters()[p].type();
    inputs[graph.parameter_name(p)] = zeros(type.shape, type.dtype);
  }
  save(inputs, path("in.npz"));
  ASSERT_EQ(dump("run " + path("g.fj") + " --inputs " + path("in.npz") + " --outputs " + path("out.npz")), 0)
      << read("said");
  const StateDict results = load(path("out.npz"));
  ASSERT_EQ(results.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(results.at("out" + std::to_string(i)).shape(), wanted[i].shape());
}

TEST_F(SaveGraph, ValuesAreThoseOfTheTensors) {
  if (!fs::exists(kFusejitDump)) GTEST_SKIP() << kFusejitDump << " is not built";
  const Tensor x = tensor<float>({1, 2, 3}).eval(), scale = tensor<double>({2, 4, 8}).eval();
  const Tensor y = exp(x) * 0.3, z = sum(y.to(f64) * scale);
  save_graph(path("g.fj"), {y, z, x});
  const ir::Graph graph = io::read_graph(path("g.fj"));
  StateDict inputs;
  for (std::size_t p = 0; p < graph.parameters().size(); ++p) {
    const Type& type = graph.parameters()[p].type();
    inputs[graph.parameter_name(p)] = type.shape.rank() == 0 ? scalar(0.3) : type.dtype == f64 ? scale : x;
  }
  save(inputs, path("in.npz"));
  ASSERT_EQ(dump("run " + path("g.fj") + " --inputs " + path("in.npz") + " --outputs " + path("out.npz")), 0)
      << read("said");
  const StateDict results = load(path("out.npz"));
  EXPECT_EQ(results.at("out0").to_vector<float>(), y.to_vector<float>());
  EXPECT_NEAR(results.at("out1").item<double>(), z.item<double>(), 1e-9);
  EXPECT_EQ(results.at("out2").to_vector<float>(), x.to_vector<float>()) << "a value that is there is a parameter";
}

// What an update leaves to be computed is part of the graph.
TEST_F(SaveGraph, LooksThroughParameters) {
  const nn::Parameter w("w", tensor<float>({1, 2}));
  optim::SGD opt({w}, {.lr = 0.25, .momentum = 0.5});
  opt.step(sum(square(w.value())));
  save_graph(path("g.fj"), {w.value()});
  const std::string text = read("g.fj");
  EXPECT_NE(text.find("sub("), std::string::npos) << text;
  EXPECT_EQ(ir::print(io::read_graph(path("g.fj"))), text);
}

// Nothing is planned, compiled or computed for it.
TEST_F(SaveGraph, NeedsNoEngine) {
  set_options({.threads = 1});
  const std::int64_t made = stats().plans_made, evaluations = stats().evaluations;
  const Tensor x = borrow(static_cast<float*>(nullptr), {0, 4});
  save_graph(path("g.fj"), {softmax(matmul(x, rand({4, 4})), 1)});
  EXPECT_EQ(stats().plans_made, made);
  EXPECT_EQ(stats().evaluations, evaluations);
  EXPECT_NE(read("g.fj").find("rand("), std::string::npos);
  set_options({});
}

TEST_F(SaveGraph, Refusals) {
  EXPECT_THROW(save_graph(path("g.fj"), {}), UserError);
  EXPECT_THROW(save_graph(path("g.fj"), {ones({1}), Tensor()}), UserError);
  EXPECT_FALSE(fs::exists(path("g.fj")));
  EXPECT_THROW(save_graph(path("no/such/folder/g.fj"), {ones({1})}), FileError);
}

}  // namespace
}  // namespace fusejit
