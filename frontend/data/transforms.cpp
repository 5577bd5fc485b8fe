// Sizes, places and chances as in torchvision.transforms; numbers from Philox words of their own.
#include "fusejit/data/transforms.h"

#include <algorithm>
#include <cmath>

#include "frontend/ops/random.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

void check_extents(const char* what, std::int64_t height, std::int64_t width) {
  FJ_CHECK(height >= 1 && width >= 1 && width <= kMostPixels / height, "{}: {} x {} pixels, there must be 1 to {}",
           what, height, width, kMostPixels);
}

// Python's round(): halves to even.
std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

}  // namespace

// Stream 0 of the seed is that of the order of an epoch (random_permutation).
Draws::Draws(std::uint64_t seed, std::int64_t epoch, std::int64_t index)
    : seed_(seed_of(seed, static_cast<std::uint64_t>(epoch))), stream_(static_cast<std::uint64_t>(index) + 1) {}

std::uint64_t Draws::word() {
  PhiloxWords words(seed_, stream_);
  const std::uint64_t high = words[next_++];
  return high << 32 | words[next_++];
}

double Draws::uniform() { return static_cast<double>(word() >> 11) * 0x1p-53; }

double Draws::uniform(double low, double high) { return low + (high - low) * uniform(); }

std::int64_t Draws::below(std::int64_t count) {
  FJ_CHECK(count >= 1, "draws: one of {} values", count);
  const auto product = static_cast<unsigned __int128>(word()) * static_cast<std::uint64_t>(count);
  return static_cast<std::int64_t>(product >> 64);
}

Resize::Resize(std::int64_t size) : height_(size), width_(0) { check_extents("Resize", size, 1); }
Resize::Resize(std::int64_t height, std::int64_t width) : height_(height), width_(width) {
  check_extents("Resize", height, width);
}
Image Resize::operator()(Image image, Draws&) const {
  if (width_ != 0) return resize(image, height_, width_);
  const std::int64_t shorter = std::max<std::int64_t>(std::min(image.height, image.width), 1);
  const auto scaled = [&](std::int64_t extent) { return height_ * extent / shorter; };
  return resize(image, scaled(image.height), scaled(image.width));
}

CenterCrop::CenterCrop(std::int64_t height, std::int64_t width) : height_(height), width_(width) {
  check_extents("CenterCrop", height, width);
}
Image CenterCrop::operator()(Image image, Draws&) const {
  const auto middle = [](std::int64_t extent, std::int64_t part) {
    return part > extent ? -((part - extent) / 2) : rounded(static_cast<double>(extent - part) / 2);
  };
  return crop(image, middle(image.height, height_), middle(image.width, width_), height_, width_);
}

RandomCrop::RandomCrop(std::int64_t height, std::int64_t width, const CropOptions& options)
    : height_(height), width_(width), options_(options) {
  check_extents("RandomCrop", height, width);
  FJ_CHECK(options.padding >= 0 && options.padding <= kMostPixels, "RandomCrop: the padding is {}", options.padding);
}
Image RandomCrop::operator()(Image image, Draws& draws) const {
  const auto padding = [&](std::int64_t extent, std::int64_t part) {
    const std::int64_t lacking = std::max<std::int64_t>(part - extent - 2 * options_.padding, 0);
    return options_.padding + (options_.pad_if_needed ? lacking : 0);
  };
  const std::int64_t vertical = padding(image.height, height_), horizontal = padding(image.width, width_);
  const std::int64_t height = image.height + 2 * vertical, width = image.width + 2 * horizontal;
  FJ_CHECK(height >= height_ && width >= width_, "RandomCrop: {} x {} pixels of an image that has {} x {}{}", height_,
           width_, image.height, image.width,
           options_.padding > 0 ? fmt::format(" and {} more at each side", options_.padding) : "");
  const std::int64_t top = draws.below(height - height_ + 1) - vertical;
  const std::int64_t left = draws.below(width - width_ + 1) - horizontal;
  return crop(image, top, left, height_, width_);
}

RandomResizedCrop::RandomResizedCrop(std::int64_t height, std::int64_t width, const ResizedCropOptions& options)
    : height_(height), width_(width), options_(options) {
  check_extents("RandomResizedCrop", height, width);
  const auto is_range = [](const std::pair<double, double>& r) {
    return std::isfinite(r.second) && 0 < r.first && r.first <= r.second;
  };
  FJ_CHECK(is_range(options.scale) && is_range(options.ratio),
           "RandomResizedCrop: scale ({}, {}) and ratio ({}, {}) must be positive and in order", options.scale.first,
           options.scale.second, options.ratio.first, options.ratio.second);
}
Image RandomResizedCrop::operator()(Image image, Draws& draws) const {
  const auto& [least, most] = options_.ratio;
  const double area = static_cast<double>(image.height * image.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * draws.uniform(options_.scale.first, options_.scale.second);
    const double ratio = std::exp(draws.uniform(std::log(least), std::log(most)));
    const double wide = std::nearbyint(std::sqrt(target * ratio)), high = std::nearbyint(std::sqrt(target / ratio));
    if (!(wide >= 1 && wide <= static_cast<double>(image.width))) continue;
    if (!(high >= 1 && high <= static_cast<double>(image.height))) continue;
    const auto width = static_cast<std::int64_t>(wide), height = static_cast<std::int64_t>(high);
    const std::int64_t top = draws.below(image.height - height + 1), left = draws.below(image.width - width + 1);
    return resize(crop(image, top, left, height, width), height_, width_);
  }
  const double ratio = static_cast<double>(image.width) / static_cast<double>(image.height);
  std::int64_t height = image.height, width = image.width;
  if (ratio < least) height = std::max<std::int64_t>(rounded(static_cast<double>(width) / least), 1);
  if (ratio > most) width = std::max<std::int64_t>(rounded(static_cast<double>(height) * most), 1);
  const std::int64_t top = (image.height - height) / 2, left = (image.width - width) / 2;
  return resize(crop(image, top, left, height, width), height_, width_);
}

RandomHorizontalFlip::RandomHorizontalFlip(double p) : p_(p) {
  FJ_CHECK(p >= 0 && p <= 1, "RandomHorizontalFlip: the probability is {}", p);
}
Image RandomHorizontalFlip::operator()(Image image, Draws& draws) const {
  return draws.uniform() < p_ ? hflip(image) : std::move(image);
}

Normalize::Normalize(std::vector<double> mean, std::vector<double> deviation)
    : mean_(std::move(mean)), deviation_(std::move(deviation)) {
  FJ_CHECK(mean_.size() == deviation_.size() && !mean_.empty(), "Normalize: {} means and {} deviations", mean_.size(),
           deviation_.size());
  for (std::size_t c = 0; c < mean_.size(); ++c)
    FJ_CHECK(std::isfinite(mean_[c]) && std::isfinite(deviation_[c]) && static_cast<float>(deviation_[c]) != 0,
             "Normalize: mean {} and deviation {} of channel {}", mean_[c], deviation_[c], c);
}

Tensor Normalize::operator()(const Tensor& images) const {
  FJ_CHECK(images.defined() && images.rank() == 4 && (images.dtype() == u8 || is_float(images.dtype())),
           "Normalize: the images must be u8 or float [N,C,H,W] (images: {})",
           images.defined() ? images.type().str() : "empty");
  const auto given = static_cast<std::int64_t>(mean_.size());
  FJ_CHECK(given == 1 || given == images.size(1), "Normalize: {} means for {} channels (images: {})", given,
           images.size(1), images.type().str());
  const auto of_channels = [&](const std::vector<double>& numbers) {
    const std::vector<float> values(numbers.begin(), numbers.end());
    return from_host(values, {given, 1, 1}).to(images.device());
  };
  const Tensor wide = images.to(f32);
  const Tensor x = images.dtype() == u8 ? wide / 255 : wide;
  return (x - of_channels(mean_)) / of_channels(deviation_);
}

Compose::Compose(std::vector<Transform> transforms) {
  bool has_tensor = false;
  for (Transform& transform : transforms) {
    FJ_CHECK(normalize_.empty(), "Compose: nothing comes after Normalize");
    if (auto* step = std::get_if<ImageTransform>(&transform)) {
      FJ_CHECK(!has_tensor, "Compose: after ToTensor comes Normalize or nothing; images are bytes before");
      FJ_CHECK(*step, "Compose: transform {} is an empty function", steps_.size());
      steps_.push_back(std::move(*step));
    } else if (auto* normalize = std::get_if<Normalize>(&transform)) {
      FJ_CHECK(!keeps_bytes_, "Compose: nothing comes after PILToTensor; Normalize is called on the batch");
      normalize_.push_back(std::move(*normalize));
    } else {
      FJ_CHECK(!keeps_bytes_, "Compose: nothing comes after PILToTensor; Normalize is called on the batch");
      FJ_CHECK(!has_tensor, "Compose: ToTensor is there twice");
      has_tensor = true;
      keeps_bytes_ = std::holds_alternative<PILToTensor>(transform);
    }
  }
}

Image Compose::operator()(Image image, Draws& draws) const {
  for (const ImageTransform& step : steps_) image = step(std::move(image), draws);
  return image;
}

// In f32 throughout, as torchvision: byte / 255, minus the mean, divided by the deviation.
std::vector<float> Compose::values_of_bytes(std::int64_t channels) const {
  FJ_CHECK(channels >= 1, "Compose: images with {} channels", channels);
  const Normalize own({0}, {1});
  const Normalize& normalize = normalize_.empty() ? own : normalize_.front();
  const std::size_t given = normalize.mean().size(), needed = static_cast<std::size_t>(channels);
  FJ_CHECK(given == 1 || given == needed, "Normalize: {} means for {} channels", given, channels);
  std::vector<float> values;
  for (std::size_t c = 0; c < needed; ++c) {
    const auto mean = static_cast<float>(normalize.mean()[given == 1 ? 0 : c]),
               deviation = static_cast<float>(normalize.deviation()[given == 1 ? 0 : c]);
    for (int byte = 0; byte < 256; ++byte) values.push_back((static_cast<float>(byte) / 255.0f - mean) / deviation);
  }
  return values;
}

}  // namespace fusejit::data
