// Profile: the launches of what ran meanwhile, with the bytes and the arithmetic of their plan, and nothing of the
// rest.
#include "fusejit/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fusejit/fusejit.h"
#include "tests/support/cache_folder.h"

namespace fj = fusejit;

namespace {

struct Step {
  fj::nn::Sequential net{fj::nn::Conv2d(3, 16, 3), fj::nn::BatchNorm2d(16), fj::nn::ReLU(), fj::nn::Flatten(),
                         fj::nn::Linear(16 * 14 * 14, 5)};
  fj::optim::SGD opt{net.parameters(), {.lr = 0.01, .momentum = 0.9}};
  fj::Tensor x = fj::rand({4, 3, 16, 16}).eval(), y = fj::zeros({4}, fj::i64).eval();
  void operator()() {
    auto step = fj::train_step(net, opt, [&](fj::Tensor a, fj::Tensor b) { return fj::cross_entropy(net(a), b); });
    step(x, y).item<float>();
  }
};

std::int64_t calls(const std::vector<fj::Profile::Row>& rows) {
  std::int64_t sum = 0;
  for (const auto& row : rows) sum += row.calls;
  return sum;
}

TEST(Profile, CountsEveryLaunchOfThePlanWithItsBytes) {
  fj::set_options({.threads = 1});
  Step step;
  step();
  fj::Profile profile;
  for (int i = 0; i < 3; ++i) step();
  profile.stop();
  step();  // not seen any more
  const fj::PlanStatistics plan = fj::stats().last_plan;
  const auto kernels = profile.rows();
  EXPECT_EQ(calls(kernels), 3 * plan.kernels);
  std::int64_t bytes = 0;
  double gflop = 0, milliseconds = 0;
  for (const auto& row : kernels) {
    bytes += row.bytes, gflop += row.gflop, milliseconds += row.milliseconds;
    EXPECT_FALSE(row.ops.empty()) << row.name;
  }
  EXPECT_EQ(bytes, 3 * plan.ledger_bytes);
  EXPECT_GT(milliseconds, 0);
  const double forward = 2.0 * 4 * 16 * 14 * 14 * 27 * 1e-9;  // of the convolution alone
  EXPECT_GT(gflop, 3 * 2 * forward);
  EXPECT_LT(gflop, 3 * 8 * forward);
  EXPECT_TRUE(std::is_sorted(kernels.begin(), kernels.end(),
                             [](const auto& a, const auto& b) { return a.milliseconds > b.milliseconds; }));
  EXPECT_GT(profile.peak_bytes(), 4 * 16 * 14 * 14 * 4) << "at least the convolution's result";
  const auto ops = profile.rows(fj::ProfileBy::op);
  EXPECT_EQ(calls(ops), calls(kernels));
  EXPECT_TRUE(std::any_of(ops.begin(), ops.end(), [](const auto& row) { return row.name == "conv2d_weight_grad"; }));
  EXPECT_NE(profile.table().find("conv2d"), std::string::npos);
  EXPECT_NE(profile.table(fj::ProfileBy::kernel, 1).find(" more"), std::string::npos);
  fj::set_options({});
}

TEST(Profile, ByLayerIsByTheModuleThatRecorded) {
  fj::set_options({.threads = 1});
  Step step;
  step();
  fj::Profile profile;
  step();
  profile.stop();
  const auto kernels = profile.rows(), layers = profile.rows(fj::ProfileBy::layer);
  EXPECT_EQ(calls(layers), calls(kernels));
  double all = 0, sum = 0;
  std::int64_t bytes = 0, sum_bytes = 0;
  for (const auto& row : kernels) all += row.milliseconds, bytes += row.bytes;
  std::vector<std::string> names;
  for (const auto& row : layers) {
    names.push_back(row.name), sum += row.milliseconds, sum_bytes += row.bytes;
    EXPECT_TRUE(row.ops.empty()) << "of a kernel only";
  }
  EXPECT_NEAR(sum, all, 1e-9);
  EXPECT_EQ(sum_bytes, bytes);
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  // 0: the convolution, with the sums of the batch norm behind it; 1: its application with relu, and gradients; 4: the
  // linear layer; the loss was called outside of all modules.
  EXPECT_TRUE(has("0")) << ::testing::PrintToString(names);
  EXPECT_TRUE(has("1")) << ::testing::PrintToString(names);
  EXPECT_TRUE(has("4")) << ::testing::PrintToString(names);
  EXPECT_TRUE(has("no layer")) << ::testing::PrintToString(names);
  EXPECT_LE(names.size(), 6u) << ::testing::PrintToString(names);
  EXPECT_NE(profile.table(fj::ProfileBy::layer).find("  layer\n"), std::string::npos);
  fj::set_options({});
}

TEST(Profile, SaysWhatComesBeforeALaunch) {
  const fusejit::test::CacheFolder cache;
  for (const char* made : {"codegen", "disk"}) {
    fj::set_options({.threads = 1});  // the second time, everything is on disk
    fj::Profile profile;
    Step()();
    std::vector<std::string> phases;
    for (const auto& row : profile.rows(fj::ProfileBy::phase)) phases.push_back(row.name);
    for (const char* phase : {"record", "trace", "run", "launch", made})
      EXPECT_NE(std::find(phases.begin(), phases.end(), phase), phases.end()) << phase;
    const bool compiled = std::find(phases.begin(), phases.end(), "codegen") != phases.end();
    EXPECT_EQ(compiled, std::string(made) == "codegen");
    EXPECT_EQ(std::find(phases.begin(), phases.end(), "schedule") != phases.end(), compiled);
  }
  fj::set_options({.cache = "off"});
}

TEST(Profile, WritesATraceThatViewersRead) {
  const fusejit::test::CacheFolder folder;
  fj::set_options({.threads = 1, .cache = "off"});
  fj::Profile profile;
  Step()();
  profile.stop();
  const std::string path = folder.path("t.json");
  profile.trace(path);
  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file);
  std::int64_t launches = 0, counters = 0, of_the_convolution = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "C") counters += event["args"]["MiB"].get<double>() > 0;
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_GE(event["ts"].get<double>(), 0);
    launches += event["cat"] == "launch";
    of_the_convolution += event["cat"] == "launch" && event["args"]["layer"] == "0";
  }
  EXPECT_EQ(launches, calls(profile.rows()));
  EXPECT_EQ(counters, launches);
  EXPECT_GE(of_the_convolution, 2) << "forward and the gradient by its weights";
  EXPECT_THROW(profile.trace(folder.path("no/such/folder/t.json")), fj::FileError);
}

TEST(Profile, SeveralMayBeTakenAtATime) {
  fj::set_options({.threads = 1});
  Step step;
  step();
  fj::Profile outer;
  step();
  {
    fj::Profile inner;
    step();
    EXPECT_EQ(2 * calls(inner.rows()), calls(outer.rows()));
  }
  step();
  EXPECT_EQ(calls(outer.rows()), 3 * fj::stats().last_plan.kernels);
  fj::set_options({});
}

}  // namespace
