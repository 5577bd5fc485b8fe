// Generated kernels on the device against the kernel interpreter. The CUDA text on the CPU equals the interpreter bit
// for bit (tests/unit/cuda), so this compares a GPU with the CPU shim without needing a compiler here.
#include <fmt/format.h>

#include <random>

#include "tests/gpu_check/kernel_run.h"
#include "tests/gpu_check/sections.h"
#include "tests/support/op_kernels.h"
#include "tests/support/random_kernel.h"

namespace fusejit::gpu_check {

using test::Operands;
using test::Values;

Operands run_on_device(Machine& machine, const runtime::cuda::LoadedKernel& loaded, const Operands& given) {
  runtime::cuda::CudaDevice& device = machine.device();
  runtime::cuda::DeviceContext& context = device.context();
  std::vector<runtime::cuda::DeviceBlock> blocks;
  std::vector<runtime::cuda::CuPointer> addresses;
  const auto add = [&](std::int64_t bytes) {
    addresses.push_back(blocks.emplace_back(device.memory(), std::max<std::int64_t>(bytes, 1)).get());
  };
  for (const test::Memory& buffer : given.buffers) {
    add(buffer.size());
    device.staging().upload(addresses.back(), buffer.data(), buffer.size());
  }
  if (loaded.work_bytes > 0) add(loaded.work_bytes);
  if (loaded.counter_bytes > 0) {
    add(loaded.counter_bytes);
    context.call(context.driver().fill_bytes, addresses.back(), 0u, loaded.counter_bytes, device.stream());
  }
  std::vector<std::uint64_t> scalars;
  for (const ir::Scalar& scalar : given.scalars) scalars.push_back(scalar.bits);
  std::vector<void*> arguments;
  const std::size_t buffers = given.buffers.size();
  for (std::size_t i = 0; i < buffers; ++i) arguments.push_back(&addresses[i]);
  for (std::uint64_t& scalar : scalars) arguments.push_back(&scalar);
  for (std::size_t i = buffers; i < addresses.size(); ++i) arguments.push_back(&addresses[i]);
  for (const runtime::cuda::Launch& l : loaded.launches) {
    context.call(context.driver().launch_kernel, l.function, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y,
                 l.block_z, l.shared_bytes, device.stream(), arguments.data(), nullptr);
  }
  Operands left;
  for (std::size_t i = 0; i < buffers; ++i) {
    test::Memory& buffer = left.buffers.emplace_back(given.buffers[i].size());
    device.staging().download(buffer.data(), addresses[i], buffer.size());
  }
  return left;
}

KernelCase case_of(const EmbeddedKernel& embedded) {
  ir::Kernel kernel = ir::parse_kernel(embedded.text);
  const bool softmax = embedded.name.find("softmax") != std::string_view::npos;
  std::vector<double> ulps;
  if (softmax) ulps.assign(kernel.params.size(), 32);  // exp is CUDA's own; its error is carried through a sum
  return {std::string(embedded.name), std::make_shared<const ir::Kernel>(std::move(kernel)), ulps, !softmax, true};
}

std::string disagreement(Machine& machine, const runtime::cuda::LoadedKernel& loaded, const KernelCase& kernel) {
  for (const Values values : {Values::ordinary, Values::special}) {
    if (values == Values::special && !kernel.special) continue;
    const auto draw = [&] {
      return kernel.gathers ? test::cuda_operands(*kernel.kernel, values, 5)
                            : test::random_operands(*kernel.kernel, values, 5);
    };
    Operands expected = draw();
    test::run_interpreted(*kernel.kernel, expected);
    const Operands actual = run_on_device(machine, loaded, draw());
    const std::string wrong = test::difference_in_ulp(
        *kernel.kernel, expected, actual, [&](std::size_t i) { return i < kernel.ulps.size() ? kernel.ulps[i] : 0; });
    if (!wrong.empty()) return wrong;
  }
  return "";
}

namespace {

std::vector<KernelCase> cases(bool toy) {
  std::vector<KernelCase> list;
  for (const EmbeddedKernel& embedded : embedded_kernels()) {
    list.push_back(case_of(embedded));
  }
  for (test::OpKernel& op : test::op_kernels()) {
    list.push_back({fmt::format("every op, part {}", list.size()),
                    std::make_shared<const ir::Kernel>(std::move(op.kernel)), std::move(op.ulps), true, false});
    if (toy) break;
  }
  std::mt19937 random(77);
  for (int accepted = 0; accepted < (toy ? 2 : 60);) {
    const ir::Kernel kernel = ir::simplify(ir::parse_kernel(test::random_kernel(random, Isa::cuda)));
    list.push_back(
        {fmt::format("random kernel {}", ++accepted), std::make_shared<const ir::Kernel>(kernel), {}, false, false});
  }
  return list;
}

}  // namespace

void check_kernels(Machine& machine, Report& report) {
  const Clock clock(machine);
  runtime::cuda::CudaKernels kernels(machine.shared_device(), machine.options().compile);
  int done = 0;
  for (const KernelCase& c : cases(machine.toy())) {
    if (clock.over()) throw Skipped("out of time; kernels from this one on were not run: " + c.name);
    std::string wrong;
    try {
      wrong = disagreement(machine, *kernels.get({&c.kernel, 1}, 1)[0], c);
    } catch (const Error& error) {
      wrong = error.what();
    }
    report.check(c.name, wrong);
    if (machine.device().context().lost()) throw DeviceError("the device is lost: " + wrong);
    ++done;
  }
  report.say(
      fmt::format("{} kernels, compiled here in {:.1f} s", done, kernels.statistics().compile_milliseconds / 1e3));
}

}  // namespace fusejit::gpu_check
