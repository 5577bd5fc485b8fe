// DataLoader: the order of an epoch, who makes its batches, and tensors of them.
#include <algorithm>
#include <atomic>
#include <numeric>

#include "frontend/context.h"
#include "frontend/data/loader/prefetch.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/ops/random.h"
#include "frontend/record.h"
#include "frontend/state.h"
#include "fusejit/data.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

std::int64_t batches_of(std::int64_t examples, const DataLoaderOptions& options) {
  return examples / options.batch_size + (!options.drop_last && examples % options.batch_size != 0 ? 1 : 0);
}

std::vector<std::int64_t> order_of(std::int64_t examples, bool shuffle, std::uint64_t seed, std::int64_t epoch) {
  if (shuffle) return random_permutation(examples, seed_of(seed, static_cast<std::uint64_t>(epoch)));
  std::vector<std::int64_t> order(static_cast<std::size_t>(examples));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Tensor on_default_device(const runtime::Buffer& buffer) { return fusejit::tensor_of(place(buffer, default_device())); }

}  // namespace

struct DataLoader::Iterator::Epoch {
  Epoch(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options, std::int64_t epoch)
      : order(order_of(dataset->size(), options.shuffle, *options.seed, epoch)),
        batches(batches_of(static_cast<std::int64_t>(order.size()), options)),
        batch_size(options.batch_size),
        maker(std::move(dataset), options.transform, options.layout, *options.seed, epoch) {
    if (options.num_workers == 0) return;
    const int workers = static_cast<int>(std::min<std::int64_t>(options.num_workers, batches));
    ahead = std::make_unique<Prefetch>(
        batches, workers, std::int64_t{workers} * options.prefetch_factor,
        [this](std::int64_t number, const std::atomic<bool>& stop) { return make(number, stop); });
  }

  HostBatch make(std::int64_t number, const std::atomic<bool>& stop) const {
    const auto first = static_cast<std::size_t>(number * batch_size);
    const std::size_t count = std::min(static_cast<std::size_t>(batch_size), order.size() - first);
    return maker.make(std::span(order).subspan(first, count), stop);
  }
  bool is_over() const { return next == batches; }
  Batch take() {
    const std::atomic<bool> never = false;
    const HostBatch batch = ahead ? ahead->take() : make(next, never);
    ++next;
    return {on_default_device(batch.x), on_default_device(batch.y)};
  }

  std::vector<std::int64_t> order;
  std::int64_t batches, batch_size, next = 0;
  BatchMaker maker;
  std::unique_ptr<Prefetch> ahead;  // goes first: its threads use the rest
};

DataLoader::Iterator::Iterator(std::shared_ptr<Epoch> epoch) : epoch_(std::move(epoch)) { ++*this; }

// The batch goes before the next one is waited for; whatever is thrown, the epoch is over.
DataLoader::Iterator& DataLoader::Iterator::operator++() {
  FJ_CHECK(epoch_, "data loader: there is nothing behind the end of an epoch");
  const std::shared_ptr<Epoch> epoch = std::move(epoch_);
  epoch_ = nullptr;
  batch_ = {};
  if (epoch->is_over()) return *this;
  batch_ = epoch->take();
  epoch_ = epoch;
  return *this;
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  FJ_CHECK(dataset_, "data loader: there is no dataset");
  FJ_CHECK(options_.batch_size >= 1, "data loader: batch_size is {}, it must be at least 1", options_.batch_size);
  FJ_CHECK(options_.num_workers >= 0, "data loader: num_workers is {}, it must not be negative", options_.num_workers);
  FJ_CHECK(options_.prefetch_factor >= 1 || options_.num_workers == 0,
           "data loader: prefetch_factor is {}, it must be at least 1", options_.prefetch_factor);
  if (!options_.seed) options_.seed = next_seed();
}

std::int64_t DataLoader::size() const { return batches_of(dataset_->size(), options_); }

void DataLoader::set_epoch(std::int64_t epoch) {
  FJ_CHECK(epoch >= 0, "data loader: the epoch is {}, it must not be negative", epoch);
  epoch_ = epoch;
}

DataLoader::Iterator DataLoader::begin() {
  return Iterator(std::make_shared<Iterator::Epoch>(dataset_, options_, epoch_++));
}

}  // namespace fusejit::data
