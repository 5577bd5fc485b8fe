#include "tests/support/fake_device/fake_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "ir/base/hash.h"
#include "ir/kernel/interp/interp.h"

namespace fusejit::test {
namespace {

// A run of a kernel that was interpreted: what its buffers held, and what it made of them.
struct Remembered {
  ir::Hash before;
  std::vector<std::string> after;
};

struct Shared {
  std::shared_ptr<const ir::Kernel> kernel;
  codegen::cuda::CudaSource source;
  std::deque<Remembered> remembered;          // the last few runs
  std::vector<std::vector<void*>> under_way;  // pointers of the launches that wait for the next one
};

FakePointer pointer_of(const ir::Memory& memory) {
  const std::int64_t element = bytes(memory.dtype);
  return {bytes(memory.dtype, memory.elements()), memory.align > 0 ? memory.align : element,
          memory.kind != ir::MemKind::read};
}

// Interpreting is slow, and tests repeat themselves: equal buffers give equal results.
void compute(FakeDriver& fake, Shared& shared, std::span<void* const> buffers, std::span<const std::uint64_t> bits) {
  constexpr std::size_t kMostRemembered = 4;
  std::vector<std::size_t> sizes;
  for (const ir::KernelParam& param : shared.kernel->params) {
    if (param.memory < 0) continue;
    const ir::Memory& memory = shared.kernel->memories[static_cast<std::size_t>(param.memory)];
    sizes.push_back(static_cast<std::size_t>(pointer_of(memory).bytes));
  }
  std::string seen;
  for (std::size_t b = 0; b < buffers.size(); ++b) seen += ir::hash_bytes(buffers[b], sizes[b]).hex();
  for (const std::uint64_t word : bits) seen += fmt::format(" {:x}", word);
  const ir::Hash before = ir::hash_text(seen);
  for (const Remembered& run : shared.remembered) {
    if (!(run.before == before)) continue;
    for (std::size_t b = 0; b < buffers.size(); ++b) std::memcpy(buffers[b], run.after[b].data(), sizes[b]);
    return;
  }
  std::vector<ir::Scalar> scalars;
  for (std::size_t i = 0; i < bits.size(); ++i) scalars.push_back({shared.source.scalars[i], bits[i]});
  try {
    ir::interpret(*shared.kernel, buffers, scalars);
  } catch (const Error& error) {
    return fake.problem(fmt::format("{}: {}", shared.kernel->name, error.what()));
  }
  Remembered run{before, {}};
  for (std::size_t b = 0; b < buffers.size(); ++b)
    run.after.emplace_back(static_cast<const char*>(buffers[b]), sizes[b]);
  shared.remembered.push_back(std::move(run));
  if (shared.remembered.size() > kMostRemembered) shared.remembered.pop_front();
}

void run_launch(FakeDriver& fake, Shared& shared, std::size_t number, std::span<void* const> pointers,
                std::span<const std::uint64_t> bits) {
  const codegen::cuda::CudaSource& source = shared.source;
  const std::string& entry = source.launches[number].entry;
  std::vector<void*> given(pointers.begin(), pointers.end());
  if (number > 0) {
    const bool follows = shared.under_way.size() == number && shared.under_way.back() == given;
    if (!follows) return fake.problem(fmt::format("{} is launched without the launches before it", entry));
  } else {
    shared.under_way.clear();
  }
  std::size_t next = static_cast<std::size_t>(source.buffers);
  void* work = source.work_bytes > 0 ? pointers[next++] : nullptr;
  if (source.counter_bytes > 0) {
    const auto* counters = static_cast<const std::byte*>(pointers[next]);
    if (std::any_of(counters, counters + source.counter_bytes, [](std::byte b) { return b != std::byte{0}; })) {
      fake.problem(fmt::format("{}: its counters are not zero", entry));
    }
  }
  if (work) std::memset(work, 0xff, static_cast<std::size_t>(source.work_bytes));
  shared.under_way.push_back(std::move(given));
  if (number + 1 < source.launches.size()) return;
  shared.under_way.clear();
  compute(fake, shared, pointers.first(static_cast<std::size_t>(source.buffers)), bits);
}

}  // namespace

codegen::cuda::CudaSource described(const ir::Kernel& kernel, int launches, std::int64_t work_bytes,
                                    std::int64_t counter_bytes) {
  codegen::cuda::CudaSource source;
  for (int i = 0; i < launches; ++i) {
    source.launches.push_back(
        {launches == 1 ? kernel.name : fmt::format("{}_{}", kernel.name, i), {4, 1, 1}, {256, 1, 1}});
  }
  for (const ir::KernelParam& param : kernel.params) {
    if (param.memory >= 0) {
      ++source.buffers;
    } else {
      source.scalars.push_back(kernel.values[static_cast<std::size_t>(param.scalar)]);
    }
  }
  source.work_bytes = work_bytes;
  source.counter_bytes = counter_bytes;
  return source;
}

void define_kernel(FakeDriver& fake, std::shared_ptr<const ir::Kernel> kernel,
                   const codegen::cuda::CudaSource& source) {
  const auto shared = std::make_shared<Shared>(Shared{kernel, source, {}, {}});
  define_kernel(fake, kernel, source, [&fake, shared](std::size_t launch, auto pointers, auto scalars) {
    run_launch(fake, *shared, launch, pointers, scalars);
  });
}

void define_kernel(FakeDriver& fake, std::shared_ptr<const ir::Kernel> kernel, const codegen::cuda::CudaSource& source,
                   const FakeWork& work) {
  FakeKernel entry;
  for (const ir::KernelParam& param : kernel->params) {
    if (param.memory >= 0)
      entry.pointers.push_back(pointer_of(kernel->memories[static_cast<std::size_t>(param.memory)]));
  }
  for (const DType dtype : source.scalars) entry.scalar_bytes.push_back(static_cast<int>(bytes(dtype)));
  if (source.work_bytes > 0) entry.pointers.push_back({source.work_bytes, 64, true}), ++entry.pointers_after_scalars;
  if (source.counter_bytes > 0)
    entry.pointers.push_back({source.counter_bytes, 4, true}), ++entry.pointers_after_scalars;
  for (std::size_t number = 0; number < source.launches.size(); ++number) {
    const codegen::cuda::CudaLaunch& launch = source.launches[number];
    const auto extents = [](const std::array<std::int64_t, 3>& e) {
      return Extents{static_cast<unsigned>(e[0]), static_cast<unsigned>(e[1]), static_cast<unsigned>(e[2])};
    };
    entry.grid = extents(launch.grid);
    entry.block = extents(launch.block);
    entry.shared_bytes = launch.shared_bytes;
    entry.run = [work, number](auto pointers, auto scalars) { work(number, pointers, scalars); };
    fake.define(launch.entry, entry);
  }
}

}  // namespace fusejit::test
