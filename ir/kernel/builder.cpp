#include "ir/kernel/builder.h"

#include "ir/kernel/simplify/simplify.h"
#include "ir/kernel/walk.h"
#include "ir/strict.h"

namespace fusejit::ir {
namespace {

Compare compared(const Index& a, CompareKind kind, const Index& b) {
  const Index difference = a - b;
  return {difference - Index(difference.constant()), kind, -difference.constant()};
}

}  // namespace

Compare less(const Index& a, const Index& b) { return compared(a, CompareKind::lt, b); }
Compare at_least(const Index& a, const Index& b) { return compared(a, CompareKind::ge, b); }
Compare equals(const Index& a, const Index& b) { return compared(a, CompareKind::eq, b); }

KernelBuilder::KernelBuilder(std::string name, Isa isa) {
  kernel_.name = std::move(name);
  kernel_.isa = isa;
}

Block& KernelBuilder::block() {
  if (blocks_.empty()) next_phase();
  return *blocks_.back();
}

void KernelBuilder::append(decltype(Stmt::node) node) { block().statements.push_back({std::move(node), {}}); }

ValueId KernelBuilder::new_value(DType dtype) {
  kernel_.values.push_back(dtype);
  return static_cast<ValueId>(kernel_.values.size()) - 1;
}

std::vector<ValueId> KernelBuilder::new_values(const std::vector<DType>& types) {
  std::vector<ValueId> ids;
  for (DType t : types) ids.push_back(new_value(t));
  return ids;
}

MemId KernelBuilder::new_memory(Memory memory) {
  kernel_.memories.push_back(std::move(memory));
  return static_cast<MemId>(kernel_.memories.size()) - 1;
}

Index KernelBuilder::canonical(const Index& index) const { return index.simplify(ranges_); }

std::vector<Index> KernelBuilder::canonical(std::vector<Index> list) const {
  for (Index& index : list) index = canonical(index);
  return list;
}

// --- signature ---

MemId KernelBuilder::buffer(MemKind access, DType dtype, std::vector<std::int64_t> dims, std::int64_t align) {
  if (align == bytes(dtype)) align = 0;
  kernel_.params.push_back({new_memory({access, dtype, std::move(dims), align, false, {}}), -1});
  return kernel_.params.back().memory;
}

ValueId KernelBuilder::scalar(DType dtype) {
  kernel_.params.push_back({-1, new_value(dtype)});
  return kernel_.params.back().scalar;
}

MemId KernelBuilder::work(DType dtype, std::vector<std::int64_t> dims, std::int64_t align) {
  if (align == bytes(dtype)) align = 0;
  kernel_.works.push_back(new_memory({MemKind::work, dtype, std::move(dims), align, false, {}}));
  return kernel_.works.back();
}

void KernelBuilder::next_phase() {
  FJ_ASSERT(blocks_.size() <= 1, "kernel {}: a phase inside a loop", kernel_.name);
  kernel_.phases.emplace_back();
  blocks_ = {&kernel_.phases.back().body};
}

// --- statements ---

MemId KernelBuilder::local(MemKind kind, DType dtype, std::vector<std::int64_t> dims) {
  const MemId id = new_memory({kind, dtype, std::move(dims), 0, false, {}});
  append(LocalStmt{id});
  return id;
}

MemId KernelBuilder::local(MemKind kind, DType dtype, std::vector<std::int64_t> dims, double init) {
  const Scalar value = literal(init, dtype == DType::b1 ? DType::boolean : dtype).literal;
  const MemId id = new_memory({kind, dtype, std::move(dims), 0, true, value});
  append(LocalStmt{id});
  return id;
}

template <class Fill>
void KernelBuilder::fill(Block& into, const Fill& body) {
  FJ_ASSERT(blocks_.size() < static_cast<std::size_t>(kMaxNesting), "kernel {}: more than {} nested blocks",
            kernel_.name, kMaxNesting);
  blocks_.push_back(&into);
  body();
  blocks_.pop_back();
}

void KernelBuilder::loop(Index low, Index high, Binding binding, const Body& body) {
  loop(std::vector<Index>{std::move(low)}, std::vector<Index>{std::move(high)}, binding, body);
}

void KernelBuilder::loop(std::vector<Index> low, std::vector<Index> high, Binding binding, const Body& body) {
  block();  // opens the phase, if need be, before the loop hides it
  ForStmt s{{}, kernel_.variable_count++, canonical(std::move(low)), canonical(std::move(high)), binding, {}, {}};
  ranges_.enter(s);
  fill(s.body, [&] { body(Index::variable(s.variable)); });
  append(std::move(s));
}

std::vector<ValueId> KernelBuilder::reduce(std::vector<Index> low, std::vector<Index> high, Binding binding,
                                           std::vector<Combiner> combiners, std::vector<DType> types,
                                           const Yielding& body) {
  block();
  const std::vector<ValueId> results = new_values(types);
  ForStmt s{results,
            kernel_.variable_count++,
            canonical(std::move(low)),
            canonical(std::move(high)),
            binding,
            std::move(combiners),
            {}};
  ranges_.enter(s);
  fill(s.body, [&] {
    std::vector<Arg> yields = body(Index::variable(s.variable));
    s.body.yields = std::move(yields);
  });
  append(std::move(s));
  return results;
}

std::vector<Compare> KernelBuilder::canonical(std::vector<Compare> compares) const {
  for (Compare& c : compares) c = compared(canonical(c.left), c.kind, c.right);
  return compares;
}

void KernelBuilder::when(std::vector<Compare> condition, const std::function<void()>& then,
                         const std::function<void()>& otherwise) {
  block();
  IfStmt s{{}, -1, canonical(std::move(condition)), {}, {}};
  fill(s.then_block, then);
  if (otherwise) fill(s.else_block, otherwise);
  append(std::move(s));
}

void KernelBuilder::when(ValueId condition, const std::function<void()>& then) {
  block();
  IfStmt s{{}, condition, {}, {}, {}};
  fill(s.then_block, then);
  append(std::move(s));
}

std::vector<ValueId> KernelBuilder::choose(std::vector<Compare> condition, std::vector<DType> types,
                                           const std::function<std::vector<Arg>()>& then,
                                           const std::function<std::vector<Arg>()>& otherwise) {
  block();
  const std::vector<ValueId> results = new_values(types);
  IfStmt s{results, -1, canonical(std::move(condition)), {}, {}};
  fill(s.then_block, [&] { s.then_block.yields = then(); });
  fill(s.else_block, [&] { s.else_block.yields = otherwise(); });
  append(std::move(s));
  return results;
}

ValueId KernelBuilder::def(Op op, std::vector<Arg> args, DType result) {
  const ValueId id = new_value(result);
  append(DefStmt{{id}, op, std::move(args), {}});
  return id;
}

std::vector<ValueId> KernelBuilder::philox(Arg counter, Arg stream, Arg seed) {
  const std::vector<ValueId> words = new_values({DType::u32, DType::u32, DType::u32, DType::u32});
  append(DefStmt{words, Op::philox, {counter, stream, seed}, {}});
  return words;
}

ValueId KernelBuilder::load(MemId memory, std::vector<Index> index, bool through_views) {
  const DType element = this->memory(memory).dtype;
  const ValueId id = new_value(element == DType::b1 ? DType::boolean : element);
  append(LoadStmt{id, {memory, canonical(std::move(index))}, through_views});
  return id;
}

ValueId KernelBuilder::index(Index expression, DType dtype) {
  const ValueId id = new_value(dtype);
  append(IndexStmt{id, canonical(expression)});
  return id;
}

void KernelBuilder::store(MemId memory, std::vector<Index> index, Arg value, bool non_temporal) {
  append(StoreStmt{{memory, canonical(std::move(index))}, value, non_temporal});
}

void KernelBuilder::prefetch(MemId memory, std::vector<Index> index, PrefetchKind kind) {
  append(PrefetchStmt{{memory, canonical(std::move(index))}, kind});
}

// --- ends ---

Arg KernelBuilder::literal(double value, DType dtype) { return cast(Scalar::of(value), dtype); }

DType KernelBuilder::dtype(const Arg& arg) const {
  return arg.is_literal() ? arg.literal.dtype : kernel_.values[static_cast<std::size_t>(arg.value)];
}

Kernel KernelBuilder::finish(const std::function<void(Kernel&)>& attributes) && {
  FJ_ASSERT(blocks_.size() <= 1, "kernel {}: finished inside a loop", kernel_.name);
  Kernel kernel = simplify(kernel_);
  while (guard_views(kernel)) kernel = renumbered(kernel);  // what verify sees is what was asked about
  if (attributes) attributes(kernel);
  try {
    verify(kernel);
  } catch (const InternalError& error) {
    throw InternalError(fmt::format("{}\n{}", error.what(), print(kernel)));
  }
  check_text(kernel, parse_kernel);
  return kernel;
}

}  // namespace fusejit::ir
