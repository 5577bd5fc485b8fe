#include <algorithm>
#include <cmath>
#include <numeric>

#include "fusejit/data.h"
#include "fusejit/random.h"
#include "ir/base/check.h"

namespace fusejit::data {

Batches::Batches(std::shared_ptr<const ImageSet> set, BatchOptions options) : set_(std::move(set)), options_(options) {
  FJ_CHECK(set_, "batches: there is no image set");
  FJ_CHECK(options.batch >= 1, "batches: the batch is {}, it must be at least 1", options.batch);
  FJ_CHECK(std::isfinite(options.mean) && std::isfinite(options.deviation) && options.deviation > 0,
           "batches: mean {} and deviation {} must be finite, the deviation positive", options.mean, options.deviation);
  if (options.shuffle) {
    order_ = random_permutation(set_->count, options.seed ? *options.seed : next_seed());
  } else {
    order_.resize(static_cast<std::size_t>(set_->count));
    std::iota(order_.begin(), order_.end(), 0);
  }
}

std::int64_t Batches::size() const {
  return options_.drop_last ? set_->count / options_.batch : (set_->count + options_.batch - 1) / options_.batch;
}

Batch Batches::get(std::int64_t number) const {
  FJ_CHECK(number >= 0 && number < size(), "batches: there is no batch {} ({} batches)", number, size());
  const std::int64_t first = number * options_.batch, count = std::min(options_.batch, set_->count - first);
  const auto cells = static_cast<std::size_t>(set_->height * set_->width);
  float value_of[256];
  for (int i = 0; i < 256; ++i) value_of[i] = static_cast<float>((i / 255.0 - options_.mean) / options_.deviation);
  std::vector<float> images(static_cast<std::size_t>(count) * cells);
  std::vector<std::int64_t> labels(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from = static_cast<std::size_t>(order_[static_cast<std::size_t>(first + i)]),
               to = static_cast<std::size_t>(i);
    labels[to] = set_->labels[from];
    for (std::size_t c = 0; c < cells; ++c) images[to * cells + c] = value_of[set_->pixels[from * cells + c]];
  }
  return {from_host(images, {count, 1, set_->height, set_->width}), from_host(labels, {count})};
}

Batches batches(std::shared_ptr<const ImageSet> set, const BatchOptions& options) {
  return Batches(std::move(set), options);
}

Batches idx(const std::string& directory, const BatchOptions& options) {
  return Batches(std::make_shared<const ImageSet>(load_images(directory, options.split)), options);
}

}  // namespace fusejit::data
