// Writers that die at any byte, and calls of the system that fail, one at a time: a later process finds a whole entry
// or none, and can always make it again.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <set>

#include "runtime/disk/explain.h"
#include "tests/support/faulty_files/faulty_files.h"
#include "tests/support/nightly.h"
#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

using fusejit::testing::Fault;
using fusejit::testing::FaultyFiles;

TEST(Crash, AfterAnyByteLeavesTheEntryThatWasThereOrNone) {
  const CacheKey key = test_key(1);
  const std::size_t size = encode(key, test_sections(1)).size();
  ASSERT_GT(size, 700u);
  const std::size_t step = testing::is_nightly() ? 1 : 4;
  std::size_t deaths = 0;
  for (const bool was_there : {false, true}) {
    TemporaryFolder folder;
    DiskCache cache({.folder = folder.path()});
    if (was_there) cache.put(key, test_sections(2));
    for (std::size_t bytes = 1; bytes <= size; bytes += bytes + step > size && bytes < size ? size - bytes : step) {
      const pid_t child = ::fork();
      if (child == 0) {
        fusejit::testing::kill_after(folder.path(), bytes);
        DiskCache({.folder = folder.path()}).put(key, test_sections(1));
        ::_exit(0);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << bytes;
      ++deaths;
      DiskCache next({.folder = folder.path()});
      const auto found = next.find(key);
      ASSERT_EQ(found.has_value(), was_there) << bytes;
      ASSERT_TRUE(!found || is_entry_of(found, 2));
      ASSERT_EQ(next.statistics().damaged, 0);
    }
    EXPECT_GT(files_below(folder.path(), ".tmp").size(), size / step - 5) << "what the dead left";
    // It is made after all, and what they left goes when it has lain for an hour.
    for (const std::string& file : files_below(folder.path(), ".tmp"))
      std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
    DiskCache next({.folder = folder.path()});
    next.put(key, test_sections(1));
    EXPECT_TRUE(is_entry_of(next.find(key), 1));
    EXPECT_EQ(files_below(folder.path(), ".tmp"), std::vector<std::string>());
  }
  std::printf("%zu writers killed, each after another byte of %zu\n", deaths, size);
}

const std::vector<std::pair<const char*, Fault>> kFaults = {{"EIO", {Fault::refused, EIO}},
                                                            {"ESTALE", {Fault::refused, ESTALE}},
                                                            {"EBUSY", {Fault::refused, EBUSY}},
                                                            {"EACCES", {Fault::refused, EACCES}},
                                                            {"ENOENT", {Fault::refused, ENOENT}},
                                                            {"ENOSPC", {Fault::refused, ENOSPC}},
                                                            {"EDQUOT", {Fault::refused, EDQUOT}},
                                                            {"EROFS", {Fault::refused, EROFS}},
                                                            {"EMFILE", {Fault::refused, EMFILE}},
                                                            {"EINTR", {Fault::refused, EINTR}},
                                                            {"EEXIST", {Fault::refused, EEXIST}},
                                                            {"ENOTDIR", {Fault::refused, ENOTDIR}},
                                                            {"ESTALE, but done", {Fault::lost_reply, ESTALE}},
                                                            {"ENOENT, but done", {Fault::lost_reply, ENOENT}},
                                                            {"a part", {Fault::partial, 0}}};

// What a cache does in its life: made, a miss, two entries kept, one of them in a full folder, a hit, a damaged one
// that is replaced, a use that is noted.
void live(const std::string& folder, std::vector<std::string>& said, bool has_files) {
  const auto ok = [](const std::optional<Entry>& entry, int number) { return !entry || is_entry_of(entry, number); };
  DiskCache cache({.folder = folder,
                   .durable = true,
                   .most = {std::int64_t{16} * 5000, 65536},
                   .stamp_seconds = 0,
                   .log = [&](const std::string& line) { said.push_back(line); }});
  EXPECT_TRUE(ok(cache.find(test_key(1)), 1));
  cache.take_turn(test_key(1));
  EXPECT_TRUE(has_files || cache.statistics().hits == 0);
  cache.put(test_key(1), test_sections(1));
  cache.put(test_key(1, "2"), test_sections(2));  // beside it: the least recently used goes
  cache.put(test_key(3), test_sections(3));
  EXPECT_TRUE(ok(cache.find(test_key(1, "2")), 2));
  EXPECT_TRUE(ok(cache.find(test_key(3)), 3));
  cache.contains(test_key(3));
  explain(cache, test_key(3, "2"));
  cache.remove(test_key(3));
}

TEST(Faults, OneAtATimeOfEveryCallNeverStopsAProgramNorDamagesAnEntry) {
  int runs = 0;
  std::map<std::string, int> calls;
  for (const auto& [name, fault] : kFaults) {
    for (const bool has_files : {false, true}) {
      bool was_hit = true;
      for (int at = 0; was_hit; ++at, ++runs) {
        SCOPED_TRACE(std::string(name) + " at call " + std::to_string(at));
        TemporaryFolder parent;
        const std::string folder = parent / "a/cache";
        if (has_files) {
          DiskCache cache({.folder = folder});
          cache.put(test_key(1), test_sections(1)), cache.put(test_key(3), test_sections(3));
          write_bytes(place_of(cache, test_key(3)), "damaged");
        }
        std::vector<std::string> said;
        {
          const FaultyFiles faulty(parent.path(), at, fault);
          live(folder, said, has_files);
          was_hit = !faulty.hit().empty();
          if (was_hit) ++calls[faulty.hit()];
        }
        const bool says_damage = has_files && !said.empty() && said.back().find("made again") != std::string::npos;
        EXPECT_LE(said.size(), says_damage ? 2u : 1u) << said[0];
        // A process without faults finds nothing that is damaged, and everything works again.
        DiskCache after({.folder = folder});
        for (const CacheKey& key : {test_key(1), test_key(1, "2"), test_key(3)}) {
          const auto found = after.find(key);
          const int number = key == test_key(3) ? 3 : key == test_key(1) ? 1 : 2;
          EXPECT_TRUE(!found || is_entry_of(found, number));
          after.put(key, test_sections(number));
          EXPECT_TRUE(is_entry_of(after.find(key), number));
        }
        EXPECT_TRUE(has_files || after.statistics().damaged == 0);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
  std::set<std::string> names;
  for (const auto& [call, count] : calls) names.insert(call);
  for (const char* call : {"fcntl", "open", "openat", "close", "read", "write", "fsync", "fstat", "fstatat", "mkdir",
                           "mkdirat", "renameat", "unlinkat", "faccessat", "utimensat"})
    EXPECT_TRUE(names.contains(call)) << call;
  std::printf("%d runs with a fault each, of %zu kinds of call\n", runs, names.size());
}

// What could not be written to its last byte and closed is not there; what was only slowed down is.
TEST(Faults, PublishNothingThatIsNotWhole) {
  const std::pair<Fault, bool> cases[] = {
      {{Fault::refused, EIO}, false}, {{Fault::refused, EINTR}, true}, {{Fault::partial, 0}, true}};
  for (const auto& [fault, is_harmless] : cases) {
    std::map<std::string, int> met;
    // A part of what was wanted is for read() and write(), and these are the calls that signals interrupt.
    const auto may_meet = [&](const std::string& name) {
      return fault.kind == Fault::partial ||
             std::set<std::string>{"open", "openat", "read", "write", "close"}.contains(name);
    };
    std::string call = "first";
    for (int at = 0; !call.empty(); ++at) {
      TemporaryFolder folder;
      DiskCache cache({.folder = folder.path()});
      cache.put(test_key(1), test_sections(1)), cache.put(test_key(1, "2"), test_sections(2));
      {
        const FaultyFiles faulty(folder.path(), at, fault);
        cache.put(test_key(1), test_sections(3));
        call = faulty.hit();
      }
      const bool is_first = met[call]++ == 0;
      if ((is_harmless && may_meet(call)) || call.empty()) {
        EXPECT_EQ(cache.statistics().stored, 3) << call << " " << at;
        EXPECT_TRUE(is_entry_of(cache.find(test_key(1)), 3)) << call << " " << at;
      } else if (!is_harmless && (call == "write" || call == "renameat" || (call == "close" && is_first))) {
        EXPECT_EQ(cache.statistics().stored, 2) << call;
        EXPECT_TRUE(is_entry_of(cache.find(test_key(1)), 1)) << call;
        EXPECT_EQ(files_below(folder.path(), ".tmp"), std::vector<std::string>()) << call;
      }
      if (!is_harmless || call.empty()) continue;
      cache.put(test_key(1), test_sections(3));
      const FaultyFiles faulty(folder.path(), at, fault);
      const bool found = is_entry_of(cache.find(test_key(1)), 3);
      EXPECT_TRUE(found || !may_meet(faulty.hit())) << faulty.hit() << " " << at;
    }
    EXPECT_TRUE(met["write"] >= 1 && met["close"] >= 1 && met["renameat"] == 1);
  }
}

// A disk that stays full, a network that stays away: one line, however many entries could not be kept.
TEST(Faults, ThatStayAreSaidOnce) {
  for (const auto& [name, fault] : kFaults) {
    if (fault.kind != Fault::refused || fault.error == EINTR) continue;  // nobody is interrupted for ever
    for (const int at : {0, 5, 9, 20}) {
      SCOPED_TRACE(std::string(name) + " from call " + std::to_string(at));
      TemporaryFolder parent;
      std::vector<std::string> said;
      {
        const FaultyFiles faulty(parent.path(), at, fault, true);
        DiskCache cache({.folder = parent / "cache", .log = [&](const std::string& line) { said.push_back(line); }});
        for (int i = 0; i < 20; ++i) {
          cache.take_turn(test_key(i));
          cache.put(test_key(i), test_sections(i));
          const auto found = cache.find(test_key(i));
          EXPECT_TRUE(!found || is_entry_of(found, i));
        }
      }
      ASSERT_LE(said.size(), 1u) << said[1];
      if (fault.error != ENOENT && fault.error != EEXIST) {
        ASSERT_EQ(said.size(), 1u);
        EXPECT_NE(said[0].find("FUSEJIT_CACHE_DIR names another folder"), std::string::npos) << said[0];
      }
      DiskCache after({.folder = parent / "cache"});
      for (int i = 0; i < 20; ++i) after.put(test_key(i), test_sections(i));
      EXPECT_EQ(after.statistics().stored, 20);
    }
  }
}

}  // namespace
}  // namespace fusejit::runtime::disk
