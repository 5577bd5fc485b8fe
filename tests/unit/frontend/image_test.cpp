// Decoded and resized pixels beside Pillow's (tests/reference/recording/images.py), and damaged, lying and foreign
// files.
#include "fusejit/data/image.h"

// jpeglib.h needs <cstdio> in front of it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "frontend/io/npz.h"
#include "tests/support/allocations/allocations.h"
#include "tests/support/error_of.h"
#include "tests/support/mutate.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::data {
namespace {

using fusejit::testing::Allocations;
using fusejit::testing::bytes_of;
using fusejit::testing::error_of;
using fusejit::testing::files_below;

const std::string kFolder = FUSEJIT_SOURCE_DIR "/tests/reference/images/";

std::vector<std::string> image_files() {
  std::vector<std::string> files = files_below(kFolder, ".png");
  const std::vector<std::string> others = files_below(kFolder, ".jpg");
  files.insert(files.end(), others.begin(), others.end());
  return files;
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Image decoded(const std::string& file, ImageReadMode mode = ImageReadMode::unchanged) {
  return decode_image(std::as_bytes(std::span(file)), "x", mode);
}

// Pillow's pixels by their name in expected.npz.
const Image& expected(const std::string& name) {
  static const std::map<std::string, Image> kImages = [] {
    std::map<std::string, Image> images;
    for (const io::NamedArray& array : io::read_npz(kFolder + "expected.npz")) {
      if (array.shape.rank() != 3) continue;
      Image& image = images[array.name];
      image = {array.shape[0], array.shape[1], array.shape[2], {}};
      for (std::size_t i = 0; i < array.bytes.size(); i += 4)
        image.pixels.push_back(static_cast<std::uint8_t>(array.bytes[i]));
    }
    return images;
  }();
  return kImages.at(name);
}

void expect_same(const Image& image, const Image& wanted, const std::string& what) {
  EXPECT_EQ(image.height, wanted.height) << what;
  EXPECT_EQ(image.width, wanted.width) << what;
  EXPECT_EQ(image.channels, wanted.channels) << what;
  ASSERT_EQ(image.pixels.size(), wanted.pixels.size()) << what;
  const auto [own, other] = std::mismatch(image.pixels.begin(), image.pixels.end(), wanted.pixels.begin());
  EXPECT_TRUE(own == image.pixels.end()) << what << ": byte " << own - image.pixels.begin() << " is " << int{*own}
                                         << ", Pillow's " << int{*other};
}

TEST(ReadImage, PixelsAreThoseOfPillow) {
  ASSERT_GE(image_files().size(), 18u);
  for (const std::string& path : image_files()) {
    expect_same(read_image(path, ImageReadMode::rgb), expected(name_of(path) + ".rgb"), path);
    expect_same(read_image(path, ImageReadMode::gray), expected(name_of(path) + ".gray"), path);
  }
}

TEST(ReadImage, UnchangedHasTheChannelsOfTheFile) {
  const std::map<std::string, int> channels = {
      {"gray.png", 1},      {"bits1.png", 1},   {"gray.jpg", 1},          {"gray_alpha.png", 2},
      {"photo.png", 3},     {"palette.png", 3}, {"photo.jpg", 3},         {"cmyk.jpg", 3},
      {"rgb_alpha.png", 4}, {"bits16.png", 3},  {"palette_alpha.png", 4}, {"rgb_transparent.png", 4}};
  for (const auto& [name, count] : channels) EXPECT_EQ(read_image(kFolder + name).channels, count) << name;
  const Image alpha = read_image(kFolder + "rgb_alpha.png"), plain = read_image(kFolder + "photo.png");
  const Image added = read_image(kFolder + "photo.png", ImageReadMode::rgb_alpha);
  const Image grey = read_image(kFolder + "rgb_alpha.png", ImageReadMode::gray_alpha);
  for (std::size_t i = 0; i < plain.pixels.size() / 3; ++i) {
    EXPECT_EQ(added.pixels[4 * i + 3], 255);
    EXPECT_EQ(grey.pixels[2 * i + 1], alpha.pixels[4 * i + 3]);
    EXPECT_EQ(added.pixels[4 * i + 1], plain.pixels[3 * i + 1]);
  }
  const Image hidden = read_image(kFolder + "rgb_transparent.png");
  EXPECT_EQ(hidden.pixels[(3 * 23 + 4) * 4 + 3], 0) << "the colour that tRNS names";
  EXPECT_EQ(hidden.pixels[3], 255);
  EXPECT_EQ(read_image(kFolder + "palette_alpha.png").pixels[3] % 10, 0);
}

TEST(ReadImage, AnExifOrientationChangesNothing) {
  expect_same(read_image(kFolder + "rotated.jpg"), read_image(kFolder + "photo.jpg"), "rotated.jpg");
}

TEST(ReadImage, WhatIsNoImageIsSaid) {
  EXPECT_EQ(error_of([] { decoded(""); }), "x: is neither a PNG nor a JPEG file");
  EXPECT_EQ(error_of([] { decoded("GIF89a and so on"); }), "x: is neither a PNG nor a JPEG file");
  EXPECT_THROW(read_image(kFolder + "none.png"), FileError);
  EXPECT_THROW(read_image(kFolder), FileError);
}

TEST(ReadImage, EveryPrefixIsRefused) {
  for (const std::string& path : image_files()) {
    const std::string file = bytes_of(path);
    for (std::size_t length = 0; length < file.size(); ++length)
      EXPECT_THROW(decoded(file.substr(0, length)), UserError) << path << " cut to " << length;
  }
}

void put_big_endian(std::string& file, std::size_t at, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    file[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
}

// A PNG whose header claims other extents, with its checksum.
std::string claiming_png(std::string file, std::uint32_t width, std::uint32_t height) {
  put_big_endian(file, 16, width, 4);
  put_big_endian(file, 20, height, 4);
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(file.data() + 12), 17);
  put_big_endian(file, 29, static_cast<std::uint32_t>(sum), 4);
  return file;
}

std::string claiming_jpeg(std::string file, std::uint32_t width, std::uint32_t height) {
  const std::size_t frame = std::min(file.find("\xff\xc0"), file.find("\xff\xc2"));
  put_big_endian(file, frame + 5, height, 2);
  put_big_endian(file, frame + 7, width, 2);
  return file;
}

// The most memory that the process has had, libraries' included.
std::int64_t peak_kibibytes() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss;
}

TEST(ReadImage, WhatAHeaderClaimsTakesNoMemoryUnlessTheFileCanHoldIt) {
  const std::string png = bytes_of(kFolder + "photo.png"), jpeg = bytes_of(kFolder + "photo.jpg"),
                    progressive = bytes_of(kFolder + "progressive.jpg");
  const struct {
    std::string file, sentence;
  } cases[] = {
      {claiming_png(png, 2147483647, 2147483647), "claims 2147483647 x 2147483647 pixels, at most 89478485"},
      {claiming_png(png, 9000, 9000), "claims 9000 x 9000 pixels, a file of its length holds at most"},
      {claiming_png(png, 0, 7), "is damaged"},
      {claiming_png(png, 600, 600), "is damaged: "},
      {claiming_jpeg(jpeg, 65000, 65000), "claims 65000 x 65000 pixels, at most 89478485"},
      {claiming_jpeg(jpeg, 9000, 9000), "claims 9000 x 9000 pixels, a file of its length holds at most"},
      {claiming_jpeg(progressive, 9000, 9000), "claims 9000 x 9000 pixels, a file of its length holds at most"},
      {claiming_jpeg(jpeg, 0, 9), "is damaged"},
      {claiming_jpeg(jpeg, 600, 600), "is damaged: "},
  };
  const std::int64_t before = peak_kibibytes();
  for (const auto& c : cases) {
    const Allocations watch;
    const std::string error = error_of([&] { decoded(c.file); });
    EXPECT_NE(error.find(c.sentence), std::string::npos) << error;
    EXPECT_LT(watch.largest(), std::size_t{8} << 20) << error;
  }
  EXPECT_LT(peak_kibibytes() - before, 64 << 10);
}

// A chunk of a PNG, with its checksum.
std::string png_chunk(const std::string& tag, const std::string& content) {
  std::string chunk = std::string(4, '\0') + tag + content + std::string(4, '\0');
  put_big_endian(chunk, 0, static_cast<std::uint32_t>(content.size()), 4);
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(chunk.data() + 4), static_cast<uInt>(4 + content.size()));
  put_big_endian(chunk, chunk.size() - 4, static_cast<std::uint32_t>(sum), 4);
  return chunk;
}

// Forty texts of seven million blanks each, in 300 KB.
TEST(ReadImage, WhatChunksHideIsNotUnpacked) {
  const std::string text(7'000'000, ' ');
  std::string packed(100'000, '\0');
  auto size = static_cast<uLongf>(packed.size());
  ASSERT_EQ(compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                      static_cast<uLong>(text.size()), 9),
            Z_OK);
  packed.resize(size);
  std::string file = bytes_of(kFolder + "photo.png");
  const std::size_t behind_header = 33;
  for (int i = 0; i < 40; ++i)
    file.insert(behind_header, png_chunk("zTXt", "Comment" + std::to_string(i) + std::string(2, '\0') + packed));
  const std::int64_t before = peak_kibibytes();
  expect_same(decoded(file), read_image(kFolder + "photo.png"), "photo.png");
  EXPECT_LT(peak_kibibytes() - before, 64 << 10);
}

TEST(ReadImage, WhatIsNotReadIsSaid) {
  std::string file = bytes_of(kFolder + "photo.jpg");
  file[file.find("\xff\xc0") + 1] = '\xc9';
  EXPECT_NE(error_of([&] { decoded(file); }).find("coded arithmetically"), std::string::npos);
  file = bytes_of(kFolder + "photo.jpg");
  file[file.find("\xff\xc0") + 4] = 12;
  EXPECT_NE(error_of([&] { decoded(file); }).find("precision 12"), std::string::npos);
}

// A baseline file with a scan for each channel.
std::string three_scans() {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = jpeg.image_height = 8, jpeg.input_components = 3, jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  const jpeg_scan_info scans[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  jpeg.scan_info = scans, jpeg.num_scans = 3;
  jpeg_start_compress(&jpeg, TRUE);
  JSAMPLE grey[24] = {};
  for (JSAMPROW row = grey; jpeg.next_scanline < 8;) jpeg_write_scanlines(&jpeg, &row, 1);
  jpeg_finish_compress(&jpeg);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  jpeg_destroy_compress(&jpeg);
  return file;
}

// Each costs time for every block of the image.
TEST(ReadImage, ThousandsOfScansAreRefused) {
  const std::string file = three_scans();
  EXPECT_EQ(decoded(file).pixels, std::vector<std::uint8_t>(192, 0));
  const std::size_t first = file.find("\xff\xda"), second = file.find("\xff\xda", first + 2);
  std::string bomb = file.substr(0, first);
  for (int i = 0; i < 2000; ++i) bomb += file.substr(first, second - first);
  EXPECT_EQ(error_of([&] { decoded(bomb + file.substr(first)); }),
            "x: the JPEG file is damaged: it has more than 500 scans");
}

TEST(ReadImage, DamagedFilesAreImagesOrSentences) {
  const bool is_night = testing::is_nightly();
  std::mt19937 random(7);
  std::vector<std::string> seeds;
  for (const std::string& path : image_files()) seeds.push_back(bytes_of(path));
  int read = 0;
  for (int i = 0; i < (is_night ? 200'000 : 4'000); ++i) {
    const std::string file = mutated(seeds[static_cast<std::size_t>(i) % seeds.size()], random);
    const Allocations watch;
    try {
      const Image image = decoded(file, ImageReadMode::rgb);
      EXPECT_EQ(static_cast<std::int64_t>(image.pixels.size()), image.height * image.width * 3) << i;
      ++read;
    } catch (const UserError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("x: ")) << error.what();
    }
    EXPECT_LT(watch.largest(), std::size_t{64} << 20) << i;
  }
  EXPECT_GT(read, 100) << "damage that is not seen by any checksum";
}

TEST(Resize, IsPillowsToTheBit) {
  int sizes = 0;
  for (const std::string name : {"photo.png", "gray.png"}) {
    const Image image = read_image(kFolder + name);
    for (const auto& [height, width] :
         {std::pair{7, 9}, {19, 46}, {38, 23}, {5, 40}, {33, 8}, {1, 1}, {64, 64}, {19, 23}}) {
      const std::string what = "resize." + name + "." + std::to_string(height) + "x" + std::to_string(width);
      expect_same(resize(image, height, width), expected(what), what);
      ++sizes;
    }
  }
  EXPECT_EQ(sizes, 16);
}

TEST(Resize, RefusesWhatHasNoSize) {
  const Image image{2, 2, 1, {1, 2, 3, 4}};
  EXPECT_EQ(error_of([&] { resize(image, 0, 4); }), "resize: to 0 x 4 pixels, there must be 1 to 89478485");
  EXPECT_EQ(error_of([&] {
              resize({2, 2, 1, {1}}, 1, 1);
            }),
            "resize: an image of 2 x 2 pixels with 1 channels cannot have 1 bytes");
  EXPECT_THROW(resize(image, std::int64_t{1} << 40, std::int64_t{1} << 40), UserError);
  EXPECT_THROW(resize({}, 1, 1), UserError);
}

TEST(Crop, IsBlackOutsideOfTheImage) {
  const Image image{2, 3, 1, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(crop(image, 0, 1, 2, 2).pixels, (std::vector<std::uint8_t>{2, 3, 5, 6}));
  EXPECT_EQ(crop(image, -1, -1, 2, 3).pixels, (std::vector<std::uint8_t>{0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(crop(image, 1, 2, 2, 2).pixels, (std::vector<std::uint8_t>{6, 0, 0, 0}));
  EXPECT_EQ(crop(image, 5, 5, 1, 2).pixels, (std::vector<std::uint8_t>{0, 0}));
  EXPECT_THROW(crop(image, std::int64_t{1} << 62, 0, 1, 1), UserError);
}

TEST(Hflip, ExchangesLeftAndRight) {
  EXPECT_EQ(hflip({2, 2, 2, {1, 2, 3, 4, 5, 6, 7, 8}}).pixels, (std::vector<std::uint8_t>{3, 4, 1, 2, 7, 8, 5, 6}));
}

}  // namespace
}  // namespace fusejit::data
