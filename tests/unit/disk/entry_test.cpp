// The bytes of an entry: whatever is wrong with them is a miss, and costs no more memory than an entry may have.
#include "runtime/disk/entry.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include "tests/support/allocations/allocations.h"
#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

std::string plan_bytes() {
  const ir::Graph graph = small_graph();
  const PlanWish wish{Target::parse("x86:avx2"), scheduler::Rules::all, {}, {}, {}, ""};
  const scheduler::Plan plan = scheduler::make_plan(graph, {wish.target, wish.rules, {}});
  return encode(plan_key(graph, wish), plan_sections(graph, plan));
}

std::string word(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// With a check sum that fits: what a hostile writer makes.
std::string summed(std::string bytes) {
  const ir::Hash hash = ir::hash_text(bytes);
  return bytes += word(hash.high, 8) + word(hash.low, 8);
}
std::string without_sum(const std::string& bytes) { return bytes.substr(0, bytes.size() - 16); }

TEST(Entry, IsReadAsItWasWritten) {
  for (const std::size_t size : {0, 1, 255, 256, 100'000}) {
    const std::string bytes = encode(test_key(7), test_sections(7, size));
    const auto entry = decode(bytes);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->key, test_key(7));
    EXPECT_EQ(entry->key.hash(), test_key(7).hash());
    EXPECT_TRUE(is_entry_of(entry, 7, size));
    EXPECT_EQ(encode(entry->key, entry->sections), bytes);
  }
  const auto plan = decode(plan_bytes());
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan_in(*plan, small_graph()));
}

TEST(Entry, WithAnyByteChangedIsAMiss) {
  for (const std::string& good : {encode(test_key(1), test_sections(1)), plan_bytes()}) {
    for (std::size_t i = 0; i < good.size(); ++i) {
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ change);
        ASSERT_FALSE(decode(bad)) << "byte " << i << " of " << good.size();
      }
    }
  }
}

TEST(Entry, CutOrExtendedAnywhereIsAMiss) {
  for (const std::string& good : {encode(test_key(1), test_sections(1)), plan_bytes()}) {
    for (std::size_t i = 0; i < good.size(); ++i) ASSERT_FALSE(decode(good.substr(0, i))) << i;
    for (std::size_t i = 0; i < good.size(); ++i) ASSERT_FALSE(decode(good.substr(i + 1))) << i;
    for (const std::size_t more : {1, 16, 4096}) {
      ASSERT_FALSE(decode(good + std::string(more, '\0')));
      ASSERT_FALSE(decode(good + good.substr(0, more)));
    }
    for (std::size_t at = 0; at + 64 <= good.size(); at += 64) {  // what a crashed file system leaves
      const std::string bad = std::string(good).replace(at, 64, 64, '\0');
      ASSERT_TRUE(bad == good || !decode(bad)) << at;
    }
  }
}

TEST(Entry, SaysWhatIsWrong) {
  const std::string good = encode(test_key(1), test_sections(1));
  const auto why = [](const std::string& bytes) {
    std::string sentence;
    EXPECT_FALSE(decode(bytes, &sentence));
    return sentence;
  };
  EXPECT_EQ(why(""), "it is no entry of a fusejit cache");
  EXPECT_EQ(why(good.substr(0, 20)), "it is cut off");
  EXPECT_EQ(why(good.substr(0, 300)), "its check sum is wrong");
  EXPECT_EQ(why(summed(without_sum(good).replace(8, 4, word(kSchema + 1, 4)))),
            "its format is that of another version");
  EXPECT_EQ(why(std::string(kMostEntryBytes + 1, 'x')), "it is larger than any entry");
  EXPECT_EQ(why(summed(without_sum(good) + "x")), "its table is wrong");
}

// Tables that lie, under a check sum that fits: no number is believed before there are bytes for it.
TEST(Entry, WithATableThatLiesIsAMissAndTakesLittleMemory) {
  const std::string good = encode(test_key(1), {test_sections(1)[0], {"text", std::string(5000, 'x')}});
  const std::size_t items = 1 + 3 + 2, table = 8 + 4;
  const std::uint64_t lies[] = {
      0,          1,          0x7f,       0xffff,     1u << 20, (64u << 20) - 1, 64u << 20, (64u << 20) + 1, 0x7fffffff,
      0x80000000, 0xffffffff, 1ull << 40, ~0ull >> 1, ~0ull};
  int accepted = 0;
  const auto try_it = [&](std::size_t at, int bytes, std::uint64_t lie) {
    const std::string bad = summed(without_sum(good).replace(at, static_cast<std::size_t>(bytes), word(lie, bytes)));
    if (bad == good) return;
    const fusejit::testing::Allocations allocations;
    accepted += decode(bad).has_value();
    ASSERT_LE(allocations.largest(), bad.size() + (1u << 19)) << "at " << at << " " << lie;
  };
  for (const std::uint64_t lie : lies) {
    for (int count = 0; count < 2; ++count) try_it(table + 4 * count, 4, lie);
    for (std::size_t item = 0; item < items; ++item) {
      const std::size_t at = table + 8 + 24 * item;
      try_it(at, 4, lie), try_it(at + 8, 8, lie), try_it(at + 16, 8, lie);
      if (lie != 1) try_it(at + 4, 4, lie == 0 ? 1 : 0);  // compressed, or not
    }
  }
  EXPECT_EQ(accepted, 0);
}

// A small file that says it is large: 64 MiB of zeros are 2 KB of zstd.
TEST(Entry, ThatExpandsBeyondWhatAnEntryMayHaveIsAMiss) {
  const auto bomb = [](std::size_t full, int sections) {
    std::string stored(ZSTD_compressBound(full), '\0');
    const std::string zeros(full, '\0');
    stored.resize(ZSTD_compress(stored.data(), stored.size(), zeros.data(), full, 1));
    std::string bytes = "fusejit\n" + word(kSchema, 4) + word(1, 4) + word(static_cast<std::uint64_t>(sections), 4);
    for (int i = 0; i < 2; ++i) bytes += word(1, 4) + word(0, 4) + word(1, 8) + word(1, 8);
    for (int i = 0; i < sections; ++i) bytes += word(1, 4) + word(1, 4) + word(stored.size(), 8) + word(full, 8);
    bytes += "kknp";
    for (int i = 0; i < sections; ++i) bytes += "s" + stored;
    return summed(bytes);
  };
  EXPECT_TRUE(decode(bomb(1000, 1)));
  EXPECT_TRUE(decode(bomb(kMostEntryBytes - 2, 1)));
  EXPECT_FALSE(decode(bomb(kMostEntryBytes, 1)));
  EXPECT_TRUE(decode(bomb(kMostEntryBytes / 8, 7)));
  EXPECT_FALSE(decode(bomb(kMostEntryBytes / 8, 9)));
}

TEST(Entry, OfMoreThanIsReadIsNotWritten) {
  EXPECT_THROW(encode(test_key(1), {{"object", std::string(kMostEntryBytes, '\0')}}), UserError);
  EXPECT_THROW(encode(test_key(1), std::vector<Section>(5000)), UserError);
}

TEST(Entry, HasOtherBytesForEveryOtherKeyAndSection) {
  // Names and texts that run together: each part counts on its own.
  const auto hash = [](std::vector<KeyPart> parts, const char* kind = "k") { return CacheKey(kind, parts).hash(); };
  EXPECT_NE(hash({{"a", "x"}}), hash({{"b", "x"}}));
  EXPECT_NE(hash({{"ab", "c"}}), hash({{"a", "bc"}}));
  EXPECT_NE(hash({{"a", "b"}, {"c", ""}}), hash({{"a", ""}, {"b", "c"}}));
  EXPECT_NE(hash({{"a", "b"}}), hash({{"a", "b"}, {"", ""}}));
  EXPECT_NE(hash({{"a", "b"}}), hash({{"a", "b"}}, "l"));
  EXPECT_EQ(hash({{"a", "b"}}), hash({{"a", "b"}}));
}

}  // namespace
}  // namespace fusejit::runtime::disk
