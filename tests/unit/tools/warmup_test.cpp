// `fusejit warmup` and `fusejit cache` as a user meets them, on a cache that they fill, on hostile files and on
// nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/cache_folder.h"
#include "tests/unit/tools/program.h"

namespace fusejit {
namespace {

struct WarmupOutcome {
  int code = -1;
  std::string output, errors;
  bool says(const std::string& text) const {
    return output.find(text) != std::string::npos || errors.find(text) != std::string::npos;
  }
};

std::string contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class WarmupCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFusejit)) GTEST_SKIP() << kFusejit << " is not built";
  }
  WarmupOutcome run(const std::string& arguments, const std::string& environment = "") {
    const std::string out = cache_.path("stdout"), err = cache_.path("stderr");
    const int status = std::system((environment + " " + kFusejit + " " + arguments + " >" + out + " 2>" + err).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents(out), contents(err)};
  }
  // How many kernels a source's plan has, as fusejit-dump lists them.
  size_t kernels_of(const std::string& source) {
    const std::string out = cache_.path("list.json");
    EXPECT_EQ(std::system((kFusejit + "-dump list " + source + " --format json >" + out).c_str()), 0);
    return nlohmann::json::parse(contents(out))["kernels"].size();
  }
  nlohmann::json report() { return nlohmann::json::parse(contents(cache_.path("report.json"))); }
  test::CacheFolder cache_;
};

constexpr const char* kModel = "convnet@4:train";

TEST_F(WarmupCommand, FillsChecksAndNamesWhatDiffers) {
  const WarmupOutcome before = run(std::string("warmup --check ") + kModel);
  EXPECT_EQ(before.code, 3) << before.output << before.errors;
  EXPECT_FALSE(std::filesystem::exists(cache_.path("cache/v1/0"))) << "a check makes nothing";
  const WarmupOutcome filled = run(std::string("warmup -j 2 ") + kModel + " --report " + cache_.path("report.json"));
  EXPECT_EQ(filled.code, 0) << filled.output << filled.errors;
  const std::string kernels = std::to_string(kernels_of(kModel));
  EXPECT_TRUE(filled.says("1 plans (1 made), " + kernels + " kernels (" + kernels + " made)")) << filled.output;
  const auto item = report()["items"][0];
  EXPECT_EQ(item["state"], "made");
  EXPECT_EQ(item["kernels_made"], kernels_of(kModel));
  EXPECT_EQ(report()["failed"], 0);
  const WarmupOutcome checked = run(std::string("warmup --check ") + kModel);
  EXPECT_EQ(checked.code, 0) << checked.output;
  EXPECT_TRUE(checked.says("nothing would have to be compiled"));
  const WarmupOutcome again = run(std::string("warmup ") + kModel);
  EXPECT_TRUE(again.says("(0 made), " + kernels + " kernels (0 made)")) << again.output;

  const WarmupOutcome other = run("warmup --check convnet@5:train");
  EXPECT_EQ(other.code, 3);
  EXPECT_TRUE(other.says("differs in shapes")) << other.output;
  EXPECT_EQ(run(std::string("cache explain ") + kModel).code, 0);
  for (const auto& [what, part] : {std::pair("convnet@5:train", "shapes"),
                                   {"convnet@4:train --dtype f64", "dtypes"},
                                   {"convnet@4:train --rules none", "rules: 'all' there, 'none' here"},
                                   {"convnet@4:train --target x86:avx2,l2=3m", "target"}}) {
    const WarmupOutcome explained = run(std::string("cache explain ") + what);
    EXPECT_EQ(explained.code, 3) << what;
    EXPECT_TRUE(explained.says(std::string("differs in ") + part)) << what << ": " << explained.output;
  }
}

// What is killed in the middle has kept what was done, and the next one makes the rest alone.
TEST_F(WarmupCommand, GoesOnWhereItWasStopped) {
  const WarmupOutcome over = run(std::string("warmup -j 1 --budget 0.05 ") + kModel);
  EXPECT_EQ(over.code, 124) << over.output;
  const WarmupOutcome interrupted =
      run(std::string("warmup -j 1 ") + kModel, "timeout --preserve-status -s INT 0.15 env");
  EXPECT_TRUE(interrupted.code == 130 || interrupted.code == 0) << interrupted.code << interrupted.errors;
  const WarmupOutcome rest = run(std::string("warmup ") + kModel);
  EXPECT_EQ(rest.code, 0);
  EXPECT_FALSE(rest.says("(" + std::to_string(kernels_of(kModel)) + " made)")) << rest.output;
  EXPECT_EQ(run(std::string("warmup --check ") + kModel).code, 0);
}

TEST_F(WarmupCommand, AWorkerWithoutEndCostsItsItemAlone) {
  const WarmupOutcome slow =
      run(std::string("warmup --timeout 0.000001 ") + kModel + " --report " + cache_.path("report.json"));
  EXPECT_EQ(slow.code, 7) << slow.output;
  EXPECT_TRUE(slow.says("it took longer than")) << slow.output;
  EXPECT_EQ(report()["items"][0]["state"], "failed");
}

TEST_F(WarmupCommand, OtherMachinesAndSeveralTargets) {
  const WarmupOutcome built = run("warmup convnet@4 --target x86:v2 --target x86:avx2 --target x86:avx512");
  EXPECT_EQ(built.code, 0) << built.output << built.errors;
  EXPECT_TRUE(built.says("3 plans (3 made)")) << built.output;
  EXPECT_EQ(run("warmup --check convnet@4 --target x86:avx2").code, 0);
  EXPECT_EQ(run("warmup --check convnet@4 --target x86:avx2,l1=64k").code, 3);
}

TEST_F(WarmupCommand, BundlesCarryAll) {
  const std::string bundle = cache_.path("x.fjb");
  EXPECT_EQ(run(std::string("warmup ") + kModel + " -o " + bundle).code, 0);
  EXPECT_EQ(run("cache export -o " + cache_.path("y.fjb")).code, 0);
  const std::string elsewhere = "FUSEJIT_CACHE_DIR=" + cache_.path("elsewhere");
  EXPECT_EQ(run(std::string("warmup --check ") + kModel, elsewhere).code, 3);
  EXPECT_EQ(run(std::string("warmup --check ") + kModel, elsewhere + " FUSEJIT_CACHE_BUNDLES=" + bundle).code, 0);
  EXPECT_EQ(run("cache import " + bundle, elsewhere).code, 2) << "only with --trust";
  EXPECT_EQ(run("cache merge " + bundle + " " + cache_.path("y.fjb") + " -o " + cache_.path("z.fjb")).code, 0);
  EXPECT_EQ(run("cache import --trust " + cache_.path("z.fjb"), elsewhere).code, 0);
  EXPECT_EQ(run(std::string("warmup --check ") + kModel, elsewhere).code, 0);

  // One wrong byte anywhere, and nothing of it is taken.
  const std::string good = contents(bundle);
  const std::string third = "FUSEJIT_CACHE_DIR=" + cache_.path("third");
  for (const std::size_t at : {std::size_t{3}, std::size_t{9}, std::size_t{15}, std::size_t{100}, good.size() / 2,
                               good.size() - 100, good.size() - 1}) {
    std::string bad = good;
    bad[at] ^= 16;
    std::ofstream(bundle) << bad;
    EXPECT_EQ(run("cache import --trust " + bundle, third).code, 2) << at;
    EXPECT_TRUE(run("cache stats", third).says("0 in all")) << at;
  }
  std::ofstream(bundle) << good.substr(0, good.size() / 3);
  EXPECT_EQ(run("cache import --trust " + bundle, third).code, 2);
}

TEST_F(WarmupCommand, TheCacheIsKeptInOrder) {
  ASSERT_EQ(run(std::string("warmup ") + kModel).code, 0);
  EXPECT_EQ(run("cache path").output, cache_.path("cache") + "\n");
  const auto stats = nlohmann::json::parse(run("cache stats --json").output);
  EXPECT_EQ(stats["kinds"]["kernel"]["entries"], kernels_of(kModel));
  const auto list = nlohmann::json::parse(run("cache list --json").output);
  EXPECT_EQ(list["entries"].size(), stats["entries"]);
  EXPECT_EQ(run("cache verify").code, 0);
  for (const auto& file : std::filesystem::recursive_directory_iterator(cache_.path("cache"))) {
    if (file.path().extension() != ".entry") continue;
    std::filesystem::resize_file(file.path(), file.file_size() - 1);
    break;
  }
  EXPECT_EQ(run("cache verify").code, 3);
  EXPECT_EQ(run("cache verify --fix").code, 0);
  EXPECT_EQ(run("cache verify").code, 0);
  EXPECT_TRUE(run("cache prune --max-files 10 --dry-run").says("would remove"));
  EXPECT_TRUE(run("cache prune --max-files 10").says("10 are left"));
  EXPECT_TRUE(run("cache clear").says("0 are left"));
  EXPECT_TRUE(run("cache stats").says("0 in all"));
}

TEST_F(WarmupCommand, BadInputIsASentence) {
  const std::string hostile = cache_.path("hostile");
  std::ofstream(hostile) << std::string(4096, '\xff') << '\n' << "{\"graph\":";
  EXPECT_EQ(run("warmup " + hostile).code, 2);
  EXPECT_EQ(run("warmup " + cache_.path("nowhere")).code, 5);
  EXPECT_EQ(run("warmup convnet@0").code, 2);
  EXPECT_EQ(run("warmup resnet99@4").code, 5) << "no model: the name of a file that is not there";
  EXPECT_EQ(run("warmup").code, 1);
  EXPECT_EQ(run("warmup convnet@4 --dtype f31").code, 1);
  EXPECT_EQ(run("warmup convnet@4 --target z80").code, 2);
  EXPECT_EQ(run("warmup convnet@4", "FUSEJIT_CACHE=off").code, 2);
  EXPECT_EQ(run("warmup convnet@4", "FUSEJIT_CACHE=maybe").code, 2);
  EXPECT_EQ(run("warmup convnet@4", "FUSEJIT_CACHE_DIR=/proc/no").code, 5);
  EXPECT_EQ(run("cache stats", "FUSEJIT_CACHE_DIR=" + hostile).code, 5) << "a file is no folder";
  EXPECT_EQ(run("cache import --trust " + hostile).code, 2);
  EXPECT_EQ(run("cache prune --max-size 5Q").code, 2);
  EXPECT_EQ(run("cache frobnicate").code, 1);
  // A folder that is something else's is left alone.
  std::filesystem::create_directories(cache_.path("foreign/v1/0"));
  std::ofstream(cache_.path("foreign/v1/0/letter.txt")) << "dear reader";
  EXPECT_EQ(run("cache verify --fix --cache " + cache_.path("foreign")).code, 0);
  EXPECT_EQ(run("cache clear --cache " + cache_.path("foreign")).code, 0);
  EXPECT_EQ(contents(cache_.path("foreign/v1/0/letter.txt")), "dear reader");
}

TEST_F(WarmupCommand, TheDoctorSaysWhereTheCacheIs) {
  EXPECT_TRUE(run("doctor").says(cache_.path("cache")));
  EXPECT_TRUE(run("doctor", "FUSEJIT_CACHE=off").says("off: FUSEJIT_CACHE=off"));
  std::ofstream(cache_.path("file")) << "x";
  const WarmupOutcome unusable = run("doctor", "FUSEJIT_CACHE_DIR=" + cache_.path("file"));
  EXPECT_TRUE(unusable.says("cannot be used")) << unusable.output;
  EXPECT_EQ(unusable.code, 0);
  EXPECT_FALSE(std::filesystem::exists(cache_.path("cache"))) << "a question makes nothing";
}

// What a warm-up made ready is what a program of a user's runs: the same trace, the same donations.
TEST_F(WarmupCommand, ATrainingStepRunsFrozenAfterIt) {
  const std::string frozen = "FUSEJIT_FREEZE=1";
  EXPECT_EQ(run("bench convnet@4:train --steps 1", frozen).code, 2);
  ASSERT_EQ(run("warmup convnet@4:train").code, 0);
  const WarmupOutcome ran = run("bench convnet@4:train --steps 2 --json", frozen);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const auto report = nlohmann::json::parse(ran.output);
  EXPECT_EQ(report["kernels_compiled"], 0);
  EXPECT_EQ(report["kernels_loaded"], kernels_of("convnet@4:train"));
  EXPECT_EQ(report["plans"], report["plans_loaded"]);
  for (const char* field : {"median_ms", "min_ms", "max_ms", "peak_bytes", "ledger_bytes", "first_step_ms"})
    EXPECT_GT(report[field].get<double>(), 0) << field;
  const WarmupOutcome other = run("bench convnet@6:train --steps 1", frozen);
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(other.says("differs in shapes")) << other.errors;
}

TEST_F(WarmupCommand, BenchTakesGraphsAndRefusesTheRest) {
  std::ofstream(cache_.path("g.fj"))
      << "graph @g(%x: f32[4,8], %i: i64[4]) {\n  %0 = relu(%x) : f32[4,8]\n  return %0\n}\n";
  const WarmupOutcome ran = run("bench " + cache_.path("g.fj") + " --steps 3 --json");
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_EQ(nlohmann::json::parse(ran.output)["kernels"], 1);
  EXPECT_EQ(run("bench " + cache_.path("nowhere.fj")).code, 5);
  EXPECT_EQ(run("bench convnet@4 --dtype i64").code, 1);
  EXPECT_EQ(run("bench convnet@4 --steps 0").code, 1);
  EXPECT_EQ(run("bench convnet@4 --device cuda:77").code, 6);
}

TEST_F(WarmupCommand, HelpIsWhole) {
  for (const char* command :
       {"", "warmup", "cache", "cache stats", "cache list", "cache explain", "cache verify", "cache prune",
        "cache clear", "cache export", "cache import", "cache merge", "cache path", "doctor", "bench"}) {
    const WarmupOutcome help = run(std::string(command) + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_TRUE(help.says("Usage: ")) << command;
  }
}

TEST_F(WarmupCommand, CodeHasNamesForPerfAndGdb) {
  const std::string bench = " bench convnet@4:train --steps 1";
  EXPECT_EQ(std::system(("FUSEJIT_PERF=1 FUSEJIT_GDB=1 sh -c 'echo $$ >" + cache_.path("pid") + "; exec " + kFusejit +
                         bench + "' >/dev/null")
                            .c_str()),
            0);
  const std::string path = "/tmp/perf-" + std::to_string(std::stoi(contents(cache_.path("pid")))) + ".map";
  std::istringstream lines(contents(path));
  std::map<std::string, std::uint64_t> bytes;  // by name
  std::uint64_t address = 0, size = 0;
  for (std::string name; lines >> std::hex >> address >> size >> name;) bytes[name] = size;
  for (const char* name : {"layer0_conv2d_bn_phase0", "layer0_conv2d_bn_phase1", "layer7_linear"})
    EXPECT_GT(bytes[name], 16u) << name;
  EXPECT_TRUE(std::filesystem::remove(path));
}

}  // namespace
}  // namespace fusejit
