// What is done to images before they are a batch, under torchvision's names, on bytes until the last step.
//
//   fj::data::Compose augment({fj::data::RandomResizedCrop(224), fj::data::RandomHorizontalFlip(),
//                              fj::data::ToTensor(), fj::data::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224,
//                              0.225})});
//   fj::data::Draws draws(seed, epoch, index);
//   fj::data::Image ready = augment(image, draws);
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "fusejit/data/image.h"
#include "fusejit/tensor.h"

namespace fusejit::data {

// The random numbers of one example: words of Philox4x32-10 by (seed, epoch, index) alone, so that it does not matter
// who draws them and what was drawn before.
class Draws {
 public:
  Draws(std::uint64_t seed, std::int64_t epoch, std::int64_t index);
  // Uniform in [0, 1), and from low to high.
  double uniform();
  double uniform(double low, double high);
  // One of 0 .. count - 1. UserError unless count >= 1.
  std::int64_t below(std::int64_t count);

 private:
  std::uint64_t word();  // 64 bits
  std::uint64_t seed_, stream_, next_ = 0;
};

// Each is called as transform(image, draws). Constructors: UserError for extents below 1 and what else cannot be meant.

// As resize(): to height x width, or the shorter side to `size` and the longer one in proportion.
class Resize {
 public:
  explicit Resize(std::int64_t size);
  Resize(std::int64_t height, std::int64_t width);
  Image operator()(Image image, Draws& draws) const;

 private:
  std::int64_t height_, width_;  // 0: the shorter side is height_
};

// The middle; smaller images are surrounded with black.
class CenterCrop {
 public:
  explicit CenterCrop(std::int64_t size) : CenterCrop(size, size) {}
  CenterCrop(std::int64_t height, std::int64_t width);
  Image operator()(Image image, Draws& draws) const;

 private:
  std::int64_t height_, width_;
};

// A part anywhere in the image with `padding` black pixels at each side. UserError for an image that is too small,
// unless pad_if_needed adds what lacks, at both sides.
struct CropOptions {
  std::int64_t padding = 0;
  bool pad_if_needed = false;
};
class RandomCrop {
 public:
  explicit RandomCrop(std::int64_t size, const CropOptions& options = {}) : RandomCrop(size, size, options) {}
  RandomCrop(std::int64_t height, std::int64_t width, const CropOptions& options = {});
  Image operator()(Image image, Draws& draws) const;

 private:
  std::int64_t height_, width_;
  CropOptions options_;
};

// A part of `scale` of the area and `ratio` of width to height, resized: ten tries, then the middle.
struct ResizedCropOptions {
  std::pair<double, double> scale = {0.08, 1.0};
  std::pair<double, double> ratio = {3.0 / 4.0, 4.0 / 3.0};
};
class RandomResizedCrop {
 public:
  explicit RandomResizedCrop(std::int64_t size, const ResizedCropOptions& options = {})
      : RandomResizedCrop(size, size, options) {}
  RandomResizedCrop(std::int64_t height, std::int64_t width, const ResizedCropOptions& options = {});
  Image operator()(Image image, Draws& draws) const;

 private:
  std::int64_t height_, width_;
  ResizedCropOptions options_;
};

// hflip() with probability p.
class RandomHorizontalFlip {
 public:
  explicit RandomHorizontalFlip(double p = 0.5);
  Image operator()(Image image, Draws& draws) const;

 private:
  double p_;
};

// Bytes become 0 .. 1, as byte / 255. A batch is made so unless PILToTensor comes last.
struct ToTensor {};

// Bytes stay bytes: a batch is u8 [N,C,H,W], a quarter of f32, and what reads it converts (Normalize on a tensor).
struct PILToTensor {};

// (value - mean) / deviation of each channel, in f32; one of each is for all channels. UserError for other numbers of
// both, or values that are not finite, or deviations of zero.
//
//   fj::data::Normalize normalize({0.5}, {0.25});
//   fj::Tensor x = normalize(fj::tensor<std::uint8_t>({0, 255}).reshape({1, 1, 1, 2}));  // f32: -2, 2
class Normalize {
 public:
  Normalize(std::vector<double> mean, std::vector<double> deviation);
  // Of a batch [N,C,H,W]: u8 is read as byte / 255, floats as they are; f32, to the bit what a batch holds that was
  // made by ToTensor and Normalize. Recorded, so that it is done where the batch is read: no f32 copy of it is made.
  // UserError for other dtypes and ranks, and unless there are C means or one.
  Tensor operator()(const Tensor& images) const;
  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& deviation() const { return deviation_; }

 private:
  std::vector<double> mean_, deviation_;
};

// A transform of one's own: what becomes of an image, with the random numbers of its example.
using ImageTransform = std::function<Image(Image image, Draws& draws)>;
// Any of the above, or a function of one's own.
using Transform = std::variant<ImageTransform, ToTensor, PILToTensor, Normalize>;

// One after the other; ToTensor and Normalize, if they are there, come last and in this order, or PILToTensor does,
// else UserError.
class Compose {
 public:
  Compose() = default;
  Compose(std::vector<Transform> transforms);
  // What comes before ToTensor or PILToTensor.
  Image operator()(Image image, Draws& draws) const;
  // Of `byte` of each channel: [channels, 256]. UserError if Normalize is for another number of channels.
  std::vector<float> values_of_bytes(std::int64_t channels) const;
  // PILToTensor is there: batches are u8.
  bool keeps_bytes() const { return keeps_bytes_; }

 private:
  std::vector<ImageTransform> steps_;
  std::vector<Normalize> normalize_;  // one or none
  bool keeps_bytes_ = false;
};

}  // namespace fusejit::data
