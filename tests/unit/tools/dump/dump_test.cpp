// fusejit-dump list, show, why, source and asm as a user meets them: text, JSON, exit codes, the first line of stderr.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "codegen/cuda/nvrtc.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/tools/program.h"

namespace fusejit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Outcome {
  int code = -1;  // -1: a signal
  std::string out, error;
};

class Dump : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kFusejitDump)) GTEST_SKIP() << kFusejitDump << " is not built";
    folder_ = fs::temp_directory_path() / ("fusejit_dump_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    write("g.fj",
          "graph @g(%x: f32[64,32], %w: f32[32,16]) {\n  %0 = relu(%x) : f32[64,32]\n"
          "  %1 = matmul(%0, %w) : f32[64,16]\n  %2 = exp(%1) : f32[64,16]\n  return %2\n}\n");
    write("two.fj",
          "graph @two(%x: f32[64,32], %v: f32[32,32], %w: f32[32,16]) {\n  %0 = matmul(%x, %v) : f32[64,32]\n"
          "  %1 = relu(%0) : f32[64,32]\n  %2 = matmul(%1, %w) : f32[64,16]\n  return %2\n}\n");
    write("bad.fj", "graph @g(%x: f32[2]) {\n  %0 = relu(%x, %x) : f32[2]\n  return %0\n}\n");
    write("int.fj", "graph @g(%x: i32[]) {\n  return %x\n}\n");
    write("empty.fj", "");
    write("no_rows.fj", "graph @g(%x: f32[0,3]) {\n  %0 = relu(%x) : f32[0,3]\n  return %0\n}\n");
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  // Words beginning with '$' are files of the test's folder.
  Outcome dump(const std::string& arguments, const std::string& out = "") const {
    std::istringstream words(arguments);
    std::string command = kFusejitDump, word;
    while (words >> word) command += " '" + (word[0] == '$' ? (folder_ / word.substr(1)).string() : word) + "'";
    const fs::path stdout_file = out.empty() ? folder_ / "stdout" : fs::path(out);
    command += " > " + stdout_file.string() + " 2> " + (folder_ / "stderr").string();
    const int status = std::system(command.c_str());
    Outcome outcome;
    if (WIFEXITED(status) && WEXITSTATUS(status) < 126) outcome.code = WEXITSTATUS(status);
    if (out.empty()) outcome.out = testing::bytes_of(stdout_file);
    outcome.error = testing::bytes_of(folder_ / "stderr");
    return outcome;
  }
  std::string text(const std::string& arguments) const {
    const Outcome outcome = dump(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.error;
    EXPECT_EQ(outcome.error, "") << arguments;
    EXPECT_FALSE(outcome.out.empty()) << arguments;
    return outcome.out;
  }
  Json json(const std::string& arguments) const {
    const Json json = Json::parse(text(arguments + " --format json --target x86:avx2"), nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << arguments;
    return json;
  }

  fs::path folder_;
};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_F(Dump, ListNamesModelsAndKernels) {
  EXPECT_TRUE(contains(text("list"), "resnet50@"));
  const Json models = json("list")["models"];
  ASSERT_GE(models.size(), 3u);
  EXPECT_EQ(models[0]["name"], "convnet");
  EXPECT_TRUE(contains(text("list $g.fj"), "matmul"));
  EXPECT_EQ(json("list $g.fj")["kernels"].size(), json("show $g.fj")["kernels"].size());
}

TEST_F(Dump, ShowAddsUp) {
  const Json shown = json("show $g.fj");
  // x and w are read, the result is written; the relu is computed while x is copied to a panel.
  EXPECT_EQ(shown["bound_bytes"], 4 * (64 * 32 + 32 * 16 + 64 * 16));
  std::int64_t ledger = 0;
  for (const Json& kernel : shown["kernels"]) {
    ledger += kernel["read_bytes"].get<std::int64_t>() + kernel["written_bytes"].get<std::int64_t>();
    EXPECT_FALSE(kernel["name"].get<std::string>().empty());
    EXPECT_FALSE(kernel["ops"].empty());
    EXPECT_FALSE(kernel["tasks"].empty());
  }
  EXPECT_EQ(shown["ledger_bytes"], ledger);
  EXPECT_GE(ledger, shown["bound_bytes"].get<std::int64_t>());
  EXPECT_EQ(shown["target"].get<std::string>().substr(0, 8), "x86:avx2");
  const std::string table = text("show $g.fj");
  EXPECT_TRUE(contains(table, "exp") && contains(table, "ledger") && contains(table, "bound")) << table;
}

TEST_F(Dump, RulesAndGradChangeThePlan) {
  const std::size_t fused = json("show $g.fj")["kernels"].size();
  EXPECT_GT(json("show $g.fj --rules none")["kernels"].size(), fused);
  EXPECT_GT(json("show $g.fj --grad x,w")["kernels"].size(), fused);
}

TEST_F(Dump, WhyGivesReasonsLargestFirst) {
  const Json why = json("why $two.fj");
  ASSERT_FALSE(why["refusals"].empty());
  EXPECT_EQ(why["refusals"][0]["code"], "anchor_operand");
  std::int64_t last = INT64_MAX;
  for (const Json& refusal : why["refusals"]) {
    EXPECT_LE(refusal["bytes"].get<std::int64_t>(), last);
    last = refusal["bytes"];
  }
  EXPECT_EQ(why["by_code"]["anchor_operand"]["pairs"], 1);
  EXPECT_TRUE(contains(text("why $two.fj"), "reads this operand many times"));
  const Json kinds = json("why --summary $two.fj")["kinds"];
  std::size_t pairs = 0;
  for (const Json& kind : kinds) {
    pairs += kind["pairs"].get<std::size_t>();
    EXPECT_GE(kind["bytes"], kind["largest"]["bytes"]);
    EXPECT_LE(kind["bytes"], kinds[0]["bytes"]) << "the first moves most";
  }
  EXPECT_EQ(pairs, why["refusals"].size());
  EXPECT_TRUE(contains(text("why --summary $two.fj"), "1 pairs  anchor_operand"));
}

TEST_F(Dump, SourceHasEveryStage) {
  EXPECT_EQ(text("source --stage graph $g.fj"), testing::bytes_of(folder_ / "g.fj"));
  EXPECT_TRUE(contains(text("source --stage optimised $g.fj"), "matmul("));
  EXPECT_TRUE(contains(text("source --stage plan $g.fj"), "plan @g"));
  EXPECT_TRUE(contains(text("source --stage kernel $g.fj"), "kernel @"));
  EXPECT_EQ(text("source $g.fj"), text("source --stage kernel $g.fj"));
  EXPECT_EQ(json("source --stage graph $g.fj")["text"], testing::bytes_of(folder_ / "g.fj"));
  const Json kernels = json("source --stage kernel $g.fj")["kernels"];
  ASSERT_GE(kernels.size(), 2u);
  const std::string name = kernels[1]["name"];
  EXPECT_EQ(text("source --stage kernel --target x86:avx2 --kernel 1 $g.fj"), kernels[1]["text"]);
  EXPECT_EQ(json("source --stage kernel --kernel " + name + " $g.fj")["kernels"][0]["text"], kernels[1]["text"]);
}

TEST_F(Dump, MachineCodeHasTexts) {
  const Outcome llvm = dump("source --stage llvm --target x86:avx2 --kernel 0 $g.fj");
  if (llvm.code == 4 && contains(llvm.error, "no x86 code generator")) GTEST_SKIP() << llvm.error;
  EXPECT_EQ(llvm.code, 0) << llvm.error;
  EXPECT_TRUE(contains(llvm.out, "define ")) << llvm.out;
  EXPECT_TRUE(contains(text("asm --kernel 1 --target x86:avx2 $g.fj"), "vmaxps"));
  EXPECT_TRUE(contains(json("asm --kernel 1 $g.fj")["kernels"][0]["text"].get<std::string>(), "vmaxps"));
}

TEST_F(Dump, CudaCanBeReadAtEveryStage) {
  const std::string cuda = " --target cuda:sm_90 $g.fj";
  EXPECT_TRUE(contains(text("source --stage cuda" + cuda), "extern \"C\" __global__"));
  EXPECT_EQ(text("source" + cuda), text("source --stage cuda" + cuda));
  EXPECT_TRUE(contains(text("source" + cuda), "//   reads   %p0  = "));
  // Buffers are called by what they are, also in what is compiled alone.
  for (const char* command : {"source", "source --standalone"}) {
    const std::string named = text(command + cuda);
    for (const char* part : {" = %x  (x)\n", "const float* __restrict__ x,", "float* __restrict__ y) {"})
      EXPECT_TRUE(contains(named, part)) << part << named;
  }
  EXPECT_EQ(dump("source --stage llvm" + cuda).code, 2);
  EXPECT_EQ(dump("source --stage cuda $g.fj").code, 2);
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << codegen::cuda::nvrtc().why_not;
  EXPECT_TRUE(contains(text("asm" + cuda), ".visible .entry"));
  const auto show = [&](const std::string& more) { return Json::parse(text("show --format json" + more + cuda)); };
  const Json shown = show("");
  for (const Json& kernel : shown["kernels"]) {
    EXPECT_GT(kernel["registers"].get<int>(), 0);
    EXPECT_EQ(kernel["spill_bytes"].get<int>(), 0);
  }
  EXPECT_FALSE(show(" --no-compile")["kernels"][0].contains("registers"));
}

TEST_F(Dump, LibraryStepsSayWhichEnginesDoThem) {
  write("conv.fj",
        "graph @conv(%x: f16[8,64,28,28]:nhwc, %w: f16[64,64,3,3]:nhwc, %b: f16[64]) {\n"
        "  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f16[8,64,28,28]:nhwc\n"
        "  %1 = bias_add(%0, %b) : f16[8,64,28,28]:nhwc\n  %2 = silu(%1) : f16[8,64,28,28]:nhwc\n  return %2\n}\n");
  const std::string with = "--target cuda:sm_90,cudnn=2", without = "--target cuda:sm_90,cudnn=1";
  const Outcome one = dump("show $conv.fj --no-compile " + with);
  EXPECT_TRUE(contains(one.out, "conv2d_bias_add_silu (cudnn, compiled at run time)")) << one.out;
  const Json json = Json::parse(dump("show $conv.fj --no-compile --format json " + with).out);
  ASSERT_EQ(json["kernels"].size(), 1u);
  EXPECT_EQ(json["kernels"][0]["engine"], "runtime-compiled");
  const Outcome two = dump("show $conv.fj --no-compile " + without);
  EXPECT_TRUE(contains(two.out, "conv2d (cudnn) ")) << two.out;
  EXPECT_FALSE(contains(two.out, "run time")) << two.out;
  const Outcome why = dump("why $conv.fj " + without);
  EXPECT_TRUE(contains(why.out, "only engines that cuDNN compiles at run time do forward f16:nhwc")) << why.out;

  // And as text: the call in front of the kernel that says what it means.
  const char* lines[] = {"done by one call of cuDNN (runtime-compiled engine); ",
                         "  forward f16:nhwc x=[8,64,28,28] w=[64,64,3,3] stride=[1,1] padding=[1,1,1,1] "
                         "dilation=[1,1] groups=1 bias silu\n",
                         "    %0 = conv2d(%p0, %p1) {stride=[1,1], ",
                         "  reads   x            = %x       f16[8,64,28,28]:nhwc, strides [50176,1,1792,64]\n",
                         "  reads   bias         = %b       f16[1,64,1,1]:nhwc, strides [64,1,64,64]\n",
                         "  writes  y            = "};
  for (const char* stage : {"--stage cuda ", "--stage kernel ", "--standalone "}) {
    const std::string source = text(std::string("source $conv.fj ") + stage + with);
    for (const char* line : lines) EXPECT_TRUE(contains(source, line)) << line << source;
    EXPECT_LT(source.find("done by one call"), source.find("kernel @conv2d_bias_add_silu("));
  }
  const Json kernels = Json::parse(text("source $conv.fj --format json " + without))["kernels"];
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0]["call"]["engine"], "precompiled");
  EXPECT_EQ(kernels[0]["call"]["tensors"][1]["role"], "w");
  EXPECT_EQ(kernels[0]["call"]["tensors"][1]["strides"], Json({576, 1, 192, 64}));
  EXPECT_TRUE(kernels[0]["call"]["tensors"][2]["written"].get<bool>());
  EXPECT_TRUE(kernels[1]["call"].is_null());
}

// A call with a mask and sums has several results, and reads the mask as bits.
TEST_F(Dump, CallsSayAllThatTheyWrite) {
  write("sums.fj",
        "graph @sums(%x: bf16[2,16,8,8]:nhwc, %w: bf16[16,16,3,3], %s: f32[16], %t: f32[16], %v: bf16[32,16,1,1]) {\n"
        "  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : bf16[2,16,8,8]:nhwc\n"
        "  %1 = batch_norm_train(%0, %s, %t) : bf16[2,16,8,8]:nhwc\n  %2 = relu(%1) : bf16[2,16,8,8]:nhwc\n"
        "  %3 = conv2d(%2, %v) : bf16[2,32,8,8]:nhwc\n  return %3\n}\n");
  const std::string source = text("source $sums.fj --grad w,s,t,v --target cuda:sm_90,cudnn=2 --stage kernel");
  for (const char* line : {"mask=bits sums=gradient\n", "  b1[2,16,8,8]:nhwc, strides [1024,1,128,16]\n",
                           "  writes  x ", "  writes  sum ", "  writes  second_sum "})
    EXPECT_TRUE(contains(source, line)) << line << source;
}

TEST_F(Dump, ModelsAreSources) {
  const Json answer = json("show convnet@4"), step = json("show convnet@4:train");
  EXPECT_GT(step["kernels"].size(), answer["kernels"].size());
  EXPECT_GT(step["bound_bytes"].get<std::int64_t>(), 3 * 4 * 1199882);  // parameters and Adadelta's state twice
  const auto bytes = [](const Json& j) { return j["bound_bytes"].get<std::int64_t>(); };
  EXPECT_EQ(bytes(json("show convnet@4 --dtype bf16")) * 2, bytes(answer));
}

TEST_F(Dump, SaysWhatTheUserWrote) {
  const std::string graph = text("source --stage graph convnet@4:train");
  for (const char* written : {"  ; 2 batch_norm_train\n", "  ; 0 conv2d weight grad\n", "  ; 10 adadelta\n"})
    EXPECT_TRUE(contains(graph, written)) << written << graph;
  write("said.fj", graph);
  EXPECT_FALSE(contains(text("source --stage graph $said.fj"), ";")) << "it is a text like any other";
  const std::string kernels = text("list convnet@4:train --target x86:avx2");
  EXPECT_TRUE(contains(kernels, " layer0_conv2d_weight_grad_adadelta ")) << kernels;
  EXPECT_TRUE(contains(kernels, "10 linear, 11 log_softmax\n")) << kernels;
  const Json step = json("source --kernel layer0_conv2d_bn convnet@4:train")["kernels"];
  ASSERT_EQ(step.size(), 1u);
  EXPECT_TRUE(step[0]["text"].get<std::string>().starts_with("; layer0_conv2d_bn: ")) << step[0]["text"];
}

struct Failure {
  const char* arguments;
  int code;
  const char* error;  // part of the first line of stderr
};

TEST_F(Dump, EveryMistakeHasItsCodeAndSentence) {
  const Failure cases[] = {
      {"", 1, "subcommand is required"},
      {"show", 1, "source is required"},
      {"frobnicate $g.fj", 1, "there is no subcommand frobnicate"},
      {"show $g.fj --nonsense", 1, "--nonsense"},
      {"show $g.fj --format xml", 1, "--format"},
      {"show $g.fj --rules some", 1, "--rules"},
      {"show $g.fj --target vax", 1, "--target vax: "},
      {"show $g.fj --dtype bf16", 1, "--dtype bf16: the dtypes of "},
      {"show convnet@4 --dtype i32", 1, "--dtype"},
      {"show $g.fj --grad x,", 1, "--grad x,: a name is empty"},
      {"source --stage ptx $g.fj", 1, "--stage: ptx not in {"},
      {"source --stage plan --kernel 1 $g.fj", 1, "--kernel: stage plan is not a kernel's"},
      {"show $bad.fj", 2, "bad.fj:2:8: error: relu: takes 1 operand, 2 were given"},
      {"why $empty.fj", 2, "empty.fj:1:1: error: "},
      {"show $g.fj --grad y", 2, "the graph has no parameter named y"},
      {"show $int.fj --grad x", 2, "only floating-point values have a gradient"},
      {"asm $g.fj --kernel 99", 2, "has no kernel 99"},
      {"show convnet@0", 2, "the shape after '@' must be numbers like 16x3x224x224"},
      {"show convnet@4x1x9", 2, "convnet takes a batch, such as @256, or Nx1x28x28"},
      {"show convnet@4:fast", 2, "after ':' only 'train', 'autocast=bf16' and 'autocast=f16' are known"},
      {"show resnet50@99999999999x3x224x224", 2, "elements"},
      {"show $no_rows.fj", 4, "%x is empty (f32[0,3])"},
      {"show $missing.fj", 5, "cannot be opened: No such file or directory"},
      {"list lenet@4", 5, "cannot be opened: No such file or directory"},
  };
  for (const Failure& c : cases) {
    for (const char* format : {"", " --format json"}) {
      if (std::string_view(c.arguments).find("--format") != std::string_view::npos) continue;
      if (c.arguments[0] == '\0' && *format) continue;
      const Outcome outcome = dump(c.arguments + std::string(format));
      const std::string first = outcome.error.substr(0, outcome.error.find('\n'));
      EXPECT_EQ(outcome.code, c.code) << c.arguments << "\n" << outcome.error;
      EXPECT_TRUE(contains(first, c.error)) << c.arguments << "\n" << outcome.error;
      EXPECT_TRUE(contains(first, ": error: ")) << c.arguments << "\n" << outcome.error;
      EXPECT_EQ(outcome.out, "") << c.arguments;
    }
  }
  EXPECT_EQ(dump("show $g.fj --format xml").code, 1);
}

TEST_F(Dump, AFullDiskIsSaid) {
  if (!fs::exists("/dev/full")) GTEST_SKIP();
  const Outcome outcome = dump("show $g.fj", "/dev/full");
  EXPECT_EQ(outcome.code, 5);
  EXPECT_TRUE(contains(outcome.error, "standard output cannot be written")) << outcome.error;
}

}  // namespace
}  // namespace fusejit
