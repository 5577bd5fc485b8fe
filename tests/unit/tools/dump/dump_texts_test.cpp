// The worked examples of the texts that fusejit was commissioned with, as committed graph and array files, through
// fusejit-dump run: on both interpreters and compiled for three instruction sets.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "frontend/io/npz.h"
#include "ir/base/scalar.h"
#include "tests/unit/tools/program.h"

namespace fusejit {
namespace {

namespace fs = std::filesystem;

const std::string kTests = std::string(FUSEJIT_SOURCE_DIR) + "/tests/";

struct Way {
  const char* name;
  const char* options;
};
constexpr Way kWays[] = {
    {"GraphInterpreter", "--engine graph"},
    {"KernelsForAvx512", "--engine kernel --target x86:avx512"},
    {"KernelsForAvx2", "--engine kernel --target x86:avx2"},
    {"KernelsForV2", "--engine kernel --target x86:v2"},
    {"CompiledForAvx512", "--engine compiled --target x86:avx512"},
    {"CompiledForAvx2", "--engine compiled --target x86:avx2"},
    {"CompiledForV2", "--engine compiled --target x86:v2"},
    {"CompiledUnfused", "--engine compiled --rules none"},
};

struct Example {
  const char* files;  // without .fj, .in.npz, .out.npz
  const char* grad;   // "": not differentiated
  const char* tolerance;
};
constexpr const char* kExact = "--rtol 0 --atol 0";
constexpr const char* kRounded = "--rtol 4e-5 --atol 1e-4";
constexpr Example kExamples[] = {
    {"texts/conv_bias_relu", "x,w,b", kExact},
    {"texts/conv_input_gradient", "x", kExact},
    {"texts/same_convolution_nchw", "x,w,b", kExact},
    {"texts/same_convolution_nhwc", "x,w,b", kExact},
    {"reference/blocks/conv_3x3_by_2x2", "", kExact},
    {"reference/blocks/conv_gradients_3x3_by_2x2", "", kExact},
    {"reference/blocks/conv_bias_relu_same_2x2_nchw", "x,w,b", kRounded},
    {"reference/blocks/conv_bias_relu_same_2x2_nhwc", "x,w,b", kRounded},
    {"reference/blocks/batch_norm_add_relu_nchw", "x,z,weight,bias", kRounded},
    {"reference/blocks/batch_norm_add_relu_nhwc", "x,z,weight,bias", kRounded},
    {"reference/blocks/conv_batch_norm_layer", "x,w", kRounded},
};

class DumpTexts : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!fs::exists(kFusejitDump)) GTEST_SKIP() << kFusejitDump << " is not built";
    errors_ = fs::temp_directory_path() / ("fusejit_dump_texts_" + std::to_string(getpid()));
  }
  void TearDown() override { fs::remove(errors_); }

  // The exit code; -1 for a signal.
  int run(const std::string& arguments) const {
    const std::string command =
        "FUSEJIT_STRICT=1 " + kFusejitDump + " run " + arguments + " > /dev/null 2> " + errors_.string();
    const int status = std::system(command.c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) < 126 ? WEXITSTATUS(status) : -1;
  }
  std::string errors() const {
    std::ifstream in(errors_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path errors_;
};

TEST_P(DumpTexts, AreAsTheTextsSay) {
  for (const Example& e : kExamples) {
    const std::string files = kTests + e.files;
    std::string arguments = files + ".fj --inputs " + files + ".in.npz --check " + files + ".out.npz " + e.tolerance +
                            " " + GetParam().options;
    if (*e.grad) arguments += std::string(" --grad ") + e.grad;
    const int code = run(arguments);
    if (code == 6 && errors().find("this processor cannot run") != std::string::npos) GTEST_SKIP() << errors();
    EXPECT_EQ(code, 0) << e.files << "\n" << errors();
  }
}

// What --check compares with is what stands in the texts, and a wrong number would be seen.
TEST_P(DumpTexts, AreTheNumbersOfTheTexts) {
  const struct {
    const char *file, *array;
    std::vector<float> values;
  } cases[] = {
      {"conv_bias_relu", "out0", {8, 12, 20, 24}},
      {"conv_bias_relu", "d_w", {8, 12, 20, 24}},
      {"conv_bias_relu", "d_b", {4}},
      {"conv_input_gradient", "d_x", {0, 1, 1, 2, 6, 4, 2, 5, 3}},
  };
  for (const auto& c : cases) {
    const auto arrays =
        io::read_npz(kTests + "texts/" + c.file + ".out.npz", [&](std::string_view name) { return name == c.array; });
    ASSERT_EQ(arrays.size(), 1u) << c.array;
    ASSERT_EQ(arrays[0].shape.elements(), static_cast<std::int64_t>(c.values.size()));
    for (std::size_t i = 0; i < c.values.size(); ++i) {
      EXPECT_EQ(ir::load_element(arrays[0].bytes.data(), DType::f32, static_cast<std::int64_t>(i)).f32(), c.values[i]);
    }
  }
  const std::string files = kTests + "texts/conv_bias_relu";
  const int code =
      run(files + ".fj --inputs " + kTests + "texts/conv_input_gradient.in.npz --grad x,w,b " + GetParam().options);
  EXPECT_EQ(code, 2) << "inputs of another graph";
}

INSTANTIATE_TEST_SUITE_P(Ways, DumpTexts, ::testing::ValuesIn(kWays), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusejit
