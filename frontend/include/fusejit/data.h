// From files to batches: DataLoader, and image sets in IDX files as shuffled and normalised batches.
//
//   auto digits = std::make_shared<fj::data::MNIST>(directory, fj::data::Split::train);
//   fj::data::DataLoader loader(digits, {.batch_size = 64, .shuffle = true, .num_workers = 2, .seed = 1});
//   for (auto [x, y] : loader) images += x.size(0);  // f32 [64,1,28,28] and i64 [64]
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fusejit/data/dataset.h"
#include "fusejit/data/transforms.h"
#include "fusejit/tensor.h"

namespace fusejit::data {

// ---- any dataset --------------------------------------------------------------------------------------------------

// Examples side by side.
struct Batch {
  // x of the examples: f32 [N,C,H,W] of images, u8 after PILToTensor; [N,...] of arrays [...] with their dtype
  Tensor images;
  Tensor labels;  // y: i64 [N] of labels, else as x
};

struct DataLoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;                    // another order each epoch
  bool drop_last = false;                  // leave out an incomplete last batch
  int num_workers = 0;                     // threads that make batches ahead; 0: they are made when they are asked for
  int prefetch_factor = 2;                 // batches ahead, for each worker
  Compose transform = {};                  // of images; the last step is ToTensor unless it is PILToTensor
  Layout layout = Layout::standard;        // of the memory of images; the shape is [N,C,H,W] in any case
  std::optional<std::uint64_t> seed = {};  // of orders and transforms; left out: drawn from the default generator
};

// The batches of a dataset, an epoch after the other: each begin() starts the next one. Orders and what transforms draw
// depend on (seed, epoch, example) alone, so batches are the same for any number of workers. An error in an example
// arrives where the loop takes its batch, as the same type of error with the example's name; it ends the epoch, and the
// workers, as leaving the loop does.
class DataLoader {
 public:
  class Iterator;
  // UserError for a batch size below 1, a negative number of workers, and prefetch_factor below 1 where there are some.
  explicit DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options = {});
  std::int64_t size() const;  // batches of an epoch
  // The next begin() starts this epoch, as after a restart. UserError if it is negative.
  void set_epoch(std::int64_t epoch);
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  DataLoaderOptions options_;
  std::int64_t epoch_ = 0;
};

// Where an epoch is; it goes on once, for all copies.
class DataLoader::Iterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  struct Epoch;  // internal
  Iterator() = default;
  explicit Iterator(std::shared_ptr<Epoch> epoch);
  const Batch& operator*() const { return batch_; }
  const Batch* operator->() const { return &batch_; }
  Iterator& operator++();
  void operator++(int) { ++*this; }
  // True behind the last batch.
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.epoch_ == nullptr; }

 private:
  std::shared_ptr<Epoch> epoch_;  // none at the end
  Batch batch_;
};

// ---- image sets in memory -----------------------------------------------------------------------------------------

// An image set in memory: images as bytes, one label each.
struct ImageSet {
  std::int64_t count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  // [count, height, width]
  std::vector<std::uint8_t> labels;  // [count]
};

// Debian's package dataset-fashion-mnist puts its files here.
inline constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

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

// The batches of one epoch, f32 [N,1,H,W], (pixel/255 - mean) / deviation, and i64 [N], for a range-based for loop:
// for (auto [x, y] : fj::data::batches(images, {...})). Made as they are asked for.
// UserError for a batch below 1, or a mean and deviation that cannot normalise.
class Batches {
 public:
  // Goes through the batches in order.
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

// The batches of a set that is in memory.
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
