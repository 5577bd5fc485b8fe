// Sections that look at the machine and repeat the conformance tests on it.
#include <fmt/format.h>

#include <cstring>

#include "ir/base/number.h"
#include "runtime/arrays.h"
#include "runtime/cudnn/library/library.h"
#include "runtime/session.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/graphs_of_bytes.h"
#include "tests/gpu_check/sections.h"
#include "tests/random/generate/graph_generator.h"

namespace fusejit::gpu_check {
namespace {

std::vector<Buffer> interpreted(const ir::Graph& graph, const std::vector<Buffer>& arguments) {
  std::vector<ir::Array> inputs;
  for (const Buffer& argument : arguments) inputs.push_back(runtime::to_array(argument));
  std::vector<Buffer> results;
  for (const ir::Array& array : ir::interpret(graph, inputs)) results.push_back(runtime::to_buffer(array));
  return results;
}

// What the plan's kernels say, one by one, on the CPU.
std::vector<Buffer> kernels_interpreted(const ir::Graph& graph, const std::vector<Buffer>& arguments,
                                        const Target& target, scheduler::Rules rules) {
  runtime::Session session(
      {.target = target, .engine = runtime::Engine::kernel_interpreter, .rules = rules, .threads = 1});
  return session.run(graph, arguments);
}

// Values that are stored on the way are rounded there, which fused kernels do not.
testing::Tolerance tolerance_of(const ir::Graph& graph) {
  testing::Tolerance widest;
  const auto widen = [&](DType dtype) {
    const double step = dtype == DType::f16 ? 4e-3 : dtype == DType::bf16 ? 3e-2 : 2e-5;
    widest.relative = std::max(widest.relative, step);
    widest.absolute = std::max(widest.absolute, step);
  };
  for (const ir::Value& parameter : graph.parameters()) widen(parameter.type().dtype);
  for (const ir::Value& result : graph.results()) widen(result.type().dtype);
  return widest;
}

struct Way {
  scheduler::Rules rules;
  CudnnMode cudnn;
};

struct Tally {
  int graphs = 0, runs = 0, equal_bits = 0;
};

// One graph in one way: three runs (the last ones as a CUDA graph) that must have the same bits, near the interpreter.
// "" or what is wrong.
std::string disagreement(Machine& machine, const ir::Graph& graph, const std::vector<Buffer>& arguments,
                         const std::vector<Buffer>& want, const testing::Tolerance& tolerance, const Way& way,
                         Tally& tally) {
  const Planned planned = machine.plan(graph, {.rules = way.rules, .cudnn = way.cudnn});
  const std::vector<Buffer> there = machine.upload(arguments);
  std::vector<Buffer> first;
  for (int run = 0; run < 3; ++run) {
    const std::vector<Buffer> got = machine.download(machine.run(planned, there));
    if (run == 0) first = got;
    if (!testing::same_bits(got, first)) return fmt::format("other bits in run {} than in the first", run + 1);
  }
  ++tally.runs;
  if (const double e = testing::excess(first, want, tolerance); e > 0) {
    return fmt::format("off by {:.3g} beyond the tolerance of {:.1g}", e, tolerance.relative);
  }
  if (way.cudnn == CudnnMode::off) {
    const auto meant = kernels_interpreted(graph, arguments, machine.target(CudnnMode::off), way.rules);
    tally.equal_bits += testing::same_bits(first, meant);
  }
  return "";
}

void check_graph(Machine& machine, Report& report, const std::string& name, const ir::Graph& graph,
                 const std::vector<Buffer>& arguments, const testing::Tolerance& tolerance, Tally& tally) {
  const std::vector<Buffer> want = interpreted(graph, arguments);
  ++tally.graphs;
  using scheduler::Rules;
  for (const Way& way : {Way{Rules::all, CudnnMode::off},
                         {Rules::none, CudnnMode::off},
                         {Rules::all, CudnnMode::precompiled},
                         {Rules::all, CudnnMode::compiled}}) {
    if (way.cudnn != CudnnMode::off && !machine.options().cudnn) continue;
    std::string wrong;
    try {
      wrong = disagreement(machine, graph, arguments, want, tolerance, way, tally);
    } catch (const Error& error) {
      wrong = error.what();
    }
    report.check(fmt::format("{} rules={}{}", name, scheduler::name(way.rules),
                             way.cudnn == CudnnMode::off ? "" : fmt::format(" cudnn={}", static_cast<int>(way.cudnn))),
                 wrong);
    if (machine.device().context().lost()) throw DeviceError("the device is lost: " + wrong);
  }
}

void say_tally(Report& report, const Tally& tally) {
  report.say(
      fmt::format("{} graphs, {} plans; without cuDNN {} of them have the bits of the kernel interpreter (the "
                  "others hold exp, log, tanh and the like)",
                  tally.graphs, tally.runs, tally.equal_bits));
}

}  // namespace

void describe_machine(Machine& machine, Report& report) {
  const codegen::cuda::NvrtcState& nvrtc = codegen::cuda::nvrtc();
  report.row(
      {{"what", "NVRTC"},
       {"found", nvrtc.available ? fmt::format("{}.{} {}", nvrtc.major, nvrtc.minor, nvrtc.library) : nvrtc.why_not}});
  const auto cudnn = runtime::cudnn::Library::load();
  report.row({{"what", "cuDNN"},
              {"found", cudnn->available() ? cudnn->version_text() + " " + cudnn->path() : cudnn->why_not()}});
  if (!machine.options().open) {
    const runtime::cuda::DriverState& driver = runtime::cuda::installed_driver();
    report.row({{"what", "driver"},
                {"found", driver.driver ? fmt::format("for CUDA {} {}",
                                                      runtime::cuda::cuda_version_text(driver.version), driver.path)
                                        : driver.why_not}});
  }
  runtime::cuda::CudaDevice& device = machine.device();
  const runtime::cuda::DeviceProperties& p = device.context().properties();
  report.row({{"what", device.device().str()},
              {"found", fmt::format("{}, sm_{}, {} multiprocessors, {}, L2 {}, {:.0f} GB/s", p.name,
                                    p.compute_capability, p.multiprocessors, ir::bytes_text(p.memory_bytes),
                                    ir::bytes_text(p.l2_bytes), p.memory_gigabytes_per_second)}});
  Buffer sent = Buffer::allocate({DType::i32, {1 << 20}, Layout::standard});
  for (std::int64_t i = 0; i < 1 << 20; ++i) static_cast<std::int32_t*>(sent.data())[i] = static_cast<int>(i * 7);
  const Buffer back = device.download(device.upload(sent));
  report.check("4 MiB to the device and back",
               std::memcmp(sent.data(), back.data(), static_cast<std::size_t>(sent.bytes())) == 0
                   ? ""
                   : "other bytes came back");
}

void check_conformance(Machine& machine, Report& report) {
  const Clock clock(machine);
  machine.device();
  Tally tally;
  int number = 0;
  for (const testing::GraphCase& c : testing::every_graph_case()) {
    if (machine.toy() && number++ % 6 != 0) continue;
    if (clock.over()) throw Skipped("out of time; graphs after this one were not run: " + std::string(c.name));
    const ir::Graph graph = ir::parse_graph(c.text);
    check_graph(machine, report, c.name, graph, testing::random_arguments(graph, 1), tolerance_of(graph), tally);
  }
  say_tally(report, tally);
}

void check_random_graphs(Machine& machine, Report& report) {
  const Clock clock(machine);
  machine.device();
  Tally tally;
  const std::uint64_t count = machine.toy() ? 1 : 60;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    for (std::uint64_t seed = 1; seed <= count && !clock.over(); ++seed) {
      testing::GraphOptions options;
      options.dtype = dtype;
      const ir::Graph graph = testing::random_graph(seed, options);
      std::vector<Buffer> arguments;
      for (const ir::Array& array : testing::graph_arguments(graph, seed)) {
        arguments.push_back(runtime::to_buffer(array));
      }
      testing::Tolerance tolerance = tolerance_of(graph);
      // Intermediate values may be larger than results.
      tolerance.absolute *= 10;
      check_graph(machine, report, fmt::format("{} seed {}", name(dtype), seed), graph, arguments, tolerance, tally);
    }
  }
  say_tally(report, tally);
}

}  // namespace fusejit::gpu_check
