// safetensors: what is written reads back and is the bytes of the specification; every file that breaks one of its
// rules is one UserError with one short sentence.
#include "frontend/io/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "frontend/io/array_file.h"
#include "fusejit/error.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/frontend/named_array.h"

namespace fusejit::io {
namespace {

using testing::bytes_of;
using testing::error_of;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A file of that header and so many elements, the length of the header as given or true.
std::string file_of(std::string_view header, std::string_view elements, std::int64_t length = -1) {
  const auto claimed = length < 0 ? header.size() : static_cast<std::uint64_t>(length);
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(claimed >> (8 * i) & 0xff));
  return file.append(header).append(elements);
}

std::vector<NamedArray> every_dtype() { return arrays_of_every_dtype("a \"name\"\n\xc3\xa9"); }

TEST(Safetensors, ReadsWhatItWrites) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "round.safetensors";
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"\xc3\xa9", "\"\n"}, {"none", ""}};
  const std::vector<NamedArray> arrays = every_dtype();
  write_safetensors(path, arrays, metadata);
  for (const bool elements : {true, false}) {
    const Safetensors read = elements ? read_safetensors(path) : describe_safetensors(path);
    EXPECT_EQ(read.metadata, metadata);
    ASSERT_EQ(read.arrays.size(), arrays.size());
    for (const NamedArray& array : arrays) {
      const auto found =
          std::find_if(read.arrays.begin(), read.arrays.end(), [&](const auto& a) { return a.name == array.name; });
      ASSERT_NE(found, read.arrays.end()) << array.name;
      EXPECT_EQ(found->dtype, array.dtype);
      EXPECT_EQ(found->shape, array.shape);
      EXPECT_EQ(found->bytes, elements ? array.bytes : std::vector<std::byte>()) << array.name;
    }
  }
  EXPECT_EQ(testing::files_below(folder.path()).size(), 1u) << "a temporary file was left";
}

// The specification's bytes: wide elements first, a header of whole words, metadata before the arrays.
TEST(Safetensors, WritesTheseBytes) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(path,
                    std::vector{array_of<std::uint8_t>("a", DType::boolean, {1}, {1}),
                                array_of<float>("b", DType::f32, {1, 2}, {0, 1})},
                    {{"format", "pt"}});
  std::string header = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                       R"("a":{"dtype":"BOOL","shape":[1],"data_offsets":[8,9]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(bytes_of(path), file_of(header, std::string("\0\0\0\0\0\0\x80\x3f\1", 9)));
  write_safetensors(path, {});
  EXPECT_EQ(bytes_of(path), file_of("{}      ", ""));
  EXPECT_TRUE(read_safetensors(path).arrays.empty());
}

TEST(Safetensors, NothingIsWrittenWhenAnArrayIsBad) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const NamedArray good = array_of<float>("w", DType::f32, {1}, {1});
  const auto refusal = [&](std::vector<NamedArray> arrays, const std::map<std::string, std::string>& metadata = {}) {
    const std::string sentence = error_of([&] { write_safetensors(path, arrays, metadata); });
    EXPECT_TRUE(testing::files_below(folder.path()).empty());
    return sentence;
  };
  NamedArray cut = good;
  cut.bytes.pop_back();
  EXPECT_EQ(refusal({good, cut}), "array 'w': 3 bytes given, f32[1] has 4");
  EXPECT_EQ(refusal({good, array_of<double>("w", DType::f64, {1}, {1})}), path + ": there are two arrays named 'w'");
  EXPECT_EQ(refusal({array_of<float>("__metadata__", DType::f32, {1}, {1})}),
            path + ": no array can be named '__metadata__'");
  EXPECT_EQ(refusal({array_of<float>("\xff", DType::f32, {1}, {1})}),
            path + ": the names of arrays and metadata must be UTF-8");
  EXPECT_EQ(refusal({good}, {{"note", "\xc3"}}), path + ": the names of arrays and metadata must be UTF-8");
  EXPECT_THROW(write_safetensors("/nonexistent/x.safetensors", {}), FileError);
  EXPECT_THROW(read_safetensors("/nonexistent/x.safetensors"), FileError);
  EXPECT_THROW(describe_safetensors("/nonexistent/x.safetensors"), FileError);
  EXPECT_THROW(describe_safetensors(folder.path()), FileError);
  EXPECT_THROW(describe_safetensors("/dev/zero"), FileError);
}

TEST(Safetensors, ReadsWhatOtherWritersWrite) {
  // In any order of members, arrays and offsets, with blanks, an escape, an empty array between others, true as 255.
  const std::string header =
      R"( {"b":{"shape":[2], "data_offsets":[4,6],"dtype":"BOOL"},"\u0061":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("e":{"dtype":"F64","shape":[3,0],"data_offsets":[4,4]},"__metadata__":{}}  )";
  const Safetensors read =
      parse_safetensors(as_bytes(file_of(header.substr(1), std::string("\0\0\x80\x3f\0\xff", 6))), "t");
  ASSERT_EQ(read.arrays.size(), 3u);
  EXPECT_EQ(read.arrays[0].name, "b");
  EXPECT_EQ(read.arrays[0].bytes, (std::vector{std::byte{0}, std::byte{1}}));
  EXPECT_EQ(read.arrays[1].name, "a");
  EXPECT_EQ(read.arrays[1].shape, Shape());
  EXPECT_EQ(read.arrays[2].shape, (Shape{3, 0}));
}

TEST(Safetensors, AsksBeforeItReadsElements) {
  const std::string file = file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                   R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                                   std::string(12, 'x'));
  const auto read =
      parse_safetensors(as_bytes(file), "t", [](const NamedArray& a) { return a.shape == Shape{2}; }).arrays;
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].name, "b");
}

std::string entry(std::string_view members) { return std::string(R"({"w":{)").append(members).append("}}"); }

TEST(Safetensors, RefusesWithOneSentence) {
  const std::string f32 = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", four(4, 'x');
  const struct {
    std::string file, sentence;
  } cases[] = {
      {"", "t: is not a safetensors file, or is cut off"},
      {"1234567", "t: is not a safetensors file, or is cut off"},
      {file_of("", ""), "t: is not a safetensors file: its header does not begin with {"},
      {file_of("{}", "", 3), "t: is cut off in its header"},
      {file_of("{}", "", 100'000'001),
       "t: is not a safetensors file: its header would have 100000001 bytes, at most 100000000 are read"},
      {std::string(8, '\xff') + "{}", "its header would have 18446744073709551615 bytes"},
      {file_of("[]", ""), "does not begin with {"},
      {file_of(" {}", ""), "does not begin with {"},
      {file_of("\xef\xbb\xbf{}", ""), "does not begin with {"},
      {file_of("{", ""), "t: the safetensors header is no JSON (byte 2 of it)"},
      {file_of("{}x", ""), "t: the safetensors header is no JSON (byte 3 of it)"},
      {file_of("{\"\xff\":{}}", ""), "is no JSON (byte 3 of it)"},
      {file_of(R"({"\ud800":{}})", ""), "is no JSON"},
      {file_of(R"({"w":[]})", ""), "t: a list stands as 'w'"},
      {file_of(R"({"w":null})", ""), "t: null stands as 'w'"},
      {file_of(R"({"w":{"shape":{}}})", ""), "t: an object stands as shape of array 'w'"},
      {file_of(R"({"w":{"shape":[[]]}})", ""), "t: a list stands as shape of array 'w'"},
      {file_of(R"({"w":{"dtype":[)" + std::string(100000, '['), ""), "t: a list stands as dtype of array 'w'"},
      {file_of(R"({"__metadata__":{"a":1}})", ""), "t: a number stands in its metadata, as 'a'"},
      {file_of(R"({"__metadata__":{"a":{}}})", ""), "t: an object stands in its metadata, as 'a'"},
      {file_of(R"({"__metadata__":{"a":"","a":""}})", ""), "t: its metadata has two values 'a'"},
      {file_of(R"({"__metadata__":{},"__metadata__":{}})", ""), "t: the header has two entries '__metadata__'"},
      {file_of(entry(f32 + R"(,"offset":0)"), four), "t: array 'w' has a member 'offset', which is not known"},
      {file_of(entry(R"("dtype":"F32",)" + f32), four), "t: array 'w' has two members dtype"},
      {file_of(entry(R"("dtype":"F32","shape":[1])"), four), "t: array 'w' has no data_offsets"},
      {file_of(R"({"w":{}})", ""), "t: array 'w' has no dtype"},
      {file_of(R"({"w":{)" + f32 + R"(},"w":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})", four),
       "t: there are two arrays named 'w'"},
      {file_of(entry(R"("dtype":"U16","shape":[2],"data_offsets":[0,4])"), four),
       "t: array 'w' has dtype 'U16', which is not read (only BOOL I8 U8 I16 I32 I64 F16 BF16 F32 F64)"},
      {file_of(entry(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), four),
       "t: a negative number stands as shape of array 'w'"},
      {file_of(entry(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), four),
       "t: a number that is not whole or too large stands as shape of array 'w'"},
      {file_of(entry(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4])"), four), "too large"},
      {file_of(entry(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])"), four),
       "t: array 'w': a dimension does not fit 64 bits"},
      {file_of(entry(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])"), four), "the rank exceeds 8"},
      {file_of(entry(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), four), "t: array 'w': "},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), four),
       "t: array 'w' has 1 data_offsets, there are two"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])"), four),
       "t: array 'w' has more than two data_offsets"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), four),
       "t: array 'w' has data_offsets 4 and 0, f32[1] has 4 bytes"},
      {file_of(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), four),
       "t: array 'w' has data_offsets 0 and 4, f32[2] has 8 bytes"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551616])"), four),
       "too large"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[18446744073709551611,18446744073709551615])"), four),
       "t: array 'w' begins at byte 18446744073709551611 of the elements, where 0 are taken"},
      {file_of(entry(f32), four + "x"), "t: its arrays have 4 bytes, the file holds 5"},
      {file_of(entry(f32), "xxx"), "t: array 'w' ends at byte 4 of the elements, the file holds 3"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[1,5])"), four + "x"),
       "t: array 'w' begins at byte 1 of the elements, where 0 are taken"},
      {file_of(R"({"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{)" + f32 + "}}", four),
       "begins at byte 0 of the elements, where 4 are taken"},
      {file_of("{\"" + std::string(79, 'n') + "\xc3\xa9\":1}", ""), std::string(79, 'n') + "...'"},
      {file_of("{\"" + std::string(200, 'n') + "\":1}", ""), "t: a number stands as '" + std::string(80, 'n') + "...'"},
  };
  for (const auto& c : cases) {
    const std::string error = error_of([&] { parse_safetensors(as_bytes(c.file), "t"); });
    EXPECT_NE(error.find(c.sentence), std::string::npos) << error << "\nshould say: " << c.sentence;
    EXPECT_LT(error.size(), 300u) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

// A million arrays of nothing are a file like another; one wrong byte in it is found.
TEST(Safetensors, AMillionEntriesAreReadInTheirTurn) {
  std::string header = "{";
  for (int i = 0; i < 1'000'000; ++i)
    header += "\"" + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)";
  header.back() = '}';
  EXPECT_EQ(parse_safetensors(as_bytes(file_of(header, "")), "t").arrays.size(), 1'000'000u);
  header.replace(header.rfind("999999"), 6, "999998");
  EXPECT_EQ(error_of([&] { parse_safetensors(as_bytes(file_of(header, "")), "t"); }),
            "t: there are two arrays named '999998'");
}

// The format is what the name ends in, and an .npz has no place for metadata.
TEST(ArrayFile, IsOfTheFormatThatItsNameSays) {
  const testing::TemporaryFolder folder;
  const NamedArray half = array_of<std::uint16_t>("x", DType::bf16, {1}, {0x3f80});
  for (const char* name : {"a.npz", "a.safetensors", "a"}) {
    write_arrays(folder / name, {half}, {});
    EXPECT_EQ(bytes_of(folder / name).starts_with("PK"), !std::string(name).ends_with(".safetensors")) << name;
    EXPECT_EQ(read_arrays(folder / name).at(0).name, "x") << name;
    EXPECT_EQ(read_arrays(folder / name, [](const auto& a) { return a.name == "x"; }).size(), 1u) << name;
    EXPECT_EQ(read_stored_arrays(folder / name, {}, {}).at(0).name, "x.bf16") << name;
    EXPECT_TRUE(read_stored_arrays(folder / name, [](auto stored) { return stored == "x"; }, {}).empty()) << name;
    EXPECT_EQ(describe_arrays(folder / name).at(0).shape, Shape{1}) << name;
    EXPECT_TRUE(read_metadata(folder / name).empty()) << name;
  }
  EXPECT_EQ(error_of([&] {
              write_arrays(folder / "b.npz", {half}, {{"a", "b"}});
            }),
            folder / "b.npz" + ": an .npz has no place for metadata, a .safetensors has");
  for (const char* name : {"net.pt", "net.npz.bin"}) {
    const std::string sentence = fmt::format(
        "{}: named tensors are kept in files that end in .safetensors or .npz "
        "(PyTorch reads both), not in {}",
        folder / name, std::filesystem::path(name).extension().string());
    EXPECT_EQ(error_of([&] { write_arrays(folder / name, {half}, {}); }), sentence);
    EXPECT_EQ(error_of([&] { read_arrays(folder / name); }), sentence);
    EXPECT_EQ(error_of([&] { describe_arrays(folder / name); }), sentence);
    EXPECT_EQ(error_of([&] { read_metadata(folder / name); }), sentence);
    EXPECT_FALSE(std::filesystem::exists(folder / name));
  }
  std::filesystem::copy(folder / "a.npz", folder / "wrong.safetensors");
  EXPECT_NE(error_of([&] { read_arrays(folder / "wrong.safetensors"); }).find("is not a safetensors file"),
            std::string::npos);
}

}  // namespace
}  // namespace fusejit::io
