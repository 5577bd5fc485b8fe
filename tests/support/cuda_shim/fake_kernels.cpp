#include "tests/support/cuda_shim/fake_kernels.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusejit::test {

void define_kernel(FakeDriver& fake, const std::shared_ptr<const ir::Kernel>& kernel, Shim& shim, std::size_t number,
                   ir::TaskOrder order) {
  const codegen::cuda::CudaSource& source = shim.sources()[number];
  const auto memory = [kernel, &source](std::span<void* const> pointers) {
    std::vector<ShimMemory> list;
    for (const ir::KernelParam& p : kernel->params) {
      if (p.memory < 0) continue;
      const ir::Memory& m = kernel->memories[static_cast<std::size_t>(p.memory)];
      list.push_back({pointers[list.size()], bytes(m.dtype, m.elements()), m.kind != ir::MemKind::write});
    }
    if (source.work_bytes > 0) list.push_back({pointers[list.size()], source.work_bytes, false});
    if (source.counter_bytes > 0) list.push_back({pointers[list.size()], source.counter_bytes, true});
    return list;
  };
  const auto run = [&fake, &shim, &source, number, order, memory](std::size_t launch, std::span<void* const> pointers,
                                                                  std::span<const std::uint64_t> scalars) {
    if (launch == 0) shim.begin(memory(pointers));
    const std::string error = shim.launch(number, launch, pointers, scalars, order);
    if (!error.empty()) return fake.problem(fmt::format("{}: {}", source.launches[launch].entry, error));
    if (source.counter_bytes == 0 || launch + 1 < source.launches.size()) return;
    const auto* counters = static_cast<const std::byte*>(pointers.back());
    if (std::any_of(counters, counters + source.counter_bytes, [](std::byte b) { return b != std::byte{0}; })) {
      fake.problem(fmt::format("{} leaves counters that are not zero", source.launches[launch].entry));
    }
  };
  define_kernel(fake, kernel, source, run);
}

}  // namespace fusejit::test
