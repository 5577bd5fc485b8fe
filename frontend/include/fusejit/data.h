// Image sets in IDX files (MNIST and its relatives), plain or gzipped, as shuffled and normalised batches.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusejit/tensor.h"

namespace fusejit::data {

// An image set in memory: images as bytes, one label each.
struct ImageSet {
  std::int64_t count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  // [count, height, width]
  std::vector<std::uint8_t> labels;  // [count]
};

// Debian's package dataset-fashion-mnist puts its files here.
inline constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

enum class Split : std::uint8_t { train, test };
// {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] in `directory`. FileError if they are not there; UserError, one
// sentence, if a file is cut off, foreign, or the two do not belong together.
ImageSet load_images(const std::string& directory, Split split);
// One file each.
ImageSet load_images(const std::string& images_path, const std::string& labels_path);

struct BatchOptions {
  std::int64_t batch = 250;
  bool shuffle = false;
  bool drop_last = false;                    // leave out an incomplete last batch
  Split split = Split::train;                // for `idx`
  double mean = 0.2860, deviation = 0.3530;  // of pixels as 0..1; the defaults are Fashion-MNIST's
  std::optional<std::uint64_t> seed = {};    // of the order; left out: drawn from the default generator
};

struct Batch {
  Tensor images;  // f32 [N,1,H,W], (pixel/255 - mean) / deviation
  Tensor labels;  // i64 [N]
};

// The batches of one epoch, for a range-based for loop: for (auto [x, y] : fj::data::batches(images, {...})). Made as
// they are asked for. UserError for a batch below 1, or a mean and deviation that cannot normalise.
class Batches {
 public:
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Batches* batches, std::int64_t number) : batches_(batches), number_(number) {}
    Batch operator*() const { return batches_->get(number_); }
    Iterator& operator++() { return ++number_, *this; }
    Iterator operator++(int) { return Iterator(batches_, number_++); }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.number_ == b.number_; }

   private:
    const Batches* batches_ = nullptr;
    std::int64_t number_ = 0;
  };

  Batches(std::shared_ptr<const ImageSet> set, BatchOptions options);
  std::int64_t size() const;             // batches
  Batch get(std::int64_t number) const;  // UserError unless 0 <= number < size()
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  std::shared_ptr<const ImageSet> set_;
  BatchOptions options_;
  std::vector<std::int64_t> order_;
};

Batches batches(std::shared_ptr<const ImageSet> set, const BatchOptions& options = {});
// Loads and batches: for (auto [x, y] : fj::data::idx(directory, {.batch = 250, .shuffle = true})).
Batches idx(const std::string& directory, const BatchOptions& options = {});

// A picture of images in rows, each with a predicted and the true label beneath it (green where they agree, red where
// not), written as PNG, whole or not at all. which: numbers of images; predicted: a label for each of them.
// names[label] is a label's text; missing names are numbers. UserError for a number that is no image's, FileError.
void save_contact_sheet(const std::string& path, const ImageSet& images, const std::vector<std::int64_t>& which,
                        const std::vector<std::int64_t>& predicted, const std::vector<std::string>& names = {},
                        int columns = 10);

}  // namespace fusejit::data
