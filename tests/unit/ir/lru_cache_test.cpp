// The cache that forgets what was not used for longest: within its bounds, and never what was just put in.
#include "ir/base/lru_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fusejit::ir {
namespace {

Hash key(const std::string& text) { return hash_text(text); }

struct Cache : LruCache<std::string> {
  using LruCache::LruCache;
  bool put(const std::string& text, std::int64_t bytes = 1) { return add(key(text), text, bytes, gone); }
  bool has(const std::string& text) { return find(key(text)) != nullptr; }
  std::vector<std::string> contents() const {
    std::vector<std::string> all;
    for_each([&](const std::string& value) { all.push_back(value); });
    return all;
  }
  std::list<std::string> gone;
};

using Strings = std::vector<std::string>;

TEST(LruCache, ForgetsTheLeastRecentlyUsed) {
  Cache cache(3, 100);
  for (const char* text : {"a", "b", "c"}) EXPECT_TRUE(cache.put(text));
  EXPECT_TRUE(cache.has("a"));
  EXPECT_TRUE(cache.put("d"));
  EXPECT_EQ(cache.gone, std::list<std::string>{"b"});
  EXPECT_EQ(cache.contents(), (Strings{"d", "a", "c"}));
  EXPECT_FALSE(cache.has("b"));
  EXPECT_EQ(cache.evictions(), 1);
}

TEST(LruCache, KeepsWithinItsBytes) {
  Cache cache(100, 10);
  cache.put("a", 4), cache.put("b", 4), cache.put("c", 2);
  EXPECT_EQ(cache.bytes(), 10);
  cache.put("d", 5);
  EXPECT_EQ(cache.contents(), (Strings{"d", "c"}));
  EXPECT_EQ(cache.bytes(), 7);
  cache.put("large", 1000);
  EXPECT_EQ(cache.contents(), Strings{"large"}) << "what is in use now is kept, whatever it takes";
  cache.put("e", 1);
  EXPECT_EQ(cache.contents(), Strings{"e"});
  EXPECT_EQ(cache.bytes(), 1);
  EXPECT_EQ(cache.evictions(), 5);
}

TEST(LruCache, KeepsTheFirstOfEqualKeys) {
  Cache cache(2, 10);
  cache.put("a", 3);
  EXPECT_FALSE(cache.add(key("a"), "another", 5, cache.gone));
  EXPECT_EQ(*cache.find(key("a")), "a");
  EXPECT_EQ(cache.bytes(), 3);
  *cache.find(key("a")) = "changed";
  EXPECT_EQ(cache.contents(), Strings{"changed"});
}

}  // namespace
}  // namespace fusejit::ir
