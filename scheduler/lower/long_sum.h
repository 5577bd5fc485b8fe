// Sums of very many terms. A chain of f32 additions loses up to half a bit a term, always to the same side where terms
// are alike, so long ones are cut into blocks: a block is summed as any chain is, and what it comes to is added up in
// f64. A block of 32 terms is off by at most 5e-7 of its sum. Shorter chains, and other types, are left as they are.
#pragma once

#include <functional>

#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

inline constexpr std::int64_t kBlockTerms = 32;
inline constexpr std::int64_t kLongChain = 512;  // terms

// A chain of `terms` additions in `type` is cut.
bool is_long_chain(std::int64_t terms, DType type);

// f64 beside each element of the chains in a register local of f32, declared here.
class LongSum {
 public:
  LongSum() = default;
  LongSum(ir::KernelBuilder& builder, ir::MemId chains);
  bool is_open() const { return wide_ >= 0; }
  ir::MemId wide() const { return wide_; }
  // Every chain's sum so far goes there, and the chain begins anew.
  void flush(ir::KernelBuilder& builder) const;
  // The sums go back to the chains' local, rounded once.
  void close(ir::KernelBuilder& builder) const;

 private:
  void each(ir::KernelBuilder& builder, const std::function<void(std::vector<ir::Index>)>& body) const;
  ir::MemId chains_ = -1, wide_ = -1;
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
