// Which file of ir/ops holds which rows, and what every row must contain; both are checked when a file compiles:
//
//   constexpr OpDef kRows[] = {{.op = Op::rand, .name = "rand", ...}, ...};
//   static_assert(rows_fill(kRows, kSource), "a row is missing or out of order");
//   static_assert(all_well_formed(kRows), "a row lacks a field of its family");
//   std::span<const OpDef> source_rows() { return kRows; }
//
// A new op: an enumerator in ir/op.h, a row at the same place in its file.
#pragma once

#include <cstddef>
#include <span>

#include "ir/op.h"

namespace fusejit::ir {

// First and last enumerator of a file's rows.
struct RowRange {
  Op first;
  Op last;
};
inline constexpr RowRange kArithmetic{Op::add, Op::rsqrt};
inline constexpr RowRange kFunction{Op::exp, Op::cos};
inline constexpr RowRange kRounding{Op::floor, Op::clamp};
inline constexpr RowRange kLogic{Op::eq, Op::detach};
inline constexpr RowRange kComposite{Op::relu, Op::dropout};
inline constexpr RowRange kNorm{Op::batch_norm, Op::instance_norm};
inline constexpr RowRange kLoss{Op::nll_loss, Op::binary_cross_entropy_with_logits};
inline constexpr RowRange kDerived{Op::flatten, Op::var};
inline constexpr RowRange kReduce{Op::sum, Op::argmin};
inline constexpr RowRange kView{Op::reshape, Op::flip};
inline constexpr RowRange kGather{Op::gather, Op::one_hot};
inline constexpr RowRange kAnchor{Op::conv2d, Op::linear};
inline constexpr RowRange kPool{Op::max_pool2d, Op::upsample_bilinear2d_grad};
inline constexpr RowRange kSource{Op::rand, Op::parameter};
inline constexpr RowRange kKernel{Op::fma, Op::shr};

std::span<const OpDef> arithmetic_rows();
std::span<const OpDef> function_rows();
std::span<const OpDef> rounding_rows();
std::span<const OpDef> logic_rows();
std::span<const OpDef> composite_rows();
std::span<const OpDef> norm_rows();
std::span<const OpDef> loss_rows();
std::span<const OpDef> derived_rows();
std::span<const OpDef> reduce_rows();
std::span<const OpDef> view_rows();
std::span<const OpDef> gather_rows();
std::span<const OpDef> anchor_rows();
std::span<const OpDef> pool_rows();
std::span<const OpDef> source_rows();
std::span<const OpDef> kernel_rows();

namespace rows {
constexpr int index(Op op) { return static_cast<int>(op); }
// The ranges follow each other without a gap from the first enumerator to the last.
constexpr bool ranges_tile(std::span<const RowRange> ranges) {
  int next = 0;
  for (const RowRange& range : ranges) {
    if (index(range.first) != next || index(range.last) < next) return false;
    next = index(range.last) + 1;
  }
  return next == index(Op::count_);
}
inline constexpr RowRange kAll[] = {kArithmetic, kFunction, kRounding, kLogic,  kComposite, kNorm,   kLoss,  kDerived,
                                    kReduce,     kView,     kGather,   kAnchor, kPool,      kSource, kKernel};
static_assert(ranges_tile(kAll), "an op belongs to no file of ir/ops");
}  // namespace rows

constexpr bool rows_fill(std::span<const OpDef> rows, RowRange range) {
  if (static_cast<int>(rows.size()) != rows::index(range.last) - rows::index(range.first) + 1) return false;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows::index(rows[i].op) != rows::index(range.first) + static_cast<int>(i)) return false;
  return true;
}

// The fields that a row of each family must have.
constexpr bool well_formed(const OpDef& row) {
  const bool named = !row.name.empty() && row.min_operands <= row.max_operands && row.cost >= 0;
  const bool typed = row.dtype_rule != DTypeRule::own || row.infer != nullptr;
  const bool differentiable = row.no_gradient ? row.grad == nullptr : row.grad != nullptr || row.expand != nullptr;
  const bool spelled = !row.cuda.floating.empty() || !row.cuda.integral.empty();
  const bool lowered = !row.llvm.floating.empty() || !row.llvm.signed_int.empty() || !row.llvm.boolean.empty() ||
                       !row.fragment_f32.empty() || row.ulp > 0;
  switch (row.family) {
    case Family::elementwise:
      return named && typed && row.eval && differentiable && (row.expand || (spelled && lowered));
    case Family::composite:
      return named && row.infer && row.expand;
    case Family::reduce:
    case Family::view:
    case Family::anchor:
      return named && row.infer && row.evaluate && differentiable;
    case Family::source:
      return named && row.infer && row.evaluate && row.no_gradient;
    case Family::leaf:
      return named && row.no_gradient;
    case Family::kernel:
      return named;
  }
  return false;
}
constexpr bool all_well_formed(std::span<const OpDef> rows) {
  for (const OpDef& row : rows)
    if (!well_formed(row)) return false;
  return true;
}

}  // namespace fusejit::ir
