// Index expressions as C++: in int where they fit, else in long long.
#include <fmt/format.h>

#include "codegen/cuda/emitter.h"

namespace fusejit::codegen::cuda {
namespace {

using ir::AtomKind;
using ir::Index;
using ir::IndexAtom;

constexpr double kInt = 2147483648.0, kUnknown = 4.6e18;

double magnitude(const Emitter& e, const Index& index);

// No larger in magnitude than this; a double is exact enough for a limit of 2^31.
double magnitude(const Emitter& e, const IndexAtom& atom) {
  switch (atom.kind) {
    case AtomKind::variable: {
      const auto range = e.ranges.of(atom);
      if (!range) return kUnknown;
      return static_cast<double>(std::max(std::abs(range->low), std::abs(range->high)));
    }
    case AtomKind::value:
      return e.kernel.values[static_cast<std::size_t>(atom.id)] == DType::i32 ? kInt : kUnknown;
    case AtomKind::quotient:
      return magnitude(e, *atom.inner) / static_cast<double>(atom.divisor) + 1;
    case AtomKind::remainder:
      return static_cast<double>(atom.divisor);
  }
  return kUnknown;
}

double magnitude(const Emitter& e, const Index& index) {
  double sum = std::abs(static_cast<double>(index.constant()));
  for (const ir::IndexTerm& t : index.terms())
    sum += std::abs(static_cast<double>(t.coefficient)) * magnitude(e, t.atom);
  return sum;
}

// Is the C++ expression of the atom an int?
bool is_int(const Emitter& e, const IndexAtom& atom) {
  if (atom.kind == AtomKind::variable) return !e.wide[static_cast<std::size_t>(atom.id)];
  if (atom.kind == AtomKind::value) return e.kernel.values[static_cast<std::size_t>(atom.id)] == DType::i32;
  return fits_int(e, *atom.inner);
}

std::string atom_text(const Emitter& e, const IndexAtom& atom) {
  if (atom.kind == AtomKind::variable) return variable_name(e, atom.id);
  if (atom.kind == AtomKind::value) return text(e, atom.id);
  const auto named = e.quotient_names.find(index_key(e, Index::of(atom)));
  if (named != e.quotient_names.end()) return named->second;
  const std::string division = quotient_text(e, atom);
  return division.back() == ')' ? division : "(" + division + ")";  // a call needs none
}

}  // namespace

bool fits_int(const Emitter& e, const Index& index) { return magnitude(e, index) < kInt; }

std::string quotient_text(const Emitter& e, const IndexAtom& atom) {
  const bool narrow = fits_int(e, *atom.inner);
  const auto range = atom.inner->interval(e.ranges);
  const bool quotient = atom.kind == AtomKind::quotient;
  const bool bare = e.quotient_names.contains(index_key(e, *atom.inner)) ||
                    (atom.inner->terms().size() == 1 && atom.inner->constant() == 0 &&
                     atom.inner->terms()[0].coefficient == 1 && (narrow || !is_int(e, atom.inner->terms()[0].atom)));
  const std::string inner = index_text(e, *atom.inner), divisor = fmt::format("{}{}", atom.divisor, narrow ? "" : "LL");
  if (range && range->low >= 0)
    return fmt::format("{} {} {}", bare ? inner : fmt::format("({})", inner), quotient ? '/' : '%', divisor);
  return fmt::format("fj_floor_{}<{}>({}, {})", quotient ? "div" : "mod", narrow ? "int" : "long long", inner, divisor);
}

std::string place_text(const Emitter& e, const Index& flat, ir::MemId memory) {
  const bool narrow = fits_int(e, flat);
  std::string s;
  // In the canonical order of terms, and a number beside each stride: grouped by stride they read better, but ptxas
  // found registers for fewer of them.
  for (const ir::IndexTerm& t : flat.terms()) {
    if (s.empty()) {
      if (t.coefficient < 0) s += '-';
    } else {
      s += t.coefficient < 0 ? " - " : " + ";
    }
    const std::int64_t factor = std::abs(t.coefficient);
    const std::string atom = atom_text(e, t.atom);
    if (factor != 1) {
      s += fmt::format("{}*{}", atom, narrow ? factor_text(e, memory, factor) : fmt::format("{}LL", factor));
    } else if (narrow || !is_int(e, t.atom)) {
      s += atom;
    } else {
      s += fmt::format("static_cast<long long>({})", atom);
    }
  }
  const char* suffix = narrow ? "" : "LL";
  if (s.empty()) return fmt::format("{}{}", flat.constant(), suffix);
  if (flat.constant() != 0)
    s += fmt::format(" {} {}{}", flat.constant() < 0 ? '-' : '+', std::abs(flat.constant()), suffix);
  return s;
}

std::string index_text(const Emitter& e, const Index& index) {
  const auto named = e.quotient_names.find(index_key(e, index));
  return named != e.quotient_names.end() ? named->second : place_text(e, index, -1);
}

std::string compare_text(const Emitter& e, const ir::Compare& c) {
  static constexpr const char* kSigns[] = {"<", ">=", "=="};
  return fmt::format("{} {} {}", index_text(e, c.left), kSigns[static_cast<int>(c.kind)],
                     index_text(e, Index(c.right)));
}

Index flatten(const Emitter& e, const ir::Place& place) {
  const auto memory = static_cast<std::size_t>(place.memory);
  const std::vector<std::int64_t>& dims = e.kernel.memories[memory].dims;
  Index flat;
  for (auto d = static_cast<std::size_t>(e.facts.thread_dims[memory]); d < dims.size(); ++d)
    flat = flat * dims[d] + place.index[d];
  return flat.simplify(e.ranges);
}

Index first_lane(const Emitter& e, const ir::Place& place) {
  return flatten(e, place) - Index::variable(e.vector->variable);
}

bool is_contiguous(const Emitter& e, const ir::Place& place) {
  const ir::Memory& memory = e.kernel.memories[static_cast<std::size_t>(place.memory)];
  if (memory.kind == ir::MemKind::register_local) return false;
  const Index flat = flatten(e, place);
  if (flat.coefficient_of(e.vector->variable) != 1) return false;
  const Index first = first_lane(e, place);
  if (varies(e.facts.lanes, first)) return false;
  if (memory.dtype != DType::b1) return true;
  bool whole = e.lane_count() % 8 == 0 && first.constant() % 8 == 0;
  for (const ir::IndexTerm& t : first.terms()) whole = whole && t.coefficient % 8 == 0;
  return whole;
}

}  // namespace fusejit::codegen::cuda
