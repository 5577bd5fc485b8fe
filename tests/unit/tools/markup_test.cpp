// What people named, as XML and DOT may hold it, and bytes as people read them.
#include "tools/fusejit-dump/markup.h"

#include <gtest/gtest.h>

#include "ir/base/number.h"

namespace fusejit::tools {
namespace {

const std::string kNone = "\xEF\xBF\xBD";

TEST(Markup, EscapesWhatXmlReads) {
  EXPECT_EQ(escaped("<script>alert('1')</script> & \"x\""),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;");
  EXPECT_EQ(escaped("a\tb\nc \xC3\xA9 \xE2\x86\x92 \xF0\x9F\x98\x80"),
            "a\tb\nc \xC3\xA9 \xE2\x86\x92 \xF0\x9F\x98\x80");
}

TEST(Markup, ReplacesWhatXmlHasNoCharacterFor) {
  EXPECT_EQ(escaped(std::string("\0\x01\x1B\r", 4)), kNone + kNone + kNone + kNone);
  const std::pair<const char*, int> cases[] = {
      {"\x80", 1},          // in the middle of none
      {"\xC3", 1},          // cut
      {"\xC0\xAF", 2},      // overlong
      {"\xE0\x80\xAF", 3},  // overlong
      {"\xF0\x80\x80\x80", 4},
      {"\xED\xA0\x80", 3},      // half of a pair
      {"\xEF\xBF\xBF", 3},      // U+FFFF
      {"\xF4\x90\x80\x80", 4},  // beyond Unicode
      {"\xFF", 1},
  };
  for (const auto& [bytes, count] : cases) {
    std::string expected;
    for (int i = 0; i < count; ++i) expected += kNone;
    EXPECT_EQ(escaped(bytes), expected) << bytes;
    EXPECT_EQ(dot_escaped(bytes), expected) << bytes;
  }
}

TEST(Markup, EscapesWhatDotReads) {
  EXPECT_EQ(dot_escaped("a\"; b [c=\\N] &lt;\nd"), "a\\\"; b [c=\\\\N] &amp;lt;\\nd");
}

TEST(Markup, BytesAreShort) {
  const std::pair<std::int64_t, const char*> cases[] = {{0, "0 B"},
                                                        {1023, "1023 B"},
                                                        {1024, "1.0 KiB"},
                                                        {1536, "1.5 KiB"},
                                                        {(1 << 20) - 1, "1.0 MiB"},
                                                        {std::int64_t{5} << 30, "5.0 GiB"},
                                                        {std::int64_t{3} << 50, "3072.0 TiB"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(ir::bytes_text(bytes), text);
}

TEST(Markup, LongNamesAreCut) {
  EXPECT_EQ(shortened("%weight", 7), "%weight");
  EXPECT_EQ(shortened("%weights", 7), "%weigh\xE2\x80\xA6");
}

}  // namespace
}  // namespace fusejit::tools
