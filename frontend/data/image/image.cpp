// Which decoder, what a header may claim, and the channels that are asked for.
#include "fusejit/data/image.h"

#include <cstring>

#include "frontend/data/image/decode.h"
#include "frontend/io/files.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

bool begins_with(std::span<const std::byte> file, std::string_view sign) {
  return file.size() >= sign.size() && std::memcmp(file.data(), sign.data(), sign.size()) == 0;
}

std::int64_t channels_of(ImageReadMode mode, std::int64_t own) {
  switch (mode) {
    case ImageReadMode::unchanged:
      return own;
    case ImageReadMode::gray:
      return 1;
    case ImageReadMode::gray_alpha:
      return 2;
    case ImageReadMode::rgb:
      return 3;
    case ImageReadMode::rgb_alpha:
      return 4;
  }
  throw UserError("decode_image: there is no such mode");
}

// ITU-R 601-2 as in Pillow's convert("L").
std::uint8_t grey_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

Image with_channels(Image image, std::int64_t channels) {
  if (channels == image.channels) return image;
  const auto from = static_cast<std::size_t>(image.channels), to = static_cast<std::size_t>(channels);
  const std::size_t count = image.pixels.size() / from;
  const bool had_colour = from >= 3, had_alpha = from % 2 == 0, has_colour = to >= 3;
  std::vector<std::uint8_t> pixels(count * to, 255);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* source = &image.pixels[i * from];
    std::uint8_t* result = &pixels[i * to];
    if (has_colour) {
      for (std::size_t c = 0; c < 3; ++c) result[c] = source[had_colour ? c : 0];
    } else {
      result[0] = had_colour ? grey_of(source) : source[0];
    }
    if (to % 2 == 0 && had_alpha) result[to - 1] = source[from - 1];
  }
  return {image.height, image.width, channels, std::move(pixels)};
}

}  // namespace

void check_claim(const std::string& name, std::int64_t height, std::int64_t width, std::int64_t most_pixels) {
  FJ_CHECK(height >= 1 && width >= 1, "{}: the image has {} x {} pixels", name, height, width);
  FJ_CHECK(width <= kMostPixels / height, "{}: the image claims {} x {} pixels, at most {} are read", name, height,
           width, kMostPixels);
  FJ_CHECK(width <= most_pixels / height, "{}: the image claims {} x {} pixels, a file of its length holds at most {}",
           name, height, width, most_pixels);
}

Image blank(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return {height, width, channels, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * channels))};
}

Image decode_image(std::span<const std::byte> file, const std::string& name, ImageReadMode mode) {
  const bool is_png = begins_with(file, "\x89PNG\r\n\x1a\n");
  FJ_CHECK(is_png || begins_with(file, "\xff\xd8\xff"), "{}: is neither a PNG nor a JPEG file", name);
  Image image = is_png ? decode_png(file, name) : decode_jpeg(file, name);
  const std::int64_t channels = channels_of(mode, image.channels);
  return with_channels(std::move(image), channels);
}

Image read_image(const std::string& path, ImageReadMode mode) { return decode_image(io::read_file(path), path, mode); }

}  // namespace fusejit::data
