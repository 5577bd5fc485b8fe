#include "scheduler/lower/long_sum.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;
using ir::Op;

bool is_long_sum(std::int64_t terms, DType type) { return terms > kLongSum && type == DType::f32; }

LongSum::LongSum(KernelBuilder& builder, ir::MemId sums)
    : sums_(sums), wide_(builder.local(ir::MemKind::register_local, DType::f64, builder.memory(sums).dims, 0)) {}

void LongSum::each(KernelBuilder& builder, const std::function<void(std::vector<Index>)>& body) const {
  const std::vector<std::int64_t> dims = builder.memory(sums_).dims;
  const std::function<void(std::vector<Index>)> nest = [&](std::vector<Index> at) {
    if (at.size() == dims.size()) return body(at);
    unrolled(builder, dims[at.size()], [&](Index i) {
      std::vector<Index> deeper = at;
      deeper.push_back(i);
      nest(deeper);
    });
  };
  nest({});
}

void LongSum::flush(KernelBuilder& builder) const {
  each(builder, [&](const std::vector<Index>& at) {
    const DType type = builder.memory(sums_).dtype;
    Arg sum = builder.load(sums_, at);
    if (type != DType::f64) sum = builder.def(Op::cast, {sum}, DType::f64);
    builder.store(wide_, at, builder.def(Op::add, {builder.load(wide_, at), sum}, DType::f64));
    builder.store(sums_, at, KernelBuilder::literal(0, type));
  });
}

void LongSum::close(KernelBuilder& builder) const {
  flush(builder);
  each(builder, [&](const std::vector<Index>& at) {
    const DType type = builder.memory(sums_).dtype;
    const Arg sum = builder.load(wide_, at);
    builder.store(sums_, at, type == DType::f64 ? sum : Arg(builder.def(Op::cast, {sum}, type)));
  });
}

void loop_in_blocks(KernelBuilder& builder, std::int64_t count, std::int64_t block,
                    const std::function<void(Index)>& body, const std::function<void()>& after) {
  const std::int64_t whole = count / block, rest = count % block;
  if (whole > 0) {
    builder.loop(Index(0), Index(whole), Binding::none, [&](Index b) {
      builder.loop(Index(0), Index(block), Binding::none, [&](Index i) { body(b * block + i); });
      after();
    });
  }
  if (rest == 0) return;
  builder.loop(Index(0), Index(rest), Binding::none, [&](Index i) { body(Index(whole * block) + i); });
  after();
}

void loop_chunk_in_blocks(KernelBuilder& builder, const Split& s, const Index& task, std::int64_t block,
                          const std::function<void(Index)>& body, const std::function<void()>& after) {
  builder.loop(Index(0), Index(s.chunk / block), Binding::none, [&](Index b) {
    const Index first = task * s.chunk + b * block;
    std::vector<Index> high{Index(block)};
    if (!s.even()) high.push_back(Index(s.count) - first);
    builder.loop({Index(0)}, high, Binding::none, [&](Index i) { body(first + i); });
    after();
  });
}

Split in_blocks(const Split& s, std::int64_t block) {
  Split whole = s;
  whole.chunk = (s.chunk + block - 1) / block * block;
  whole.chunks = (s.count + whole.chunk - 1) / whole.chunk;
  return whole;
}

}  // namespace fusejit::scheduler
