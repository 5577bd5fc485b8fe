// A test on one engine that keeps what the log says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "fusejit/fusejit.h"

namespace fusejit {

class LoggedTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    set_options({.engine = GetParam()});
    set_log([this](std::string_view line) { log.emplace_back(line); });
  }
  void TearDown() override { set_log({}); }
  int lines_with(const std::string& words) const {
    return static_cast<int>(std::count_if(
        log.begin(), log.end(), [&](const std::string& line) { return line.find(words) != std::string::npos; }));
  }
  std::vector<std::string> log;
};

}  // namespace fusejit
