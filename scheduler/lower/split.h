// Splitting an axis into parallel tasks and into whole vectors with a tail.
#pragma once

#include <functional>

#include "ir/kernel/builder.h"

namespace fusejit::scheduler {

// `count` units cut into at most `tasks` chunks of equal size; the last may be shorter.
struct Split {
  std::int64_t count = 1, chunk = 1, chunks = 1;
  bool even() const { return count == chunk * chunks; }
  std::int64_t last() const { return count - chunk * (chunks - 1); }
};
Split split(std::int64_t count, std::int64_t tasks);

// Largest divisor of n that is at most `most`.
std::int64_t divisor_up_to(std::int64_t n, std::int64_t most);

// `extent` parallel iterations, and copies; one iteration is no loop, so that its variable stands in no index.
void parallel(ir::KernelBuilder& builder, std::int64_t extent, const std::function<void(ir::Index)>& body);
void unrolled(ir::KernelBuilder& builder, std::int64_t extent, const std::function<void(ir::Index)>& body);
void serial(ir::KernelBuilder& builder, std::int64_t extent, const std::function<void(ir::Index)>& body);

// body(i) for i in 0 .. extent-1, so many of a turn as copies: in each i is the turn's index plus a constant.
void in_copies(ir::KernelBuilder& builder, std::int64_t extent, std::int64_t copies,
               const std::function<void(ir::Index)>& body);

// for unit in chunk `task`: body(unit), ascending.
void loop_chunk(ir::KernelBuilder& builder, const Split& split, const ir::Index& task,
                const std::function<void(ir::Index)>& body);

// Lanes over `extent` elements: `whole(index)` inside a vector loop for full vectors, serial or unrolled by size; the
// tail under `lane < rest`.
// `tail` in place of `body` where it may not do the same.
void loop_vectors(ir::KernelBuilder& builder, std::int64_t extent, int lanes,
                  const std::function<void(ir::Index)>& body, const std::function<void(ir::Index)>& tail = {});
// load(), or 0 where one of the conditions does not hold.
ir::Arg value_or_zero(ir::KernelBuilder& builder, const std::vector<ir::Compare>& there, DType type,
                      const std::function<ir::Arg()>& load);
// load(), or 0 where `i` is not below `extent`: in lanes beyond the last element.
ir::Arg value_or_zero(ir::KernelBuilder& builder, const ir::Index& i, std::int64_t extent, DType type,
                      const std::function<ir::Arg()>& load);
// One vector loop whose body is guarded by `lane < count` if that is needed.
void one_vector(ir::KernelBuilder& builder, int lanes, std::int64_t count, const std::function<void(ir::Index)>& body);

}  // namespace fusejit::scheduler
