// Bytes in use by tensors, plans' arenas and workspace, over all threads, on a device: the host by default. Borrowed
// memory does not count. DeviceError for a device that cannot be used.
//
// What is given back is kept for reuse, since fresh memory is slow. On the host it is what the busiest moment of late
// took, whatever the shapes were: big blocks are cut out of common pages, and pages that nothing has used while sixteen
// times as much was handed out go back to the system.
//
//   fj::memory::reset_peak();
//   fj::Tensor x = fj::ones({256, 1024}).eval();
//   std::int64_t bytes = fj::memory::peak();  // at least 1 MiB
//   fj::memory::release();                    // reserved() is allocated() now, but for parts of pages
#pragma once

#include <cstdint>

#include "fusejit/device.h"

namespace fusejit::memory {

// Now.
std::int64_t allocated(const Device& device = {});
// The most since the start or the last reset.
std::int64_t peak(const Device& device = {});
// The peak counts from what is allocated now.
void reset_peak(const Device& device = {});
// Taken from the system or the device: what is allocated, and what is kept for reuse.
std::int64_t reserved(const Device& device = {});
// Gives what is kept for reuse back. Values, plans and kernels stay.
void release(const Device& device = {});
// No more than so many bytes are reserved; 0: all there is. What would be beyond, what is kept included, is asked for
// again without what is kept, and then is a DeviceError ("out of memory: ...") with the bytes asked for, those in use
// and the limit; everything works on after it, and what is in use stays. UserError for a negative number.
void set_limit(std::int64_t bytes, const Device& device = {});

}  // namespace fusejit::memory
