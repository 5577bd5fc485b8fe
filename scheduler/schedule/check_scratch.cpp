#include "scheduler/schedule/check_scratch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace fusejit::scheduler {
namespace {

// Of the 16 MiB that a task has; sums and staged rows take the rest.
constexpr std::int64_t kMostPanelBytes = std::int64_t{12} << 20;
constexpr std::int64_t kWordsOfLine = 16;

class Panels {
 public:
  Panels(const ir::Contraction& c, const Schedule& s) : c_(c), s_(s) {}

  std::int64_t bytes() const {
    std::int64_t all = 0;
    if (!s_.panel_a.empty()) all += bytes_of(c_.a, s_.panel_a) * (merges_pairs() ? 2 : 1);  // and turned
    if (!s_.panel_b.empty()) all += bytes_of(c_.b, s_.panel_b);
    return all;
  }

 private:
  bool merges_pairs() const { return s_.matrix > 0 && !s_.combine.empty(); }

  std::int64_t bytes_of(const ir::ContractionOperand& operand, const std::string& built_in) const {
    std::vector<std::int64_t> extents;
    std::int64_t elements = 1;
    for (const ir::DimSum& sum : operand.index) {
      extents.push_back(extent(sum, built_in));
      elements *= extents.back();
    }
    double most = 1;
    for (const std::size_t row : {extents.size() - 1, std::size_t{1}})
      if (row < extents.size())
        most = std::max(most, static_cast<double>(padded(extents[row])) / static_cast<double>(extents[row]));
    const std::int64_t size =
        !s_.dot.empty() ? 2 : fusejit::bytes(operand.dtype == DType::f64 ? DType::f64 : DType::f32);
    return static_cast<std::int64_t>(static_cast<double>(elements * size) * most);
  }

  // Of what a sum of dims is in the panel.
  std::int64_t extent(const ir::DimSum& sum, const std::string& built_in) const {
    std::int64_t all = 1, only = 1;
    int free = 0;
    for (const ir::DimSum::Term& term : sum.terms) {
      const std::int64_t size = std::max<std::int64_t>(1, left(term.dim, built_in));
      all += (size - 1) * std::abs(term.coefficient);
      if (size > 1) only = size, ++free;
    }
    return free == 1 ? only : all;  // elements in between are left out
  }

  // Of a dim, inside of all loops around the panel.
  std::int64_t left(int d, const std::string& built_in) const {
    const std::string& name = c_.dims[static_cast<std::size_t>(d)].name;
    std::int64_t size = c_.dims[static_cast<std::size_t>(d)].extent;
    const auto pass = [&](const ScheduledLoop& loop) {
      if (std::find(loop.dims.begin(), loop.dims.end(), name) == loop.dims.end()) return;
      if (loop.dims.size() == 1) {
        size = std::min(size, loop.step > 0 ? loop.step : s_.held(name));
      } else if (loop.step == 0 && s_.combinations(name) == nullptr) {
        size = std::min(size, s_.held(name));
      }
    };
    std::for_each(s_.tasks.begin(), s_.tasks.end(), pass);
    if (built_in != Schedule::kTask) {
      const auto innermost = std::find_if(s_.outer.rbegin(), s_.outer.rend(), [&](const ScheduledLoop& loop) {
        return loop.dims == std::vector{built_in};
      });
      std::for_each(s_.outer.begin(), innermost.base(), pass);
    }
    return name == s_.vector ? (size + s_.block() - 1) / s_.block() * s_.block() : size;
  }

  // A row as panels have it (Nest::dims_of).
  std::int64_t padded(std::int64_t row) const {
    const std::int64_t lanes = s_.matrix > 0 ? kWordsOfLine : s_.lanes, vectors = (row + lanes - 1) / lanes;
    return (vectors + (s_.matrix > 0 || (vectors > 2 && vectors % 2 == 0) ? 1 : 0)) * lanes;
  }

  const ir::Contraction& c_;
  const Schedule& s_;
};

}  // namespace

std::int64_t panel_bytes(const ir::Contraction& contraction, const Schedule& schedule) {
  return Panels(contraction, schedule).bytes();
}

std::string check_scratch(const ir::Contraction& contraction, const Schedule& schedule) {
  const std::int64_t bytes = panel_bytes(contraction, schedule);
  if (bytes <= kMostPanelBytes) return "";
  return fmt::format("panels take up to {} bytes a task; at most {}", bytes, kMostPanelBytes);
}

}  // namespace fusejit::scheduler
