// The lines by which two texts differ: applied to the one they make the other, and there are no fewer that do.
#include "tools/fusejit-dump/compare/line_diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <vector>

namespace fusejit::tools {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What `patch` does; a hunk that does not stand where it says is a failure.
Lines applied(const Lines& before, const std::string& diff) {
  Lines after;
  std::size_t at = 0;
  for (const std::string& line : lines_of(diff)) {
    if (line.starts_with("@@")) {
      unsigned old_first = 0, old_count = 0, new_first = 0, new_count = 0;
      EXPECT_EQ(std::sscanf(line.c_str(), "@@ -%u,%u +%u,%u @@", &old_first, &old_count, &new_first, &new_count), 4)
          << line;
      for (; at + 1 < old_first; ++at) after.push_back(before[at]);
      EXPECT_EQ(after.size() + 1, new_first) << diff;
      continue;
    }
    if (line[0] != '+') {
      EXPECT_EQ(at < before.size() ? before[at] : "no line", line.substr(1)) << diff;
      ++at;
    }
    if (line[0] != '-') after.push_back(line.substr(1));
  }
  after.insert(after.end(), before.begin() + static_cast<std::ptrdiff_t>(at), before.end());
  return after;
}

// Lines in common, by the table.
std::size_t common(const Lines& a, const Lines& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j)
      table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
  return table[a.size()][b.size()];
}

TEST(LineDiff, IsWhatDiffWrites) {
  EXPECT_EQ(line_diff("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(line_diff("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf\n"), "@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n+E\n f\n");
  EXPECT_EQ(line_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n2\n3\n4\n5\n6\n7\n8\n0\n"),
            "@@ -1,4 +1,4 @@\n-1\n+0\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+0\n");
  EXPECT_EQ(line_diff("", "a\n"), "@@ -1,0 +1,1 @@\n+a\n");
}

TEST(LineDiff, MakesOneTextTheOtherWithTheFewestLines) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const auto text = [&] {
      std::string lines;
      for (std::size_t n = random() % 40; n > 0; --n)
        lines += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
      return lines;
    };
    const std::string before = text(), after = text(), diff = line_diff(before, after);
    const Lines a = lines_of(before), b = lines_of(after);
    EXPECT_EQ(applied(a, diff), b) << "round " << round << "\n" << diff;
    std::size_t changed = 0;
    for (const std::string& line : lines_of(diff)) changed += line[0] == '+' || line[0] == '-';
    EXPECT_EQ(changed, a.size() + b.size() - 2 * common(a, b)) << "round " << round << "\n" << diff;
  }
}

TEST(LineDiff, LongTextsWithNothingInCommonTakeNoTime) {
  std::string before, after;
  for (int i = 0; i < 20000; ++i) before += "a" + std::to_string(i) + "\n", after += "b" + std::to_string(i) + "\n";
  const std::string diff = line_diff("head\n" + before + "tail\n", "head\n" + after + "tail\n");
  EXPECT_EQ(applied(lines_of("head\n" + before + "tail\n"), diff), lines_of("head\n" + after + "tail\n"));
}

}  // namespace
}  // namespace fusejit::tools
