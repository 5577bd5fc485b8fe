// LLVM outside of what it promises. Its static objects end with the process, in an order that is nobody's: whoever uses
// it says so, the end of the process waits for them, and later there is no generator any more (what is computed then is
// interpreted). And where it gives up, for want of memory or otherwise, an exception is thrown instead of abort().
#pragma once

#include <memory>
#include <new>
#include <utility>

namespace fusejit::codegen::x86 {

class LlvmUse {
 public:
  LlvmUse();
  ~LlvmUse();
  LlvmUse(const LlvmUse&) = delete;
  LlvmUse& operator=(const LlvmUse&) = delete;
  // False: LLVM may not be called any more.
  explicit operator bool() const { return inside_; }

 private:
  bool inside_;
};

// After a use that may have been the first to need a static object of LLVM's: the end of the process waits before that
// goes. What the very first compilation of a process makes is guarded only when that is done.
void end_with_process();

// In a use: LLVM has given up on this thread, in the middle of something. Its objects there must not be touched again,
// not even to destroy them.
bool llvm_gave_up();
void note_llvm_gave_up();

// f(), which calls LLVM. An exception that crosses it for want of memory leaves it in the middle of something, too.
template <class F>
auto calling_llvm(F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    note_llvm_gave_up();
    throw;
  }
}

// Owns an object of LLVM's; leaves it behind if LLVM gave up.
template <class T>
class LlvmOwner {
 public:
  LlvmOwner() = default;
  explicit LlvmOwner(std::unique_ptr<T> object) : object_(std::move(object)) {}
  LlvmOwner(LlvmOwner&&) noexcept = default;
  LlvmOwner& operator=(LlvmOwner&&) noexcept = default;
  ~LlvmOwner() {
    if (llvm_gave_up()) static_cast<void>(object_.release());
  }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_.get(); }
  T* get() const { return object_.get(); }

 private:
  std::unique_ptr<T> object_;
};

}  // namespace fusejit::codegen::x86
