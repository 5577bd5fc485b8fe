// `fusejit doctor` run as a user meets it: what it says, as a table and as JSON, and its exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/tools/program.h"

namespace fusejit {
namespace {

struct DoctorOutcome {
  int code = -1;
  std::string output;  // stdout
};

// With libraries that are not there: the machine without CUDA, wherever the test runs.
constexpr const char* kNothing =
    "FUSEJIT_CUDA_DRIVER=/nowhere/libcuda.so FUSEJIT_NVRTC=/nowhere/libnvrtc.so "
    "FUSEJIT_CUDNN=/nowhere/libcudnn.so ";

DoctorOutcome doctor(const std::string& environment, const std::string& arguments) {
  DoctorOutcome outcome;
  FILE* pipe = popen((environment + kFusejit + " " + arguments + " 2>/dev/null").c_str(), "r");
  if (!pipe) return outcome;
  char piece[4096];
  for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) outcome.output.append(piece, n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

class Doctor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFusejit)) GTEST_SKIP() << kFusejit << " is not built";
  }
};

TEST_F(Doctor, NamesEveryMissingPiece) {
  const DoctorOutcome outcome = doctor(kNothing, "doctor");
  EXPECT_EQ(outcome.code, 0) << "the CPU works without them";
  for (const char* text : {"processor  works", "LLVM", "/nowhere/libcuda.so", "/nowhere/libnvrtc.so",
                           "/nowhere/libcudnn.so", "nothing for CUDA"}) {
    EXPECT_NE(outcome.output.find(text), std::string::npos) << text << " is not in\n" << outcome.output;
  }
}

TEST_F(Doctor, SaysTheSameAsJson) {
  const DoctorOutcome outcome = doctor(kNothing, "doctor --json");
  const nlohmann::json report = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(report["cuda"], false);
  EXPECT_EQ(report["cuda_code"], false);
  int missing = 0;
  for (const auto& finding : report["findings"]) {
    EXPECT_NE(finding["part"], "");
    EXPECT_NE(finding["what"], "");
    missing += finding["works"] == false;
  }
  EXPECT_GE(missing, 3) << outcome.output;
}

TEST_F(Doctor, ExitsAsAsked) {
  EXPECT_EQ(doctor(kNothing, "doctor --require cuda").code, 6);
  EXPECT_EQ(doctor(kNothing, "doctor --require x86,cuda-code").code, 6);
  EXPECT_EQ(doctor(kNothing, "doctor --require magic").code, 1);
  EXPECT_EQ(doctor(kNothing, "").code, 1);
  EXPECT_EQ(doctor(kNothing, "--help").code, 0);
}

}  // namespace
}  // namespace fusejit
