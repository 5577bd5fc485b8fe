#include "tools/fusejit-dump/compare/line_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fusejit::tools {
namespace {

using Lines = std::vector<std::string_view>;

constexpr std::ptrdiff_t kContext = 3;
// The search remembers a square of this many numbers.
constexpr std::ptrdiff_t kMostEdits = 3000;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

struct Edit {
  char kind;  // ' ', '-' or '+'
  std::string_view line;
};

// E. Myers, "An O(ND) Difference Algorithm": after d edits, the furthest old line reached on each diagonal k (old line
// - new line). Empty if it takes too many edits.
std::vector<Edit> shortest(const Lines& a, const Lines& b) {
  const auto n = static_cast<std::ptrdiff_t>(a.size()), m = static_cast<std::ptrdiff_t>(b.size());
  const auto cell = [](std::ptrdiff_t d, std::ptrdiff_t k) { return static_cast<std::size_t>(k + d + 1); };
  std::vector<std::vector<std::ptrdiff_t>> furthest;  // by d; diagonals -d-1 to d+1
  const auto comes_down = [&](std::ptrdiff_t d, std::ptrdiff_t k) {
    const auto& last = furthest[static_cast<std::size_t>(d - 1)];
    return k == -d || (k != d && last[cell(d - 1, k - 1)] < last[cell(d - 1, k + 1)]);
  };
  std::ptrdiff_t edits = -1;
  for (std::ptrdiff_t d = 0; d <= std::min(n + m, kMostEdits) && edits < 0; ++d) {
    std::vector<std::ptrdiff_t> reached(static_cast<std::size_t>(2 * d + 3), -1);
    for (std::ptrdiff_t k = -d; k <= d && edits < 0; k += 2) {
      std::ptrdiff_t x = 0;
      if (d > 0) {
        const auto& last = furthest[static_cast<std::size_t>(d - 1)];
        x = comes_down(d, k) ? last[cell(d - 1, k + 1)] : last[cell(d - 1, k - 1)] + 1;
      }
      while (x < n && x - k < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(x - k)]) ++x;
      reached[cell(d, k)] = x;
      if (x >= n && x - k >= m) edits = d;
    }
    furthest.push_back(std::move(reached));
  }
  std::vector<Edit> back;
  std::ptrdiff_t x = n, y = m;
  for (std::ptrdiff_t d = edits; d >= 0; --d) {
    const std::ptrdiff_t k = x - y;
    const bool down = d > 0 && comes_down(d, k);
    const std::ptrdiff_t before_k = down ? k + 1 : k - 1;
    const std::ptrdiff_t before_x = d == 0 ? 0 : furthest[static_cast<std::size_t>(d - 1)][cell(d - 1, before_k)];
    const std::ptrdiff_t start = d == 0 ? 0 : down ? before_x : before_x + 1;
    for (; x > start; --x, --y) back.push_back({' ', a[static_cast<std::size_t>(x - 1)]});
    if (d == 0) break;
    if (down) back.push_back({'+', b[static_cast<std::size_t>(--y)]});
    if (!down) back.push_back({'-', a[static_cast<std::size_t>(--x)]});
  }
  std::reverse(back.begin(), back.end());
  return back;
}

std::vector<Edit> edits_of(Lines a, Lines b) {
  const auto same = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  std::vector<Edit> edits, tail;
  for (auto i = a.begin(); i != a.begin() + same; ++i) edits.push_back({' ', *i});
  a.erase(a.begin(), a.begin() + same), b.erase(b.begin(), b.begin() + same);
  for (; !a.empty() && !b.empty() && a.back() == b.back(); a.pop_back(), b.pop_back()) tail.push_back({' ', a.back()});
  const std::vector<Edit> middle = shortest(a, b);
  edits.insert(edits.end(), middle.begin(), middle.end());
  if (middle.empty()) {
    for (const std::string_view line : a) edits.push_back({'-', line});
    for (const std::string_view line : b) edits.push_back({'+', line});
  }
  edits.insert(edits.end(), tail.rbegin(), tail.rend());
  return edits;
}

}  // namespace

std::string line_diff(std::string_view before, std::string_view after) {
  const std::vector<Edit> edits = edits_of(lines_of(before), lines_of(after));
  const auto count = static_cast<std::ptrdiff_t>(edits.size());
  const auto changed = [&](std::ptrdiff_t i) { return edits[static_cast<std::size_t>(i)].kind != ' '; };
  std::string out;
  std::ptrdiff_t old_line = 1, new_line = 1, done = 0;  // numbers of the line that `done` stands at
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    if (!changed(i)) continue;
    const std::ptrdiff_t first = std::max(done, i - kContext);
    std::ptrdiff_t last = i;  // the last change that is not further from the one before than two contexts
    for (std::ptrdiff_t j = i; j < count && j <= last + 2 * kContext; ++j)
      if (changed(j)) last = j;
    const std::ptrdiff_t end = std::min(count, last + kContext + 1);
    old_line += first - done, new_line += first - done;
    std::string hunk;
    std::ptrdiff_t old_count = 0, new_count = 0;
    for (std::ptrdiff_t j = first; j < end; ++j) {
      const Edit& edit = edits[static_cast<std::size_t>(j)];
      old_count += edit.kind != '+', new_count += edit.kind != '-';
      hunk += edit.kind;
      hunk += edit.line;
      if (!edit.line.ends_with('\n')) hunk += '\n';
    }
    out += fmt::format("@@ -{},{} +{},{} @@\n", old_line, old_count, new_line, new_count) + hunk;
    old_line += old_count, new_line += new_count;
    done = end, i = end - 1;
  }
  return out;
}

}  // namespace fusejit::tools
