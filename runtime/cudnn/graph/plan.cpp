#include "runtime/cudnn/graph/plan.h"

#include <algorithm>

#include "ir/base/check.h"

namespace fusejit::runtime::cudnn {
namespace {

constexpr std::size_t kMostEngines = 64;

template <typename Enum>
std::vector<Enum> notes(const Descriptor& engine, Attribute attribute, AttributeType type, std::int64_t capacity) {
  std::vector<Enum> result;
  for (const int note : engine.get_enumerators(attribute, type, capacity)) result.push_back(static_cast<Enum>(note));
  return result;
}

Engine read_engine(const std::shared_ptr<const Library>& library, const Descriptor& config) {
  Descriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  config.get_descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, {&engine, 1});
  const auto behaviour = notes<BehaviorNote>(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                             CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  const auto has = [&](BehaviorNote note) { return std::count(behaviour.begin(), behaviour.end(), note) > 0; };
  return {.index = engine.get_int64(CUDNN_ATTR_ENGINE_GLOBAL_INDEX),
          .tier = has(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) ? Tier::runtime_compiled : Tier::precompiled,
          .numerical_notes = notes<NumericalNote>(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT),
          .cuda_graph = has(CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API)};
}

// cuDNN's list of engine configurations, best first. A list that cannot be had is one refusal.
std::vector<Descriptor> list_engines(const std::shared_ptr<const Library>& library, const Descriptor& device,
                                     const OperationGraph& graph, HeuristicMode mode,
                                     std::vector<EngineRefusal>& refusals) {
  std::vector<Descriptor> configs;
  try {
    Descriptor heuristic(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    heuristic.finalize();
    for (std::size_t i = 0; i < kMostEngines; ++i) configs.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    const std::int64_t count = heuristic.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, configs);
    configs.resize(static_cast<std::size_t>(count));
  } catch (const DeviceError& error) {
    refusals.push_back({-1, error.what()});
    configs.clear();
  }
  return configs;
}

Plan finish_plan(const ConvolutionCall& call, Engine engine, const OperationGraph& graph, Descriptor descriptor) {
  Plan plan;
  plan.call = call.str();
  plan.engine = std::move(engine);
  plan.tensors = graph.tensors;
  plan.workspace_bytes = descriptor.get_int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  plan.descriptor = std::move(descriptor);
  return plan;
}

bool is_wanted(const PlanOptions& options, Tier tier) {
  return tier == Tier::precompiled ? options.precompiled : options.runtime_compiled;
}

// Blocks that share a sum either keep their parts in a workspace or add them up by atomics. Engines of the second kind
// carry no note of it.
bool sums_by_atomics(const Plan& plan, const ConvolutionCall& call) {
  return call.sums != Sums::none && plan.workspace_bytes == 0;
}

}  // namespace

std::string_view name(Tier tier) { return tier == Tier::precompiled ? "precompiled" : "runtime-compiled"; }

const char* forbidden(const std::vector<NumericalNote>& notes, DType dtype, const Numerics& numerics) {
  const auto has = [&](NumericalNote note) { return std::count(notes.begin(), notes.end(), note) > 0; };
  if (dtype == DType::f32 && !numerics.tf32 && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return "it computes in TF32";
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "it rounds its inputs to a narrower type";
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return "it sums in a narrower type";
  if (!numerics.winograd && (has(CUDNN_NUMERICAL_NOTE_WINOGRAD) || has(CUDNN_NUMERICAL_NOTE_FFT))) {
    return "it works in a transformed domain (Winograd or FFT)";
  }
  if (!numerics.nondeterministic && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return "it is not deterministic";
  return nullptr;
}

bool allows(const PlanOptions& options, const Engine& engine, DType dtype) {
  return is_wanted(options, engine.tier) && !forbidden(engine.numerical_notes, dtype, options.numerics);
}

std::string PlanResult::why_not() const {
  if (!plans.empty()) return "";
  std::string text = "no engine";
  std::vector<std::string> seen;
  for (const EngineRefusal& refusal : refusals) {
    if (std::count(seen.begin(), seen.end(), refusal.reason)) continue;
    seen.push_back(refusal.reason);
    text += refusal.engine < 0 ? fmt::format("; {}", refusal.reason)
                               : fmt::format("; engine {}: {}", refusal.engine, refusal.reason);
  }
  return text;
}

PlanResult find_plans(const std::shared_ptr<const Library>& library, const Descriptor& device,
                      const ConvolutionCall& call, const PlanOptions& options) {
  PlanResult result;
  OperationGraph graph;
  try {
    graph = build_graph(library, call);
  } catch (const DeviceError& error) {
    result.refusals.push_back({-1, error.what()});
    return result;
  }
  for (const HeuristicMode mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : list_engines(library, device, graph, mode, result.refusals)) {
      Engine engine = read_engine(library, config);
      if (!is_wanted(options, engine.tier)) continue;
      if (const char* reason = forbidden(engine.numerical_notes, call.dtype, options.numerics)) {
        result.refusals.push_back({engine.index, reason});
        continue;
      }
      const std::int64_t index = engine.index;
      try {
        Descriptor plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
        plan.finalize();
        Plan finished = finish_plan(call, std::move(engine), graph, std::move(plan));
        if (sums_by_atomics(finished, call) && !options.numerics.nondeterministic) {
          result.refusals.push_back({index, "it sums over blocks without a workspace, so by atomics in any order"});
          continue;
        }
        result.plans.push_back(std::move(finished));
      } catch (const DeviceError& error) {
        result.refusals.push_back({index, error.what()});
        continue;
      }
      if (static_cast<int>(result.plans.size()) >= options.plans) return result;
    }
  }
  return result;
}

std::string plan_key(const Library& library, int compute_capability, const ConvolutionCall& call,
                     const PlanOptions& options) {
  return fmt::format(
      "cudnn {} sm_{} tf32={:d} nondeterministic={:d} winograd={:d} precompiled={:d} runtime_compiled={:d} plans={} {}",
      library.version(), compute_capability, options.numerics.tf32, options.numerics.nondeterministic,
      options.numerics.winograd, options.precompiled, options.runtime_compiled, options.plans, call.str());
}

Plan reload_plan(const std::shared_ptr<const Library>& library, const Descriptor& device, const ConvolutionCall& call,
                 const std::string& json) {
  const OperationGraph graph = build_graph(library, call);
  Descriptor plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, std::string_view(json));
  plan.finalize();
  Descriptor config(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  plan.get_descriptors(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&config, 1});
  Engine engine = read_engine(library, config);
  return finish_plan(call, std::move(engine), graph, std::move(plan));
}

void execute(const std::shared_ptr<const Library>& library, Handle handle, const Plan& plan,
             const std::function<void*(Role)>& address_of, void* workspace) {
  std::vector<std::int64_t> ids;
  std::vector<void*> addresses;
  for (const TensorUse& tensor : plan.tensors) {
    void* address = address_of(tensor.role);
    FJ_ASSERT(address && reinterpret_cast<std::uintptr_t>(address) % 16 == 0, "cudnn: {} lies at {} ({})",
              name(tensor.role), address, plan.call);
    ids.push_back(static_cast<std::int64_t>(tensor.role));
    addresses.push_back(address);
  }
  Descriptor pack(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids));
  pack.set_raw(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(addresses.size()),
               addresses.data());
  pack.set_raw(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  library->check(library->api().cudnnBackendExecute(handle, plan.descriptor.raw(), pack.raw()), "cudnnBackendExecute");
}

}  // namespace fusejit::runtime::cudnn
