// Where the cache is: never in a place that others choose, and the environment has the last word.
#include "runtime/disk/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fusejit/error.h"
#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

class Settings : public ::testing::Test {
 protected:
  Settings() {
    for (const char* name : kNames) {
      if (const char* value = std::getenv(name)) before_.emplace_back(name, value);
      ::unsetenv(name);
    }
  }
  ~Settings() override {
    for (const char* name : kNames) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  static CacheSettings with(const std::vector<std::pair<const char*, std::string>>& variables) {
    for (const char* name : kNames) ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
    return cache_settings();
  }
  static constexpr const char* kNames[] = {"HOME",          "XDG_CACHE_HOME",         "FUSEJIT_CACHE_DIR",
                                           "FUSEJIT_CACHE", "FUSEJIT_CACHE_MAX_SIZE", "FUSEJIT_CACHE_SHARED",
                                           "FUSEJIT_FREEZE"};
  std::vector<std::pair<std::string, std::string>> before_;
};

TEST_F(Settings, AFolderOfTheUsersIsTheDefault) {
  EXPECT_EQ(with({{"HOME", "/h"}}).options.folder, "/h/.cache/fusejit/compiled");
  EXPECT_EQ(with({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).options.folder, "/x/fusejit/compiled");
  EXPECT_EQ(with({{"HOME", "/h"}, {"XDG_CACHE_HOME", "x"}}).options.folder, "/h/.cache/fusejit/compiled");
  EXPECT_EQ(with({{"HOME", "/h"}, {"FUSEJIT_CACHE_DIR", "/d"}}).options.folder, "/d");
  EXPECT_EQ(with({{"HOME", "/h"}, {"FUSEJIT_CACHE_DIR", "/d"}}).origin, "FUSEJIT_CACHE_DIR");
  EXPECT_EQ(with({{"HOME", "/h"}}).options.trust, Trust::owner);
  EXPECT_FALSE(with({{"HOME", "/h"}}).options.read_only);
}

// Neither the current folder nor /tmp, where others could have put something.
TEST_F(Settings, WithoutAHomeThereIsNone) {
  for (const auto& settings :
       {with({}), with({{"HOME", ""}}), with({{"HOME", "relative"}}), with({{"XDG_CACHE_HOME", "x"}})}) {
    EXPECT_EQ(settings.options.folder, "");
    EXPECT_EQ(settings.off, "neither FUSEJIT_CACHE_DIR nor HOME is set");
  }
  std::vector<std::string> said;
  with({});
  EXPECT_FALSE(user_cache("on", [&](const std::string& line) { said.push_back(line); }));
  EXPECT_EQ(said, std::vector<std::string>{"no cache on disk: neither FUSEJIT_CACHE_DIR nor HOME is set"});
  // Whoever wants none is not told.
  EXPECT_FALSE(user_cache("off", [&](const std::string& line) { said.push_back(line); }));
  with({{"FUSEJIT_CACHE", "off"}});
  EXPECT_FALSE(user_cache("on", [&](const std::string& line) { said.push_back(line); }));
  EXPECT_EQ(said.size(), 1u);
}

TEST_F(Settings, ARelativeFolderStaysWhereItIsWhenTheProgramGoesElsewhere) {
  TemporaryFolder one, other;
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(one.path());
  with({{"FUSEJIT_CACHE_DIR", "cache"}});
  const auto cache = user_cache("on", nullptr);
  std::filesystem::current_path(other.path());
  cache->put(test_key(1), test_sections(1));
  std::filesystem::current_path(before);
  EXPECT_EQ(files_below(one.path(), ".entry").size(), 1u);
  EXPECT_TRUE(files_below(other.path()).empty());
}

TEST_F(Settings, EveryVariableIsReadAndWhatCannotBeMeantIsAnError) {
  EXPECT_TRUE(with({{"HOME", "/h"}, {"FUSEJIT_CACHE", "read"}}).options.read_only);
  EXPECT_EQ(with({{"HOME", "/h"}, {"FUSEJIT_CACHE", "off"}}).off, "FUSEJIT_CACHE=off");
  EXPECT_EQ(with({{"HOME", "/h"}, {"FUSEJIT_CACHE_SHARED", "1"}}).options.trust, Trust::shared);
  EXPECT_EQ(with({{"HOME", "/h"}, {"FUSEJIT_CACHE_MAX_SIZE", "500M"}}).options.most.bytes, 500 << 20);
  EXPECT_THROW(with({{"FUSEJIT_CACHE", "yes"}}), UserError);
  EXPECT_THROW(with({{"HOME", "/h"}, {"FUSEJIT_CACHE_SHARED", "yes"}}), UserError);
  EXPECT_THROW(with({{"HOME", "/h"}, {"FUSEJIT_CACHE_MAX_SIZE", "4 G"}}), UserError);
  with({{"FUSEJIT_FREEZE", "2"}});
  EXPECT_THROW(is_frozen(), UserError);
  with({{"FUSEJIT_FREEZE", "1"}});
  EXPECT_TRUE(is_frozen());
  for (const char* bad : {"", "G", "-1", "1.5G", "4GB", "9999999999999T", "0x10", "4g4"})
    EXPECT_THROW(parse_size("s", bad), UserError) << bad;
  EXPECT_EQ(parse_size("s", "0"), 0);
  EXPECT_EQ(parse_size("s", "3t"), std::int64_t{3} << 40);
}

TEST_F(Settings, AProcessHasOneCacheWhileTheyStay) {
  TemporaryFolder folder;
  with({{"FUSEJIT_CACHE_DIR", folder.path()}});
  const auto cache = user_cache("on", nullptr);
  EXPECT_EQ(user_cache("on", nullptr), cache);
  EXPECT_NE(user_cache("read", nullptr), cache);
  EXPECT_TRUE(user_cache("read", nullptr)->options().read_only);
  EXPECT_THROW(user_cache("yes", nullptr), UserError);
  with({{"FUSEJIT_CACHE_DIR", folder.path()}, {"FUSEJIT_CACHE", "read"}});
  EXPECT_TRUE(user_cache("on", nullptr)->options().read_only);  // the environment asks for less
}

}  // namespace
}  // namespace fusejit::runtime::disk
