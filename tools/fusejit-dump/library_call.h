// Steps that a library does in place of their kernels: the call, its ops, its tensors.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "scheduler/plan.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {

struct CallTensor {
  std::string role;   // in the call: "x", "side", "y"
  std::string value;  // in the plan: "%12 conv2d"
  Type type;          // as the library is told, vectors as [1,C,1,1]
  std::array<std::int64_t, 4> strides;
  bool written;
};
struct LibraryCall {
  std::string engine;  // "precompiled" or "runtime-compiled"
  std::string call;    // runtime/cudnn/call.h
  std::string ops;     // the graph that it computes
  std::vector<CallTensor> tensors;
};
// Of a step with a library op.
LibraryCall library_call(const scheduler::Plan& plan, const scheduler::PlanStep& step);

// The same as lines of a comment, and for JSON; "" and null for a step that its kernel does.
std::string call_lines(const scheduler::Plan& plan, const scheduler::PlanStep& step, const char* comment);
Json call_json(const scheduler::Plan& plan, const scheduler::PlanStep& step);

}  // namespace fusejit::tools
