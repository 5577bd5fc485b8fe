// A program computes what is right wherever it is put: without a home, without room, without rights. Where nothing can
// be kept one line says so, and what can be done.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/reliability/worker.h"

namespace fusejit::testing {
namespace {

constexpr int kGraphsAround = 8;
constexpr uid_t kNobodyKnows = 54321;

// Right, and one line that names the trouble and what helps.
void expect_said(const Outcome& outcome, const std::string& trouble,
                 const std::string& help = "FUSEJIT_CACHE_DIR names another folder") {
  EXPECT_EQ(outcome.end, "exit 0") << trouble;
  EXPECT_EQ(outcome.hashes, right_hashes(kGraphsAround)) << trouble;
  ASSERT_EQ(outcome.log.size(), 1u) << trouble << (outcome.log.empty() ? "" : ": " + outcome.log.back());
  EXPECT_NE(outcome.log[0].find(trouble), std::string::npos) << outcome.log[0];
  EXPECT_NE(outcome.log[0].find(help), std::string::npos) << outcome.log[0];
}

void expect_kept(const Surroundings& surroundings) {
  expect_right(compute(kGraphsAround, surroundings), kGraphsAround);
  const Outcome again = compute(kGraphsAround, surroundings);
  expect_right(again, kGraphsAround);
  EXPECT_EQ(again.count("plans_loaded"), kGraphsAround);
  EXPECT_EQ(again.count("kernels_compiled"), 0);
}

TEST(Surroundings, AFolderThatIsNotThereIsMade) {
  TemporaryFolder folder;
  expect_kept({.cache = folder / "a/b/c"});
  expect_kept({.cache = "", .variables = {{"HOME", folder / "home"}}});
  EXPECT_FALSE(files_below(folder / "home/.cache/fusejit/compiled/v1", ".entry").empty());
  expect_kept({.cache = "", .variables = {{"XDG_CACHE_HOME", folder / "xdg"}}});
  EXPECT_FALSE(files_below(folder / "xdg/fusejit/compiled/v1", ".entry").empty());
}

// Nothing in the current folder, nothing in /tmp.
TEST(Surroundings, WithoutAHomeNothingIsKept) {
  TemporaryFolder here;
  expect_said(compute(kGraphsAround, {.cache = "", .folder = here.path()}),
              "no cache on disk: neither FUSEJIT_CACHE_DIR nor HOME is set", "FUSEJIT_CACHE_DIR");
  EXPECT_TRUE(files_below(here.path()).empty());
  expect_right(compute(kGraphsAround, {.cache = "", .variables = {{"FUSEJIT_CACHE", "off"}}}), kGraphsAround);
}

TEST(Surroundings, APathThatIsNoFolderIsSaid) {
  TemporaryFolder folder;
  write_bytes(folder / "file", "mine");
  expect_said(compute(kGraphsAround, {.cache = folder / "file"}), "no folder");
  expect_said(compute(kGraphsAround, {.cache = folder / "file/below"}), "no folder");
  EXPECT_EQ(bytes_of(folder / "file"), "mine");
  expect_said(compute(kGraphsAround, {.cache = "/proc/none"}), "cannot make /proc/none");
  expect_said(compute(kGraphsAround, {.cache = folder / std::string(300, 'x')}), "File name too long");
}

TEST(Surroundings, AnUnknownUserWithoutRightsComputes) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0755);
  Surroundings unknown{.cache = folder / "cache", .user = kNobodyKnows};
  expect_said(compute(kGraphsAround, unknown), "Permission denied");
  // Another's cache is no cache, even if it can be read; the system's is one.
  expect_right(compute(kGraphsAround, {.cache = folder / "cache"}), kGraphsAround);
  expect_said(compute(kGraphsAround, unknown), "Permission denied");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "cache"))
    ::chmod(entry.path().c_str(), entry.is_directory() ? 0755 : 0644);
  ASSERT_EQ(::chown((folder / "cache").c_str(), kNobodyKnows + 1, 0) + ::chmod((folder / "cache").c_str(), 0755), 0);
  expect_said(compute(kGraphsAround, unknown), "belongs to another user");
  ASSERT_EQ(::chown((folder / "cache").c_str(), 0, 0), 0);
  const Outcome system = compute(kGraphsAround, unknown);
  expect_right(system, kGraphsAround);
  EXPECT_EQ(system.count("kernels_compiled"), 0);
  std::filesystem::create_directory(folder / "own");
  ASSERT_EQ(::chown((folder / "own").c_str(), kNobodyKnows, kNobodyKnows), 0);
  unknown.cache = folder / "own";
  expect_kept(unknown);
}

// A program with the rights of its file's owner takes no code from where its caller says.
TEST(Surroundings, AProgramWithMoreRightsThanItsUserHasNoCache) {
  struct statvfs disk = {};
  const std::string copy = std::string(FUSEJIT_BINARY_DIR) + "/tests/worker_of_another_user";
  if (::geteuid() != 0 || ::statvfs(FUSEJIT_BINARY_DIR, &disk) != 0 || (disk.f_flag & ST_NOSUID) != 0)
    GTEST_SKIP() << "only root can give a program away, and not on every file system";
  TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0777);
  std::filesystem::copy_file(FUSEJIT_WORKER, copy, std::filesystem::copy_options::overwrite_existing);
  ASSERT_EQ(::chown(copy.c_str(), kNobodyKnows, kNobodyKnows) + ::chmod(copy.c_str(), 04755), 0);
  const Outcome outcome =
      compute(kGraphsAround, {.cache = folder / "cache", .variables = {{"HOME", folder / "home"}}, .program = copy});
  std::filesystem::remove(copy);
  expect_said(outcome, "no cache on disk", "this program runs with more rights than its user");
  EXPECT_FALSE(std::filesystem::exists(folder / "cache") || std::filesystem::exists(folder / "home"));
}

// The folder of an image that is delivered with its kernels: read, and never written.
TEST(Surroundings, AReadOnlyFolderIsReadAndSaidWhereSomethingIsMissing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0755);
  const Surroundings own{.cache = folder / "cache", .user = kNobodyKnows};
  std::filesystem::create_directory(folder / "cache");
  ASSERT_EQ(::chown((folder / "cache").c_str(), kNobodyKnows, kNobodyKnows), 0);
  expect_right(compute(kGraphsAround - 2, own), kGraphsAround - 2);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "cache"))
    ::chmod(entry.path().c_str(), entry.is_directory() ? 0500 : 0400);
  ::chmod((folder / "cache").c_str(), 0500);
  const auto before = files_below(folder.path());
  const Outcome outcome = compute(kGraphsAround, own);
  expect_said(outcome, "Permission denied");
  EXPECT_EQ(outcome.count("plans_loaded"), kGraphsAround - 2);
  const Outcome all_there = compute(kGraphsAround - 2, own);
  expect_right(all_there, kGraphsAround - 2);
  EXPECT_EQ(all_there.count("kernels_compiled"), 0);
  Surroundings reads = own;
  reads.variables["FUSEJIT_CACHE"] = "read";
  expect_right(compute(kGraphsAround, reads), kGraphsAround);
  EXPECT_EQ(files_below(folder.path()), before);
}

// A disk of a megabyte, or of few files.
class FullDisk : public ::testing::TestWithParam<const char*> {};
TEST_P(FullDisk, KeepsWhatFitsAndSaysItOnce) {
  TemporaryFolder folder;
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, GetParam()) != 0)
    GTEST_SKIP() << "no file system can be mounted here; Faults inject ENOSPC";
  const Surroundings surroundings{.cache = folder / "cache"};
  const Outcome first = compute(kGraphsAround, surroundings);
  const Outcome again = compute(kGraphsAround, surroundings);
  const int damaged = damaged_entries(folder.path());
  const std::size_t left = files_below(folder.path(), ".tmp").size();
  ASSERT_EQ(::umount(folder.path().c_str()), 0);
  expect_said(first, "No space left on device");
  expect_said(again, "No space left on device");
  EXPECT_GT(again.count("plans_loaded") + again.count("kernels_loaded"), 0);
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(left, 0u);
}
INSTANTIATE_TEST_SUITE_P(Tmpfs, FullDisk, ::testing::Values("size=64k,mode=0700", "nr_inodes=16,mode=0700"));

}  // namespace
}  // namespace fusejit::testing
