// Sources (ops.md §11) and the parameter, the leaf of graphs.
#include "ir/base/check.h"
#include "ir/infer.h"
#include "ir/interp.h"
#include "ir/kernel/philox.h"
#include "ir/ops/rows.h"

namespace fusejit::ir {
namespace {

Type infer_rand(const InferContext& c) {
  if (c.type(0).dtype != DType::i64 || c.type(0).shape.rank() != 0) c.fail("seed must be i64[]");
  if (!is_float(c.attrs.dtype("dtype"))) c.fail("dtype must be float");
  if (c.attrs.integer("stream") < 0) c.fail("stream must be at least 0");
  return {c.attrs.dtype("dtype"), shape_from(c, c.attrs.ints("shape"))};
}

Type infer_filled(const InferContext& c) { return {c.attrs.dtype("dtype"), shape_from(c, c.attrs.ints("shape"))}; }

Type infer_full(const InferContext& c) {
  const DType dtype = c.attrs.dtype("dtype");
  if (!c.attrs[1].in(dtype)) c.fail(fmt::format("{} cannot hold the value", name(dtype)));
  return infer_filled(c);
}

Type infer_constant(const InferContext& c) {
  const Type type = infer_filled(c);
  const Attr& data = c.attrs[2];
  const std::size_t count = data.numbers.size();
  if (static_cast<std::int64_t>(count) != type.elements())
    c.fail(fmt::format("data has {} numbers, the shape {} has {}", count, type.shape.str(), type.elements()));
  for (std::size_t i = 0; i < count; ++i)
    if (!data.element_in(i, type.dtype)) c.fail(fmt::format("{} cannot hold {}", name(type.dtype), data.numbers[i]));
  return type;
}

Type infer_iota(const InferContext& c) {
  if (c.attrs.dtype("dtype") == DType::boolean) c.fail("dtype cannot be bool");
  return infer_filled(c);
}

// u = (word >> 8) * 2^-24, toward zero in 16-bit types so that u < 1.
Scalar uniform(std::uint32_t word, DType dtype) {
  const double u = static_cast<double>(word >> 8) * 0x1p-24;
  Scalar s = cast(Scalar::of(u), dtype);
  if (s.as_double() > u) --s.bits;
  return s;
}

void evaluate_rand(const EvalContext& c) {
  const std::int64_t seed = c.operands[0]->at(0).i64();
  const std::int64_t stream = c.node.attrs.integer("stream");
  for (std::int64_t e = 0; e < c.result.type.elements(); e += 4) {
    const auto words = philox(e / 4, stream, seed);
    for (std::int64_t i = e; i < std::min(e + 4, c.result.type.elements()); ++i)
      c.result.set(i, uniform(words[static_cast<std::size_t>(i - e)], c.result.type.dtype));
  }
}

void evaluate_full(const EvalContext& c) {
  const Scalar value = c.node.attrs.number_in("value", c.result.type.dtype);
  for (std::int64_t i = 0; i < c.result.type.elements(); ++i) c.result.set(i, value);
}

void evaluate_constant(const EvalContext& c) {
  const Attr& data = c.node.attrs[2];
  for (std::int64_t i = 0; i < c.result.type.elements(); ++i)
    c.result.set(i, data.element_in(static_cast<std::size_t>(i), c.result.type.dtype).value());
}

void evaluate_iota(const EvalContext& c) {
  const Shape& shape = c.result.type.shape;
  const int dim = static_cast<int>(c.node.attrs.integer("dim"));
  std::int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    c.result.set(i, cast(Scalar::of(i / inner % shape[dim]), c.result.type.dtype));
}

constexpr std::string_view kSeed[] = {"seed"};
constexpr AttrDef kRand[] = {
    {"shape", AttrKind::ints}, {"stream", AttrKind::integer, "0"}, {"dtype", AttrKind::dtype, "f32"}};
constexpr AttrDef kFull[] = {{"shape", AttrKind::ints}, {"value", AttrKind::number}, {"dtype", AttrKind::dtype, "f32"}};
constexpr AttrDef kConstant[] = {
    {"shape", AttrKind::ints}, {"dtype", AttrKind::dtype, "f32"}, {"data", AttrKind::numbers}};
constexpr AttrDef kIota[] = {
    {"shape", AttrKind::ints}, {"dim", AttrKind::dim, "0", DimBase::shape}, {"dtype", AttrKind::dtype, "i64"}};

constexpr OpDef kRows[] = {
    {.op = Op::rand,
     .name = "rand",
     .family = Family::source,
     .operand_names = kSeed,
     .attrs = kRand,
     .infer = infer_rand,
     .no_gradient = true,
     .evaluate = evaluate_rand,
     .cost = 40,
     .meaning = "uniform in [0, 1): 24 bits of the Philox word of the element's row-major index"},
    {.op = Op::full,
     .name = "full",
     .family = Family::source,
     .min_operands = 0,
     .max_operands = 0,
     .attrs = kFull,
     .infer = infer_full,
     .no_gradient = true,
     .evaluate = evaluate_full,
     .cost = 0,
     .meaning = "one value everywhere"},
    {.op = Op::constant,
     .name = "constant",
     .family = Family::source,
     .min_operands = 0,
     .max_operands = 0,
     .attrs = kConstant,
     .infer = infer_constant,
     .no_gradient = true,
     .evaluate = evaluate_constant,
     .cost = 0,
     .meaning = "the listed values, row-major"},
    {.op = Op::iota,
     .name = "iota",
     .family = Family::source,
     .min_operands = 0,
     .max_operands = 0,
     .attrs = kIota,
     .infer = infer_iota,
     .no_gradient = true,
     .evaluate = evaluate_iota,
     .cost = 0,
     .meaning = "the index along a dim"},
    {.op = Op::parameter,
     .name = "parameter",
     .family = Family::leaf,
     .min_operands = 0,
     .max_operands = 0,
     .no_gradient = true,
     .cost = 0,
     .meaning = "a value that the caller gives"},
};
static_assert(rows_fill(kRows, kSource), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> source_rows() { return kRows; }

}  // namespace fusejit::ir
