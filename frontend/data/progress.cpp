#include "fusejit/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace fusejit::data {
namespace {

// fmt::print without its exception.
template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

using std::chrono::steady_clock;

Progress::Progress(std::string title, std::int64_t total)
    : title_(std::move(title)),
      total_(std::max<std::int64_t>(total, 1)),
      terminal_(::isatty(STDOUT_FILENO) != 0),
      start_(steady_clock::now()),
      last_(start_) {}

double Progress::images_per_second() const {
  const double seconds = std::chrono::duration<double>(last_ - start_).count();
  return seconds > 0 ? static_cast<double>(images_) / seconds : 0;
}

void Progress::show(std::int64_t images, double loss) {
  const steady_clock::time_point now = steady_clock::now();
  const bool is_last = images >= total_;
  const bool due =
      terminal_ ? now - last_ > std::chrono::milliseconds(100) || !shown_ : images * 10 >= next_tenth_ * total_;
  images_ = images;
  if (terminal_ && !due && !is_last) return;
  last_ = now;
  if (!due && !is_last) return;
  const double rate = images_per_second();
  const double left = rate > 0 ? static_cast<double>(total_ - images) / rate : 0;
  const std::string numbers = fmt::format("{:5.0f} images/s  loss {:.4f}  {:.0f} s left", rate, loss, left);
  if (terminal_) {
    constexpr int kCells = 30;
    const int full = static_cast<int>(std::min(images, total_) * kCells / total_);
    say("\r{} [{:<{}}] {:3d} %  {}\x1b[K", title_, std::string(static_cast<std::size_t>(full), '='), kCells,
        static_cast<int>(images * 100 / total_), numbers);
  } else {
    say("{} {:3d} %  {}\n", title_, static_cast<int>(images * 100 / total_), numbers);
    next_tenth_ = static_cast<int>(images * 10 / total_) + 1;
  }
  std::fflush(stdout);
  shown_ = true;
}

void Progress::finish() {
  last_ = steady_clock::now();
  if (terminal_ && shown_) say("\n");
  std::fflush(stdout);
}

}  // namespace fusejit::data
