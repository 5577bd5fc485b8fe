#include "ir/kernel/verify/thread_dims.h"

#include "ir/kernel/verify/verify.h"
#include "ir/kernel/walk.h"

namespace fusejit::ir {

std::optional<VarId> only_variable(const Index& index) {
  const Index::Terms& terms = index.terms();
  const bool only = terms.size() == 1 && terms[0].coefficient == 1 && index.constant() == 0 &&
                    terms[0].atom.kind == AtomKind::variable;
  return only ? std::optional<VarId>(terms[0].atom.id) : std::nullopt;
}

std::vector<int> thread_dims(const Kernel& kernel) {
  std::vector<int> counts(kernel.memories.size(), 0);
  std::vector<bool> is_thread(static_cast<std::size_t>(kernel.variable_count), false);
  for (const Phase& phase : kernel.phases) {
    for_each_stmt(phase.body, [&](const Stmt& stmt) {
      if (const auto* loop = std::get_if<ForStmt>(&stmt.node); loop && is_block_axis(loop->binding))
        is_thread[static_cast<std::size_t>(loop->variable)] = true;
      const Place* place = touched(stmt);
      if (!place || kernel.memories[static_cast<std::size_t>(place->memory)].kind != MemKind::register_local) return;
      int count = 0;
      for (const Index& index : place->index) {
        const std::optional<VarId> variable = only_variable(index);
        if (!variable || !is_thread[static_cast<std::size_t>(*variable)]) break;
        ++count;
      }
      counts[static_cast<std::size_t>(place->memory)] = count;
    });
  }
  return counts;
}

std::int64_t elements_of_thread(const Memory& local, int thread_dims) {
  std::int64_t elements = 1;
  for (std::size_t d = static_cast<std::size_t>(thread_dims); d < local.dims.size(); ++d) elements *= local.dims[d];
  return elements;
}

}  // namespace fusejit::ir
