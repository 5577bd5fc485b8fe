// fusejit-dump source --standalone: what it writes is given to compilers as it stands, for every built-in model.
// FUSEJIT_NIGHTLY=1 has NVRTC compile all of them; by day the small ones.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "codegen/cuda/nvrtc.h"
#include "frontend/models/named.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/tools/program.h"

namespace fusejit {
namespace {

namespace fs = std::filesystem;

class Standalone : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kFusejitDump)) GTEST_SKIP() << kFusejitDump << " is not built";
    folder_ = fs::temp_directory_path() / ("fusejit_standalone_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  fs::path path(const std::string& name) const { return folder_ / name; }

  // The exit code of a command of the shell, what it says in $folder/log; -1 for a signal.
  int shell(const std::string& command) const {
    const int status = std::system(("{ " + command + "; } > " + path("log").string() + " 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void expect_done(const std::string& command) const {
    EXPECT_EQ(shell(command), 0) << command << "\n" << testing::bytes_of(path("log")).substr(0, 4000);
  }
  // source --standalone into a file, and its text.
  std::string source(const std::string& arguments, const std::string& file) const {
    const int code = shell("FUSEJIT_STRICT=1 " + kFusejitDump + " source --standalone " + arguments + " > " +
                           path(file).string() + " 2> " + path("error").string());
    EXPECT_EQ(code, 0) << arguments << "\n" << testing::bytes_of(path("error"));
    return testing::bytes_of(path(file));
  }
  fs::path folder_;
};

constexpr const char* kEntry = R"(extern "C" __global__ void \S+(?: \d+\))? (\w+)\()";

// All first groups of what matches, in order.
std::vector<std::string> found(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> list;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) list.push_back((*at)[1]);
  return list;
}

template <class T>
std::set<T> set_of(const std::vector<T>& list) {
  return {list.begin(), list.end()};
}

class StandaloneModel : public Standalone, public ::testing::WithParamInterface<std::string> {};

std::vector<std::string> models_in_both_modes() {
  std::vector<std::string> list;
  for (const models::NamedModel& model : models::named_models()) {
    const std::string train(model.example);
    list.push_back(train);
    list.push_back(train.substr(0, train.find(':')));
  }
  return list;
}

TEST_P(StandaloneModel, CompilesAsItStands) {
  const std::string model = GetParam();
  const std::string text = source("--target cuda:sm_90 " + model, "k.cu");
  const std::vector<std::string> entries = found(text, kEntry);
  const std::vector<std::string> launches = found(text, R"(\n// (\w+)<<<dim3)");
  EXPECT_FALSE(entries.empty());
  EXPECT_EQ(set_of(entries).size(), entries.size()) << "a name twice";
  EXPECT_EQ(launches, entries);
  expect_done(FUSEJIT_CXX_COMPILER " -std=c++17 -ffp-contract=off -fsyntax-only -x c++ " + path("k.cu").string());

  source("--target x86:avx2 " + model, "k.ll");
  if (shell("opt-19 --version") == 0) expect_done("opt-19 -passes=verify -disable-output " + path("k.ll").string());

  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  if (!model.starts_with("convnet") && !testing::is_nightly()) return;
  std::vector<std::string> compiled;
  for (const codegen::cuda::Resources& entry : codegen::cuda::compile(text, 90).entries)
    compiled.push_back(entry.entry);
  EXPECT_EQ(set_of(compiled), set_of(entries));
}
INSTANTIATE_TEST_SUITE_P(All, StandaloneModel, ::testing::ValuesIn(models_in_both_modes()), [](const auto& info) {
  return std::regex_replace(info.param, std::regex("[^A-Za-z0-9]"), "_");
});

// Two layers that differ in their sizes alone have kernels of one name; two equal ones share a kernel.
TEST_F(Standalone, HasEveryDifferentKernelOnce) {
  std::ofstream(path("g.fj")) << "graph @g(%x: f32[64,32], %w: f32[32,32], %v: f32[32,16]) {\n"
                                 "  %0 = matmul(%x, %w) : f32[64,32]\n  %1 = matmul(%0, %w) : f32[64,32]\n"
                                 "  %2 = matmul(%1, %v) : f32[64,16]\n  return %2\n}\n";
  const std::string graph = path("g.fj").string();
  for (const char* target : {"cuda:sm_90", "x86:avx2"}) {
    const bool cuda = std::string(target) == "cuda:sm_90";
    const std::string options = std::string("--target ") + target + " " + graph;
    const std::string all = source(options, "all");
    EXPECT_EQ(source(options, "again"), all);
    const auto symbols_in = [&](const std::string& text) {
      return found(text, cuda ? kEntry : R"(\ndefine void @(\w+)\()");
    };
    const std::vector<std::string> symbols = symbols_in(all);
    EXPECT_EQ(set_of(symbols).size(), symbols.size()) << all;
    EXPECT_TRUE(set_of(symbols).contains(cuda ? "kernel_matmul" : "kernel_matmul_phase_0")) << all;
    EXPECT_TRUE(set_of(symbols).contains(cuda ? "kernel_matmul_2" : "kernel_matmul_2_phase_0")) << all;
    const std::vector<std::string> steps = found(all, "kernel (\\d+) of the plan, ");
    EXPECT_EQ(set_of(steps).size(), steps.size());
    EXPECT_GT(steps.size(), symbols.size()) << "the two equal products";
    // One alone is called the same.
    const std::string last = source("--kernel " + *set_of(steps).rbegin() + " " + options, "last");
    const std::vector<std::string> alone = symbols_in(last);
    ASSERT_EQ(alone.size(), 1u) << last;
    EXPECT_EQ(alone[0], symbols.back());
    EXPECT_NE(alone[0], symbols[0]);
    EXPECT_NE(all.find("%v"), std::string::npos) << "legends";
  }
}

TEST_F(Standalone, SaysHowItIsCompiledAndLaunched) {
  const std::string text = source("--target cuda:sm_90 convnet@8:train", "k.cu");
  const std::string head = text.substr(0, text.find("#if"));
  for (const char* word : {"nvcc -cubin -arch=sm_90 ", "--fmad=false", "--std=c++17", "-ffp-contract=off"})
    EXPECT_NE(head.find(word), std::string::npos) << word << "\n" << head;
  EXPECT_NE(text.find("//   work: "), std::string::npos);
  EXPECT_NE(text.find("//   counter: 4 bytes, zero before the first run"), std::string::npos);
  // As a reader would do it.
  std::string nvcc = shell("command -v nvcc") == 0 ? "nvcc" : "/usr/local/cuda/bin/nvcc";
  if (nvcc != "nvcc" && !fs::exists(nvcc)) GTEST_SKIP() << "no nvcc here";
  const std::vector<std::string> lines = found(head, "//   nvcc ([^\n]*)\n");
  ASSERT_EQ(lines.size(), 1u);
  expect_done("cd " + folder_.string() + " && " + nvcc + " " + lines[0]);
  EXPECT_EQ(testing::bytes_of(path("k.cubin")).substr(1, 3), "ELF");
  EXPECT_EQ(testing::bytes_of(path("log")).find("warning"), std::string::npos) << testing::bytes_of(path("log"));
}

// Behind something that defines what a block and its threads do, the text runs.
TEST_F(Standalone, CanStandBehindADefinitionOfBlocks) {
  const std::string shim = std::string(FUSEJIT_SOURCE_DIR) + "/tests/support/cuda_shim";
  source("--target cuda:sm_90 convnet@16", "k.cu");
  expect_done(FUSEJIT_CXX_COMPILER " -std=c++17 -ffp-contract=off -fPIC -w -shared -I " + shim + " -include " + shim +
              "/shim.inc -x c++ " + path("k.cu").string() + " -Wl,--no-undefined -o " + path("k.so").string());
}

TEST_F(Standalone, LlvmMakesAnObjectOfIt) {
  source("--target x86:avx2 convnet@16:train", "k.ll");
  if (shell("llc-19 --version") != 0) GTEST_SKIP() << "no llc-19 here";
  const std::vector<std::string> lines = found(testing::bytes_of(path("k.ll")), "\n;   llc ([^\n]*)\n");
  ASSERT_EQ(lines.size(), 1u);
  expect_done("cd " + folder_.string() + " && llc-19 " + lines[0]);
  EXPECT_NE(testing::bytes_of(path("k.o")).find("kernel_layer0_conv2d_bn_phase_1"), std::string::npos);
}

TEST_F(Standalone, MistakesHaveTheirCodeAndSentence) {
  std::ofstream(path("g.fj")) << "graph @g(%x: f32[4]) {\n  %0 = relu(%x) : f32[4]\n  return %0\n}\n";
  std::ofstream(path("bad.fj")) << "graph @g(%x: f32[4]) {\n  \x01";
  const struct {
    const char* arguments;
    int code;
    const char* sentence;
  } cases[] = {
      {"source --standalone --stage kernel g.fj", 1, "--standalone: stage kernel is nothing that a compiler takes"},
      {"source --standalone --stage graph g.fj", 1, "--standalone: stage graph "},
      {"source --standalone --stage cuda --target x86:avx2 g.fj", 2, "has no stage cuda; it has llvm"},
      {"source --standalone --stage llvm --target cuda:sm_90 g.fj", 2, "has no stage llvm; it has cuda"},
      {"source --standalone --kernel 7 --target cuda:sm_90 g.fj", 2, "has no kernel 7"},
      {"source --standalone bad.fj", 2, "bad.fj:2:3: error: "},
      {"source --standalone none.fj", 5, "cannot be opened"},
      {"asm --standalone g.fj", 1, "--standalone"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(shell("cd " + folder_.string() + " && " + kFusejitDump + " " + c.arguments), c.code) << c.arguments;
    EXPECT_NE(testing::bytes_of(path("log")).find(c.sentence), std::string::npos) << c.arguments << "\n"
                                                                                  << testing::bytes_of(path("log"));
  }
}

}  // namespace
}  // namespace fusejit
