// The ways a user can have traces run, for tests that must hold on each of them: both interpreters, and machine code
// for three instruction sets. Plans differ between the targets, so the kernel interpreter runs those of each.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fusejit/fusejit.h"

namespace fusejit::testing {

struct EngineCase {
  const char* name;
  const char* engine;
  const char* target;
};

inline constexpr EngineCase kEveryEngine[] = {
    {"GraphInterpreter", "graph_interpreter", "host"},
    {"KernelsForAvx512", "kernel_interpreter", "x86:avx512"},
    {"KernelsForAvx2", "kernel_interpreter", "x86:avx2"},
    {"KernelsForV2", "kernel_interpreter", "x86:v2"},
    {"CompiledForAvx512", "compiled", "x86:avx512"},
    {"CompiledForAvx2", "compiled", "x86:avx2"},
    {"CompiledForV2", "compiled", "x86:v2"},
};
// One of each kind, for tests that run many graphs.
inline constexpr EngineCase kEachKindOfEngine[] = {
    {"GraphInterpreter", "graph_interpreter", "host"},
    {"KernelInterpreter", "kernel_interpreter", "host"},
    {"Compiled", "compiled", "host"},
};

// While one lives, nothing falls back to an interpreter: what cannot be compiled is an error.
class Strictly {
 public:
  Strictly() : was_set_(std::getenv("FUSEJIT_STRICT") != nullptr) { setenv("FUSEJIT_STRICT", "1", 1); }
  ~Strictly() {
    if (!was_set_) unsetenv("FUSEJIT_STRICT");
  }
  Strictly(const Strictly&) = delete;
  Strictly& operator=(const Strictly&) = delete;

 private:
  bool was_set_;
};

// Makes `c` the default engine, with empty caches. Why that is not possible here, or "".
inline std::string select_engine(const EngineCase& c, int threads = 2) {
  const Options options{.engine = c.engine, .target = c.target, .threads = threads};
  set_options(options);
  try {
    (ones({2}) * 3).eval();
  } catch (const Error& error) {
    set_options({});
    return error.what();  // no code generator in this build, or another processor
  }
  set_options(options);  // counts from zero
  return "";
}

// A test of which every instance runs on one engine, strictly.
class OnEveryEngine : public ::testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = select_engine(GetParam()); !why.empty()) GTEST_SKIP() << why;
    manual_seed(3);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    if (std::string(GetParam().engine) == "compiled" && stats().evaluations > 0) {
      EXPECT_GT(stats().kernels_compiled, 0) << "something else ran";
    }
    set_options({});
  }

 private:
  Strictly strictly_;
};

inline std::string name_of(const ::testing::TestParamInfo<EngineCase>& info) { return info.param.name; }

}  // namespace fusejit::testing
