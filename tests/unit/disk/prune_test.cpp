// The bound of the cache on disk: what goes, what stays, and what is nobody's to remove.
#include "runtime/disk/prune.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>

#include "tests/support/nightly.h"
#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

// As if it had been used so long ago.
void age(const std::string& path, std::int64_t seconds) {
  const timespec times[2] = {{0, UTIME_OMIT}, {std::time(nullptr) - seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0) << path;
}

// The name of an entry that begins with this digit.
std::string entry(const std::string& digit) {
  return digit + std::string(15, '0') + "-" + std::string(32, '0') + ".entry";
}

std::int64_t bytes_on_disk(const std::string& folder) {
  std::int64_t sum = 0;
  for (const std::string& file : files_below(folder)) {
    struct stat status = {};
    if (::lstat(file.c_str(), &status) == 0) sum += std::int64_t{status.st_blocks} * 512;
  }
  return sum;
}

class Pruning : public ::testing::Test {
 protected:
  Pruned prune_to(std::int64_t bytes, std::int64_t files) {
    std::string why;
    const Handle folder = open_folder(folder_.path(), Trust::owner, false, why);
    return prune(folder, {bytes, files});
  }
  void add(const std::string& name, std::int64_t seconds, std::size_t bytes = 4000) {
    write_bytes(folder_ / name, noise(bytes, 1));
    age(folder_ / name, seconds);
  }
  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const std::string& file : files_below(folder_.path())) names.push_back(std::filesystem::path(file).filename());
    return names;
  }
  TemporaryFolder folder_;
};

TEST_F(Pruning, RemovesTheLeastRecentlyUsedDownToFourFifths) {
  for (int i = 0; i < 10; ++i) add(entry(std::to_string(i)), i * 10);
  EXPECT_EQ(prune_to(1 << 20, 10).removed.files, 0);
  EXPECT_EQ(names().size(), 10u);
  EXPECT_EQ(prune_to(1 << 20, 9).removed.files, 3);
  EXPECT_EQ(names(), (std::vector<std::string>{entry("0"), entry("1"), entry("2"), entry("3"), entry("4"), entry("5"),
                                               entry("6")}));
  const Pruned pruned = prune_to(5 * 4096, 9);  // 7 files of a block each
  EXPECT_EQ(pruned.left.bytes, 4 * 4096);
  EXPECT_EQ(pruned.removed.bytes, 3 * 4096);
  EXPECT_EQ(names(), (std::vector<std::string>{entry("0"), entry("1"), entry("2"), entry("3")}));
}

TEST_F(Pruning, RemovesWhatWritersLeftBehindAfterAnHour) {
  add(".0123456789abcdef.tmp", 3500);
  add(".fedcba9876543210.tmp", 3700);
  add(entry("d"), 1'000'000);
  EXPECT_EQ(prune_to(1 << 20, 100).removed.files, 1);
  EXPECT_EQ(names(), (std::vector<std::string>{".0123456789abcdef.tmp", entry("d")}));
  // What is being written counts, but stays.
  EXPECT_EQ(prune_to(4096, 100).removed.files, 1);
  EXPECT_EQ(names(), std::vector<std::string>{".0123456789abcdef.tmp"});
}

TEST_F(Pruning, LeavesAFileThatWasReplacedOrUsedSinceItWasListed) {
  add(entry("a"), 100), add(entry("b"), 100), add(entry("c"), 100);
  std::string why;
  const Handle folder = open_folder(folder_.path(), Trust::owner, false, why);
  std::vector<FileInfo> listed = list_files(folder);
  std::sort(listed.begin(), listed.end(), [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  ASSERT_EQ(listed.size(), 3u);
  add("new", 100);
  std::filesystem::rename(folder_ / "new", folder_ / entry("a"));
  age(folder_ / entry("b"), 0);
  EXPECT_FALSE(unlink_if_same(folder, listed[0]));
  EXPECT_FALSE(unlink_if_same(folder, listed[1]));
  EXPECT_TRUE(unlink_if_same(folder, listed[2]));
  EXPECT_EQ(names(), (std::vector<std::string>{entry("a"), entry("b")}));
}

TEST_F(Pruning, LeavesFoldersLinksAndFilesOfOthersAlone) {
  add(entry("0"), 100);
  std::filesystem::create_directory(folder_ / entry("f"));
  write_bytes(folder_ / "aim", "x");
  std::filesystem::create_symlink(folder_ / "aim", folder_ / entry("e"));
  EXPECT_EQ(prune_to(0, 0).removed.files, 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"aim", entry("e")}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / entry("e")));
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / entry("f")));
}

TEST(Bounded, ACacheHoldsWhatItMayAndItsHotEntriesStay) {
  TemporaryFolder folder;
  const Bound most = {8 << 20, 1600};
  DiskCache cache({.folder = folder.path(), .most = most, .stamp_seconds = 0});
  constexpr int kHot = 20;
  const auto make_hot = [&] {
    int found = 0;
    for (int i = 0; i < kHot; ++i) found += cache.find(test_key(i)).has_value();
    return found;
  };
  for (int i = 0; i < kHot; ++i) cache.put(test_key(i), test_sections(i));
  std::int64_t largest = 0, most_files = 0;
  for (int i = kHot; i < 6000; ++i) {
    cache.put(test_key(i), test_sections(i, 6000));
    if (i % 20 == 0) {
      EXPECT_EQ(make_hot(), kHot) << i;
    }
    if (i % 100 != 0) continue;
    largest = std::max(largest, bytes_on_disk(cache.folder()));
    most_files = std::max(most_files, static_cast<std::int64_t>(files_below(cache.folder()).size()));
  }
  EXPECT_LE(largest, most.bytes * 102 / 100);
  EXPECT_LE(most_files, most.files * 102 / 100);
  EXPECT_GE(largest, most.bytes * 7 / 10);
  EXPECT_GT(cache.statistics().evicted, 3000);
  RecordProperty("largest_percent", static_cast<int>(largest * 100 / most.bytes));
}

// A use is written down on the file, but not each one.
TEST(Bounded, AUseIsNotedOnceInAWhile) {
  TemporaryFolder folder;
  DiskCache cache({.folder = folder.path(), .stamp_seconds = 100});
  cache.put(test_key(1), test_sections(1));
  const std::string path = place_of(cache, test_key(1));
  const auto used = [&] {
    struct stat status = {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return std::time(nullptr) - status.st_mtime;
  };
  age(path, 50), cache.find(test_key(1));
  EXPECT_GE(used(), 50);
  age(path, 150), DiskCache({.folder = folder.path(), .read_only = true, .stamp_seconds = 100}).find(test_key(1));
  EXPECT_GE(used(), 150);
  cache.find(test_key(1));
  EXPECT_LE(used(), 5);
}

TEST(Bounded, WhatIsLargerThanItsPartIsNotKept) {
  TemporaryFolder folder;
  std::vector<std::string> said;
  for (const std::int64_t most : {0, 16 << 10, 17 << 10}) {
    DiskCache cache(
        {.folder = folder.path(), .most = {most, 65536}, .log = [&](const std::string& s) { said.push_back(s); }});
    cache.put(test_key(1), test_sections(1, 1024));
    cache.put(test_key(1), test_sections(1, 1024));
    EXPECT_EQ(cache.find(test_key(1)).has_value(), false) << most;
    EXPECT_EQ(cache.statistics().not_stored, 2);
  }
  ASSERT_EQ(said.size(), 3u);
  EXPECT_NE(said[1].find("more than its part of the 16384"), std::string::npos) << said[1];
}

// By night with 100,000 files.
TEST(Bounded, PuttingIsQuickInALargeCache) {
  using Clock = std::chrono::steady_clock;
  TemporaryFolder folder;
  const bool night = testing::is_nightly();
  const std::int64_t files = night ? 100'000 : 8'000;
  DiskCache cache({.folder = folder.path(), .most = {std::int64_t{4} << 30, files}});
  std::vector<double> took;
  for (std::int64_t i = 0; i < files * 3 / 2; ++i) {
    const auto start = Clock::now();
    cache.put(test_key(static_cast<int>(i)), test_sections(static_cast<int>(i), 100));
    if (i >= files) took.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(took.begin(), took.end());
  const double p99 = took[took.size() * 99 / 100];
  EXPECT_LT(p99, 20) << "milliseconds";
  std::printf("%lld files: a put takes %.2f ms (99 of 100: %.2f ms, the longest %.1f ms)\n",
              static_cast<long long>(files), took[took.size() / 2], p99, took.back());
}

}  // namespace
}  // namespace fusejit::runtime::disk
