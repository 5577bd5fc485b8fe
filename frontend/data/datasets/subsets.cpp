// Datasets made of others.
#include "fusejit/data.h"
#include "fusejit/random.h"
#include "ir/base/check.h"

namespace fusejit::data {

MNIST::MNIST(const std::string& root, Split split)
    : MNIST(std::make_shared<const ImageSet>(load_images(root, split))) {}

MNIST::MNIST(std::shared_ptr<const ImageSet> images) : images_(std::move(images)) {
  FJ_CHECK(images_, "MNIST: there is no image set");
  const ImageSet& set = *images_;
  FJ_CHECK(set.count >= 0 && set.height >= 1 && set.width >= 1 && set.width <= kMostPixels / set.height &&
               set.labels.size() == static_cast<std::size_t>(set.count) &&
               set.pixels.size() / static_cast<std::size_t>(set.height * set.width) == set.labels.size() &&
               set.pixels.size() % static_cast<std::size_t>(set.height * set.width) == 0,
           "MNIST: {} images of {} x {} have {} pixels and {} labels", set.count, set.height, set.width,
           set.pixels.size(), set.labels.size());
}

std::int64_t MNIST::size() const { return images_->count; }

Example MNIST::get(std::int64_t index) const {
  FJ_CHECK(index >= 0 && index < size(), "there is no image {} ({} images)", index, size());
  const std::int64_t bytes = images_->height * images_->width;
  const auto first = images_->pixels.begin() + index * bytes;
  return {Image{images_->height, images_->width, 1, {first, first + bytes}},
          std::int64_t{images_->labels[static_cast<std::size_t>(index)]}};
}

Subset::Subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  FJ_CHECK(dataset_, "Subset: there is no dataset");
  for (const std::int64_t index : indices_)
    FJ_CHECK(index >= 0 && index < dataset_->size(), "Subset: there is no example {} ({} examples)", index,
             dataset_->size());
}

std::int64_t Subset::at(std::int64_t index) const {
  FJ_CHECK(index >= 0 && index < size(), "there is no example {} ({} examples)", index, size());
  return indices_[static_cast<std::size_t>(index)];
}

std::vector<Subset> random_split(std::shared_ptr<const Dataset> dataset, const std::vector<std::int64_t>& lengths,
                                 std::uint64_t seed) {
  FJ_CHECK(dataset, "random_split: there is no dataset");
  std::int64_t left = dataset->size();
  for (const std::int64_t length : lengths) {
    FJ_CHECK(length >= 0 && length <= left, "random_split: the lengths [{}] do not sum to the {} examples",
             fmt::join(lengths, ","), dataset->size());
    left -= length;
  }
  FJ_CHECK(left == 0, "random_split: the lengths [{}] do not sum to the {} examples", fmt::join(lengths, ","),
           dataset->size());
  const std::vector<std::int64_t> order = random_permutation(dataset->size(), seed);
  std::vector<Subset> parts;
  auto first = order.begin();
  for (const std::int64_t length : lengths) {
    parts.emplace_back(dataset, std::vector<std::int64_t>(first, first + length));
    first += length;
  }
  return parts;
}

}  // namespace fusejit::data
