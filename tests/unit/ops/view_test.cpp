// Index maps of views, as the interpreter and lowering read them.
#include "ir/ops/view.h"

#include <gtest/gtest.h>

#include "ir/node.h"

namespace fusejit::ir {
namespace {

using Dims = std::vector<std::int64_t>;

Value x(Shape shape) { return parameter({DType::f32, shape}, "x"); }

TEST(ViewMap, ConcatHasOneForEachOperand) {
  const Value y = build(Op::concat, {x({2, 3}), x({2, 0}), x({2, 4})}, {{"dim", 1}});
  const std::int64_t starts[] = {0, 3, 3};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<ViewDim> map = op_def(Op::concat).view_map(*y, i);
    ASSERT_EQ(map.size(), 2u);
    EXPECT_EQ(map[0].axis, 0);
    EXPECT_EQ(map[0].offset, 0);
    EXPECT_EQ(map[1].axis, 1);
    EXPECT_EQ(map[1].offset, -starts[i]);
  }
}

// Every view but those that take an index, and reshape, says so in its row.
TEST(ViewMap, IsThereForEveryViewButReshapeAndGathers) {
  for (int i = 0; i < static_cast<int>(Op::count_); ++i) {
    const OpDef& row = op_def(static_cast<Op>(i));
    const bool other =
        row.op == Op::reshape || row.op == Op::gather || row.op == Op::gather_grad || row.op == Op::one_hot;
    EXPECT_EQ(row.view_map != nullptr, row.family == Family::view && !other) << row.name;
  }
}

TEST(ViewFill, IsPadsValueElseZero) {
  const Dims one{1, 1};
  const Value padded = build(Op::pad, {x({2, 2})}, {{"low", one}, {"high", one}, {"value", -1.5}});
  EXPECT_EQ(view_fill(*padded, DType::f32).f32(), -1.5f);
  const Value unsliced = build(Op::unslice, {x({1, 1})}, {{"shape", {3, 3}}, {"starts", one}, {"steps", one}});
  EXPECT_EQ(view_fill(*unsliced, DType::f32).f32(), 0.0f);
}

TEST(ViewKeepsOrder, SaysWhetherElementsStandInRowMajorOrderStill) {
  const struct {
    Value view;
    bool keeps;
  } cases[] = {
      {build(Op::reshape, {x({2, 6})}, {{"shape", {3, 4}}}), true},
      {build(Op::squeeze, {x({2, 1, 3})}), true},
      {build(Op::unsqueeze, {x({2, 3})}, {{"dim", 1}}), true},
      {build(Op::expand, {x({2, 3})}, {{"shape", {1, 2, 3}}}), true},
      {build(Op::permute, {x({2, 3})}, {{"dims", {1, 0}}}), false},
      {build(Op::permute, {x({2, 1, 3})}, {{"dims", {1, 0, 2}}}), true},
      {build(Op::permute, {x({2, 1, 3})}, {{"dims", {2, 1, 0}}}), false},
      {build(Op::flip, {x({2, 3})}, {{"dims", Dims{1}}}), false},
      {build(Op::flip, {x({2, 1})}, {{"dims", Dims{1}}}), true},
      {build(Op::slice, {x({2, 3})}, {{"starts", {0, 0}}, {"stops", {2, 3}}, {"steps", {1, 1}}}), true},
  };
  for (const auto& [view, keeps] : cases)
    EXPECT_EQ(view_keeps_order(*view), keeps) << name(view->op) << " of " << view->operands[0].value.type().str();
}

}  // namespace
}  // namespace fusejit::ir
