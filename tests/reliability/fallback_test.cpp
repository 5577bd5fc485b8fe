// Each kernel of a plan in turn that cannot be made, or whose object on disk is whole and of no use: the results are
// right, the counters are, and the log says it once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "runtime/disk/disk_cache.h"
#include "runtime/session.h"
#include "scheduler/make_plan.h"
#include "tests/conformance/compare.h"
#include "tests/reliability/worker.h"

namespace fusejit::runtime {
namespace {

using fusejit::testing::bytes_of;
using fusejit::testing::files_below;
using fusejit::testing::TemporaryFolder;
using fusejit::testing::write_bytes;

// A small network in inference with a loss, of several kernels.
const ir::Graph& graph_that_falls_back() {
  static const ir::Graph the = ir::parse_graph(R"(graph @net(%x: f32[2,3,8,8], %w: f32[4,3,3,3], %v: f32[64,5]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,4,8,8]
  %1 = mean(%0) {dim=[0,2,3], keepdim=true} : f32[1,4,1,1]
  %2 = sub(%0, %1) : f32[2,4,8,8]
  %3 = relu(%2) : f32[2,4,8,8]
  %4 = max_pool2d(%3) {kernel_size=[2,2], stride=[2,2]} : f32[2,4,4,4]
  %5 = reshape(%4) {shape=[2,64]} : f32[2,64]
  %6 = matmul(%5, %v) : f32[2,5]
  %7 = softmax(%6) {dim=1} : f32[2,5]
  %8 = sum(%7) {dim=[0], keepdim=true} : f32[1,5]
  %9 = sub(%7, %8) : f32[2,5]
  return %9
})");
  return the;
}

// Strict mode allows no fallback.
class Strict {
 public:
  explicit Strict(bool is_strict) {
    if (const char* set = std::getenv("FUSEJIT_STRICT")) was_ = set;
    is_strict ? ::setenv("FUSEJIT_STRICT", "1", 1) : ::unsetenv("FUSEJIT_STRICT");
  }
  ~Strict() { was_ ? ::setenv("FUSEJIT_STRICT", was_->c_str(), 1) : ::unsetenv("FUSEJIT_STRICT"); }
  Strict(const Strict&) = delete;
  Strict& operator=(const Strict&) = delete;

 private:
  std::optional<std::string> was_;
};

struct RanWithout {
  std::vector<Buffer> results;
  SessionStatistics statistics;
  std::vector<std::string> log;
};
// Twice: what fell back is not said again.
RanWithout run(const std::string& refused, const std::shared_ptr<disk::DiskCache>& cache = nullptr) {
  RanWithout ran;
  SessionOptions options{.target = Target::parse("x86:v2"), .threads = 1};
  options.checks.refused_kernel = refused, options.disk = cache;
  options.log = [&ran](const std::string& line) { ran.log.push_back(line); };
  Session session(options);
  const std::vector<Buffer> arguments = testing::random_arguments(graph_that_falls_back(), 5);
  session.run(graph_that_falls_back(), arguments);
  ran.results = session.run(graph_that_falls_back(), arguments);
  ran.statistics = session.statistics();
  return ran;
}
void expect_right(const RanWithout& ran, const std::string& what) {
  static const std::vector<Buffer> right =
      Session({.engine = Engine::graph_interpreter})
          .run(graph_that_falls_back(), testing::random_arguments(graph_that_falls_back(), 5));
  EXPECT_LE(testing::excess(ran.results, right, {}), 0) << what;
}

TEST(Ladder, AnyKernelOfAPlanMayBeRefused) {
  std::set<std::string> names;
  for (const auto& step :
       scheduler::make_plan(graph_that_falls_back(), {Target::parse("x86:v2"), scheduler::Rules::all, {}}).steps)
    names.insert(step.kernel->name);
  ASSERT_GE(names.size(), 4u);
  for (const std::string& name : names) {
    {
      const Strict strict(false);
      const RanWithout ran = run(name);
      expect_right(ran, name);
      EXPECT_GE(ran.statistics.fallbacks, 1) << name;
      EXPECT_EQ(static_cast<std::size_t>(ran.statistics.fallbacks), ran.log.size()) << name << ": one line each";
      EXPECT_EQ(ran.statistics.plans_made, 1) << name;
      EXPECT_EQ(std::set<std::string>(ran.log.begin(), ran.log.end()).size(), ran.log.size()) << name;
    }
    const Strict strict(true);
    EXPECT_THROW(run(name), UnsupportedError) << name;
  }
  std::printf("%zu kernels of a plan refused in turn\n", names.size());
}

// Under the right key with the right check sum, as a broken compiler or a disk that lied to the writer leaves it.
TEST(Ladder, AnyObjectOnDiskMayBeOfNoUse) {
  const Strict strict(true);  // making a kernel again is no fallback
  TemporaryFolder folder;
  std::vector<std::string> log;
  const auto open = [&] {
    return std::make_shared<disk::DiskCache>(
        disk::DiskCacheOptions{.folder = folder.path(), .log = [&](const std::string& line) { log.push_back(line); }});
  };
  const RanWithout cold = run("", open());
  expect_right(cold, "cold");
  int kernels = 0;
  for (const std::string& path : files_below(folder.path(), ".entry")) {
    const std::string good = bytes_of(path);
    auto entry = disk::decode(good).value();
    if (entry.key.kind() != "kernel") continue;
    ++kernels;
    for (disk::Section& section : entry.sections) {
      // Its header says what it is, its tables are nothing.
      if (section.name == "object") std::fill(section.bytes.begin() + 64, section.bytes.end(), '\xee');
    }
    write_bytes(path, encode(entry.key, entry.sections));
    const RanWithout ran = run("", open());
    expect_right(ran, path);
    EXPECT_EQ(ran.statistics.kernels_compiled, 1) << path;
    EXPECT_EQ(ran.statistics.kernels_loaded, cold.statistics.kernels_compiled - 1) << path;
    EXPECT_EQ(ran.statistics.fallbacks, 0) << path;
    EXPECT_EQ(bytes_of(path), good) << "made again, to the byte";
    ASSERT_EQ(log.size(), 1u) << "each process says it once";
    EXPECT_TRUE(log[0].ends_with("; it is made again")) << log[0];
    log.clear();
  }
  EXPECT_EQ(kernels, cold.statistics.kernels_compiled);
  EXPECT_TRUE(log.empty()) << log[0];
  std::printf("%d objects that cannot be loaded\n", kernels);
}

}  // namespace
}  // namespace fusejit::runtime
