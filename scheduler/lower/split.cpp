#include "scheduler/lower/split.h"

#include <algorithm>

#include "scheduler/lower/expression/expression.h"
#include "scheduler/lower/tuning.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;

namespace {

void loop(KernelBuilder& builder, std::int64_t extent, Binding binding, const std::function<void(Index)>& body) {
  if (extent == 1) return body(Index(0));
  builder.loop(Index(0), Index(extent), binding, body);
}

}  // namespace

std::int64_t divisor_up_to(std::int64_t n, std::int64_t most) {
  std::int64_t divisor = std::min(n, most);
  while (n % divisor != 0) --divisor;
  return divisor;
}

void parallel(KernelBuilder& builder, std::int64_t extent, const std::function<void(Index)>& body) {
  loop(builder, extent, Binding::threads, body);
}
void unrolled(KernelBuilder& builder, std::int64_t extent, const std::function<void(Index)>& body) {
  loop(builder, extent, Binding::unroll, body);
}
void serial(KernelBuilder& builder, std::int64_t extent, const std::function<void(Index)>& body) {
  loop(builder, extent, Binding::none, body);
}

Split split(std::int64_t count, std::int64_t tasks) {
  Split s;
  s.count = count;
  s.chunk = std::max<std::int64_t>(1, (count + tasks - 1) / std::max<std::int64_t>(tasks, 1));
  s.chunks = std::max<std::int64_t>(1, (count + s.chunk - 1) / s.chunk);
  return s;
}

void in_copies(KernelBuilder& builder, std::int64_t extent, std::int64_t copies,
               const std::function<void(Index)>& body) {
  const std::int64_t turns = extent / copies;
  // Copies by number, not `unroll`: constants are proven more of.
  const auto some = [&](const Index& first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) body(first + Index(i));
  };
  if (turns > 0)
    builder.loop(Index(0), Index(turns), Binding::none, [&](const Index& turn) { some(turn * copies, copies); });
  some(Index(turns * copies), extent % copies);
}

void loop_chunk(KernelBuilder& builder, const Split& s, const Index& task, const std::function<void(Index)>& body) {
  std::vector<Index> high{Index(s.chunk)};
  if (!s.even()) high.push_back(Index(s.count) - task * s.chunk);
  builder.loop({Index(0)}, high, Binding::none, [&](Index i) { body(task * s.chunk + i); });
}

void one_vector(KernelBuilder& builder, int lanes, std::int64_t count, const std::function<void(Index)>& body) {
  builder.loop(Index(0), Index(lanes), Binding::vector, [&](Index lane) {
    if (count >= lanes) return body(lane);
    builder.when({compare(lane, ir::CompareKind::lt, count)}, [&] { body(lane); });
  });
}

Arg value_or_zero(KernelBuilder& builder, const std::vector<ir::Compare>& there, DType type,
                  const std::function<Arg()>& load) {
  if (there.empty()) return load();
  return builder.choose(
      there, {type}, [&] { return std::vector<Arg>{load()}; },
      [&] { return std::vector<Arg>{KernelBuilder::literal(0, type)}; })[0];
}

Arg value_or_zero(KernelBuilder& builder, const Index& i, std::int64_t extent, DType type,
                  const std::function<Arg()>& load) {
  return value_or_zero(builder, {compare(i, ir::CompareKind::lt, extent)}, type, load);
}

void loop_vectors(KernelBuilder& builder, std::int64_t extent, int lanes, const std::function<void(Index)>& body,
                  const std::function<void(Index)>& tail) {
  const std::int64_t whole = extent / lanes, rest = extent % lanes;
  if (whole > 0) {
    const Binding binding = whole <= tuning::kUnrolledVectors ? Binding::unroll : Binding::none;
    builder.loop(Index(0), Index(whole), binding, [&](Index j) {
      builder.loop(Index(0), Index(lanes), Binding::vector, [&](Index lane) { body(j * lanes + lane); });
    });
  }
  if (rest > 0)
    one_vector(builder, lanes, rest, [&](Index lane) { (tail ? tail : body)(lane + Index(whole * lanes)); });
}

}  // namespace fusejit::scheduler
