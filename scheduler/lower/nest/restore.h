// What a part of the nest is emitted under, and what is after it as it was before.
#pragma once

#include <utility>

namespace fusejit::scheduler {

// Puts a value back at the end of the scope.
template <class T>
class Restore {
 public:
  explicit Restore(T& what) : what_(what), before_(what) {}
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;
  ~Restore() { what_ = std::move(before_); }

 private:
  T& what_;
  T before_;
};

}  // namespace fusejit::scheduler
