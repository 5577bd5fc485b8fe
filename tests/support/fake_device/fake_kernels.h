// Kernels for FakeDriver that compute what the kernel interpreter says, and the module image that it takes for machine
// code.
#pragma once

#include <memory>
#include <string>

#include "codegen/cuda/emit.h"
#include "ir/kernel/kernel.h"
#include "tests/support/fake_device/fake_driver.h"

namespace fusejit::test {

// Teaches the driver every entry of `source`. The whole kernel runs at the last launch; the ones before it must come
// before it with the same arguments. Work memory is overwritten, counters must be zero.
void define_kernel(FakeDriver& fake, std::shared_ptr<const ir::Kernel> kernel, const codegen::cuda::CudaSource& source);

// The same, with another way to do the work of launch number `launch`.
using FakeWork =
    std::function<void(std::size_t launch, std::span<void* const> pointers, std::span<const std::uint64_t> scalars)>;
void define_kernel(FakeDriver& fake, std::shared_ptr<const ir::Kernel> kernel, const codegen::cuda::CudaSource& source,
                   const FakeWork& work);

// What the emitter says of a kernel without its text: for kernels that are tested before they can be emitted.
codegen::cuda::CudaSource described(const ir::Kernel& kernel, int launches = 1, std::int64_t work_bytes = 0,
                                    std::int64_t counter_bytes = 0);

inline const std::string kFakeImage =
    "\x7f"
    "ELF of no machine";

}  // namespace fusejit::test
