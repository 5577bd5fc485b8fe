// run: a graph file on arrays (ops.md §13).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "frontend/io/array_file.h"
#include "frontend/io/files.h"
#include "ir/base/check.h"
#include "ir/interp.h"
#include "runtime/backends.h"
#include "runtime/cpu/memory.h"
#include "runtime/cudnn/step.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "tools/fusejit-dump/command.h"
#include "tools/fusejit-dump/measure/arrays.h"
#include "tools/fusejit-dump/planned.h"

namespace fusejit::tools {
namespace {

void check_device(const std::string& device) {
  if (device == "cpu") return;
  const bool cuda = device.starts_with("cuda:") && device.size() > 5 &&
                    device.find_first_not_of("0123456789", 5) == std::string::npos;
  if (!cuda) throw UsageError{fmt::format("--device {}: a device is cpu or cuda:0", device)};
  if (const std::string why = runtime::why_unavailable(Device(device)); !why.empty()) throw DeviceError(why);
}

// A graph may ask for far more than the machine has; that is an answer, not a killed process.
void check_memory(const ir::Graph& graph) {
  const auto have = static_cast<double>(runtime::machine_memory());
  double arguments = 0;
  for (int i = 0; i < graph.value_count(); ++i) {
    const Type& type = graph.value(i).type();
    if (i < static_cast<int>(graph.parameters().size())) arguments += static_cast<double>(type.bytes());
    if (static_cast<double>(type.bytes()) + arguments > have)
      throw DeviceError(fmt::format("cpu: out of memory: a value of type {} needs {} bytes", type.str(), type.bytes()));
  }
}

runtime::Engine engine_named(const std::string& name) {
  if (name == "compiled") return runtime::Engine::compiled;
  return name == "graph" ? runtime::Engine::graph_interpreter : runtime::Engine::kernel_interpreter;
}

std::vector<ir::Array> evaluate(const RunOptions& options, const io::GraphFile& file, const ScheduleFile& schedules,
                                const std::vector<ir::Array>& arguments) {
  if (options.engine == "graph") return ir::interpret(file.graph, arguments);
  runtime::SessionOptions session_options;
  session_options.engine = engine_named(options.engine);
  session_options.rules = options.rules;
  if (!options.target.empty()) session_options.target = parse_target(options.target);
  session_options.log = [](const std::string& line) { std::fprintf(stderr, "fusejit-dump: %s\n", line.c_str()); };
  if (options.device != "cpu") session_options = runtime::on_device(session_options, Device(options.device));
  session_options.reschedule = reschedule_of(
      schedules, file.graph, {session_options.target, session_options.rules, {}, runtime::cudnn::supports_step});
  runtime::Session session(session_options);
  std::vector<runtime::Buffer> buffers;
  for (const ir::Array& argument : arguments) buffers.push_back(to_buffer(argument));
  std::vector<ir::Array> results;
  for (const runtime::Buffer& result : session.run(file.graph, buffers)) results.push_back(to_array(result.on_host()));
  return results;
}

}  // namespace

int run_graph(const RunOptions& options, Invocation& invocation) {
  check_device(options.device);
  if (options.has_grad && options.grad.empty()) throw UsageError{"--grad: a name is empty"};
  const io::GraphFile file = open_source(invocation, options.graph, options.grad);
  check_memory(file.graph);
  if (!options.schedule.empty() && options.engine == "graph")
    throw UsageError{"--schedule: the engine graph interprets ops, without schedules"};
  const ScheduleFile schedules = read_schedules(invocation, options.schedule);
  if (!options.outputs.empty()) io::check_writable(options.outputs);
  const std::vector<io::NamedArray> inputs =
      options.inputs.empty() ? std::vector<io::NamedArray>() : io::read_arguments(file, options.inputs);
  const std::vector<ir::Array> arguments =
      io::bind_arguments(file, inputs, options.inputs.empty() ? "no --inputs" : options.inputs);
  std::vector<io::NamedArray> expected;
  if (!options.check.empty()) expected = io::read_expected(file, options.check);
  const std::vector<ir::Array> results = evaluate(options, file, schedules, arguments);
  std::vector<std::string> wrong;
  if (!options.check.empty()) wrong = io::differences(file, results, expected, options.tolerance, options.check);
  if (!options.outputs.empty()) io::write_stored_arrays(options.outputs, io::name_results(file, results));
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i)
    text += fmt::format("{}: {}\n", file.results[i], results[i].type.str());
  put(text);
  constexpr std::size_t kMostLines = 10;
  for (std::size_t i = 0; i < std::min(wrong.size(), kMostLines); ++i)
    std::fprintf(stderr, "%s%s\n", i == 0 ? "fusejit-dump: error: check failed: " : "  ", wrong[i].c_str());
  if (wrong.size() > kMostLines) std::fprintf(stderr, "  and %zu more results differ\n", wrong.size() - kMostLines);
  return wrong.empty() ? kDone : kDifferent;
}

}  // namespace fusejit::tools
