// Engines that cuDNN compiles at run time, in a session: the plan that is at hand, the better one that takes its place,
// and what each takes.
#include <fmt/format.h>

#include "runtime/session.h"
#include "tests/gpu_check/cudnn_run.h"
#include "tests/gpu_check/sections.h"
#include "tests/support/step_arguments.h"

namespace fusejit::gpu_check {
namespace {

// A residual block for inference: batch norms with known statistics, the second with a side input.
ir::Graph block(DType dtype) {
  const std::string image = Type{dtype, {32, 64, 56, 56}, Layout::nhwc}.str();
  return ir::parse_graph(fmt::format(
      R"(graph @block(%x: {0}, %w1: {1}[64,64,3,3]:nhwc, %w2: {1}[64,64,3,3]:nhwc, %mean: f32[64], %var: f32[64],
      %gamma: f32[64], %beta: f32[64]) {{
  %0 = conv2d(%x, %w1) {{padding=[1,1,1,1]}} : {0}
  %1 = batch_norm(%0, %mean, %var, %gamma, %beta) : {0}
  %2 = silu(%1) : {0}
  %3 = conv2d(%2, %w2) {{padding=[1,1,1,1]}} : {0}
  %4 = batch_norm(%3, %mean, %var, %gamma, %beta) : {0}
  %5 = add(%4, %x) : {0}
  %6 = relu(%5) : {0}
  return %6
}})",
      image, name(dtype)));
}

void check_block(Machine& machine, Report& report, DType dtype, int timed_engines) {
  const std::string what = fmt::format("{}{}", name(dtype), timed_engines > 1 ? ", engines timed" : "");
  const ir::Graph graph = block(dtype);
  runtime::CudaBackendOptions backend;
  backend.compile = machine.options().compile;
  backend.timed_engines = timed_engines;
  runtime::SessionOptions options;
  options.target = machine.target(CudnnMode::compiled);
  options.results_on_device = true, options.compile_in_background = true;
  const auto first_backend = std::make_shared<runtime::CudaBackend>(machine.shared_device(), backend);
  options.backend = first_backend;
  runtime::Session session(options);
  const std::vector<Buffer> arguments = machine.upload(test::drawn_arguments(graph, 5));
  const Buffer first = machine.download(session.run(graph, arguments))[0];
  Json row = {{"block", what}, {"steps at first", session.plan(graph)->steps.size()}};
  row["ms at first"] = machine.milliseconds([&] { session.run(graph, arguments); });
  const Clock clock(machine);
  session.finish_background();
  row["s of compiling left"] = clock.seconds();
  const runtime::SessionStatistics statistics = session.statistics();
  report.check(what + ": the better plan takes its place",
               statistics.background_plans == 1 ? "" : "it does not: " + statistics.why_no_background_plan);
  row["steps then"] = session.plan(graph)->steps.size();
  row["ms then"] = machine.milliseconds([&] { session.run(graph, arguments); });
  const double difference = test::largest_difference(machine.download(session.run(graph, arguments))[0], first);
  report.check(what + ": both plans agree",
               difference <= (dtype == DType::f32 ? 1e-5 : 1e-2) ? "" : fmt::format("off by {:.2g}", difference));
  row["difference"] = difference;
  // Another backend takes the engines over.
  const auto again = std::make_shared<runtime::CudaBackend>(machine.shared_device(), backend);
  for (const std::string& text : first_backend->engine_texts()) again->add_engine_text(text);
  options.backend = again, options.compile_in_background = false;
  const Clock reload(machine);
  runtime::Session second(options);
  const double other = test::largest_difference(machine.download(second.run(graph, arguments))[0],
                                                machine.download(session.run(graph, arguments))[0]);
  row["s with engines kept"] = reload.seconds();
  report.check(what + ": kept engines give the same bits", other == 0 ? "" : fmt::format("off by {:.2g}", other));
  report.row(row);
  for (const std::string& refusal : again->refusals()) report.say("done otherwise: " + refusal);
}

}  // namespace

void check_background(Machine& machine, Report& report) {
  CudnnOnDevice on_device(machine);  // or it is skipped
  for (const DType dtype : {DType::f16, DType::f32}) {
    for (const int timed_engines : {1, 4}) check_block(machine, report, dtype, timed_engines);
  }
}

}  // namespace fusejit::gpu_check
