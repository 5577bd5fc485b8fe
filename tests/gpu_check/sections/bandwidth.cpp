// Element-wise and reduce kernels against copying the same number of bytes with the driver.
#include <fmt/format.h>

#include "tests/conformance/compare.h"
#include "tests/gpu_check/sections.h"

namespace fusejit::gpu_check {
namespace {

// {D} is the dtype, {N} a number of images, so that %x has about as many bytes as asked for.
struct Workload {
  const char* name;
  std::int64_t elements;  // of %x, per image
  const char* text;
};
constexpr Workload kWorkloads[] = {
    {"neg", 200704, "graph @g(%x: {D}[{N},200704]) { %0 = neg(%x) : {D}[{N},200704] return %0 }"},
    {"add, relu", 200704,
     "graph @g(%x: {D}[{N},200704], %y: {D}[{N},200704]) { %0 = add(%x, %y) : {D}[{N},200704] %1 = relu(%0) : "
     "{D}[{N},200704] return %1 }"},
    {"gelu", 200704, "graph @g(%x: {D}[{N},200704]) { %0 = gelu(%x) : {D}[{N},200704] return %0 }"},
    {"scale, shift, add, relu nhwc", 200704,
     "graph @g(%x: {D}[{N},64,56,56]:nhwc, %s: {D}[64], %b: {D}[64], %z: {D}[{N},64,56,56]:nhwc) { %1 = reshape(%s) "
     "{shape=[1,64,1,1]} : {D}[1,64,1,1]:nhwc %2 = mul(%x, %1) : {D}[{N},64,56,56]:nhwc %3 = bias_add(%2, %b) : "
     "{D}[{N},64,56,56]:nhwc %4 = add(%3, %z) : {D}[{N},64,56,56]:nhwc %5 = relu(%4) : {D}[{N},64,56,56]:nhwc return "
     "%5 }"},
    {"bias, relu nchw", 200704,
     "graph @g(%x: {D}[{N},64,56,56], %b: {D}[64]) { %3 = bias_add(%x, %b) : {D}[{N},64,56,56] %5 = relu(%3) : "
     "{D}[{N},64,56,56] return %5 }"},
    {"sum of all", 200704, "graph @g(%x: {D}[{N},200704]) { %0 = sum(%x) {dim=[0,1]} : {D}[] return %0 }"},
    {"sum of rows", 200704, "graph @g(%x: {D}[{N},200,1003]) { %0 = sum(%x) {dim=[2]} : {D}[{N},200] return %0 }"},
    {"channel sums nhwc", 200704,
     "graph @g(%x: {D}[{N},64,56,56]:nhwc) { %0 = sum(%x) {dim=[0,2,3]} : {D}[64] return %0 }"},
    {"channel sums nchw", 200704, "graph @g(%x: {D}[{N},64,56,56]) { %0 = sum(%x) {dim=[0,2,3]} : {D}[64] return %0 }"},
    {"softmax of rows", 200704,
     "graph @g(%x: {D}[{N},196,1024]) { %0 = softmax(%x) {dim=2} : {D}[{N},196,1024] return %0 }"},
    {"batch norm training, relu nhwc", 200704,
     "graph @g(%x: {D}[{N},64,56,56]:nhwc, %w: {D}[64], %b: {D}[64]) { %0 = batch_norm_train(%x, %w, %b) : "
     "{D}[{N},64,56,56]:nhwc %1 = relu(%0) : {D}[{N},64,56,56]:nhwc return %1 }"},
    {"max pool 2x2 nhwc", 200704,
     "graph @g(%x: {D}[{N},64,56,56]:nhwc) { %0 = max_pool2d(%x) {kernel_size=[2,2]} : {D}[{N},64,28,28]:nhwc return "
     "%0 }"},
    {"transpose", 200704,
     "graph @g(%x: {D}[{N},64,3136]) { %0 = permute(%x) {dims=[0,2,1]} : {D}[{N},3136,64] %1 = neg(%0) : "
     "{D}[{N},3136,64] return %1 }"},
};

std::string filled(std::string text, const std::string& mark, const std::string& value) {
  for (std::size_t at; (at = text.find(mark)) != std::string::npos;) text.replace(at, mark.size(), value);
  return text;
}

double copy_gigabytes_per_second(Machine& machine, std::int64_t bytes) {
  runtime::cuda::CudaDevice& device = machine.device();
  const Type type{DType::boolean, {bytes}, Layout::standard};
  const Buffer from = device.allocate(type), to = device.allocate(type);
  const double ms = machine.milliseconds([&] {
    device.context().call(device.context().driver().copy_on_device, to.address(), from.address(), bytes,
                          device.stream());
  });
  return 2e-6 * static_cast<double>(bytes) / ms;
}

}  // namespace

void time_bandwidth(Machine& machine, Report& report) {
  const Clock clock(machine);
  const std::vector<std::int64_t> sizes =
      machine.toy() ? std::vector<std::int64_t>{200704 * 4} : std::vector<std::int64_t>{64 << 20, 256 << 20};
  int below = 0, measured = 0;
  for (const std::int64_t bytes : sizes) {
    const double copy = copy_gigabytes_per_second(machine, bytes);
    report.row({{"kernel", "copy by the driver"}, {"MiB", bytes >> 20}, {"GB/s", copy}});
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const Workload& workload : kWorkloads) {
        if (machine.toy() && dtype != DType::f16) continue;
        if (clock.over()) throw Skipped("out of time");
        const std::int64_t images = std::max<std::int64_t>(1, bytes / (workload.elements * fusejit::bytes(dtype)));
        const std::string text =
            filled(filled(workload.text, "{D}", std::string(name(dtype))), "{N}", std::to_string(images));
        try {
          const Planned planned = machine.plan(ir::parse_graph(text));
          std::vector<Buffer> arguments;
          for (const ir::Value& parameter : planned.graph.parameters()) {
            arguments.push_back(machine.device().allocate(parameter.type()));
            machine.device().context().call(machine.device().context().driver().fill_bytes, arguments.back().address(),
                                            0u, arguments.back().bytes(), machine.device().stream());
          }
          const double ms = machine.milliseconds([&] { machine.run(planned, arguments); });
          const auto ledger = static_cast<double>(planned.plan->ledger_bytes());
          const double rate = 1e-6 * ledger / ms;
          report.row({{"kernel", workload.name},
                      {"MiB", bytes >> 20},
                      {"dtype", std::string(name(dtype))},
                      {"ms", ms},
                      {"GB/s", rate},
                      {"% of copy", 100 * rate / copy},
                      {"launches", planned.executor->statistics().kernel_launches},
                      {"x bound", ledger / static_cast<double>(planned.plan->bound_bytes)}});
          ++measured, below += rate < 0.9 * copy;
        } catch (const Error& error) {
          report.check(fmt::format("{} {} {} MiB", workload.name, name(dtype), bytes >> 20), error.what());
        }
      }
    }
  }
  report.say(
      fmt::format("GB/s count what the plan's kernels touch; {} of {} reach less than 90 % of copying. \"x bound\" "
                  "is what they touch over what must be touched.",
                  below, measured));
}

}  // namespace fusejit::gpu_check
