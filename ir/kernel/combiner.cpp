#include "ir/kernel/combiner.h"

#include <algorithm>
#include <array>

#include "ir/base/check.h"

namespace fusejit::ir {
namespace {

enum class Start : std::uint8_t { zero, one, least, greatest };  // of the range of a dtype: -inf or MIN, inf or MAX
enum class Takes : std::uint8_t { number, truth, integer, floating };

struct Component {
  Start start;
  Takes takes;
};
struct Row {
  Combiner combiner;
  std::string_view name;
  Op op;
  int count;
  std::array<Component, 3> components;
};

constexpr Component kZero{Start::zero, Takes::floating};
constexpr Row kRows[] = {
    {Combiner::add, "add", Op::add, 1, {{{Start::zero, Takes::number}}}},
    {Combiner::mul, "mul", Op::mul, 1, {{{Start::one, Takes::number}}}},
    {Combiner::maximum, "maximum", Op::maximum, 1, {{{Start::least, Takes::number}}}},
    {Combiner::minimum, "minimum", Op::minimum, 1, {{{Start::greatest, Takes::number}}}},
    {Combiner::logical_and, "logical_and", Op::logical_and, 1, {{{Start::one, Takes::truth}}}},
    {Combiner::logical_or, "logical_or", Op::logical_or, 1, {{{Start::zero, Takes::truth}}}},
    {Combiner::argmax, "argmax", Op::gt, 2, {{{Start::least, Takes::number}, {Start::greatest, Takes::integer}}}},
    {Combiner::argmin, "argmin", Op::lt, 2, {{{Start::greatest, Takes::number}, {Start::greatest, Takes::integer}}}},
    {Combiner::welford, "welford", Op::count_, 3, {{kZero, kZero, kZero}}},
};
constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < std::size(kRows); ++i)
    if (static_cast<std::size_t>(kRows[i].combiner) != i) return false;
  return true;
}
static_assert(rows_in_order());

const Row& row(Combiner combiner) { return kRows[static_cast<std::size_t>(combiner)]; }

bool takes(Takes kind, DType dtype) {
  const bool is_number = dtype == compute_type(dtype) && dtype != DType::boolean;
  switch (kind) {
    case Takes::number:
      return is_number;
    case Takes::truth:
      return dtype == DType::boolean;
    case Takes::integer:
      return is_number && !is_float(dtype);
    case Takes::floating:
      return is_number && is_float(dtype);
  }
  return false;
}

}  // namespace

std::string_view name(Combiner combiner) { return row(combiner).name; }

std::optional<Combiner> combiner_named(std::string_view name) {
  const auto* found = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == name; });
  return found == std::end(kRows) ? std::nullopt : std::optional(found->combiner);
}

int components(Combiner combiner) { return row(combiner).count; }

Scalar identity(Combiner combiner, int component, DType dtype) {
  switch (row(combiner).components[static_cast<std::size_t>(component)].start) {
    case Start::zero:
      return cast(Scalar::of(std::int64_t{0}), dtype);
    case Start::one:
      return cast(Scalar::of(std::int64_t{1}), dtype);
    case Start::least:
      return end_of_range(dtype, false);
    case Start::greatest:
      return end_of_range(dtype, true);
  }
  throw InternalError("no identity");
}

bool combines(Combiner combiner, std::span<const DType> types) {
  const Row& r = row(combiner);
  if (types.size() != static_cast<std::size_t>(r.count)) return false;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (!takes(r.components[i].takes, types[i])) return false;
  return combiner != Combiner::welford || (types[0] == types[1] && types[0] == types[2]);
}

Op combining_op(Combiner combiner) { return row(combiner).op; }

}  // namespace fusejit::ir
