// What goes wrong on a device is said in a sentence, and what can go on does: no memory, machine code that does not
// fit, and at the end, because it costs the section its device, a kernel that touches what is not there.
#include <fmt/format.h>

#include <functional>

#include "runtime/session.h"
#include "tests/gpu_check/sections.h"
#include "tests/support/step_arguments.h"

namespace fusejit::gpu_check {
namespace {

const char* const kGraph = "graph @g(%x: f32[1000]) { %0 = neg(%x) : f32[1000] return %0 }";

std::string wrong_numbers(const Buffer& got, const Buffer& argument) {
  const auto *negative = static_cast<const float*>(got.data()), *x = static_cast<const float*>(argument.data());
  for (int i = 0; i < 1000; ++i) {
    if (negative[i] != -x[i]) return fmt::format("{} is the negative of {}", negative[i], x[i]);
  }
  return "";
}

// "" if a plan runs as it must, else what is wrong.
std::string works(Machine& machine) {
  const ir::Graph graph = ir::parse_graph(kGraph);
  const std::vector<Buffer> arguments = test::drawn_arguments(graph, 3);
  const Planned planned = machine.plan(graph);
  const Buffer got = machine.download(machine.run(planned, machine.upload(arguments)))[0];
  return wrong_numbers(got, arguments[0]);
}

// `wrong` must throw a DeviceError that says `part`; then `after`.
void expect_error(Report& report, const std::string& what, const std::string& part, const std::function<void()>& wrong,
                  const std::function<std::string()>& after) {
  try {
    wrong();
    return report.check(what, "nothing was thrown");
  } catch (const DeviceError& error) {
    const std::string said = error.what();
    report.say(what + ": " + said.substr(0, said.find('\n')));
    if (said.find(part) == std::string::npos) return report.check(what, "it does not say " + part);
  }
  report.check(what, after());
}

// Machine code of another generation than the device's.
std::string foreign_cubin(int capability) {
  const ir::Kernel kernel = ir::parse_kernel("kernel @k(%x: f32[4] write) on cuda { phase { } }");
  for (const int other : codegen::cuda::nvrtc().architectures) {
    if (other / 10 != capability / 10) {
      return codegen::cuda::compile(codegen::cuda::program(std::vector{codegen::cuda::emit(kernel)}), other).cubin;
    }
  }
  return "";
}

void check_lost_device(Machine& machine, Report& report) {
  runtime::cuda::CudaDevice& device = machine.device();
  runtime::cuda::DeviceContext& context = device.context();
  const Planned planned = machine.plan(ir::parse_graph(kGraph));
  runtime::cuda::CudaKernels kernels(machine.shared_device(), machine.options().compile);
  const auto loaded = kernels.get({&planned.plan->steps[0].kernel, 1}, 1)[0];
  expect_error(
      report, "a kernel that writes to no memory", "the CPU still works",
      [&] {
        std::vector<runtime::cuda::CuPointer> nowhere(16, 256);
        std::vector<void*> arguments;
        for (auto& address : nowhere) arguments.push_back(&address);
        const runtime::cuda::Launch& l = loaded->launches[0];
        context.call(context.driver().launch_kernel, l.function, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y,
                     l.block_z, l.shared_bytes, device.stream(), arguments.data(), nullptr);
        device.synchronize();
      },
      [&] { return context.lost() ? "" : "the device does not count as lost"; });
  expect_error(
      report, "a call after that", "was lost by an earlier error", [&] { device.memory().allocate(1 << 20); },
      [] { return ""; });
  const ir::Graph graph = ir::parse_graph(kGraph);
  const std::vector<Buffer> arguments = test::drawn_arguments(graph, 3);
  runtime::Session cpu({.engine = runtime::Engine::graph_interpreter, .threads = 1});
  report.check("the CPU works in the same process", wrong_numbers(cpu.run(graph, arguments)[0], arguments[0]));
}

}  // namespace

void check_errors(Machine& machine, Report& report) {
  runtime::cuda::CudaDevice& device = machine.device();
  const auto still_works = [&] { return works(machine); };
  report.check("a plan runs", works(machine));
  expect_error(
      report, "more memory than there is", "out of memory",
      [&] { device.memory().allocate(2 * device.context().properties().memory_bytes); }, still_works);
  device.memory().set_limit(64 << 20);
  expect_error(
      report, "more memory than the limit", "the limit set is 64.0 MiB", [&] { device.memory().allocate(65 << 20); },
      still_works);
  device.memory().set_limit(0);
  expect_error(
      report, "a module that is none", "cuModuleLoadData: CUDA_ERROR_",
      [&] { const runtime::cuda::Module module(device.context(), "no machine code"); }, still_works);
  if (machine.toy()) return report.say("nothing is really lost on a driver without a device");
  const int capability = device.context().properties().compute_capability;
  if (const std::string cubin = foreign_cubin(capability); !cubin.empty()) {
    expect_error(
        report, "machine code of another architecture", "cuModuleLoadData: CUDA_ERROR_",
        [&] { const runtime::cuda::Module module(device.context(), cubin); }, still_works);
  }
  check_lost_device(machine, report);
}

}  // namespace fusejit::gpu_check
