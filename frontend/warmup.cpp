#include "fusejit/warmup.h"

#include <chrono>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/evaluation/trace.h"
#include "frontend/state.h"
#include "fusejit/runtime.h"
#include "ir/base/check.h"
#include "runtime/warmup/signature.h"

namespace fusejit {
namespace detail {

std::vector<Tensor> stand_ins(const InputType* inputs, std::size_t count) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    const Type type{inputs[i].dtype, inputs[i].shape, Layout::standard};
    tensors.push_back(tensor_of(ir::parameter(type, fmt::format("x{}", i)), false, 0, default_device()));
  }
  return tensors;
}

void compile_outputs(const std::vector<Tensor>& outputs) {
  FJ_CHECK(!outputs.empty(), "compile: the function gives no tensor");
  Trace trace;
  std::optional<Device> device;
  std::vector<bool> fixed;
  std::optional<ir::Graph> graph;
  {
    const std::lock_guard lock(context().graph_mutex);
    for (const Tensor& output : outputs) {
      FJ_CHECK(output.defined(), "compile: the function gives an empty tensor");
      const std::optional<Device>& own = output.state()->device;
      FJ_CHECK(!own || !device || *own == *device, "compile: results are on {} and {}, one plan is on one device",
               device->str(), own->str());
      if (own) device = own;
      trace.add_result(output.state()->value);
    }
    for (const int argument : trace.arguments()) {
      const Attachment* note = attachment(trace.entries()[static_cast<std::size_t>(argument)].node);
      fixed.push_back(note && note->buffer && note->buffer.is_fixed());
    }
    graph = trace.graph("compile");
  }
  prepare_graph(*graph, device.value_or(default_device()), {}, fixed);
}

}  // namespace detail

void record_signatures(const std::string& path) { runtime::record_signatures(path); }

WarmupReport warmup(const std::string& signatures, const WarmupOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  runtime::SignatureFile file = runtime::read_signatures(signatures);
  WarmupReport report;
  report.left_out = std::move(file.notes);
  const Statistics before = stats();
  WarmupProgress progress{0, static_cast<std::int64_t>(file.signatures.size()), 0};
  for (const runtime::Signature& signature : file.signatures) {
    const std::string name = "graph @" + signature.graph.name();
    const bool is_cuda = signature.target.isa == Isa::cuda;
    if (options.budget_seconds > 0 && seconds() > options.budget_seconds) {
      report.left_out.push_back(name + ": the budget was used up");
    } else if (is_cuda && options.device.is_cpu()) {
      report.left_out.push_back(name + ": it is for a CUDA device, and no device was named");
    } else {
      try {
        prepare_graph(signature.graph, is_cuda ? options.device : Device(), signature.donated, signature.fixed);
        ++report.signatures;
      } catch (const Error& error) {
        const std::string sentence = error.what();
        report.left_out.push_back(name + ": " + sentence.substr(0, sentence.find('\n')));
      }
    }
    ++progress.done;
    progress.kernels_compiled = stats().kernels_compiled - before.kernels_compiled;
    if (options.progress) options.progress(progress);
  }
  const Statistics after = stats();
  report.plans_loaded = after.plans_loaded - before.plans_loaded;
  report.plans_made = after.plans_made - before.plans_made - report.plans_loaded;
  report.kernels_compiled = after.kernels_compiled - before.kernels_compiled;
  report.kernels_loaded = after.kernels_loaded - before.kernels_loaded;
  report.seconds = seconds();
  return report;
}

}  // namespace fusejit
