// The line of a loop that takes long, on standard output: a bar on a terminal, plain lines, one for each tenth,
// elsewhere.
//
//   fj::data::Progress progress("epoch 1/3", images);
//   for (std::int64_t done = 100; done <= images; done += 100) progress.show(done, loss);
//   progress.finish();  // epoch 1/3 100 %   2556 images/s  loss 0.3683  0 s left
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fusejit::data {

// What cannot be written ends no loop: it is left out.
class Progress {
 public:
  // `title` stands in front; `total` images make an epoch.
  Progress(std::string title, std::int64_t total);
  // Images done so far, and the last loss that is known. Shown where it is time to, and when all are done.
  void show(std::int64_t images, double loss);
  // Ends the line.
  void finish();
  // Until the last show() or finish().
  double images_per_second() const;

 private:
  std::string title_;
  std::int64_t total_, images_ = 0;
  int next_tenth_ = 1;
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace fusejit::data
