// Damaged safetensors: reading ends with arrays that fit the file, or with a UserError of one short line.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "frontend/io/safetensors.h"
#include "fusejit/error.h"
#include "tests/support/mutate.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::io {
namespace {

std::vector<std::string> seeds() {
  const auto array = [](const char* name, DType dtype, Shape shape) {
    return NamedArray{name, dtype, shape,
                      std::vector<std::byte>(static_cast<std::size_t>(bytes(dtype, shape.elements())), std::byte{1})};
  };
  const testing::TemporaryFolder folder;
  write_safetensors(folder / "many",
                    std::vector{array("conv.weight", f32, {2, 1, 3}), array("conv.bias", f32, {2}), array("n", i64, {}),
                                array("half", bf16, {3}), array("none", f64, {0, 7}), array("mask", boolean, {2, 2})},
                    {{"format", "pt"}, {"note", "\xc3\xa9\n\"\\"}});
  write_safetensors(folder / "one", std::vector{array("w", f16, {4})});
  write_safetensors(folder / "none", {});
  return {testing::bytes_of(folder / "many"), testing::bytes_of(folder / "one"), testing::bytes_of(folder / "none")};
}

// The header's length made true again, so that damage reaches what comes behind it.
void mend_length(std::string& file, std::size_t elements) {
  if (file.size() < 8 + elements) return;
  const std::uint64_t length = file.size() - 8 - elements;
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i) & 0xff);
}

bool is_read(const std::string& file) {
  try {
    std::size_t total = 0;
    for (const NamedArray& array :
         parse_safetensors(std::as_bytes(std::span(file.data(), file.size())), "file").arrays) {
      EXPECT_EQ(static_cast<std::int64_t>(array.bytes.size()), bytes(array.dtype, array.shape.elements()));
      total += array.bytes.size();
    }
    EXPECT_LE(total, file.size());
    return true;
  } catch (const UserError& error) {
    const std::string sentence = error.what();
    EXPECT_TRUE(sentence.starts_with("file: ")) << sentence;
    EXPECT_LT(sentence.size(), 400u) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    return false;
  }
}

TEST(SafetensorsFuzz, Mutations) {
  const std::vector<std::string> files = seeds();
  std::mt19937 random(31);
  int read = 0;
  const int count = testing::is_nightly() ? 5'000'000 : 50'000;
  for (int i = 0; i < count; ++i) {
    const std::string& seed = files[static_cast<std::size_t>(i) % files.size()];
    std::uint64_t length = 0;
    for (std::size_t b = 0; b < 8; ++b)
      length |= static_cast<std::uint64_t>(static_cast<unsigned char>(seed[b])) << (8 * b);
    std::string file = seed.substr(0, 8) + mutated(seed.substr(8), random);
    if (i % 4 != 0) mend_length(file, seed.size() - 8 - length);
    if (i % 4 == 3) file = mutated(file, random);
    SCOPED_TRACE(file);
    read += is_read(file);
    if (HasFailure()) return;
  }
  EXPECT_GT(read, count / 100);
  EXPECT_LT(read, count / 2);
}

TEST(SafetensorsFuzz, CutAnywhereAndEveryByteChanged) {
  for (const std::string& seed : seeds()) {
    EXPECT_TRUE(is_read(seed));
    for (std::size_t length = 0; length < seed.size(); ++length)
      EXPECT_FALSE(is_read(seed.substr(0, length))) << length;
    for (std::size_t at = 0; at < seed.size(); ++at) {
      for (int value = 0; value < 256; ++value) {
        std::string file = seed;
        file[at] = static_cast<char>(value);
        is_read(file);
      }
    }
  }
}

// What is described, from the file's beginning alone, is refused exactly where reading refuses.
TEST(SafetensorsFuzz, DescribingAgreesWithReading) {
  const std::vector<std::string> files = seeds();
  const testing::TemporaryFolder folder;
  const std::string path = folder / "x";
  std::mt19937 random(32);
  for (int i = 0; i < 2000; ++i) {
    const std::string file = mutated(files[static_cast<std::size_t>(i) % files.size()], random);
    testing::write_bytes(path, file);
    bool described = true;
    try {
      describe_safetensors(path);
    } catch (const UserError&) {
      described = false;
    }
    EXPECT_EQ(described, is_read(file)) << file;
  }
}

}  // namespace
}  // namespace fusejit::io
