// Plan: an engine of cuDNN made ready for one call on one architecture. Planning walks cuDNN's own list of engines
// until one is allowed by the numerics asked for and really finalises: being on the list is no promise.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/cudnn/graph/convolution.h"

namespace fusejit::runtime::cudnn {

// Precompiled engines are ready at once; runtime-compiled ones cost 0.4 to 2 s, and need a driver and NVRTC.
enum class Tier : std::uint8_t { precompiled, runtime_compiled };
std::string_view name(Tier tier);

struct Engine {
  std::int64_t index = 0;
  Tier tier = Tier::precompiled;
  std::vector<NumericalNote> numerical_notes;
  bool cuda_graph = false;  // can be added to a CUDA graph without capture
};

// An engine that was not taken, or a list that stayed empty, and why: in cuDNN's own words where they are cuDNN's.
struct EngineRefusal {
  std::int64_t engine = -1;  // -1: the whole list
  std::string reason;
};

struct Plan {
  std::string call;  // ConvolutionCall::str()
  Engine engine;
  std::int64_t workspace_bytes = 0;
  std::vector<TensorUse> tensors;
  Descriptor descriptor;

  // Everything that cuDNN needs to make the same plan again, compiled kernels included.
  std::string json() const { return descriptor.get_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION); }
};

struct PlanOptions {
  Numerics numerics;
  bool precompiled = true;
  bool runtime_compiled = false;  // costs seconds: for a background thread
  int plans = 1;                  // the first so many that finalise, in cuDNN's order of expected speed
};

struct PlanResult {
  std::vector<Plan> plans;
  std::vector<EngineRefusal> refusals;
  // "no engine: " and the refusals, in a sentence; empty where there is a plan.
  std::string why_not() const;
};

// `device` is a finalised descriptor (device.h). Throws UserError for a call that cannot be meant; a call that cuDNN
// does not do is a result without plans.
PlanResult find_plans(const std::shared_ptr<const Library>& library, const Descriptor& device,
                      const ConvolutionCall& call, const PlanOptions& options = {});

// What a plan depends on, as text: the key under which its JSON is kept.
std::string plan_key(const Library& library, int compute_capability, const ConvolutionCall& call,
                     const PlanOptions& options);

// Why these notes are not allowed for a dtype, or nullptr.
const char* forbidden(const std::vector<NumericalNote>& notes, DType dtype, const Numerics& numerics);

// Whether the engine is one that `options` allow.
bool allows(const PlanOptions& options, const Engine& engine, DType dtype);

// The plan that `json()` was taken from, for the same call, whatever its engine. Throws DeviceError if it is of another
// architecture or version; the caller then plans anew.
Plan reload_plan(const std::shared_ptr<const Library>& library, const Descriptor& device, const ConvolutionCall& call,
                 const std::string& json);

// Runs a plan on the stream of `handle`. `address_of` gives the device address of every tensor in `plan.tensors`;
// `workspace` has plan.workspace_bytes. Addresses are multiples of 16.
void execute(const std::shared_ptr<const Library>& library, Handle handle, const Plan& plan,
             const std::function<void*(Role)>& address_of, void* workspace);

}  // namespace fusejit::runtime::cudnn
