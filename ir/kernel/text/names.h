// The names and index texts of the canonical text (kernel-ir.md §11), for a kernel whose ids are in its order.
#pragma once

#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

class Names {
 public:
  explicit Names(const Kernel& kernel);
  std::string value(ValueId id) const;          // %p1, %12
  const std::string& memory(MemId id) const;    // %p0, %w0, %l3
  std::string variable(VarId id) const;         // %i4
  std::string index(const Index& index) const;  // %i0*16 + %i1
  std::string place(const Place& place) const;  // %p0[%i0, 3]

 private:
  std::string atom(const IndexAtom& atom, bool alone) const;
  std::vector<std::string> memories_;  // by MemId
  std::vector<std::string> scalars_;   // by ValueId: they are the first values
};

}  // namespace fusejit::ir
