// Bilinear interpolation with antialiasing in fixed point, as Pillow's ImagingResample (libImaging/Resample.c, until
// 12.x): rows are resampled first, then columns, each result rounded to a byte. Weights are triangles as wide as two
// cells of the coarser of both grids, summing to one, with 22 bits behind the point: eight fewer than 32 for the pixel,
// two for rounding.
#include <algorithm>
#include <cmath>

#include "fusejit/data/image.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

constexpr int kFraction = 32 - 8 - 2;

// What each result is a weighted sum of.
struct Taps {
  std::size_t most = 0;              // taps a result at most
  std::vector<std::size_t> first;    // [results]
  std::vector<std::size_t> count;    // [results]
  std::vector<std::int32_t> weight;  // [results, most]
};

Taps taps_between(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  Taps taps;
  taps.most = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  taps.weight.resize(static_cast<std::size_t>(to) * taps.most);
  std::vector<double> weights(taps.most);
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const std::int64_t first = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
    const std::int64_t end = std::min(static_cast<std::int64_t>(center + support + 0.5), from);
    const auto count = static_cast<std::size_t>(end - first);
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const double distance =
          (static_cast<double>(first + static_cast<std::int64_t>(k)) - center + 0.5) * (1.0 / support);
      sum += weights[k] = std::max(0.0, 1 - std::abs(distance));
    }
    for (std::size_t k = 0; k < count; ++k) {
      const double weight = sum != 0 ? weights[k] / sum : weights[k];
      taps.weight[static_cast<std::size_t>(i) * taps.most + k] =
          static_cast<std::int32_t>(0.5 + weight * (1 << kFraction));
    }
    taps.first.push_back(static_cast<std::size_t>(first));
    taps.count.push_back(count);
  }
  return taps;
}

std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kFraction, 0, 255)); }

// `rows` rows of pixels of kChannels to rows of other widths.
template <std::size_t kChannels>
void resample_rows(const std::uint8_t* from, std::size_t from_width, const Taps& taps, std::size_t rows,
                   std::uint8_t* to) {
  for (std::size_t row = 0; row < rows; ++row, from += from_width * kChannels) {
    for (std::size_t i = 0; i < taps.first.size(); ++i, to += kChannels) {
      std::int32_t sums[kChannels];
      std::fill_n(sums, kChannels, 1 << (kFraction - 1));
      const std::uint8_t* pixel = from + taps.first[i] * kChannels;
      const std::int32_t* weight = &taps.weight[i * taps.most];
      for (std::size_t k = 0; k < taps.count[i]; ++k)
        for (std::size_t c = 0; c < kChannels; ++c) sums[c] += *pixel++ * weight[k];
      for (std::size_t c = 0; c < kChannels; ++c) to[c] = rounded(sums[c]);
    }
  }
}

Image resampled_rows(const Image& image, std::int64_t width) {
  Image result{image.height, width, image.channels, {}};
  result.pixels.resize(static_cast<std::size_t>(image.height * width * image.channels));
  const Taps taps = taps_between(image.width, width);
  constexpr decltype(&resample_rows<1>) kByChannels[] = {resample_rows<1>, resample_rows<2>, resample_rows<3>,
                                                         resample_rows<4>};
  kByChannels[image.channels - 1](image.pixels.data(), static_cast<std::size_t>(image.width), taps,
                                  static_cast<std::size_t>(image.height), result.pixels.data());
  return result;
}

Image resampled_columns(const Image& image, std::int64_t height) {
  const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
  Image result{height, image.width, image.channels, {}};
  result.pixels.resize(static_cast<std::size_t>(height) * row_bytes);
  const Taps taps = taps_between(image.height, height);
  std::vector<std::int32_t> sums(row_bytes);
  for (std::size_t i = 0; i < taps.first.size(); ++i) {
    std::fill(sums.begin(), sums.end(), 1 << (kFraction - 1));
    for (std::size_t k = 0; k < taps.count[i]; ++k) {
      const std::uint8_t* row = &image.pixels[(taps.first[i] + k) * row_bytes];
      const std::int32_t weight = taps.weight[i * taps.most + k];
      for (std::size_t x = 0; x < row_bytes; ++x) sums[x] += row[x] * weight;
    }
    for (std::size_t x = 0; x < row_bytes; ++x) result.pixels[i * row_bytes + x] = rounded(sums[x]);
  }
  return result;
}

void check_image(const char* what, const Image& image) {
  FJ_CHECK(image.height >= 1 && image.width >= 1 && image.channels >= 1 && image.channels <= 4 &&
               image.width <= kMostPixels / image.height &&
               static_cast<std::int64_t>(image.pixels.size()) == image.height * image.width * image.channels,
           "{}: an image of {} x {} pixels with {} channels cannot have {} bytes", what, image.height, image.width,
           image.channels, image.pixels.size());
}

void check_extents(const char* what, std::int64_t height, std::int64_t width) {
  FJ_CHECK(height >= 1 && width >= 1 && width <= kMostPixels / height, "{}: to {} x {} pixels, there must be 1 to {}",
           what, height, width, kMostPixels);
}

}  // namespace

Image resize(const Image& image, std::int64_t height, std::int64_t width) {
  check_image("resize", image);
  check_extents("resize", height, width);
  if (width == image.width) return height == image.height ? image : resampled_columns(image, height);
  const Image wide = resampled_rows(image, width);
  return height == image.height ? wide : resampled_columns(wide, height);
}

Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width) {
  check_image("crop", image);
  check_extents("crop", height, width);
  FJ_CHECK(std::min(top, left) >= -kMostPixels && std::max(top, left) <= kMostPixels,
           "crop: ({}, {}) is out of reach of any image", top, left);
  Image result{height, width, image.channels, {}};
  result.pixels.resize(static_cast<std::size_t>(height * width * image.channels));
  const std::int64_t first = std::max(left, std::int64_t{0}), end = std::min(left + width, image.width);
  for (std::int64_t y = std::max(top, std::int64_t{0}); first < end && y < std::min(top + height, image.height); ++y) {
    std::copy_n(&image.pixels[static_cast<std::size_t>((y * image.width + first) * image.channels)],
                (end - first) * image.channels,
                &result.pixels[static_cast<std::size_t>(((y - top) * width + first - left) * image.channels)]);
  }
  return result;
}

Image hflip(const Image& image) {
  check_image("hflip", image);
  Image result = image;
  const auto channels = static_cast<std::size_t>(image.channels), width = static_cast<std::size_t>(image.width);
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      std::copy_n(&image.pixels[(y * width + x) * channels], channels,
                  &result.pixels[(y * width + width - 1 - x) * channels]);
    }
  }
  return result;
}

}  // namespace fusejit::data
