// What the cache on disk finds, keeps and says where entries are not what they should be.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "tests/support/allocations/allocations.h"
#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

TEST(Cache, FindsWhatWasPut) {
  TemporaryFolder folder;
  DiskCache cache({.folder = folder.path()});
  EXPECT_FALSE(cache.find(test_key(1)));
  cache.put(test_key(1), test_sections(1));
  EXPECT_TRUE(is_entry_of(cache.find(test_key(1)), 1));
  EXPECT_TRUE(is_entry_of(DiskCache({.folder = folder.path()}).find(test_key(1)), 1));
  EXPECT_FALSE(cache.find(test_key(1, "2")));
  cache.put(test_key(1), test_sections(2));  // the last one counts
  EXPECT_TRUE(is_entry_of(cache.find(test_key(1)), 2));
  cache.remove(test_key(1));
  EXPECT_FALSE(cache.find(test_key(1)));
  const DiskCacheStatistics s = cache.statistics();
  EXPECT_EQ(s.hits, 2);
  EXPECT_EQ(s.misses, 3);
  EXPECT_EQ(s.stored, 2);
  EXPECT_EQ(s.damaged + s.not_stored, 0);
  EXPECT_NE(bytes_of(folder / "CACHEDIR.TAG").find("Signature: 8a477f597d28d172789f06886806bc55"), std::string::npos);
}

// As where two keys have one hash, or somebody moves files: the whole key decides.
TEST(Cache, AnEntryUnderAnothersNameIsAMiss) {
  TemporaryFolder folder;
  constexpr int kCount = 20;
  for (int a = 0; a < kCount; ++a) {
    for (int b = 0; b < kCount; ++b) {
      if (a == b) continue;
      DiskCache cache({.folder = folder.path()});
      cache.put(test_key(a), test_sections(a)), cache.put(test_key(b), test_sections(b));
      std::filesystem::copy_file(place_of(cache, test_key(a)), place_of(cache, test_key(b)),
                                 std::filesystem::copy_options::overwrite_existing);
      ASSERT_FALSE(cache.find(test_key(b))) << a << " as " << b;
      ASSERT_EQ(cache.statistics().damaged, 1);
      ASSERT_TRUE(is_entry_of(cache.find(test_key(a)), a));
    }
  }
}

TEST(Cache, ADamagedEntryIsSaidRemovedAndMadeAgain) {
  TemporaryFolder folder;
  std::vector<std::string> said;
  DiskCache cache({.folder = folder.path(), .log = [&](const std::string& line) { said.push_back(line); }});
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    cache.put(test_key(i), test_sections(i));
    const std::string path = place_of(cache, test_key(i));
    std::string bytes = bytes_of(path);
    if (i % 3 == 0)
      bytes.resize(random() % bytes.size());
    else if (i % 3 == 1)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    else
      bytes += noise(1 + random() % 100, i);
    write_bytes(path, bytes);
    ASSERT_FALSE(cache.find(test_key(i))) << i;
    ASSERT_FALSE(std::filesystem::exists(path));
    cache.put(test_key(i), test_sections(i));
    ASSERT_TRUE(is_entry_of(cache.find(test_key(i)), i));
  }
  EXPECT_EQ(cache.statistics().damaged, 200);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find(".entry: it"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("made again"), std::string::npos) << said[0];
  // That is no reason to be silent about a folder that fails.
  std::filesystem::remove_all(cache.folder());
  write_bytes(cache.folder(), "");
  cache.find(test_key(1));
  cache.put(test_key(1), test_sections(1));
  ASSERT_EQ(said.size(), 2u);
  EXPECT_NE(said[1].find("no folder"), std::string::npos) << said[1];
}

TEST(Cache, ReadOnlyChangesNothing) {
  TemporaryFolder folder;
  DiskCache({.folder = folder.path()}).put(test_key(1), test_sections(1));
  const std::string path = place_of(DiskCache({.folder = folder.path()}), test_key(2));
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_bytes(path, "damaged");
  const auto before = std::filesystem::last_write_time(path);
  std::vector<std::string> said;
  DiskCache cache({.folder = folder.path(), .read_only = true, .stamp_seconds = 0, .log = [&](const std::string& line) {
                     said.push_back(line);
                   }});
  EXPECT_TRUE(cache.find(test_key(1)));
  EXPECT_FALSE(cache.find(test_key(2)));
  cache.put(test_key(3), test_sections(3)), cache.remove(test_key(1));
  EXPECT_TRUE(cache.find(test_key(1)));
  EXPECT_EQ(bytes_of(path), "damaged");
  EXPECT_EQ(std::filesystem::last_write_time(path), before);
  EXPECT_EQ(files_below(folder.path(), ".entry").size(), 2u);
  // Where there is nothing to read, nothing is made, and that is no fault.
  said.clear();
  DiskCache none({.folder = folder / "none", .read_only = true, .log = cache.options().log});
  EXPECT_FALSE(none.find(test_key(1)));
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
  EXPECT_TRUE(said.empty());
}

// Whoever tidies up while a program runs.
TEST(Cache, AFolderThatIsRemovedIsMadeAgain) {
  TemporaryFolder folder;
  std::vector<std::string> said;
  DiskCache cache({.folder = folder / "cache", .log = [&](const std::string& line) { said.push_back(line); }});
  cache.put(test_key(1), test_sections(1));
  std::filesystem::remove_all(folder / "cache");
  EXPECT_FALSE(cache.find(test_key(1)));
  cache.put(test_key(1), test_sections(1));
  EXPECT_TRUE(cache.find(test_key(1)));
  EXPECT_TRUE(said.empty()) << said[0];
}

// Entries of other layouts of bytes lie in folders of their own.
TEST(Cache, FoldersOfOtherVersionsAreLeftAlone) {
  TemporaryFolder folder;
  const std::string other = folder / "v0/0/x.entry";
  std::filesystem::create_directories(folder / "v0/0");
  write_bytes(other, "older");
  DiskCache cache({.folder = folder.path(), .most = {1 << 16, 16}});
  for (int i = 0; i < 50; ++i) cache.put(test_key(i), test_sections(i)), cache.find(test_key(i));
  EXPECT_EQ(bytes_of(other), "older");
}

TEST(Cache, IsUsedByManyThreads) {
  TemporaryFolder folder;
  DiskCache cache({.folder = folder.path(), .most = {1 << 20, 320}, .stamp_seconds = 0});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 400; ++i) {
        const int number = (i * 7 + t * 13) % 100;
        const auto found = cache.find(test_key(number));
        if (found && !is_entry_of(found, number)) ++wrong;
        if (!found) cache.put(test_key(number), test_sections(number));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const DiskCacheStatistics s = cache.statistics();
  EXPECT_EQ(s.hits + s.misses, 1600);
  EXPECT_EQ(s.stored, s.misses);
  EXPECT_EQ(s.damaged, 0);
}

// Every allocation of finding and keeping fails once: a miss, or an entry that is not kept.
TEST(Cache, WithoutMemoryNothingIsLostButTime) {
  TemporaryFolder folder;
  DiskCache cache({.folder = folder.path()});
  cache.put(test_key(1), test_sections(1));
  const auto each_failure = [](const auto& act) {
    long k = 0;
    for (bool failed = true; failed && k < 1000; ++k) {
      failed = act(k);
      if (::testing::Test::HasFatalFailure()) return;
    }
    std::printf("%ld allocations\n", k - 1);
    EXPECT_GT(k, 5);
  };
  const CacheKey one = test_key(1), two = test_key(2);
  each_failure([&](long k) {
    std::optional<Entry> found;
    bool failed = false;
    {
      const fusejit::testing::Allocations allocations(k);
      EXPECT_NO_THROW(found = cache.find(one)) << "allocation " << k;
      failed = allocations.has_failed();
    }
    EXPECT_TRUE(!found || is_entry_of(found, 1)) << k;
    EXPECT_TRUE(failed || found);
    return failed;
  });
  const std::vector<Section> sections = test_sections(2);
  each_failure([&](long k) {
    cache.remove(two);
    bool failed = false;
    {
      const fusejit::testing::Allocations allocations(k);
      cache.put(two, sections);
      failed = allocations.has_failed();
    }
    const auto found = cache.find(two);
    EXPECT_TRUE(!found || is_entry_of(found, 2)) << k;
    EXPECT_TRUE(failed || found);
    return failed;
  });
  EXPECT_TRUE(is_entry_of(cache.find(one), 1));
  EXPECT_EQ(files_below(folder.path(), ".tmp"), std::vector<std::string>());
}

}  // namespace
}  // namespace fusejit::runtime::disk
