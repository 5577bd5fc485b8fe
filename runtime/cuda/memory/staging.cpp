#include "runtime/cuda/memory/staging.h"

#include <algorithm>
#include <cstring>

namespace fusejit::runtime::cuda {
namespace {

constexpr std::int64_t kAlignment = 64;

}  // namespace

Staging::~Staging() {
  for (Slot& slot : slots_) {
    if (!slot.bytes) continue;
    if (slot.in_flight) context_.release(context_.driver().stream_synchronize, stream_);
    context_.release(context_.driver().host_free, slot.bytes);
  }
}

// Until the stream no longer works with the slot.
void Staging::wait(Slot& slot) {
  if (slot.in_flight) {
    if (slot.sealed) {
      slot.copied->synchronize();
    } else {  // an error kept the event from being recorded
      context_.call(context_.driver().stream_synchronize, stream_);
    }
  }
  slot.in_flight = slot.sealed = false;
  slot.used = 0;
}

// Later uses of the slot wait for what the stream has been given up to here.
void Staging::seal(Slot& slot) {
  if (!slot.copied) slot.copied.emplace(context_);
  slot.copied->record(stream_);
  slot.sealed = true;
}

// The slot that copies go through now, with room left.
Staging::Slot& Staging::slot_with_room() {
  if (slots_[current_].used >= kSlotBytes) {
    if (slots_[current_].in_flight && !slots_[current_].sealed) seal(slots_[current_]);
    current_ = (current_ + 1) % kSlots;
    wait(slots_[current_]);
  }
  Slot& slot = slots_[current_];
  if (!slot.bytes) {
    void* bytes = nullptr;
    context_.call(context_.driver().host_allocate, &bytes, kSlotBytes, kHostAllocPortable);
    slot.bytes = static_cast<std::byte*>(bytes);
  }
  return slot;
}

void Staging::upload(CuPointer to, const void* from, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    Slot& slot = slot_with_room();
    const std::int64_t chunk = std::min(bytes, kSlotBytes - slot.used);
    std::memcpy(slot.bytes + slot.used, source, static_cast<std::size_t>(chunk));
    slot.in_flight = true;
    context_.call(context_.driver().copy_to_device, to, slot.bytes + slot.used, chunk, stream_);
    slot.used += (chunk + kAlignment - 1) / kAlignment * kAlignment;
    to += static_cast<CuPointer>(chunk);
    source += chunk;
    bytes -= chunk;
  }
}

void Staging::download(void* to, CuPointer from, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto* target = static_cast<std::byte*>(to);
  Slot* previous = nullptr;  // its copy is under way while the next one is started
  std::int64_t previous_bytes = 0;
  const auto finish = [&] {
    if (!previous) return;
    const std::byte* arrived = previous->bytes;
    wait(*previous);
    std::memcpy(target, arrived, static_cast<std::size_t>(previous_bytes));
    target += previous_bytes;
  };
  while (bytes > 0) {
    if (slots_[current_].used > 0) slots_[current_].used = kSlotBytes;  // a download has a slot of its own
    Slot& slot = slot_with_room();
    const std::int64_t chunk = std::min(bytes, kSlotBytes);
    slot.in_flight = true;
    slot.used = kSlotBytes;
    context_.call(context_.driver().copy_to_host, slot.bytes, from, chunk, stream_);
    seal(slot);
    finish();
    previous = &slot;
    previous_bytes = chunk;
    from += static_cast<CuPointer>(chunk);
    bytes -= chunk;
  }
  finish();
}

}  // namespace fusejit::runtime::cuda
