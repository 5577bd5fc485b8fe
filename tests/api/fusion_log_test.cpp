// The log says what is fused where somebody asks for it: as plans are made, and as they are loaded, not at other runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "fusejit/fusejit.h"
#include "tests/support/cache_folder.h"

namespace fusejit {
namespace {

class FusionLog : public ::testing::Test {
 protected:
  FusionLog() {
    set_log([this](std::string_view line) { lines_.emplace_back(line); });
  }
  ~FusionLog() override {
    set_log({});
    set_options({});
  }
  // Of a fresh session with these options.
  std::vector<std::string> lines_of_a_run(const Options& options) {
    set_options(options);
    lines_.clear();
    nn::Sequential net(nn::Linear(32, 16), nn::ReLU());
    net.eval();
    const NoGrad no_grad;
    net(ones({64, 32}).eval()).eval();
    std::vector<std::string> fusions;
    std::copy_if(lines_.begin(), lines_.end(), std::back_inserter(fusions),
                 [](const std::string& line) { return line.starts_with("fusion"); });
    return fusions;
  }
  static bool names_the_layers(const std::vector<std::string>& lines) {
    return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("fusion contraction=0/linear bias_add=0/linear ") &&
             line.find(" activation=1/relu ") != std::string::npos;
    });
  }
  std::vector<std::string> lines_;
};

TEST_F(FusionLog, SpeaksWhenAskedTo) {
  EXPECT_EQ(lines_of_a_run({.cache = "off"}), std::vector<std::string>{});
  const std::vector<std::string> lines = lines_of_a_run({.cache = "off", .log_fusions = true});
  EXPECT_TRUE(names_the_layers(lines)) << ::testing::PrintToString(lines);
  EXPECT_TRUE(lines.back().starts_with("fusions graph=")) << lines.back();
  EXPECT_TRUE(names_the_layers(lines_of_a_run({.engine = "kernel_interpreter", .cache = "off", .log_fusions = true})));
}

TEST_F(FusionLog, IsOncePerPlan) {
  set_options({.cache = "off", .log_fusions = true});
  const Tensor x = ones({64}).eval();
  const auto run = [&] { exp(relu(x)).eval(); };
  run();
  const std::size_t first = lines_.size();
  EXPECT_GE(first, 2u);
  run();
  EXPECT_EQ(lines_.size(), first) << lines_.back();
}

TEST_F(FusionLog, SpeaksOfLoadedPlans) {
  const fusejit::test::CacheFolder cache;
  const std::vector<std::string> made = lines_of_a_run({.log_fusions = true});
  const std::vector<std::string> loaded = lines_of_a_run({.log_fusions = true});
  EXPECT_GE(stats().plans_loaded, 1);
  EXPECT_TRUE(names_the_layers(made));
  EXPECT_EQ(made, loaded);
}

}  // namespace
}  // namespace fusejit
