// Quotients and remainders of indices, each computed once: where the last variable in it is defined, so that no loop
// divides for what it does not change. A sum that is divided more than once has a name too.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/emitter.h"
#include "ir/kernel/verify/verify.h"

namespace fusejit::codegen::cuda {
namespace {

using ir::AtomKind;
using ir::Index;
using ir::IndexAtom;

bool divides(const IndexAtom& atom) { return atom.kind == AtomKind::quotient || atom.kind == AtomKind::remainder; }

int height(const IndexAtom& atom) {
  int highest = 0;
  if (divides(atom))
    for (const ir::IndexTerm& t : atom.inner->terms()) highest = std::max(highest, 1 + height(t.atom));
  return highest;
}

class Collector {
 public:
  explicit Collector(Emitter& e) : e_(e) {}

  void run(const ir::Phase& phase) && {
    visit(phase.body);
    for (std::size_t i = 0; i < found_.size(); ++i) name_shared(found_[i].atom);  // which may find more
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Found& a, const Found& b) { return height(a.atom) < height(b.atom); });
    for (const Found& one : found_) count_sums(one.atom);
    for (const Found& one : found_) {
      name_sums(one.atom);
      e_.quotient_names[index_key(e_, Index::of(one.atom))] = name_of(one);
      e_.quotients[one.variable].push_back(Index::of(one.atom));
    }
  }

 private:
  struct Found {
    IndexAtom atom;
    ir::VarId variable;  // the innermost
  };

  void visit(const ir::Block& block) {
    for (const ir::Stmt& s : block.statements) {
      const ir::Place* place = ir::touched(s);
      if (place && !std::holds_alternative<ir::PrefetchStmt>(s.node)) {
        note_axes(*place);
        collect(flatten(e_, *place));
      } else if (!place) {
        ir::for_each_index(s, [&](const Index& index) { collect(index); });
      }
      if (const auto* loop = std::get_if<ir::ForStmt>(&s.node)) {
        e_.ranges.enter(*loop);
        loops_.push_back(loop);
        visit(loop->body);
        loops_.pop_back();
      }
      if (const auto* branch = std::get_if<ir::IfStmt>(&s.node)) visit(branch->then_block), visit(branch->else_block);
    }
  }

  void collect(const Index& index) {
    for (const ir::IndexTerm& t : index.terms())
      if (divides(t.atom)) add(t.atom);
  }

  // The innermost of the loops around whose variable is in the atom; -1: it is not known before it is used, since it
  // differs between lanes or has a loaded value in it.
  ir::VarId last_variable(const IndexAtom& atom) const {
    bool known = true;
    std::size_t last = 0;
    Index::of(atom).for_each_leaf([&](const IndexAtom& leaf) {
      const auto at = std::find_if(loops_.begin(), loops_.end(), [&](const ir::ForStmt* loop) {
        return leaf.kind == AtomKind::variable && loop->variable == leaf.id && loop->binding != ir::Binding::vector;
      });
      known = known && at != loops_.end();
      last = std::max(last, static_cast<std::size_t>(at - loops_.begin()));
    });
    return known ? loops_[last]->variable : -1;
  }

  void add(const IndexAtom& atom) {
    const std::string key = index_key(e_, Index::of(atom));
    if (known_.contains(key)) return;
    const ir::VarId variable = last_variable(atom);
    if (variable < 0) return;
    known_.insert(key);
    found_.push_back({atom, variable});
    note_variables(atom);
  }

  void note_variables(const IndexAtom& atom) {
    variables_[index_key(e_, Index::of(atom))] = last_variable(atom);
    for_each_inside(atom, [&](const IndexAtom& inside) { note_variables(inside); });
  }

  template <class F>
  static void for_each_inside(const IndexAtom& atom, const F& visit) {
    for (const ir::IndexTerm& t : atom.inner->terms())
      if (divides(t.atom)) visit(t.atom);
  }

  // What stands inside of several others has a name too.
  void name_shared(const IndexAtom& atom) {
    std::vector<IndexAtom> inside;
    for_each_inside(atom, [&](const IndexAtom& a) { inside.push_back(a); });
    for (const IndexAtom& a : inside) {
      const std::string key = index_key(e_, Index::of(a));
      if (++parents_[key] != 2 || known_.contains(key)) continue;
      known_.insert(key);
      found_.push_back({a, variables_.at(key)});
    }
  }

  // "row" for a quotient that is added to a row, "c4" for one that counts channels by fours.
  void note_axes(const ir::Place& place) {
    const std::vector<std::string>& axes = e_.axes[static_cast<std::size_t>(place.memory)];
    for (std::size_t d = 0; d < axes.size(); ++d) {
      for (const ir::IndexTerm& t : place.index[d].terms()) {
        if (!divides(t.atom) || t.coefficient < 0) continue;
        axes_.emplace(index_key(e_, Index::of(t.atom)),
                      axes[d] + (t.coefficient == 1 ? "" : std::to_string(t.coefficient)));
      }
    }
  }

  // Divisions of the same sum: "m0 / 26" and "m0 % 26".
  void count_sums(const IndexAtom& atom) {
    ++divisions_[index_key(e_, *atom.inner)];
    for_each_inside(atom, [&](const IndexAtom& a) {
      if (!known_.contains(index_key(e_, Index::of(a)))) count_sums(a);
    });
  }
  void name_sums(const IndexAtom& atom) {
    for_each_inside(atom, [&](const IndexAtom& a) { name_sums(a); });
    const std::string key = index_key(e_, *atom.inner);
    if (atom.inner->atoms() < 2 || divisions_[key] < 2 || e_.quotient_names.contains(key)) return;
    e_.quotient_names[key] = new_name(e_, fmt::format("m{}", e_.sum_count++));
    e_.quotients[variables_.at(index_key(e_, Index::of(atom)))].push_back(*atom.inner);
  }

  std::string name_of(const Found& one) {
    const auto axis = axes_.find(index_key(e_, Index::of(one.atom)));
    return new_name(e_, axis != axes_.end() ? axis->second : fmt::format("q{}", e_.quotient_count++));
  }

  Emitter& e_;
  std::vector<const ir::ForStmt*> loops_;
  std::vector<Found> found_;
  std::set<std::string> known_;              // keys of found_
  std::map<std::string, std::string> axes_;  // what is known of a quotient's meaning, by key
  std::map<std::string, int> parents_;
  std::map<std::string, int> divisions_;        // by key of what is divided
  std::map<std::string, ir::VarId> variables_;  // the innermost of each, also of what stands inside others
};

}  // namespace

std::string index_key(const Emitter& e, const Index& index) { return e.facts.names.index(index); }

void name_quotients(Emitter& e, const ir::Phase& phase) { Collector(e).run(phase); }

void define_quotients(Emitter& e, ir::VarId variable) {
  const auto found = e.quotients.find(variable);
  if (found == e.quotients.end()) return;
  for (const Index& index : found->second) {
    const IndexAtom& first = index.terms()[0].atom;
    const bool quotient = index == Index::of(first) && divides(first),
               narrow = fits_int(e, quotient ? *first.inner : index);
    std::string text = quotient ? quotient_text(e, first) : place_text(e, index, -1);
    // An unsigned division is cheaper, and says that a column is never negative: without it each tap of a window was
    // tested for the border, also where none is near.
    const auto divided = quotient ? first.inner->interval(e.ranges) : std::nullopt;
    if (divided && divided->low >= 0 && narrow) text += 'u';
    e.out.line(
        fmt::format("const {} {} = {};", narrow ? "int" : "long long", e.quotient_names.at(index_key(e, index)), text));
  }
}

}  // namespace fusejit::codegen::cuda
