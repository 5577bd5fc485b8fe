// Sites: the loads and stores of a kernel as index expressions over the loops around them, and what an element tells of
// the iterations that touch it. Rules V1, V2 and V11 are questions about sites.
#pragma once

#include <optional>
#include <vector>

#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {

// A load or store of a memory, with its index made ready for the separation test (kernel-ir.md §8, V1).
struct Site {
  const Stmt* stmt;
  const Place* place;
  const Memory* memory;
  bool is_store;
  Path path;  // inside the declaration of a local
  VariableRanges ranges;
  struct Term {
    std::int64_t coefficient;
    IndexAtom atom;
    std::int64_t low;     // the atom is in low .. low + extent - 1
    std::int64_t extent;  // 2⁶⁰ if not known
  };
  struct Dim {
    std::vector<Term> terms;  // by falling |coefficient|; variables held by == are constants
    std::int64_t constant;
  };
  std::vector<Dim> dims;
  // Numbers of which some dims are the digits: E of [E / 20, E % 5, v, E / 5 % 4], and what each counts: 20, 1, 0, 5.
  struct Digits {
    Index number;
    std::vector<std::int64_t> weights;
  };
  std::vector<Digits> digits;
};

// The access `stmt` to `memory`; its loops count from `declared_at` of the path on.
Site make_site(const Stmt& stmt, const Memory& memory, const Path& path, std::size_t declared_at);

bool is_parallel(Binding binding);
// The one value of a variable that gets through the enclosing conditions.
std::optional<std::int64_t> fixed_value(VarId variable, const Path& path);
// More than one value of the loop's variable gets to the site.
bool repeats(const ForStmt& loop, const Site& site);

// The two may be at different places of a loop around both.
bool may_differ(const ForStmt& loop, const Site& a, const Site& b);

// Loops around both, the common start of their paths.
std::vector<const ForStmt*> common_loops(const Site& a, const Site& b);

// Atoms with one value for each element that the site touches: iterations where they differ touch different elements.
std::vector<IndexAtom> told_by_element(const Site& site);
// Atoms of the common loops that are equal wherever the two sites touch the same element.
std::vector<IndexAtom> equal_where_they_meet(const Site& a, const Site& b, const std::vector<const ForStmt*>& common);
bool holds(const std::vector<IndexAtom>& atoms, VarId variable);

// No iteration of one touches what any iteration of the other does: boxes, residues or digits that never meet.
bool always_apart(const Site& a, const Site& b);
// The same for iterations in which all common loops are at the same place.
bool apart_in_one_iteration(const Site& a, const Site& b);
// One element for corresponding iterations: the same index over common loops and own loops of equal extent.
bool same_element(const Site& a, const Site& b);

}  // namespace fusejit::ir
