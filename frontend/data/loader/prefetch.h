// Batches made ahead by threads, taken in order. At most `ahead` are made or being made beyond the last that was taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "frontend/data/loader/batch_maker.h"

namespace fusejit::data {

class Prefetch {
 public:
  // Makes a batch; may give up once `stop` is true. Called by several threads at once.
  using Make = std::function<HostBatch(std::int64_t number, const std::atomic<bool>& stop)>;
  // DeviceError if the system has no more threads.
  Prefetch(std::int64_t batches, int workers, std::int64_t ahead, Make make);
  // Waits for examples that are being made, not for batches.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;
  // The next batch, once it is there. Throws what making it has thrown.
  HostBatch take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusejit::data
