#include "scheduler/lower/accumulator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "scheduler/fuse/analysis.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Combiner;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;
using ir::Op;

namespace {

bool pairs(Combiner c) { return c == Combiner::argmax || c == Combiner::argmin; }

}  // namespace

Accumulators::Accumulators(GroupKernel& kernel) : kernel_(kernel) {
  const ir::Graph& graph = kernel.graph();
  std::map<int, bool> has_var;
  for (const int node : kernel.group().reductions) {
    has_var[expression_of(graph, node)] |= graph.value(node)->op == Op::var;
  }
  std::map<std::pair<int, Combiner>, std::size_t> known;
  for (const int node : kernel.group().reductions) {
    const ir::Node& n = *graph.value(node);
    const int expression = expression_of(graph, node);
    const bool moments = n.op == Op::var || (n.op == Op::mean && has_var[expression]);
    const Combiner combiner = moments ? Combiner::welford : ir::op_def(n.op).combiner;
    const auto [place, fresh] = known.try_emplace({expression, combiner}, list_.size());
    if (fresh) {
      const DType element = compute_type(graph.value(expression).type().dtype);
      Accumulation a;
      a.expression = expression, a.combiners = {combiner}, a.moments = moments;
      if (moments) {
        a.combiners.push_back(Combiner::add);  // a plain sum beside them, for means that are infinite
        a.types = {DType::f64, DType::f64, DType::f64, DType::f64};
      } else if (combiner == Combiner::logical_and || combiner == Combiner::logical_or) {
        a.types = {DType::boolean};
      } else if (pairs(combiner)) {
        a.types = {element == DType::boolean ? DType::i32 : element, DType::i64};
      } else if (combiner == Combiner::add || combiner == Combiner::mul) {
        a.types = {is_float(element) ? element : DType::i64};
      } else {
        a.types = {element == DType::boolean ? DType::i32 : element};
      }
      a.running = a.types[0];
      list_.push_back(a);
    }
    list_[place->second].nodes.push_back(node);
  }
}

void Accumulators::sum_in_blocks() {
  for (Accumulation& a : list_) {
    if (a.combiners[0] == Combiner::add && a.running == DType::f32) a.types[0] = DType::f64;
  }
}

void Accumulators::share_shifts() {
  for (Accumulation& a : list_) {
    if (!a.moments) continue;
    a.one_shift = true;
    const ir::Node& element = *kernel_.graph().value(a.expression);
    const auto is_narrow = [](DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; };
    a.in_blocks = is_narrow(element.type.dtype) ||
                  (element.op == Op::cast && element.type.dtype == DType::f32 && !element.operands[0].is_number() &&
                   is_narrow(element.operands[0].value.type().dtype));
    a.combiners = {Combiner::add, Combiner::add, Combiner::maximum};  // of equal shifts any will do
    a.types = {DType::f64, DType::f64, DType::f64};
  }
}

std::int64_t Accumulators::block_of_moments() const {
  constexpr std::int64_t kTerms = 8;
  const bool any = std::any_of(list_.begin(), list_.end(), [](const Accumulation& a) { return a.in_blocks; });
  return any ? kTerms : 0;
}

std::vector<Arg> Accumulators::shifts() {
  std::vector<Arg> all;
  for (const Accumulation& a : list_) {
    if (a.one_shift) all.push_back(shift_of(a));
  }
  return all;
}

std::vector<Combiner> Accumulators::running_combiners() const {
  std::vector<Combiner> all;
  for (const Accumulation& a : list_)
    all.insert(all.end(), a.combiners.begin(), a.combiners.end() - (a.one_shift ? 1 : 0));
  return all;
}

std::vector<DType> Accumulators::running_types() const {
  std::vector<DType> all;
  for (const Accumulation& a : list_) all.insert(all.end(), a.types.begin(), a.types.begin() + a.components());
  return all;
}

std::vector<Arg> Accumulators::with_shifts(const std::vector<Arg>& running, const std::vector<Arg>& shifts) {
  std::vector<Arg> all;
  auto next = running.begin();
  auto shift = shifts.begin();
  for (const Accumulation& a : list_) {
    const auto end = next + a.components();
    all.insert(all.end(), next, end);
    if (a.one_shift) all.push_back(kernel_.expression().convert(*shift++, DType::f64));
    next = end;
  }
  return all;
}

void Accumulators::flush(const State& state) {
  for (const LongSum& sum : state.long_sums) sum.flush(kernel_.builder());
}

std::vector<int> Accumulators::expressions() const {
  std::vector<int> nodes;
  for (const Accumulation& a : list_) nodes.push_back(a.expression);
  return nodes;
}

std::vector<Combiner> Accumulators::combiners() const {
  std::vector<Combiner> all;
  for (const Accumulation& a : list_) all.insert(all.end(), a.combiners.begin(), a.combiners.end());
  return all;
}

std::vector<DType> Accumulators::types() const {
  std::vector<DType> all;
  for (const Accumulation& a : list_) all.insert(all.end(), a.types.begin(), a.types.end());
  return all;
}

std::int64_t Accumulators::words() const {
  std::int64_t words = 0;
  for (const Accumulation& a : list_) {
    if (a.is_long()) words += bytes(a.running, 1) / 4;
    for (const DType type : a.types) words += std::max<std::int64_t>(1, bytes(type, 1) / 4);
  }
  return words;
}

namespace {

void each_column(KernelBuilder& builder, int columns, const std::function<void(Index)>& body) {
  if (columns == 1) return body(Index(0));
  builder.loop(Index(0), Index(columns), ir::Binding::unroll, body);
}

}  // namespace

Accumulators::State Accumulators::open(int columns, const std::function<void(const Index&)>& move_to_first) {
  const State state = open(columns);
  each_column(kernel_.builder(), columns, [&](Index column) {
    move_to_first(column);
    kernel_.expression().nested([&] { set_shifts(state, column); });
  });
  return state;
}

Accumulators::State Accumulators::open_shared(std::vector<Arg> shifts) {
  State state = open(1);
  state.shifts = std::move(shifts);
  return state;
}

Accumulators::State Accumulators::open_independent(int count, const std::function<void()>& move_to_first) {
  const State state = open(count, count > 1);
  move_to_first();
  kernel_.expression().nested([&] { set_shifts(state, Index(0)); });
  return state;
}

void Accumulators::join(const State& state, int count) {
  flush(state);
  if (count == 1) return;
  KernelBuilder& builder = kernel_.builder();
  const auto fold = [&](ir::MemId local, Op op, DType type) {
    for (int c = 1; c < count; ++c) {
      const Arg sum = builder.load(local, {Index(0)}), part = builder.load(local, {Index(c)});
      builder.store(local, {Index(0)}, builder.def(op, {sum, part}, type));
    }
  };
  std::size_t next = 0, next_long = 0;
  for (const Accumulation& a : list_) {
    if (a.moments) {
      ++next;  // the shift
      for (int i = 0; i < 2; ++i) fold(state.registers[next++], Op::add, DType::f64);
    } else if (a.is_long()) {
      fold(state.long_sums[next_long++].wide(), Op::add, DType::f64), ++next;
    } else {
      fold(state.registers[next++], ir::combining_op(a.combiners[0]), a.types[0]);
    }
  }
}

Accumulators::State Accumulators::open(int columns, bool independent) {
  KernelBuilder& builder = kernel_.builder();
  State state;
  state.independent = independent;
  for (const Accumulation& a : list_) {
    if (a.moments) {
      const DType element = compute_type(kernel_.graph().value(a.expression).type().dtype);
      if (!a.one_shift)
        state.registers.push_back(builder.local(MemKind::register_local, element, {independent ? 1 : columns}, 0));
      for (int i = 0; i < 2; ++i) {
        const DType type = a.in_blocks ? DType::f32 : DType::f64;
        state.registers.push_back(builder.local(MemKind::register_local, type, {columns}, 0));
        if (a.in_blocks) state.long_sums.emplace_back(builder, state.registers.back());
      }
      continue;
    }
    for (std::size_t c = 0; c < a.types.size(); ++c) {
      const ir::MemId local = builder.local(MemKind::register_local, c == 0 ? a.running : a.types[c], {columns});
      const Arg start = ir::identity(a.combiners[0], static_cast<int>(c), c == 0 ? a.running : a.types[c]);
      each_column(builder, columns, [&](Index column) { builder.store(local, {column}, start); });
      state.registers.push_back(local);
    }
    if (a.is_long()) state.long_sums.emplace_back(builder, state.registers.back());
  }
  return state;
}

// The element at hand. An infinite or NaN one is no shift: inf - inf would hide that the mean is inf.
Arg Accumulators::shift_of(const Accumulation& a) {
  KernelBuilder& builder = kernel_.builder();
  const Arg first = kernel_.value(a.expression);
  const DType type = builder.dtype(first);
  const Arg zero = KernelBuilder::literal(0, type);
  const Arg finite = builder.def(Op::eq, {Arg(builder.def(Op::sub, {first, first}, type)), zero}, DType::boolean);
  return builder.def(Op::where, {finite, first, zero}, type);
}

void Accumulators::set_shifts(const State& state, const Index& column) {
  std::size_t next = 0;
  for (const Accumulation& a : list_) {
    if (a.moments) kernel_.builder().store(state.registers[next], {column}, shift_of(a));
    next += a.moments ? 3 : a.types.size();
  }
}

void Accumulators::add(const State& state, const Index& column, const Index& flat) {
  KernelBuilder& builder = kernel_.builder();
  Expression& expression = kernel_.expression();
  const std::vector<Index> at{column}, shift{state.independent ? Index(0) : column};
  std::size_t next = 0, next_shift = 0;
  for (const Accumulation& a : list_) {
    const Arg raw = kernel_.value(a.expression);
    if (a.moments) {
      const DType type = builder.dtype(raw);
      const Arg from = a.one_shift ? state.shifts[next_shift++] : Arg(builder.load(state.registers[next++], shift));
      const Arg shifted = builder.def(Op::sub, {raw, from}, type);
      const DType sums = a.in_blocks ? DType::f32 : DType::f64;
      const Arg d = expression.convert(shifted, sums);
      const ir::MemId first = state.registers[next++], second = state.registers[next++];
      builder.store(first, at, builder.def(Op::add, {builder.load(first, at), d}, sums));
      const Arg so_far = builder.load(second, at);
      const bool fma = kernel_.context().target.has_fma();
      builder.store(second, at,
                    fma ? builder.def(Op::fma, {d, d, so_far}, sums)
                        : builder.def(Op::add, {so_far, Arg(builder.def(Op::mul, {d, d}, sums))}, sums));
      continue;
    }
    Arg x = raw;
    if (a.types[0] == DType::boolean && builder.dtype(raw) != DType::boolean) {
      x = builder.def(Op::ne, {raw, KernelBuilder::literal(0, builder.dtype(raw))}, DType::boolean);
    } else {
      x = expression.convert(raw, a.running);
    }
    const ir::MemId local = state.registers[next++];
    const Arg old = builder.load(local, at);
    if (!pairs(a.combiners[0])) {
      builder.store(local, at, builder.def(ir::combining_op(a.combiners[0]), {old, x}, a.running));
      continue;
    }
    // Elements pass in ascending order, so a later one wins only if it is strictly better (or the first NaN).
    const ir::MemId position = state.registers[next++];
    const Op better = ir::combining_op(a.combiners[0]);
    Arg wins = builder.def(better, {x, old}, DType::boolean);
    if (is_float(a.types[0])) {
      const Arg nan = builder.def(Op::ne, {x, x}, DType::boolean),
                known = builder.def(Op::eq, {old, old}, DType::boolean);
      wins = builder.def(Op::logical_or, {wins, builder.def(Op::logical_and, {nan, known}, DType::boolean)},
                         DType::boolean);
    }
    // An element equal to the identity (-inf, MIN) still beats "none yet".
    const Arg old_position = builder.load(position, at);
    const Arg none =
        builder.def(Op::eq, {old_position, Arg(ir::identity(a.combiners[0], 1, DType::i64))}, DType::boolean);
    wins = builder.def(Op::logical_or, {wins, none}, DType::boolean);
    builder.store(local, at, builder.def(Op::where, {wins, x, old}, a.types[0]));
    const Arg own = builder.index(flat, DType::i64);
    builder.store(position, at, builder.def(Op::where, {wins, own, old_position}, DType::i64));
  }
}

std::vector<Arg> Accumulators::partial(const State& state, const Index& column, Arg count) {
  KernelBuilder& builder = kernel_.builder();
  const std::vector<Index> at{column};
  const auto f64_op = [&](Op op, Arg a, Arg b) { return Arg(builder.def(op, {a, b}, DType::f64)); };
  const Arg zero = KernelBuilder::literal(0, DType::f64);
  std::vector<Arg> result;
  std::size_t next = 0, next_long = 0;
  for (const Accumulation& a : list_) {
    if (a.is_long()) {
      result.push_back(builder.load(state.long_sums[next_long++].wide(), at)), ++next;
      continue;
    }
    if (!a.moments || a.one_shift) {
      for (std::ptrdiff_t c = 0; c < a.components(); ++c, ++next)
        result.push_back(builder.load(a.in_blocks ? state.long_sums[next_long++].wide() : state.registers[next], at));
      continue;
    }
    const Arg shift = kernel_.expression().convert(builder.load(state.registers[next++], at), DType::f64);
    const Arg s1 = builder.load(state.registers[next++], at), s2 = builder.load(state.registers[next++], at);
    const Arg d = f64_op(Op::div, s1, count);
    Arg mean = f64_op(Op::add, shift, d), m2 = f64_op(Op::maximum, f64_op(Op::sub, s2, f64_op(Op::mul, s1, d)), zero);
    if (!count.is_literal()) {
      const Arg none = builder.def(Op::eq, {count, zero}, DType::boolean);
      mean = builder.def(Op::where, {none, zero, mean}, DType::f64);
      m2 = builder.def(Op::where, {none, zero, m2}, DType::f64);
    }
    const Arg sum = f64_op(Op::add, s1, f64_op(Op::mul, shift, count));
    result.insert(result.end(), {count, mean, m2, sum});
  }
  return result;
}

Arg Accumulators::finish_node(const ir::Node& node, const Accumulation& a, const Arg* state, std::int64_t total) {
  KernelBuilder& builder = kernel_.builder();
  Expression& expression = kernel_.expression();
  const DType type = compute_type(node.type.dtype);
  const auto f64_op = [&](Op op, Arg x, Arg y) { return Arg(builder.def(op, {x, y}, DType::f64)); };
  const auto number = [](double n) { return Arg(KernelBuilder::literal(n, DType::f64)); };
  const auto corrected = [&] {
    const double n = static_cast<double>(total) - static_cast<double>(node.attrs.integer("correction"));
    return number(n > 0 ? n : 0);
  };
  if (a.one_shift) {
    const Arg d = f64_op(Op::div, state[0], number(static_cast<double>(total)));  // mean - shift
    if (node.op == Op::mean) return expression.convert(f64_op(Op::add, state[2], d), type);
    const Arg m2 = f64_op(Op::maximum, f64_op(Op::sub, state[1], f64_op(Op::mul, state[0], d)), number(0));
    return expression.convert(f64_op(Op::div, m2, corrected()), type);
  }
  if (a.moments && node.op == Op::mean) {
    // Welford's merge of an infinite mean is NaN (inf - inf); the sum is not.
    const Arg plain =
        builder.def(Op::div, {state[3], KernelBuilder::literal(static_cast<double>(total), DType::f64)}, DType::f64);
    const Arg broken = builder.def(Op::ne, {state[2], state[2]}, DType::boolean);
    return expression.convert(builder.def(Op::where, {broken, plain, state[1]}, DType::f64), type);
  }
  if (a.moments) return expression.convert(f64_op(Op::div, state[2], corrected()), type);
  if (node.op == Op::mean) {
    return builder.def(
        Op::div, {expression.convert(state[0], type), KernelBuilder::literal(static_cast<double>(total), type)}, type);
  }
  return expression.convert(pairs(a.combiners[0]) ? state[1] : state[0], type);
}

void Accumulators::finish(const std::vector<Arg>& combined, std::int64_t total) {
  std::size_t next = 0;
  for (const Accumulation& a : list_) {
    for (const int node : a.nodes) {
      const Arg value = finish_node(*kernel_.graph().value(node), a, &combined[next], total);
      kernel_.expression().bind(node, kernel_.class_index(node), value);
      kernel_.store_class(node, value);
    }
    next += a.types.size();
  }
  for (const int node : kernel_.group().finals) {
    kernel_.store_class(node, kernel_.expression().value(node, kernel_.class_index(node)));
  }
}

}  // namespace fusejit::scheduler
