// What is said while training, and the progress line of an epoch: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace fusejit::tools {

// fmt::print without its exception: a full disk below stdout ends no training; main() says so at the end.
template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

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
