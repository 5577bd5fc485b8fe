// Array files: what is written reads back; files of other writers (deflated, zip64 headers, Fortran order, versions 2
// and 3) are read; every damaged file is one UserError and nothing else.
#include "frontend/io/npz.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "frontend/io/files.h"
#include "frontend/io/npy.h"
#include "fusejit/error.h"
#include "tests/support/allocations/allocations.h"
#include "tests/support/error_of.h"
#include "tests/support/mutate.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/frontend/named_array.h"

namespace fusejit::io {
namespace {

using testing::error_of;

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "_" + name)).string();
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::string npy_text(std::string_view header, std::string_view elements, int version = 1) {
  std::string text = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) text.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  return text.append(header).append(elements);
}

TEST(Npz, ReadsWhatItWrites) {
  const std::string path = scratch("round.npz");
  const std::vector<NamedArray> arrays = arrays_of_every_dtype("x.bf16");
  write_npz(path, arrays);
  const std::vector<NamedArray> read = read_npz(path);
  ASSERT_EQ(read.size(), arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ(read[i].name, arrays[i].name);
    EXPECT_EQ(read[i].dtype, arrays[i].dtype);
    EXPECT_EQ(read[i].shape, arrays[i].shape);
    EXPECT_EQ(read[i].bytes, arrays[i].bytes);
  }
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
    EXPECT_FALSE(entry.path().string().starts_with(path + ".")) << "a temporary file was left";
  }
  std::filesystem::remove(path);
}

TEST(Npz, NothingIsWrittenWhenAnArrayIsBad) {
  const std::string path = scratch("bad.npz");
  NamedArray array = array_of<float>("w", DType::f32, {2}, {1, 2});
  const NamedArray twice[] = {array, array};
  EXPECT_THROW(write_npz(path, twice), UserError);
  array.bytes.pop_back();
  EXPECT_THROW(write_npz(path, {&array, 1}), UserError);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THROW(write_npz("/nonexistent/x.npz", {}), FileError);
  EXPECT_THROW(read_npz("/nonexistent/x.npz"), FileError);
  EXPECT_THROW(read_npz("/tmp"), FileError);
}

TEST(Npy, HonoursFortranOrderAndAllVersions) {
  const float columns[] = {1, 4, 2, 5, 3, 6};
  const std::string_view elements(reinterpret_cast<const char*>(columns), sizeof columns);
  const NamedArray rows = array_of<float>("", DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  for (int version = 1; version <= 3; ++version) {
    const std::string text =
        npy_text("{\"shape\": (2, 3), 'fortran_order': True, 'descr': '<f4'}  \n", elements, version);
    const NamedArray read = parse_npy(bytes_of(text), "", "t");
    EXPECT_EQ(read.shape, rows.shape);
    EXPECT_EQ(read.bytes, rows.bytes) << "version " << version;
  }
}

TEST(Npy, AnyNonzeroByteIsTrue) {
  const std::string text =
      npy_text("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", std::string("\0\2\xff", 3));
  EXPECT_EQ(parse_npy(bytes_of(text), "", "t").bytes, bytes_of(std::string_view("\0\1\1", 3)));
}

TEST(Npy, RefusesWithOneSentence) {
  const struct {
    std::string text, sentence;
  } cases[] = {
      {"hello, this is no array", "is not a .npy array"},
      {npy_text("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234"), "dtype '>f4'"},
      {npy_text("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "1234"), "dtype '|O'"},
      {npy_text("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"), "structured"},
      {npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234"), "4 bytes of elements"},
      {npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "1234"), "rank exceeds 8"},
      {npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", ""), "64 bits"},
      {npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (1048576,1048576,1048576), }", ""), "t: "},
      {npy_text("{'descr': '<f4', 'fortran_order': False}", ""), "header cannot be read"},
      {npy_text("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "1234"),
       "header cannot be read"},
      {npy_text("{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}", "1234"), "header cannot be read"},
      {npy_text(std::string(60000, '('), ""), "header cannot be read"},
      {std::string("\x93NUMPY\x04\x00\x00\x00", 10), "version 4.0"},
      {std::string("\x93NUMPY\x01\x00\xff\xff", 10), "cut off in its header"},
  };
  for (const auto& c : cases) {
    const std::string error = error_of([&] { parse_npy(bytes_of(c.text), "", "t"); });
    EXPECT_NE(error.find(c.sentence), std::string::npos) << error;
  }
}

// A deflated member with a zip64 local header and data descriptor sizes of zero, as NumPy's savez_compressed writes.
std::string deflated_zip(const std::string& name, const std::string& member) {
  std::string packed(member.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(member.data()));
  stream.avail_in = static_cast<uInt>(member.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  std::string zip;
  const auto put = [&zip](std::uint64_t v, int width) {
    for (int i = 0; i < width; ++i) zip.push_back(static_cast<char>(v >> (8 * i) & 0xff));
  };
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(member.data()), static_cast<uInt>(member.size()));
  put(0x04034b50, 4), put(45, 2), put(0, 2), put(8, 2), put(0, 4), put(crc, 4);
  put(0xffffffff, 4), put(0xffffffff, 4), put(name.size(), 2), put(20, 2);
  zip += name;
  put(1, 2), put(16, 2), put(member.size(), 8), put(packed.size(), 8);
  zip += packed;
  const std::size_t directory = zip.size();
  put(0x02014b50, 4), put(45, 2), put(45, 2), put(0, 2), put(8, 2), put(0, 4), put(crc, 4);
  put(packed.size(), 4), put(member.size(), 4), put(name.size(), 2);
  put(0, 2), put(0, 2), put(0, 2), put(0, 2), put(0, 4), put(0, 4);
  zip += name;
  const std::size_t size = zip.size() - directory;
  put(0x06054b50, 4), put(0, 4), put(1, 2), put(1, 2), put(size, 4), put(directory, 4), put(0, 2);
  return zip;
}

TEST(Npz, ReadsDeflatedMembersWithZip64Headers) {
  const NamedArray array = array_of<float>("x", DType::f32, {1000}, std::vector<float>(1000, 2.5f));
  const std::string member = npy_header(array) + std::string(reinterpret_cast<const char*>(array.bytes.data()), 4000);
  const std::vector<NamedArray> read = parse_npz(bytes_of(deflated_zip("x.npy", member)), "t");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].name, "x");
  EXPECT_EQ(read[0].bytes, array.bytes);
  EXPECT_NE(error_of([&] { parse_npz(bytes_of(deflated_zip("x.txt", member)), "t"); }).find("not a .npy"),
            std::string::npos);
}

// Names and dtypes are a stranger's: on one line and cut, whatever their bytes are.
TEST(Npz, NamesInErrorsAreOnOneLine) {
  const std::string npy = npy_text("{'descr': '<f\n4', 'fortran_order': False, 'shape': (), }", "1234");
  EXPECT_TRUE(error_of([&] { parse_npy(bytes_of(npy), "", "t"); }).starts_with("t: arrays of dtype '<f\\n4' are not"));
  EXPECT_EQ(error_of([&] { parse_npz(bytes_of(deflated_zip("a\r\n\x1b[1m\xff", npy)), "t"); }),
            "t: member 'a\\r\\n\\u001b[1m\xef\xbf\xbd' is not a .npy array");
  EXPECT_EQ(error_of([&] { parse_npz(bytes_of(deflated_zip(std::string(60'000, 'a'), npy)), "t"); }),
            "t: member '" + std::string(80, 'a') + "...' is not a .npy array");
}

// What a caller does not take is not inflated: here it could not be.
TEST(Npz, AsksBeforeItReadsElements) {
  const NamedArray array = array_of<float>("x", DType::f32, {1000}, std::vector<float>(1000, 2.5f));
  std::string zip =
      deflated_zip("x.npy", npy_header(array) + std::string(reinterpret_cast<const char*>(array.bytes.data()), 4000));
  const std::size_t directory = zip.rfind("PK\1\2");
  for (std::size_t i = directory - 8; i < directory; ++i) zip[i] = '\xff';
  std::vector<std::string> asked;
  const auto read = parse_npz(bytes_of(zip), "t", {}, [&](const NamedArray& described) {
    asked.push_back(described.name + described.shape.str());
    return false;
  });
  EXPECT_TRUE(read.empty());
  EXPECT_EQ(asked, std::vector<std::string>{"x[1000]"});
  EXPECT_THROW(parse_npz(bytes_of(zip), "t"), UserError);
}

// A directory that names one member twice would unpack to more than the file can hold.
TEST(Npz, RefusesMembersThatOverlap) {
  const NamedArray array = array_of<float>("x", DType::f32, {8}, std::vector<float>(8, 1.0f));
  const std::string member = npy_header(array) + std::string(reinterpret_cast<const char*>(array.bytes.data()), 32);
  const std::string once = deflated_zip("x.npy", member);
  const std::size_t start = once.find("PK\x01\x02"), end = once.find("PK\x05\x06");
  ASSERT_LT(start, end);
  const std::string entry = once.substr(start, end - start);
  std::string twice = once.substr(0, end);
  for (char name = 'a'; name <= 'z'; ++name) {
    std::string other = entry;
    other[46] = name;
    twice += other;
  }
  std::string tail = once.substr(end);
  tail[8] = tail[10] = 27;
  EXPECT_EQ(error_of([&] { parse_npz(bytes_of(twice + tail), "t"); }), "t: the zip file is damaged or cut off");
}

// Cut anywhere, or with any byte changed, a file is read, or refused by a UserError: nothing else may happen.
TEST(Npz, SurvivesDamageAnywhere) {
  const NamedArray array = array_of<float>("x", DType::f32, {4}, {1, 2, 3, 4});
  const std::string member = npy_header(array) + std::string(reinterpret_cast<const char*>(array.bytes.data()), 16);
  const std::vector<std::byte> file = bytes_of(deflated_zip("x.npy", member));
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_THROW(parse_npz({file.data(), length}, "t"), UserError) << "cut to " << length;
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int value : {0x00, 0x7f, 0xff}) {
      std::vector<std::byte> damaged = file;
      damaged[at] = static_cast<std::byte>(value);
      try {
        for (const NamedArray& read : parse_npz(damaged, "t")) EXPECT_LE(read.bytes.size(), 16u);
      } catch (const UserError&) {
      }
    }
  }
}

// 64 MiB of zeros in 64 KiB, of which the array needs 16 bytes.
TEST(Npz, InflatesNoMoreThanTheArrayHas) {
  const std::string bomb =
      deflated_zip("x.npy", npy_header({"x", DType::f32, {4}, {}}) + std::string(std::size_t{64} << 20, '\0'));
  ASSERT_LT(bomb.size(), std::size_t{128} << 10);
  const std::vector<std::byte> file = bytes_of(bomb);
  const fusejit::testing::Allocations watch;
  const std::string error = error_of([&] { parse_npz(file, "t"); });
  EXPECT_TRUE(error.starts_with("t: array 'x'")) << error;
  EXPECT_LT(watch.largest(), std::size_t{1} << 20);
}

// Files of NumPy and of our own, with a few edits each: the checksums of what is inside refuse most of them, so arrays
// are damaged by themselves too.
TEST(Npz, DamagedFilesAreArraysOrSentences) {
  const NamedArray array = array_of<std::int64_t>("x", DType::i64, {2, 3}, {1, 2, 3, 4, 5, 6});
  const std::string npy =
      npy_header(array) + std::string(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  const fusejit::testing::TemporaryFolder folder;
  write_npz(folder / "own.npz", std::vector{array, array_of<float>("y.z", DType::f32, {3}, {1, 2, 3})});
  const std::vector<std::string> zips = {
      fusejit::testing::bytes_of(folder / "own.npz"), deflated_zip("x.npy", npy),
      fusejit::testing::bytes_of(FUSEJIT_SOURCE_DIR "/tests/reference/views/gather_int32.in.npz")};
  std::mt19937 random(23);
  const int count = testing::is_nightly() ? 400'000 : 8'000;
  int read = 0;
  for (int i = 0; i < count; ++i) {
    const bool is_zip = i % 2 == 0;
    const std::string file =
        mutated(is_zip ? zips[static_cast<std::size_t>(i / 2) % zips.size()] : std::string_view(npy), random);
    const fusejit::testing::Allocations watch;
    std::size_t elements = 0;
    try {
      if (is_zip) {
        for (const NamedArray& one : parse_npz(bytes_of(file), "file")) elements += one.bytes.size();
      } else {
        elements = parse_npy(bytes_of(file), "x", "file").bytes.size();
      }
      ++read;
    } catch (const UserError& error) {
      const std::string sentence = error.what();
      EXPECT_TRUE(sentence.starts_with("file: ")) << sentence;
      EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
      EXPECT_LT(sentence.size(), 600u) << sentence;
    }
    EXPECT_LE(elements, 1032 * file.size());
    EXPECT_LT(watch.largest(), std::size_t{4} << 20) << i;
  }
  EXPECT_GT(read, count / 50);
  EXPECT_LT(read, count / 2);
}

}  // namespace
}  // namespace fusejit::io
