// A line that says how far something is: in place on a terminal, a line for each tenth elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fusejit::tools {

class ProgressLine {
 public:
  ProgressLine();
  // "[#####.....] 86/172  " and what `more` says, then how long the rest may take.
  void show(std::int64_t done, std::int64_t total, const std::string& more);
  // Ends the line.
  void finish();

 private:
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
  std::int64_t tenth_ = 0;
  bool shown_ = false;
};

}  // namespace fusejit::tools
