// Ids of one kernel as ids of another that it becomes a part of, and the signature of both.
#pragma once

#include <map>
#include <vector>

#include "ir/kernel/join/join.h"

namespace fusejit::ir {

class Renaming {
 public:
  // Adds what `second` names to `into`, which begins as `first`; a buffer of both is the first's.
  Renaming(const Kernel& first, const Kernel& second, const Joint& joint, Kernel& into);

  MemId memory(MemId id) const { return memories_[static_cast<std::size_t>(id)]; }
  // The variable of a loop that both begin with.
  void is(VarId of_second, VarId of_first) { common_[of_second] = of_first; }
  // All statements of a block of `second`.
  void block(Block& block) const;

 private:
  VarId variable(VarId id) const;
  Index index(const Index& index) const;
  void values(std::vector<ValueId>& ids) const;
  void place(Place& place) const;
  void statement(Stmt& stmt) const;

  const Kernel& second_;
  const Kernel& kernel_;
  const int first_variable_, first_value_;
  std::vector<MemId> memories_;
  std::map<VarId, VarId> common_;
};

// What both name is declared once in `into`, which begins as the first, as the first does and as it is used by both.
// False where they declare other elements.
bool declare_together(Kernel& into, const Kernel& first, const Kernel& second, const Joint& joint);

// The first's buffers, then those that only the second has.
void sign(Joined& joined, const Kernel& first, const Kernel& second, const Joint& joint, const Renaming& renaming);

}  // namespace fusejit::ir
