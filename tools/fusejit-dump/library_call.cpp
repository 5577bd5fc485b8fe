#include "tools/fusejit-dump/library_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "runtime/cudnn/step.h"
#include "scheduler/contents.h"

namespace fusejit::tools {

LibraryCall library_call(const scheduler::Plan& plan, const scheduler::PlanStep& step) {
  const scheduler::LibraryOp& op = *step.library;
  const runtime::cudnn::StepCall made = runtime::cudnn::step_call(op.graph);
  LibraryCall call{std::string(runtime::cudnn::name(runtime::cudnn::tier_of(op.graph, plan.target))),
                   made.call.str(),
                   ir::print(op.graph),
                   {}};
  const scheduler::Contents contents(plan, step);
  for (std::size_t i = 0; i < op.values.size(); ++i) {
    const std::size_t parameters = op.graph.parameters().size();
    const bool written = i >= parameters;
    Type type = (written ? op.graph.results()[i - parameters] : op.graph.parameters()[i]).type();
    if (type.dtype == DType::boolean) type.dtype = DType::b1;  // a mask is its bits
    if (type.shape.rank() != 4) type.shape = Shape{1, type.shape.elements(), 1, 1};
    type.layout = made.call.layout;
    call.tensors.push_back({std::string(runtime::cudnn::name(made.roles[i])), contents[op.values[i]], type,
                            runtime::cudnn::strides_of(type.shape, type.layout), written});
  }
  return call;
}

std::string call_lines(const scheduler::Plan& plan, const scheduler::PlanStep& step, const char* comment) {
  if (!step.library) return "";
  const LibraryCall call = library_call(plan, step);
  std::string text = fmt::format(
      "{0} done by one call of cuDNN ({1} engine); the kernel says what it means, and runs where cuDNN is not there\n"
      "{0}   {2}\n",
      comment, call.engine, call.call);
  std::istringstream lines(call.ops);
  for (std::string line; std::getline(lines, line);) text += fmt::format("{}   {}\n", comment, line);
  std::size_t longest = 0;
  for (const CallTensor& tensor : call.tensors) longest = std::max(longest, tensor.value.size());
  for (const CallTensor& t : call.tensors) {
    text += fmt::format("{}   {:7} {:12} = {:{}}  {}, strides [{}]\n", comment, t.written ? "writes" : "reads", t.role,
                        t.value, longest, t.type.str(), fmt::join(t.strides, ","));
  }
  return text;
}

Json call_json(const scheduler::Plan& plan, const scheduler::PlanStep& step) {
  if (!step.library) return {};
  const LibraryCall call = library_call(plan, step);
  Json tensors = Json::array();
  for (const CallTensor& t : call.tensors) {
    tensors.push_back({{"role", t.role},
                       {"value", t.value},
                       {"dtype", name(t.type.dtype)},
                       {"shape", t.type.shape.dims()},
                       {"strides", t.strides},
                       {"written", t.written}});
  }
  return {{"library", "cudnn"}, {"engine", call.engine}, {"call", call.call}, {"ops", call.ops}, {"tensors", tensors}};
}

}  // namespace fusejit::tools
