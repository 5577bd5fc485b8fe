// Images as bytes in host memory, and the PNG and JPEG files that they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fusejit::data {

// Rows from the top, the channels of a pixel together. A Tensor of them is from_host(pixels, {height, width,
// channels}).
struct Image {
  std::int64_t height = 0, width = 0;
  std::int64_t channels = 0;         // 1: grey, 2: grey and alpha, 3: RGB, 4: RGB and alpha
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

// The channels that are asked for, as torchvision.io's. Grey becomes RGB by repetition, RGB grey as 0.299 R + 0.587 G +
// 0.114 B (Pillow's fixed point), alpha is left out or is 255.
enum class ImageReadMode : std::uint8_t { unchanged, gray, gray_alpha, rgb, rgb_alpha };

// What files may claim: Pillow's limit, a third of a GiB of RGB. Nothing is allocated for more, nor for more than a
// file of its length can hold.
inline constexpr std::int64_t kMostPixels = 89'478'485;

// The image of a PNG or JPEG file. Palettes are looked up; of 16-bit channels the high byte is taken; CMYK becomes RGB
// as in Pillow; colour profiles, gamma and the EXIF orientation are left alone; of an animation it is the first
// picture. UserError, one sentence that begins with `name`, for another kind of file, one that is cut off or damaged,
// and one whose header claims too much.
Image decode_image(std::span<const std::byte> file, const std::string& name,
                   ImageReadMode mode = ImageReadMode::unchanged);
// The same of a file. FileError if it cannot be read.
//   fj::data::Image photo = fj::data::read_image(path, fj::data::ImageReadMode::rgb);
//   fj::data::Image half = fj::data::resize(photo, photo.height / 2, photo.width / 2);
Image read_image(const std::string& path, ImageReadMode mode = ImageReadMode::unchanged);

// The image at another size: bilinear with antialiasing, to the bit what Image.resize(BILINEAR) of Pillow until 12, and
// so torchvision's Resize, makes of an image without alpha (Pillow 13 differs by 1 here and there: it resamples columns
// first where the height shrinks most). Alpha is a channel as any other. UserError unless both extents are at least 1.
Image resize(const Image& image, std::int64_t height, std::int64_t width);
// The part that begins at (top, left), black where it lies outside of the image.
Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width);
// Left and right exchanged.
Image hflip(const Image& image);

}  // namespace fusejit::data
