// Sums of very many terms. One f32 addition after the other loses up to half a bit a term, always to the same side
// where terms are alike, so long ones are cut into blocks: a block is summed as any sum is, and what it comes to is
// added up in f64. A block of 32 terms is off by at most 5e-7 of its sum. Shorter sums, and other types, are left as
// they are.
#pragma once

#include <functional>

#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

inline constexpr std::int64_t kBlockTerms = 32;
inline constexpr std::int64_t kLongSum = 512;  // terms

// A sum of `terms` terms in `type` is cut.
bool is_long_sum(std::int64_t terms, DType type);

// f64 beside each element of a register local of f32 sums, declared here.
class LongSum {
 public:
  LongSum() = default;
  LongSum(ir::KernelBuilder& builder, ir::MemId sums);
  bool is_open() const { return wide_ >= 0; }
  ir::MemId wide() const { return wide_; }
  // Every sum so far goes there, and begins anew.
  void flush(ir::KernelBuilder& builder) const;
  // The sums go back to their local, rounded once.
  void close(ir::KernelBuilder& builder) const;

 private:
  void each(ir::KernelBuilder& builder, const std::function<void(std::vector<ir::Index>)>& body) const;
  ir::MemId sums_ = -1, wide_ = -1;
};

// body(i) for i in 0..count, after() after each block of `block` of them and after the last.
void loop_in_blocks(ir::KernelBuilder& builder, std::int64_t count, std::int64_t block,
                    const std::function<void(ir::Index)>& body, const std::function<void()>& after);
// body(unit) for unit in chunk `task`, likewise; the chunks are whole blocks: see in_blocks().
void loop_chunk_in_blocks(ir::KernelBuilder& builder, const Split& split, const ir::Index& task, std::int64_t block,
                          const std::function<void(ir::Index)>& body, const std::function<void()>& after);
// The split with chunks of whole blocks.
Split in_blocks(const Split& split, std::int64_t block);

}  // namespace fusejit::scheduler
