#include "tools/fusejit/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace fusejit::tools {

using Clock = std::chrono::steady_clock;

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1), start_(Clock::now()) {}

void ProgressLine::show(std::int64_t done, std::int64_t total, const std::string& more) {
  const auto now = Clock::now();
  const std::int64_t tenth = total > 0 ? 10 * done / total : 0;
  if (terminal_ ? now - last_ < std::chrono::milliseconds(100) && done < total : tenth <= tenth_) return;
  last_ = now, tenth_ = tenth, shown_ = true;
  constexpr std::int64_t kWidth = 24;
  const std::int64_t filled = total > 0 ? kWidth * done / total : 0;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const int left =
      done > 0 ? static_cast<int>(seconds * static_cast<double>(total - done) / static_cast<double>(done)) : 0;
  const std::string eta = done > 0 && done < total ? fmt::format("  ETA {}:{:02}", left / 60, left % 60) : "";
  const std::string line =
      fmt::format("[{:#<{}}{:.<{}}] {}/{}  {}{}", "", filled, "", kWidth - filled, done, total, more, eta);
  std::fputs(terminal_ ? ("\r" + line + "\x1b[K").c_str() : (line + "\n").c_str(), stderr);
  std::fflush(stderr);
}

void ProgressLine::finish() {
  if (terminal_ && shown_) std::fputs("\n", stderr);
}

}  // namespace fusejit::tools
