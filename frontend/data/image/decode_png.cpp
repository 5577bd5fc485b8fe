#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>

#include "frontend/data/image/decode.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::byte* next = nullptr;
  std::size_t left = 0;
  char message[160] = {};

  PngReader() = default;
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

void take_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader->left) png_error(png, "it is cut off");
  std::memcpy(to, reader->next, count);
  reader->next += count, reader->left -= count;
}

void on_error(png_structp png, png_const_charp sentence) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::strncpy(reader->message, sentence, sizeof reader->message - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

bool read_header(PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_read_fn(reader.png, &reader, take_bytes);
  // Texts, profiles and the like are passed over, whatever is in them; tRNS is not among these.
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_claim() has its own
  png_read_info(reader.png, reader.info);
  return true;
}

// To 8 bits a channel; palettes, few bits and transparent colours become channels.
bool set_channels(PngReader& reader, int& passes) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_strip_16(reader.png);
  png_set_expand(reader.png);
  passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool read_rows(PngReader& reader, std::uint8_t* pixels, std::size_t row_bytes, std::size_t height, int passes) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  for (int pass = 0; pass < passes; ++pass)
    for (std::size_t row = 0; row < height; ++row) png_read_row(reader.png, pixels + row * row_bytes, nullptr);
  png_read_end(reader.png, nullptr);
  return true;
}

}  // namespace

Image decode_png(std::span<const std::byte> file, const std::string& name) {
  PngReader reader;
  const auto check = [&](bool went_well) {
    FJ_CHECK(went_well, "{}: the PNG file is damaged: {}", name, reader.message);
  };
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
  if (!reader.png) throw std::bad_alloc();
  reader.info = png_create_info_struct(reader.png);
  if (!reader.info) throw std::bad_alloc();
  reader.next = file.data(), reader.left = file.size();
  check(read_header(reader));
  // Deflate makes at most 1032 bytes of one, and a byte has at most eight pixels.
  constexpr std::int64_t kMostPixelsAByte = std::int64_t{1032} * 8;
  const auto bytes = static_cast<std::int64_t>(file.size());
  const std::int64_t height = png_get_image_height(reader.png, reader.info),
                     width = png_get_image_width(reader.png, reader.info);
  const int bits = png_get_bit_depth(reader.png, reader.info) * png_get_channels(reader.png, reader.info);
  check_claim(name, height, width, bytes * kMostPixelsAByte / bits);
  int passes = 0;
  check(set_channels(reader, passes));  // takes memory for rows
  Image image = blank(height, width, png_get_channels(reader.png, reader.info));
  const std::size_t row_bytes = png_get_rowbytes(reader.png, reader.info);
  FJ_ASSERT(row_bytes * static_cast<std::size_t>(height) == image.pixels.size(), "{}: rows of {} bytes", name,
            row_bytes);
  check(read_rows(reader, image.pixels.data(), row_bytes, static_cast<std::size_t>(height), passes));
  return image;
}

}  // namespace fusejit::data
