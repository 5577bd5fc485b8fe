// Whose files are believed, and who may read and write those that are made. A cache is code: what another could have
// written is neither read nor written to.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/disk/explain.h"
#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

constexpr uid_t kAnother = 54321;

mode_t mode_of(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

// A cache with one entry, and what a later process finds of it when something has happened to the folder.
class Trusted : public ::testing::Test {
 protected:
  Trusted() { DiskCache(options()).put(key_, test_sections(1)); }
  DiskCacheOptions options(Trust trust = Trust::owner) {
    return {.folder = root_, .trust = trust, .log = [this](const std::string& line) { said_.push_back(line); }};
  }
  std::string version() { return root_ + "/v1"; }
  std::string entry() { return place_of(DiskCache(options()), key_); }
  std::string shard() { return std::filesystem::path(entry()).parent_path(); }

  void expect_trusted(Trust trust = Trust::owner) {
    said_.clear();
    EXPECT_TRUE(is_entry_of(DiskCache(options(trust)).find(key_), 1));
    EXPECT_TRUE(said_.empty()) << said_[0];
  }
  // Nothing is loaded, nothing is written, and one line says what is wrong.
  void expect_refused(const std::string& reason) {
    said_.clear();
    const std::vector<std::string> before = files_below(root_);
    DiskCache cache(options());
    EXPECT_FALSE(cache.find(key_)) << reason;
    EXPECT_FALSE(cache.find(key_));
    ASSERT_EQ(said_.size(), 1u) << reason;
    EXPECT_NE(said_[0].find(reason), std::string::npos) << said_[0];
    EXPECT_NE(said_[0].find("FUSEJIT_CACHE_DIR"), std::string::npos) << said_[0];
    EXPECT_EQ(files_below(root_), before) << reason;
  }
  void expect_refused_and_nothing_written(const std::string& reason) {
    const std::vector<std::string> before = files_below(root_);
    expect_refused(reason);
    DiskCache cache(options());
    cache.put(key_, test_sections(1));
    EXPECT_EQ(cache.statistics().stored, 0) << reason;
    EXPECT_EQ(files_below(root_), before) << reason;
  }

  TemporaryFolder parent_;
  const std::string root_ = parent_ / "cache";
  const CacheKey key_ = test_key(1);
  std::vector<std::string> said_;
};

TEST_F(Trusted, AreOwnFilesThatNoOtherCanWrite) {
  expect_trusted();
  for (const mode_t mode : {0700, 0755, 0750, 0711}) {
    for (const std::string& folder : {root_, version(), shard()}) ::chmod(folder.c_str(), mode);
    expect_trusted();
  }
  for (const mode_t mode : {0600, 0644, 0400}) {
    ::chmod(entry().c_str(), mode);
    expect_trusted();
  }
}

TEST_F(Trusted, IsNoFolderThatOthersCanWrite) {
  for (const std::string& folder : {shard(), version(), root_}) {
    for (const mode_t mode : {0777, 01777, 0770, 0720, 0702}) {
      const mode_t before = mode_of(folder);
      ::chmod(folder.c_str(), mode);
      expect_refused_and_nothing_written("can be written by others (mode " + fmt::format("{:04o}", mode) + ")");
      expect_trusted(Trust::shared);
      ::chmod(folder.c_str(), before);
    }
  }
  expect_trusted();
}

TEST_F(Trusted, IsNoFileThatOthersCanWrite) {
  for (const mode_t mode : {0666, 0660, 0620, 0602}) {
    ::chmod(entry().c_str(), mode);
    expect_refused("can be written by others");
    expect_trusted(Trust::shared);
  }
  DiskCache(options()).put(key_, test_sections(1));  // made again, it is ours
  expect_trusted();
}

// As in a world-writable folder where another was there first.
TEST_F(Trusted, IsNothingOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  for (const std::string& folder : {shard(), version(), root_}) {
    ASSERT_EQ(::chown(folder.c_str(), kAnother, kAnother), 0);
    expect_refused_and_nothing_written("belongs to another user (54321)");
    expect_trusted(Trust::shared);
    ASSERT_EQ(::chown(folder.c_str(), 0, 0), 0);
  }
  ASSERT_EQ(::chown(entry().c_str(), kAnother, kAnother), 0);
  expect_refused("belongs to another user (54321)");
  ASSERT_EQ(::chown(entry().c_str(), 0, 0), 0);
  expect_trusted();
}

TEST_F(Trusted, OfRootAreThoseOfTheSystem) {
  struct stat status = {};
  status.st_mode = 0644, status.st_uid = 0;
  EXPECT_EQ(why_untrusted(status, Trust::owner), "");
  status.st_uid = ::geteuid() + 1;
  EXPECT_NE(why_untrusted(status, Trust::owner), "");
  status.st_uid = ::geteuid(), status.st_mode = 0664;
  EXPECT_NE(why_untrusted(status, Trust::owner), "");
}

TEST_F(Trusted, IsNoLink) {
  for (const std::string& folder : {shard(), version(), root_}) {
    const std::string aside = parent_ / "aside";
    std::filesystem::rename(folder, aside);
    std::filesystem::create_symlink(aside, folder);
    const std::vector<std::string> before = files_below(aside);
    expect_refused_and_nothing_written("is no folder, or a link to one");
    EXPECT_EQ(files_below(aside), before);
    std::filesystem::remove(folder);
    std::filesystem::rename(aside, folder);
  }
  const std::string aside = parent_ / "aside";
  std::filesystem::rename(entry(), aside);
  std::filesystem::create_symlink(aside, entry());
  expect_refused("cannot open");
  // A link where the entry goes is replaced, not followed.
  const std::string victim = bytes_of(aside);
  DiskCache(options()).put(key_, test_sections(2));
  EXPECT_TRUE(is_entry_of(DiskCache(options()).find(key_), 2));
  EXPECT_EQ(bytes_of(aside), victim);
}

// Opening it would wait for a writer for ever, reading a device never end.
TEST_F(Trusted, IsNothingButAFile) {
  std::filesystem::remove(entry());
  ASSERT_EQ(::mkfifo(entry().c_str(), 0600), 0);
  expect_refused("is no file");
  std::filesystem::remove(entry());
  ASSERT_EQ(::mkdir(entry().c_str(), 0700), 0);
  expect_refused("is no file");
  DiskCache cache(options());
  cache.put(key_, test_sections(1));  // a folder cannot be replaced by a file
  EXPECT_EQ(cache.statistics().not_stored, 1);
  EXPECT_EQ(files_below(root_, ".tmp"), std::vector<std::string>());
  std::filesystem::remove(entry());
  if (::mknod(entry().c_str(), S_IFCHR | 0600, 1 << 8 | 5) == 0) {  // /dev/zero, where that is allowed
    expect_refused("is no file");
    std::filesystem::remove(entry());
  }
  ASSERT_EQ(::truncate((write_bytes(entry(), ""), entry().c_str()), 1ll << 40), 0);
  expect_refused("at most");
}

TEST_F(Trusted, ModesAreThoseOfOneUserUnderAnyMask) {
  for (const mode_t mask : {000, 022, 077}) {
    const mode_t before = ::umask(mask);
    TemporaryFolder parent;
    DiskCache cache({.folder = parent / "a/b/cache"});
    cache.put(key_, test_sections(1));
    ::umask(before);
    const std::string path = place_of(cache, key_);
    for (const std::string& folder : {parent / "a", parent / "a/b", parent / "a/b/cache", cache.folder(),
                                      std::filesystem::path(path).parent_path().string()})
      EXPECT_EQ(mode_of(folder), 0700u) << folder;
    EXPECT_EQ(mode_of(path), 0600u);
    EXPECT_EQ(mode_of(parent / "a/b/cache/CACHEDIR.TAG"), 0600u);
  }
}

TEST_F(Trusted, NoDescriptorIsLeftOpen) {
  const auto open_files = [] {
    std::vector<std::string> open;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) open.push_back(file.path());
    return open.size();
  };
  const std::size_t before = open_files();
  for (int i = 0; i < 50; ++i) {
    DiskCache cache(options());
    cache.put(test_key(i), test_sections(i));
    cache.find(test_key(i)), cache.find(test_key(1000 + i)), cache.contains(test_key(i)), cache.remove(test_key(i));
    explain(cache, test_key(i));
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace fusejit::runtime::disk
