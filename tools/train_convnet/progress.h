// The progress line of an epoch: a bar on a terminal, a plain line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fusejit::tools {

class Progress {
 public:
  // `title` stands in front; `total` images make an epoch.
  Progress(std::string title, std::int64_t total);
  // Images done so far and the last loss that is known.
  void show(std::int64_t images, double loss);
  // Ends the line.
  void finish();
  double images_per_second() const;

 private:
  std::string title_;
  std::int64_t total_, images_ = 0;
  int next_tenth_ = 1;
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace fusejit::tools
