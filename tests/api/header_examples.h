// What tests of examples in public headers share: what an example prints is kept, and options are reset.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "fusejit/fusejit.h"

namespace fusejit::test {

class HeaderExamples : public ::testing::Test {
 protected:
  void SetUp() override {
    manual_seed(0);  // as in a program of its own
    std::cout.rdbuf(printed_.rdbuf());
  }
  void TearDown() override {
    std::cout.rdbuf(before_);
    set_options({});
  }
  std::ostringstream printed_;
  std::streambuf* before_ = std::cout.rdbuf();
};

}  // namespace fusejit::test
