// The allocations of this thread: how large they are, and one that fails. A program that has allocations.cpp among its
// own sources has its operator new and aligned_alloc() in place of the C library's.
#pragma once

#include <cstddef>

namespace fusejit::testing {

class Allocations {
 public:
  // The `failing`-th from now throws bad_alloc; -1: none.
  explicit Allocations(long failing = -1);
  ~Allocations();
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;
  std::size_t largest() const;
  bool has_failed() const;
};

}  // namespace fusejit::testing
