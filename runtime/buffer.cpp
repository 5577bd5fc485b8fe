#include "runtime/buffer.h"

#include "runtime/memory.h"

namespace fusejit::runtime {

struct Buffer::Storage {
  void* bytes = nullptr;
  std::function<void()> deleter;  // set: borrowed

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
  buffer.storage_->deleter = deleter ? std::move(deleter) : [] {};
  buffer.type_ = type;
  return buffer;
}

void* Buffer::data() const { return storage_ ? storage_->bytes : nullptr; }

bool Buffer::exclusive() const { return storage_ && storage_.use_count() == 1 && !storage_->deleter; }

Buffer Buffer::as(const Type& type) const {
  Buffer same = *this;
  same.type_ = type;
  return same;
}

}  // namespace fusejit::runtime
