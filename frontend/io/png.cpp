#include "frontend/io/png.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "frontend/io/files.h"
#include "fusejit/error.h"
#include "ir/base/check.h"

namespace fusejit::io {
namespace {

// Seven rows of five cells, the leftmost in bit 4.
struct Glyph {
  char sign;
  std::array<std::uint8_t, 7> rows;
};
constexpr Glyph kGlyphs[] = {
    {'A', {14, 17, 17, 31, 17, 17, 17}}, {'B', {30, 17, 17, 30, 17, 17, 30}}, {'C', {14, 17, 16, 16, 16, 17, 14}},
    {'D', {30, 17, 17, 17, 17, 17, 30}}, {'E', {31, 16, 16, 30, 16, 16, 31}}, {'F', {31, 16, 16, 30, 16, 16, 16}},
    {'G', {14, 17, 16, 23, 17, 17, 15}}, {'H', {17, 17, 17, 31, 17, 17, 17}}, {'I', {14, 4, 4, 4, 4, 4, 14}},
    {'J', {7, 2, 2, 2, 2, 18, 12}},      {'K', {17, 18, 20, 24, 20, 18, 17}}, {'L', {16, 16, 16, 16, 16, 16, 31}},
    {'M', {17, 27, 21, 21, 17, 17, 17}}, {'N', {17, 17, 25, 21, 19, 17, 17}}, {'O', {14, 17, 17, 17, 17, 17, 14}},
    {'P', {30, 17, 17, 30, 16, 16, 16}}, {'Q', {14, 17, 17, 17, 21, 18, 13}}, {'R', {30, 17, 17, 30, 20, 18, 17}},
    {'S', {15, 16, 16, 14, 1, 1, 30}},   {'T', {31, 4, 4, 4, 4, 4, 4}},       {'U', {17, 17, 17, 17, 17, 17, 14}},
    {'V', {17, 17, 17, 17, 17, 10, 4}},  {'W', {17, 17, 17, 21, 21, 21, 10}}, {'X', {17, 17, 10, 4, 10, 17, 17}},
    {'Y', {17, 17, 17, 10, 4, 4, 4}},    {'Z', {31, 1, 2, 4, 8, 16, 31}},     {'0', {14, 17, 19, 21, 25, 17, 14}},
    {'1', {4, 12, 4, 4, 4, 4, 14}},      {'2', {14, 17, 1, 2, 4, 8, 31}},     {'3', {31, 2, 4, 2, 1, 17, 14}},
    {'4', {2, 6, 10, 18, 31, 2, 2}},     {'5', {31, 16, 30, 1, 1, 17, 14}},   {'6', {6, 8, 16, 30, 17, 17, 14}},
    {'7', {31, 1, 2, 4, 8, 8, 8}},       {'8', {14, 17, 17, 14, 17, 17, 14}}, {'9', {14, 17, 17, 15, 1, 2, 12}},
    {'-', {0, 0, 0, 31, 0, 0, 0}},       {'.', {0, 0, 0, 0, 0, 12, 12}},      {'/', {1, 1, 2, 4, 8, 16, 16}},
    {':', {0, 12, 12, 0, 12, 12, 0}},    {'%', {24, 25, 2, 4, 8, 19, 3}},     {'(', {2, 4, 8, 8, 8, 4, 2}},
    {')', {8, 4, 2, 2, 2, 4, 8}},
};
constexpr int kColumns = 5, kAdvance = 6;

}  // namespace

Picture::Picture(int width, int height, Color background) : width_(width), height_(height) {
  FJ_CHECK(width >= 1 && height >= 1 && width <= 1 << 15 && height <= 1 << 15,
           "a picture of {} x {} pixels cannot be drawn", width, height);
  rgb_.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  fill(0, 0, width, height, background);
}

void Picture::set(int x, int y, Color color) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  std::uint8_t* pixel =
      &rgb_[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)) * 3];
  pixel[0] = color.red, pixel[1] = color.green, pixel[2] = color.blue;
}

void Picture::fill(int x, int y, int width, int height, Color color) {
  for (int v = 0; v < height; ++v) {
    for (int h = 0; h < width; ++h) set(x + h, y + v, color);
  }
}

void Picture::text(int x, int y, std::string_view words, Color color, int scale) {
  for (const char raw : words) {
    const char sign = static_cast<char>(std::toupper(static_cast<unsigned char>(raw)));
    const auto* glyph =
        std::find_if(std::begin(kGlyphs), std::end(kGlyphs), [sign](const Glyph& g) { return g.sign == sign; });
    for (int row = 0; glyph != std::end(kGlyphs) && row < 7; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        const bool inked = glyph->rows[static_cast<std::size_t>(row)] >> (kColumns - 1 - column) & 1;
        if (inked) fill(x + column * scale, y + row * scale, scale, scale, color);
      }
    }
    x += kAdvance * scale;
  }
}

int text_width(std::string_view words, int scale) { return static_cast<int>(words.size()) * kAdvance * scale; }

void write_png(const std::string& path, const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width());
  image.height = static_cast<png_uint_32>(picture.height());
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  const void* pixels = picture.bytes().data();
  if (!png_image_write_get_memory_size(image, size, 0, pixels, 0, nullptr))
    throw FileError(fmt::format("{}: {}", path, image.message));
  std::vector<std::byte> bytes(size);
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr))
    throw FileError(fmt::format("{}: {}", path, image.message));
  bytes.resize(size);
  write_file(path, bytes);
}

}  // namespace fusejit::io
