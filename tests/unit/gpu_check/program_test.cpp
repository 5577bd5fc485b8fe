// fusejit-gpu-check as it is met on a machine without a GPU, its processes, its report, and its references.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fusejit/runtime.h"
#include "ir/interp.h"
#include "scheduler/make_plan.h"
#include "tests/gpu_check/children.h"
#include "tests/gpu_check/cudnn_run.h"
#include "tests/gpu_check/model.h"

namespace fusejit::gpu_check {
namespace {

const std::string kProgram = std::string(FUSEJIT_BINARY_DIR) + "/bin/fusejit-gpu-check";

struct Outcome {
  int code = -1;
  std::string output;
};
Outcome run_command(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return outcome;
  char piece[4096];
  for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) outcome.output.append(piece, n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

constexpr const char* kNothing =
    "FUSEJIT_CUDA_DRIVER=/nowhere/libcuda.so FUSEJIT_NVRTC=/nowhere/libnvrtc.so FUSEJIT_CUDNN=/nowhere/libcudnn.so ";

TEST(GpuCheckProgram, ExplainsItselfWithoutAGpu) {
  const Outcome outcome = run_command(kNothing + kProgram);
  EXPECT_EQ(outcome.code, 6) << outcome.output;
  for (const char* part : {"/nowhere/libcuda.so", "/nowhere/libnvrtc.so", "/nowhere/libcudnn.so", "nvidia-cuda-nvrtc",
                           "nothing to check here"}) {
    EXPECT_NE(outcome.output.find(part), std::string::npos) << part << "\n" << outcome.output;
  }
}

TEST(GpuCheckProgram, RefusesWhatCannotBeMeant) {
  for (const char* arguments : {"--only nosuch", "--minutes 0", "--nosuch", "--child nosuch"}) {
    const Outcome outcome = run_command(kProgram + " " + arguments);
    EXPECT_EQ(outcome.code, 1) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find("fusejit-gpu-check: error: "), std::string::npos) << outcome.output;
  }
  EXPECT_EQ(run_command(kProgram + " --list").code, 0);
  EXPECT_EQ(run_command(kProgram + " --carry /dev/null/folder").code, 5);
}

TEST(GpuCheckProgram, ASectionInAChildReportsWhatItLacks) {
  setenv("FUSEJIT_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
  const Json json = run_section_in_child(kProgram, *find_section("training"), {}, 60);
  unsetenv("FUSEJIT_CUDA_DRIVER");
  EXPECT_EQ(json["state"], "failed");
  EXPECT_NE(json["sentence"].get<std::string>().find("/nowhere/libcuda.so"), std::string::npos) << text(json);
}

// From one end to the other: every section in its process, one JSON, one table.
TEST(GpuCheckProgram, WithoutAGpuEverySectionSaysWhatItLacks) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("fusejit-gpu-check-test-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const Outcome outcome = run_command(fmt::format("{}{} --anyway --minutes 0.1 --json {}/r.json --table {}/r.txt",
                                                  kNothing, kProgram, folder.string(), folder.string()));
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  std::ifstream file(folder / "r.json");
  const Json json = Json::parse(file);
  ASSERT_EQ(json["sections"].size(), sections().size());
  for (std::size_t s = 0; s < sections().size(); ++s) {
    const Json& section = json["sections"][s];
    EXPECT_EQ(section["section"], sections()[s].name);
    EXPECT_NE(section["state"], "passed") << text(section);
    EXPECT_NE(section["sentence"], "") << text(section);
    EXPECT_NE(outcome.output.find(text(section)), std::string::npos) << text(section);
  }
  std::ifstream table(folder / "r.txt");
  std::stringstream printed;
  printed << table.rdbuf();
  EXPECT_EQ(outcome.output.find(printed.str()), 0u) << "what is printed is kept";
  std::filesystem::remove_all(folder);
}

TEST(GpuCheckChildren, OneThatDiesIsAFailedSection) {
  struct Case {
    const char* program;
    const char* sentence;
  };
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::string script = folder / ("fusejit-child-" + std::to_string(getpid()));
  for (const Case& c : {Case{"kill -SEGV $$", "signal 11"},
                        {"exit 3", "exit code 3"},
                        {"sleep 20", "stopped after 1 s"},
                        {"echo a word; exit 1", "the last it said: a word"},
                        {"true", "wrote no report"},
                        {"echo '{\"section\":\"machine\",\"state\":\"running\"}' > $4", "wrote no report"},
                        {"echo 7 > $4", "wrote no report"}}) {
    std::ofstream(script) << "#!/bin/sh\n" << c.program << "\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    const Json json = run_section_in_child(script, *find_section("machine"), {}, 1);
    EXPECT_EQ(json["state"], "failed") << c.program;
    EXPECT_NE(json["sentence"].get<std::string>().find(c.sentence), std::string::npos) << c.program << json.dump();
    text(json);
  }
  std::filesystem::remove(script);
}

TEST(GpuCheckReport, IsReadable) {
  Report report("machine");
  report.check("good", "");
  report.check("bad", "it is not");
  report.row({{"kernel", "neg"}, {"ms", 1.25}, {"GB/s", 1200.0}});
  report.row({{"kernel", "a longer name"}, {"launches", 2}});
  report.say("a sentence");
  report.finish("failed", "1 checks failed", 2);
  EXPECT_EQ(text(report.json()),
            "== machine: failed: 1 checks failed (2.0 s)\n"
            "  1 of 2 checks passed\n"
            "  FAILED bad: it is not\n"
            "  kernel        ms    GB/s launches\n"
            "  neg           1.250 1200\n"
            "  a longer name                   2\n"
            "  a sentence\n\n");
}

// The references of cuDNN's calls against the graph interpreter.
TEST(GpuCheckReference, MeansWhatTheOpsMean) {
  cudnn::ConvolutionCall call;
  call.x = Shape{2, 4, 7, 6}, call.w = Shape{6, 2, 3, 2};
  call.stride = {2, 1}, call.padding = {1, 0, 2, 1}, call.dilation = {1, 2}, call.groups = 2;
  const Type x{DType::f32, call.x, Layout::standard}, w{DType::f32, call.w, Layout::standard},
      y{DType::f32, call.y(), Layout::standard};
  const std::vector<cudnn::TensorUse> all = {{cudnn::Role::x, x}, {cudnn::Role::w, w}, {cudnn::Role::y, y}};
  const std::string attrs = "stride=[2,1], padding=[1,0,2,1], dilation=[1,2], groups=2";
  struct Case {
    cudnn::Direction direction;
    cudnn::Role first, second, result;
    std::string op;
  };
  for (const Case& c :
       {Case{cudnn::Direction::forward, cudnn::Role::x, cudnn::Role::w, cudnn::Role::y, "conv2d(%a, %b) {" + attrs},
        Case{cudnn::Direction::input_gradient, cudnn::Role::y, cudnn::Role::w, cudnn::Role::x,
             "conv2d_input_grad(%a, %b) {input_size=[7,6], " + attrs},
        Case{cudnn::Direction::weight_gradient, cudnn::Role::x, cudnn::Role::y, cudnn::Role::w,
             "conv2d_weight_grad(%a, %b) {kernel_size=[3,2], " + attrs}}) {
    call.direction = c.direction;
    const Tensors inputs = made_up(call, all, 5), results = meant(call, inputs);
    const auto type_of = [&](cudnn::Role role) { return role == cudnn::Role::x ? x : role == cudnn::Role::w ? w : y; };
    const ir::Graph graph =
        ir::parse_graph(fmt::format("graph @g(%a: {}, %b: {}) {{ %0 = {}}} : {} return %0 }}", type_of(c.first).str(),
                                    type_of(c.second).str(), c.op, type_of(c.result).str()));
    std::vector<ir::Array> arguments;
    for (const cudnn::Role role : {c.first, c.second}) {
      ir::Array& array = arguments.emplace_back(type_of(role));
      const std::vector<std::byte> bytes = to_bytes(type_of(role), inputs.at(role));
      std::copy(bytes.begin(), bytes.end(), array.bytes.begin());
    }
    const ir::Array want = ir::interpret(graph, arguments)[0];
    const std::vector<double>& got = results.at(c.result);
    for (std::int64_t i = 0; i < want.type.elements(); ++i) {
      EXPECT_NEAR(got[static_cast<std::size_t>(i)], ir::load_element(want.bytes.data(), DType::f32, i).as_double(),
                  1e-4)
          << c.op << " element " << i;
    }
  }
}

TEST(GpuCheckReference, BytesComeBackInEveryLayout) {
  for (const DType dtype : {DType::f32, DType::f16, DType::b1}) {
    for (const Layout layout : {Layout::standard, Layout::nhwc}) {
      const Type type{dtype, Shape{2, 8, 3, 2}, layout};
      std::vector<double> values;
      for (std::int64_t i = 0; i < type.elements(); ++i) {
        values.push_back(dtype == DType::b1 ? static_cast<double>(i % 3 == 0) : static_cast<double>(i) / 4);
      }
      EXPECT_EQ(from_bytes(type, to_bytes(type, values)), values) << type.str();
    }
  }
}

// Every call that will be executed can be described, filled and computed, and has a plan for a described device.
TEST(GpuCheckReference, EveryCheckedCallHasInputsAndResults) {
  const auto library = cudnn::Library::load();
  if (!library->available()) GTEST_SKIP() << library->why_not();
  const cudnn::Descriptor device = cudnn::describe_device(library, cudnn::described_device("H100"));
  int planned = 0;
  for (const NamedCall& named : checked_calls()) {
    if (named.compiled) continue;  // seconds each
    const cudnn::Plan plan = plan_of(library, device, named);
    const Tensors inputs = made_up(named.call, plan.tensors, 1), results = meant(named.call, inputs);
    for (const cudnn::TensorUse& tensor : plan.tensors) {
      const Tensors& holder = is_read(named.call, tensor.role) ? inputs : results;
      ASSERT_TRUE(holder.count(tensor.role)) << named.name << " " << cudnn::name(tensor.role);
      EXPECT_EQ(static_cast<std::int64_t>(holder.at(tensor.role).size()), tensor.type.elements()) << named.name;
      for (const double value : holder.at(tensor.role)) ASSERT_TRUE(std::isfinite(value)) << named.name;
    }
    ++planned;
  }
  EXPECT_GT(planned, 25);
}

// Steps that are timed in other dtypes can be planned and written as CUDA.
TEST(GpuCheckSteps, ModelsOfEveryDtypeHaveKernels) {
  set_options({.engine = "graph_interpreter"});  // a build without the x86 generator makes parameters so
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const models::ModelGraph model = models::model_graph("resnet50@2x3x32x32:train", dtype);
    EXPECT_EQ(model.graph.parameters()[0].type().dtype, dtype);
    const scheduler::Plan plan = scheduler::make_plan(
        model.graph,
        {Target::parse("cuda:sm_90,cudnn=1"), scheduler::Rules::all, {model.donated.begin(), model.donated.end()}});
    int library = 0;
    for (const scheduler::PlanStep& step : plan.steps) {
      library += step.library.has_value();
      EXPECT_FALSE(codegen::cuda::emit(*step.kernel).text.empty());
    }
    EXPECT_GT(library, 100) << name(dtype) << ": convolutions are not calls of a library";
  }
  set_options({});
}

}  // namespace
}  // namespace fusejit::gpu_check
