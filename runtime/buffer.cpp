#include "runtime/buffer.h"

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "ir/base/check.h"
#include "runtime/cpu/memory.h"

namespace fusejit::runtime {

struct Buffer::Storage {
  void* bytes = nullptr;
  Device device;
  bool borrowed = false;
  std::function<void()> deleter;  // null: host memory of our own
  CopyOut copy_out;               // of memory of a device
  std::mutex mutex;               // of the rest
  bool fixed = false;
  std::unordered_map<ir::Hash, Buffer, ir::HashOfHash> derived;

  ~Storage() {
    if (deleter) {
      deleter();
    } else {
      deallocate(bytes);
    }
  }
};

Buffer Buffer::allocate(const Type& type) {
  Buffer buffer;
  buffer.storage_ = std::make_shared<Storage>();
  buffer.storage_->bytes = runtime::allocate(type.bytes());
  buffer.type_ = type;
  return buffer;
}

Buffer Buffer::borrow(void* bytes, const Type& type, std::function<void()> deleter) {
  Buffer buffer;
  buffer.storage_ = std::make_shared<Storage>();
  buffer.storage_->bytes = bytes;
  buffer.storage_->borrowed = true;
  buffer.storage_->deleter = deleter ? std::move(deleter) : [] {};
  buffer.type_ = type;
  return buffer;
}

Buffer Buffer::on_device(const Device& device, std::uint64_t address, const Type& type, std::function<void()> release,
                         CopyOut copy_out) {
  Buffer buffer = borrow_on_device(device, address, type, std::move(release), std::move(copy_out));
  buffer.storage_->borrowed = false;
  return buffer;
}

Buffer Buffer::borrow_on_device(const Device& device, std::uint64_t address, const Type& type,
                                std::function<void()> deleter, CopyOut copy_out) {
  Buffer buffer = borrow(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), type, std::move(deleter));
  buffer.storage_->device = device;
  buffer.storage_->copy_out = std::move(copy_out);
  return buffer;
}

Buffer Buffer::on_host() const {
  if (device().is_cpu()) return *this;
  FJ_ASSERT(storage_->copy_out, "a value {} on {} cannot be copied out", type_.str(), device().str());
  Buffer host = allocate(type_);
  storage_->copy_out(host.data(), bytes());
  return host;
}

Buffer Buffer::copy() const {
  Buffer same = allocate(type_);
  if (bytes() > 0) std::memcpy(same.data(), data(), static_cast<std::size_t>(bytes()));
  return same;
}

Device Buffer::device() const { return storage_ ? storage_->device : Device(); }

void* Buffer::data() const {
  FJ_ASSERT(device().is_cpu(), "the host asks for the bytes of a value {} on {}", type_.str(), device().str());
  return storage_ ? storage_->bytes : nullptr;
}

std::uint64_t Buffer::address() const { return storage_ ? reinterpret_cast<std::uintptr_t>(storage_->bytes) : 0; }

bool Buffer::exclusive() const { return storage_ && storage_.use_count() == 1 && !storage_->borrowed; }

void Buffer::fix() const {
  const std::lock_guard lock(storage_->mutex);
  storage_->fixed = true;
}

void Buffer::unfix() const {
  std::unordered_map<ir::Hash, Buffer, ir::HashOfHash> kept;  // released after the lock
  const std::lock_guard lock(storage_->mutex);
  storage_->fixed = false;
  kept.swap(storage_->derived);
}

bool Buffer::is_fixed() const {
  const std::lock_guard lock(storage_->mutex);
  return storage_->fixed;
}

Buffer Buffer::derived(const ir::Hash& key) const {
  const std::lock_guard lock(storage_->mutex);
  const auto found = storage_->derived.find(key);
  return found == storage_->derived.end() ? Buffer() : found->second;
}

void Buffer::keep(const ir::Hash& key, Buffer derived) const {
  const std::lock_guard lock(storage_->mutex);
  if (storage_->fixed) storage_->derived.try_emplace(key, std::move(derived));
}

Buffer Buffer::as(const Type& type) const {
  Buffer same = *this;
  same.type_ = type;
  return same;
}

}  // namespace fusejit::runtime
