// Sets of elements of one array, counted exactly: unions of boxes, a box being a product of sets along parts of the
// array's dims.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace fusejit::ir {

// Integers in ascending order, as runs that neither meet nor touch.
class Runs {
 public:
  struct Run {
    std::int64_t low, high;  // both in it
    friend bool operator==(const Run&, const Run&) = default;
  };

  Runs() = default;
  static Runs between(std::int64_t low, std::int64_t high);  // empty if high < low
  static Runs of(std::vector<std::int64_t> values);          // in any order, more than once or not

  const std::vector<Run>& list() const { return runs_; }
  bool empty() const { return runs_.empty(); }
  std::int64_t count() const;

  Runs clipped(std::int64_t low, std::int64_t high) const;
  Runs united(const Runs& other) const;
  // Each of these plus each multiple factor * [low, high]; `most`: of runs, beyond which holes are filled.
  Runs plus(std::int64_t factor, std::int64_t low, std::int64_t high, std::size_t most) const;

  friend bool operator==(const Runs&, const Runs&) = default;

 private:
  std::vector<Run> runs_;
};

// Positions along some dims taken together, row-major among them.
struct Part {
  std::vector<std::size_t> dims;  // ascending
  Runs positions;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  // of them that are in it, where holes were filled
  std::int64_t count() const { return std::min(positions.count(), most); }
  friend bool operator==(const Part&, const Part&) = default;
};
// Every dim in one part, parts in the order of their first dims.
using Box = std::vector<Part>;

class ElementSet {
 public:
  explicit ElementSet(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {}

  void add(Box box);
  // So many elements that are not known, such as those that data names.
  void add_unknown(std::int64_t elements) { unknown_ += elements; }
  // Exact for up to 64 boxes that differ in more than one part, and for parts that are small where boxes are not
  // divided alike; never less than that.
  std::int64_t count() const;

 private:
  std::vector<std::int64_t> dims_;
  std::vector<Box> boxes_;
  std::int64_t unknown_ = 0;
};

}  // namespace fusejit::ir
