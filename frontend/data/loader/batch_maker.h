// A batch from examples, in host memory: images are written where they stay, as f32 or as bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "fusejit/data.h"
#include "runtime/buffer.h"

namespace fusejit::data {

struct HostBatch {
  runtime::Buffer x, y;
};

// Of one epoch. May be used by several threads at once.
class BatchMaker {
 public:
  BatchMaker(std::shared_ptr<const Dataset> dataset, Compose transform, Layout layout, std::uint64_t seed,
             std::int64_t epoch)
      : dataset_(std::move(dataset)), transform_(std::move(transform)), layout_(layout), seed_(seed), epoch_(epoch) {}
  // The examples of these numbers. What one throws is thrown with the example's name; an empty batch where `stop` has
  // become true.
  HostBatch make(std::span<const std::int64_t> indices, const std::atomic<bool>& stop) const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  Compose transform_;
  Layout layout_;
  std::uint64_t seed_;
  std::int64_t epoch_;
};

}  // namespace fusejit::data
