// The closed table of ops: one row each, in ir/ops/<family>.cpp. No other place lists ops; a fact about an op is a
// field of its row. Meaning of every row: ops.md §4-§11.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fusejit/type.h"
#include "ir/attrs.h"
#include "ir/base/scalar.h"

namespace fusejit::ir {

// Order is family by family; ir/ops/table.cpp checks that every row stands at its enumerator.
enum class Op : std::uint8_t {
  // element-wise (ops.md §4)
  add,
  sub,
  mul,
  div,
  floor_divide,
  remainder,
  fmod,
  pow,
  maximum,
  minimum,
  neg,
  abs,
  sign,
  square,
  reciprocal,
  sqrt,
  rsqrt,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log10,
  log1p,
  tanh,
  sigmoid,
  erf,
  erfc,
  sin,
  cos,
  floor,
  ceil,
  trunc,
  round,
  clamp,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_xor,
  logical_not,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  bitwise_not,
  isnan,
  isinf,
  isfinite,
  where,
  cast,
  detach,
  // composite (§5-§7)
  relu,
  relu6,
  leaky_relu,
  elu,
  selu,
  gelu,
  silu,
  mish,
  softplus,
  hardsigmoid,
  hardswish,
  softmax,
  log_softmax,
  bias_add,
  dropout,
  batch_norm,
  batch_norm_train,
  batch_norm_train_input_grad,
  batch_norm_train_weight_grad,
  layer_norm,
  group_norm,
  instance_norm,
  nll_loss,
  cross_entropy,
  mse_loss,
  l1_loss,
  smooth_l1_loss,
  binary_cross_entropy_with_logits,
  flatten,
  var,
  // reduce (§8)
  sum,
  mean,
  prod,
  amax,
  amin,
  any,
  all,
  argmax,
  argmin,
  // view (§9)
  reshape,
  permute,
  squeeze,
  unsqueeze,
  expand,
  slice,
  unslice,
  pad,
  concat,
  flip,
  gather,
  gather_grad,
  one_hot,
  // anchor (§10)
  conv2d,
  conv2d_input_grad,
  conv2d_weight_grad,
  matmul,
  linear,
  max_pool2d,
  max_pool2d_grad,
  max_pool2d_tap,
  max_pool2d_tap_grad,
  avg_pool2d,
  avg_pool2d_grad,
  adaptive_avg_pool2d,
  adaptive_avg_pool2d_grad,
  upsample_nearest2d,
  upsample_nearest2d_grad,
  upsample_bilinear2d,
  upsample_bilinear2d_grad,
  // source (§11)
  rand,
  full,
  constant,
  iota,
  // leaf of a graph that is no op of the text: a parameter
  parameter,
  // kernels only (kernel-ir.md §7)
  fma,
  bits,
  from_bits,
  dot2,
  fma_low,
  fma_high,
  add_flushed,
  round_bf16,
  philox,
  shl,
  shr,
  count_
};

// How a reduction combines two partial states (kernel-ir.md §5).
enum class Combiner : std::uint8_t { add, mul, maximum, minimum, logical_and, logical_or, argmax, argmin, welford };

enum class Family : std::uint8_t { elementwise, composite, reduce, view, anchor, source, leaf, kernel };

// How the dtype of an element-wise result follows from its promoted operands (ops.md §4).
enum class DTypeRule : std::uint8_t {
  floating,  // F: float only, same
  numeric,   // N: int or float, same
  any,       // A: any, same
  to_bool,   // B: any, result bool
  integral,  // int or bool, same (bitwise)
  own        // the row's `infer` says
};

// What mixed precision (fusejit/autocast.h) makes of an op's float operands but f64, after PyTorch's lists.
enum class AutocastRule : std::uint8_t {
  as_given,
  narrow,  // to the narrow type: sums of products, which are accumulated in f32 all the same
  wide     // to f32: what overflows or loses its digits in a narrow type
};

class Value;         // ir/node.h
struct Node;         // ir/node.h
struct Operand;      // ir/node.h: a Value or a number
struct GradContext;  // ir/passes/grad.h
struct EvalContext;  // ir/interp.h
struct Contraction;  // ir/contraction.h

// What `infer` sees: operands' types (numbers have none) and completed attributes. Throws UserError with the shapes.
struct InferContext {
  Op op;
  std::span<const Operand> operands;
  const Attrs& attrs;
  const Type& type(std::size_t operand) const;  // of a Value operand
  // "conv2d: <sentence> (x: f32[8,64,56,56], w: f32[64,32,3,3])"
  [[noreturn]] void fail(const std::string& sentence) const;
};

// Element-wise meaning on one element: arguments in the compute type, result in the row's result dtype.
using EvalFn = Scalar (*)(std::span<const Scalar> arguments, const Attrs& attrs);
// Gradient: one Operand-sized entry per operand, an empty Value where none flows.
using GradFn = std::vector<Value> (*)(const GradContext& context);
// The same value from other ops: composites always, element-wise rows where they are short for others. An empty Value:
// the node is primitive as it stands (logical_and of two bools).
using ExpandFn = Value (*)(std::span<const Operand> operands, const Attrs& attrs, const Type& result);
using InferFn = Type (*)(const InferContext& context);
// Replaces what only the operands can say in attributes as given (reshape's -1); `values` are in row order.
using CompleteFn = void (*)(std::span<const Operand> operands, std::vector<Attr>& values);
// Where an element of a view comes from: dim d of an operand has the index (out[axis] * scale + offset) / divide. The
// element is that operand's if no dim has a remainder or lies outside, and the row's fill (ir/ops/view.h) if that
// holds for no operand; it holds for one at most.
struct ViewDim {
  int axis = -1;  // dim of the result, or -1: the index is `offset`
  std::int64_t scale = 1;
  std::int64_t offset = 0;
  std::int64_t divide = 1;
};
// One entry per dim of the operand.
using ViewMapFn = std::vector<ViewDim> (*)(const Node& view, std::size_t operand);
// Which cells of an image the results of a pool or resize read, along its rows (axis 0) or columns (1); a gradient has
// the span of the op that it is of. ir/ops/geometry/span.h.
struct ImageSpan;
using SpanFn = ImageSpan (*)(const Node& node, int axis);
// What an anchor computes as sums of products (ir/contraction.h); where all of them together are the result.
using ContractionsFn = std::vector<Contraction> (*)(const Node& node);
// Whole-tensor meaning for reduce, view, anchor, source rows and as oracle of composites.
using TensorEvalFn = void (*)(const EvalContext& context);

// Spellings as data. `$0 $1 $2` are the operands; `{f}` is "f" for f32 and "" for f64, `{T}` the type of the
// result. Names that begin with "fj_" are device functions of codegen/cuda/prelude.cuh.
struct CudaSpelling {
  std::string_view floating = "";
  std::string_view integral = "";
};
// Name of an LLVM instruction or intrinsic per class: "fadd", "add", "llvm.sqrt", "fcmp olt", "icmp slt"; empty: not a
// legal class, or defined by `fragment`. Names that begin with "fj." are short sequences that the emitter knows, where
// an instruction alone would trap or miss an edge of ops.md ("fj.floor_divide": guarded sdiv and a correction).
struct LlvmSpelling {
  std::string_view floating = "";
  std::string_view signed_int = "";
  std::string_view unsigned_int = "";
  std::string_view boolean = "";
};

struct OpDef {
  Op op = Op::count_;
  std::string_view name;
  Family family = Family::elementwise;
  int min_operands = 1;
  int max_operands = 1;                                  // 64 for concat
  std::span<const std::string_view> operand_names = {};  // for messages and docs: x, w
  std::span<const AttrDef> attrs = {};
  DTypeRule dtype_rule = DTypeRule::own;
  InferFn infer = nullptr;  // null only for element-wise rows that dtype_rule and broadcasting describe
  CompleteFn complete = nullptr;
  bool numbers_allowed = false;  // operands may be numbers (element-wise: any but not all)
  unsigned number_mask = 0;      // else bit i: operand i may be a number
  unsigned keeps_dtype = 0;      // bit i: operand i of an element-wise op takes no part in promotion

  bool no_gradient = false;  // ops.md: gradient 0; otherwise grad or expand must be there
  GradFn grad = nullptr;
  ExpandFn expand = nullptr;          // composite
  EvalFn eval = nullptr;              // element-wise
  TensorEvalFn evaluate = nullptr;    // all other families
  Combiner combiner = Combiner::add;  // reduce
  ViewMapFn view_map = nullptr;       // views but reshape, which keeps the row-major order, and those of gather.cpp
  SpanFn span = nullptr;              // pools, resizes and their gradients

  ContractionsFn contractions = nullptr;  // anchors that are sums of products

  unsigned images = 0;        // anchors: bit 0 result, bit i + 1 operand i is an image [N,C,H,W]
  bool matrix = false;        // a contraction that reads its operands through views of rank 2
  bool packs_second = false;  // a contraction whose second operand is packed before it is read
  bool commutative = false;
  bool comparison = false;
  bool copies_bits = false;  // views, where, cast between equal dtypes
  LlvmSpelling llvm = {};
  CudaSpelling cuda = {};
  // Functions and ops without an instruction: a straight-line kernel-IR body over %x (or %a, %b, %c), one definition a
  // line, ending in `yield %r`. Interpreter and x86 run the same text, so they agree bit for bit (kernel-ir.md §7).
  std::string_view fragment_f32 = "";
  std::string_view fragment_f64 = "";
  // Dtypes in kernels where dtype_rule does not say: a letter for each operand, '>', a letter for each result. T: one
  // type for all; U: one of u32, u64 for all, N: that type, a literal below its width; F: a float, W: the unsigned type
  // of its width; *: any; b bool, u u32, i i64, f f32, h bf16. "bTT>T", "uuf>f".
  std::string_view kernel_types = "";
  double ulp = 0;                             // bound of the fragment and of CUDA's function; 0: correctly rounded
  double domain_low = -10, domain_high = 10;  // where tests draw ordinary arguments from
  int cost = 1;                               // FLOP of one element, for the cost model
  AutocastRule autocast = AutocastRule::as_given;
  std::string_view meaning = "";  // one sentence, for docs/ops.md

  // It runs as a register tile: convolutions, matrix products.
  bool is_contraction() const { return contractions != nullptr; }
};

const OpDef& op_def(Op op);
inline std::string_view name(Op op) { return op_def(op).name; }
// The op of that name in graph or kernel texts, or nothing.
std::optional<Op> op_named(std::string_view name);

}  // namespace fusejit::ir
