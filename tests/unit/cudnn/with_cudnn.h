// A test that plans with cuDNN: skips with the reason where there is none. Environment FUSEJIT_NIGHTLY=1 asks for the
// whole of what is otherwise sampled.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "runtime/cudnn/library/device.h"
#include "runtime/cudnn/support/probe.h"
#include "tests/support/nightly.h"

namespace fusejit::runtime::cudnn {

class WithCudnn : public ::testing::Test {
 protected:
  // Before cuDNN plans for the first time in the process.
  static void SetUpTestSuite() { has_driver_ = load_driver_for_planning(FUSEJIT_DRIVER_WITHOUT_DEVICE); }
  void SetUp() override {
    if (!library_->available()) GTEST_SKIP() << library_->why_not();
  }
  const Descriptor& device(const std::string& name) {
    auto [at, is_new] = devices_.try_emplace(name);
    if (is_new) at->second = describe_device(library_, described_device(name));
    return at->second;
  }

  static inline bool has_driver_ = false;
  const std::shared_ptr<const Library> library_ = Library::load();

 private:
  std::map<std::string, Descriptor> devices_;
};

}  // namespace fusejit::runtime::cudnn
