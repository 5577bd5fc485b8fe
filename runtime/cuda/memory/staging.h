// Staging: copies between host memory and the device through pinned memory, so that they run asynchronously in the
// order of the device's stream. upload() returns when the host's bytes may change again, download() when they are
// there.
#pragma once

#include <array>
#include <mutex>
#include <optional>

#include "runtime/cuda/driver/stream.h"

namespace fusejit::runtime::cuda {

class Staging {
 public:
  Staging(DeviceContext& context, CuStream stream) : context_(context), stream_(stream) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void upload(CuPointer to, const void* from, std::int64_t bytes);
  void download(void* to, CuPointer from, std::int64_t bytes);

 private:
  static constexpr std::int64_t kSlotBytes = 4 << 20;
  static constexpr std::size_t kSlots = 3;

  // A piece of pinned memory. Small copies share one until it is full.
  struct Slot {
    std::byte* bytes = nullptr;
    std::int64_t used = 0;
    bool in_flight = false;  // the stream may still work with it
    bool sealed = false;     // ... until `copied`
    std::optional<Event> copied;
  };
  Slot& slot_with_room();
  void seal(Slot& slot);
  void wait(Slot& slot);

  DeviceContext& context_;
  const CuStream stream_;
  std::mutex mutex_;
  std::array<Slot, kSlots> slots_;
  std::size_t current_ = 0;
};

}  // namespace fusejit::runtime::cuda
