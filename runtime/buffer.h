// Buffer: a counted handle to the bytes of one value on a device. Bytes are in the physical order of the type's layout.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "fusejit/device.h"
#include "fusejit/type.h"
#include "ir/base/hash.h"

namespace fusejit::runtime {

class Buffer {
 public:
  Buffer() = default;
  // Fresh uninitialised memory, 64-byte aligned, counted in memory statistics until the last handle goes.
  static Buffer allocate(const Type& type);
  // Memory of somebody else: it must stay valid until `deleter` is called, when the last handle goes.
  static Buffer borrow(void* bytes, const Type& type, std::function<void()> deleter);
  // Memory at `address` of a device, whose allocator takes it back with `release` when the last handle goes. `copy_out`
  // copies as many bytes to the host, waiting for the work that computes them.
  using CopyOut = std::function<void(void* to, std::int64_t bytes)>;
  static Buffer on_device(const Device& device, std::uint64_t address, const Type& type, std::function<void()> release,
                          CopyOut copy_out = {});
  // The same of memory of somebody else.
  static Buffer borrow_on_device(const Device& device, std::uint64_t address, const Type& type,
                                 std::function<void()> deleter, CopyOut copy_out = {});

  explicit operator bool() const { return storage_ != nullptr; }
  const Type& type() const { return type_; }
  Device device() const;
  // Host memory. Throws InternalError if the bytes are on a device: copy them first.
  void* data() const;
  // The address that the device itself uses.
  std::uint64_t address() const;
  std::int64_t bytes() const { return type_.bytes(); }
  // This buffer, or a copy in host memory of one on a device. Throws DeviceError.
  Buffer on_host() const;
  // Fresh host memory with the same bytes, of a buffer in host memory.
  Buffer copy() const;
  // A promise that nobody writes to the storage any more. What is computed from it alone may be kept with it, by a key
  // that says what was computed, and goes when the storage goes.
  void fix() const;
  bool is_fixed() const;
  Buffer derived(const ir::Hash& key) const;  // empty: not there
  void keep(const ir::Hash& key, Buffer derived) const;
  // Takes the promise back: what was kept goes.
  void unfix() const;
  // The same storage seen as another type of no more bytes.
  Buffer as(const Type& type) const;
  // True if no other handle shares the storage and it is not borrowed: it may be overwritten in place.
  bool exclusive() const;

 private:
  struct Storage;
  std::shared_ptr<Storage> storage_;
  Type type_;
};

}  // namespace fusejit::runtime
