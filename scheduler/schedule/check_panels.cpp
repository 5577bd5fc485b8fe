#include "scheduler/schedule/check_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "scheduler/schedule/dims.h"

namespace fusejit::scheduler {
namespace {

// Of the 16 MiB that a task has; partial results take the rest, and as many sums of a matrix unit as it may have.
constexpr std::int64_t kMostPanelBytes = std::int64_t{12} << 20, kMostBesideMatrix = std::int64_t{8} << 20;

class PanelsCheck {
 public:
  PanelsCheck(const ir::Contraction& c, const Schedule& s) : c_(c), s_(s) {}

  // Copies of operands are made by tasks.
  std::string run() const {
    for (const std::string* after : {&s_.panel_a, &s_.panel_b}) {
      if (after->empty()) continue;
      if (s_.by_threads()) return "threads read operands where they are, not panels";
      if (after == &s_.panel_b && s_.pack_b > 0) return "the second operand is packed, or a panel, not both";
      const auto is_it = [&](const ScheduledLoop& loop) { return loop.dims == std::vector{*after}; };
      if (*after != Schedule::kTask && std::none_of(s_.outer.begin(), s_.outer.end(), is_it))
        return fmt::format("a panel is built in every task or inside of an outer loop, and none is over {}", *after);
    }
    if (std::string broken = s_.tiles_a ? tiles_of_panel() : ""; !broken.empty()) return broken;
    const std::int64_t all = bytes(), most = s_.matrix > 0 ? kMostBesideMatrix : kMostPanelBytes;
    return all <= most ? "" : fmt::format("panels take up to {} bytes a task; at most {}", all, most);
  }

 private:
  // One dim of the first operand, alone in its index and read element by element, is what a tile holds.
  std::string tiles_of_panel() const {
    if (s_.panel_a.empty() || s_.tile.size() != 1 || s_.tile[0].dims.size() != 1 || s_.tile[0].count < 2)
      return "a panel of tiles is one of the first operand, for a tile over one dim";
    const int d = c_.find(s_.tile[0].dims[0]);
    const auto alone = [&](const ir::DimSum& sum) { return is_dim(sum, d); };
    if (std::none_of(c_.a.index.begin(), c_.a.index.end(), alone) || !s_.dot.empty())
      return fmt::format("a panel of tiles has one element of the first operand for each {}", s_.tile[0].dims[0]);
    for (const auto* list : {&s_.outer, &s_.inner})
      for (const ScheduledLoop& loop : *list)
        if (loop.dims == s_.tile[0].dims && loop.step % s_.tile[0].count != 0)
          return fmt::format("a panel of tiles of {} is not read by tiles that begin at every {}", s_.tile[0].count,
                             loop.step);
    return "";
  }

  // Rows are whole vectors; where an operand's innermost dim is not known, it is taken to be the one that needs most.
  std::int64_t bytes() const {
    std::int64_t all = 0;
    if (!s_.panel_a.empty()) all += bytes_of(c_.a, s_.panel_a) * (merges_pairs() ? 2 : 1);  // and turned
    if (!s_.panel_b.empty()) all += bytes_of(c_.b, s_.panel_b);
    return all;
  }
  bool merges_pairs() const { return s_.matrix > 0 && !s_.combine.empty(); }

  std::int64_t bytes_of(const ir::ContractionOperand& operand, const std::string& built_in) const {
    std::vector<std::int64_t> extents;
    std::int64_t elements = 1;
    const int tiled = &operand == &c_.a && s_.tiles_a ? c_.find(s_.tile[0].dims[0]) : -1;
    for (const ir::DimSum& sum : operand.index) {
      extents.push_back(extent(sum, built_in));
      if (tiled >= 0 && sum.coefficient_of(tiled) != 0) {  // whole tiles
        const std::int64_t tile = s_.tile[0].count;
        extents.back() = (extents.back() + tile - 1) / tile * tile;
      }
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

std::string check_panels(const ir::Contraction& contraction, const Schedule& schedule) {
  return PanelsCheck(contraction, schedule).run();
}

}  // namespace fusejit::scheduler
