// V3: every load and store stays inside its memory.
#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {

void verify_bounds(const Kernel& kernel) {
  const Names names(kernel);
  FactsAlong facts_along;
  for_each_with_path(kernel, [&](const Stmt& stmt, const Path& path, std::size_t) {
    const Place* place = touched(stmt);
    if (!place) return;
    const Facts& facts = facts_along(path);
    const std::vector<std::int64_t>& dims = kernel.memories[static_cast<std::size_t>(place->memory)].dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const Index& index = place->index[d];
      const char* side = nullptr;
      if (!facts.proves_non_negative(index)) {
        side = ">= 0";
      } else if (!facts.proves_non_negative(Index(dims[d] - 1) - index)) {
        side = "< ";
      }
      if (side)
        broken(stmt.at, "V3",
               fmt::format("{} {}{} is not proven for dim {} of {}", names.index(index), side,
                           side[0] == '<' ? std::to_string(dims[d]) : "", d, names.place(*place)));
    }
  });
}

}  // namespace fusejit::ir
