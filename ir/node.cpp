#include "ir/node.h"

#include <algorithm>
#include <bit>

#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/base/number.h"
#include "ir/infer.h"

namespace fusejit::ir {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{1};
  return serial.fetch_add(1, std::memory_order_relaxed);
}

// Frees nodes whose count fell to zero; a list in place of recursion, so that a chain of any length is safe, whether it
// hangs together by operands or by what is attached. The dead are linked through their serials, which nobody asks for
// any more: where memory has run out, freeing must not need any.
void release(Node* node) {
  if (node->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  thread_local Node* dead = nullptr;
  thread_local bool is_freeing = false;
  node->serial = reinterpret_cast<std::uintptr_t>(dead);
  dead = node;
  if (is_freeing) return;
  is_freeing = true;
  while (dead) {
    Node* const next = dead;
    dead = reinterpret_cast<Node*>(static_cast<std::uintptr_t>(next->serial));
    delete next;  // what it held comes here again
  }
  is_freeing = false;
}

std::uint64_t hash_of(const Node& n) {
  std::uint64_t h = mix(static_cast<std::uint64_t>(n.op), n.region);
  if (n.op == Op::parameter) return mix(h, n.serial);
  h = mix(h, static_cast<std::uint64_t>(n.type.dtype) * 4 + static_cast<std::uint64_t>(n.type.layout));
  for (std::int64_t d : n.type.shape) h = mix(h, static_cast<std::uint64_t>(d));
  for (const Operand& o : n.operands) {
    if (o.value)
      h = mix(h, o.value->hash);
    else
      h = mix(h, o.is_integer ? static_cast<std::uint64_t>(o.integer) : std::bit_cast<std::uint64_t>(o.number));
  }
  return n.attrs.size() ? mix(h, n.attrs.hash()) : h;
}

// Results of rank 4 with an operand in nhwc are in nhwc (ops.md §1).
Layout recorded_layout(const Type& type, std::span<const Operand> operands) {
  if (type.shape.rank() != 4) return Layout::standard;
  for (const Operand& o : operands)
    if (o.value && o.value.type().layout == Layout::nhwc && o.value.type().shape.rank() == 4) return Layout::nhwc;
  return Layout::standard;
}

void check_count(const OpDef& row, std::span<const Operand> operands) {
  const int count = static_cast<int>(operands.size());
  if (count >= row.min_operands && count <= row.max_operands) return;
  const std::string wanted = row.min_operands == row.max_operands
                                 ? std::to_string(row.min_operands)
                                 : fmt::format("{} to {}", row.min_operands, row.max_operands);
  throw UserError(fmt::format("{}: takes {} operand{}, {} {} given", row.name, wanted, wanted == "1" ? "" : "s", count,
                              count == 1 ? "was" : "were"));
}

// Brings number operands into canonical form and refuses those that the row or the dtype does not allow.
void check_numbers(const OpDef& row, std::vector<Operand>& operands) {
  bool any = false;
  for (const Operand& o : operands) any |= o.is_number();
  if (!any) return;
  const InferContext context{row.op, operands, Attrs()};
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].is_number() && !row.numbers_allowed && !(row.number_mask >> i & 1))
      context.fail(fmt::format("operand {} must be a value, not a number", operand_name(row, i)));
  const std::optional<DType> dtype = number_dtype(row, operands);
  if (!dtype) context.fail("at least one operand must be a value that a number can take its dtype from");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Operand& o = operands[i];
    if (!o.is_number()) continue;
    if (is_float(*dtype)) {
      o.is_integer = false, o.integer = 0;
      if (o.number != o.number) o.number = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    if (!o.is_integer)
      context.fail(
          fmt::format("{} is no integer literal, and the other operand is {}", shortest_text(o.number), name(*dtype)));
    if (!holds(*dtype, o.integer)) context.fail(fmt::format("{} is out of range for {}", o.integer, name(*dtype)));
  }
}

Value make(Op op, std::vector<Operand> operands, Attrs attrs, Type type, std::uint32_t region,
           std::uint64_t serial = 0) {
  auto node = std::make_unique<Node>();
  node->op = op;
  node->region = region;
  node->serial = serial ? serial : next_serial();
  node->type = type;
  node->operands = std::move(operands);
  node->attrs = std::move(attrs);
  node->hash = hash_of(*node);
  node->origin = current_origin();
  return Value(node.release());
}

Value infer_and_make(const OpDef& row, std::vector<Operand> operands, Attrs attrs, std::uint32_t region,
                     std::optional<Layout> layout) {
  const InferContext context{row.op, operands, attrs};
  Type type = row.infer ? row.infer(context) : infer_elementwise(context);
  type.layout = layout.value_or(recorded_layout(type, operands));
  if (type.layout == Layout::nhwc && type.shape.rank() != 4)
    context.fail(
        fmt::format("only a result of rank 4 can be nhwc, this one is {}", Type{type.dtype, type.shape}.str()));
  return make(row.op, std::move(operands), std::move(attrs), type, region);
}

const OpDef& graph_row(Op op) {
  const OpDef& row = op_def(op);
  FJ_ASSERT(row.family != Family::leaf && row.family != Family::kernel, "{} is no op of graphs", row.name);
  return row;
}

Value build_any(std::optional<Layout> layout, Op op, std::vector<Operand> operands, Attrs attrs, std::uint32_t region) {
  const OpDef& row = graph_row(op);
  check_count(row, operands);
  check_numbers(row, operands);
  attrs = complete_attrs(row, operands, std::move(attrs));
  return infer_and_make(row, std::move(operands), std::move(attrs), region, layout);
}

}  // namespace

Value::Value(Node* adopted) : node_(adopted) {}
Value::Value(const Value& other) : node_(other.node_) {
  if (node_) node_->references.fetch_add(1, std::memory_order_relaxed);
}
Value::~Value() {
  if (node_) release(node_);
}
const Type& Value::type() const {
  FJ_ASSERT(node_, "an empty value has no type");
  return node_->type;
}

Value build(Op op, std::vector<Operand> operands, std::vector<AttrInit> attrs, std::uint32_t region) {
  const OpDef& row = graph_row(op);
  check_count(row, operands);
  check_numbers(row, operands);
  Attrs complete = complete_attrs(row, operands, attrs);
  return infer_and_make(row, std::move(operands), std::move(complete), region, std::nullopt);
}

Value build(Op op, std::vector<Operand> operands, Attrs attrs, std::uint32_t region) {
  return build_any(std::nullopt, op, std::move(operands), std::move(attrs), region);
}

Value build_in(Layout layout, Op op, std::vector<Operand> operands, Attrs attrs, std::uint32_t region) {
  return build_any(layout, op, std::move(operands), std::move(attrs), region);
}

std::uint64_t fresh_serial() { return next_serial(); }

Value rebuild(const Node& like, std::vector<Operand> operands, std::uint64_t serial) {
  FJ_ASSERT(like.op != Op::parameter && operands.size() == like.operands.size(), "rebuild: {} operands in place of {}",
            operands.size(), like.operands.size());
  const OriginScope scope(like);
  return make(like.op, std::move(operands), like.attrs, like.type, like.region, serial);
}

Value parameter(Type type, std::string name) {
  FJ_CHECK(is_tensor_dtype(type.dtype), "a parameter cannot be {}", type.str());
  FJ_CHECK(type.layout == Layout::standard || type.shape.rank() == 4, "only a value of rank 4 can be nhwc, not {}",
           type.str());
  auto node = std::make_unique<Node>();
  node->serial = next_serial();
  node->type = type;
  node->name = std::move(name);
  node->hash = hash_of(*node);
  return Value(node.release());
}

namespace expr {
Value operator+(const Operand& a, const Operand& b) { return build(Op::add, {a, b}); }
Value operator-(const Operand& a, const Operand& b) { return build(Op::sub, {a, b}); }
Value operator*(const Operand& a, const Operand& b) { return build(Op::mul, {a, b}); }
Value operator/(const Operand& a, const Operand& b) { return build(Op::div, {a, b}); }
Value operator-(const Value& a) { return build(Op::neg, {a}); }
}  // namespace expr

}  // namespace fusejit::ir
