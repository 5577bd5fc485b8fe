// PointerMap: a number for each of many pointers, in one array. Graphs are walked with it: it takes no memory a node of
// its own, and looks into one place for most questions, where a std::unordered_map looks into three.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace fusejit::ir {

class PointerMap {
 public:
  explicit PointerMap(std::size_t expected = 0) { grow(expected); }

  // The number of `pointer`, -1 if it has none.
  int find(const void* pointer) const {
    const Slot& found = slots_[slot(pointer)];
    return found.pointer ? found.number : -1;
  }
  // Gives it this number if it has none. The one that it has then, and whether that is new.
  std::pair<int&, bool> insert(const void* pointer, int number) {
    if (2 * (count_ + 1) > slots_.size()) grow(2 * count_ + 1);
    Slot& found = slots_[slot(pointer)];
    const bool is_new = !found.pointer;
    if (is_new) found = {pointer, number}, ++count_;
    return {found.number, is_new};
  }

 private:
  struct Slot {
    const void* pointer = nullptr;
    int number = -1;
  };

  // Where the pointer is, or would be put: the first free place from where its hash says.
  std::size_t slot(const void* pointer) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (reinterpret_cast<std::uintptr_t>(pointer) * 0x9e3779b97f4a7c15ull) >> shift_;
    while (slots_[at].pointer && slots_[at].pointer != pointer) at = (at + 1) & mask;
    return at;
  }
  void grow(std::size_t expected) {
    std::vector<Slot> old(std::bit_ceil(std::max<std::size_t>(8, 2 * expected)));
    std::swap(old, slots_);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const Slot& s : old)
      if (s.pointer) slots_[slot(s.pointer)] = s;
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half full
  int shift_ = 0;
  std::size_t count_ = 0;
};

}  // namespace fusejit::ir
