#include "tests/support/allocations/allocations.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace fusejit::testing {
namespace {

thread_local struct {
  bool is_on = false;
  long failing = -1, count = 0;
  std::size_t largest = 0;
} state;

}  // namespace

Allocations::Allocations(long failing) { state = {true, failing, 0, 0}; }
Allocations::~Allocations() { state = {}; }
std::size_t Allocations::largest() const { return state.largest; }
bool Allocations::has_failed() const { return state.failing >= 0 && state.count > state.failing; }

bool may_allocate(std::size_t size) {
  if (!state.is_on) return true;
  state.largest = std::max(state.largest, size);
  return state.count++ != state.failing;
}

void* allocate(std::size_t size) {
  void* memory = may_allocate(size) ? std::malloc(size) : nullptr;
  return memory ? memory : throw std::bad_alloc();
}

}  // namespace fusejit::testing

void* operator new(std::size_t size) { return fusejit::testing::allocate(size); }
void* operator new[](std::size_t size) { return fusejit::testing::allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fusejit::testing::may_allocate(size) ? std::malloc(size) : nullptr;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  void* memory = nullptr;
  if (!fusejit::testing::may_allocate(size) || ::posix_memalign(&memory, std::max(alignment, sizeof(void*)), size) != 0)
    return nullptr;
  return memory;
}
