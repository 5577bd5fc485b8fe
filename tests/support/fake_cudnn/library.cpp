// libcudnn.so.9 for tests (fake_cudnn.h): descriptors are bags of attributes that are set, finalised once, then read.
#include <cstring>
#include <memory>
#include <set>

#include "runtime/cudnn/library/api.h"
#include "tests/support/fake_cudnn/fake_cudnn.h"

namespace {

using namespace fusejit::runtime::cudnn;
using fusejit::test::FakeCudnn;
using fusejit::test::FakeEngine;
using fusejit::test::FakeExecution;

constexpr Status kNotInitialized = 1001, kBadParam = 2000, kBadPointer = 2002;
constexpr Status kInjected = 4000;

FakeCudnn state;
std::string last_error;

struct Descriptor {
  DescriptorType type = {};
  bool finalized = false;
  std::map<int, std::vector<std::byte>> attributes;
  const FakeEngine* engine = nullptr;  // of engines, configurations, plans
};
std::set<Descriptor*> alive;
struct FakeHandle {
  void* stream = nullptr;
};
std::set<FakeHandle*> handles;

Status problem(const std::string& sentence, Status status = kBadParam) {
  state.problems.push_back(sentence);
  last_error = sentence;
  return status;
}

// Whether this call is the one that fails.
bool fails(const char* call) {
  if (++state.calls != state.fail_at) return false;
  state.failed = true;
  state.failed_call = call;
  last_error = "as the fake says";
  return true;
}
bool has_context() { return !state.context_is_current || state.context_is_current(); }

void check_stream(const FakeHandle& handle, const char* call) {
  if (!handle.stream || !state.is_alive || state.is_alive(handle.stream)) return;
  problem(std::string(call) + " of a handle whose stream is not alive any more");
}

Descriptor* find(RawDescriptor raw) {
  const auto found = alive.find(static_cast<Descriptor*>(raw));
  return found == alive.end() ? nullptr : *found;
}
const FakeEngine* engine_of(std::int64_t index) {
  for (const FakeEngine& engine : state.engines) {
    if (engine.index == index) return &engine;
  }
  return nullptr;
}
template <typename T>
std::vector<T> values(const Descriptor& d, Attribute attribute) {
  const auto found = d.attributes.find(attribute);
  if (found == d.attributes.end()) return {};
  std::vector<T> result(found->second.size() / sizeof(T));
  std::memcpy(result.data(), found->second.data(), result.size() * sizeof(T));
  return result;
}

std::size_t size_of(AttributeType type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return 4;
  }
}

// "engine 57"
std::string text_of(const FakeEngine& engine) { return "engine " + std::to_string(engine.index); }

Status finalize_plan(Descriptor& plan) {
  if (!plan.attributes.count(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP)) return problem("a plan without a device");
  const std::vector<char> text = values<char>(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  if (!text.empty()) {
    const std::string said(text.data(), text.size());
    plan.engine = said.starts_with("engine ") ? engine_of(std::atoll(said.c_str() + 7)) : nullptr;
    if (!plan.engine) return last_error = "no text of a plan", kBadParam;
  } else {
    const std::vector<RawDescriptor> config = values<RawDescriptor>(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const Descriptor* given = config.size() == 1 ? find(config[0]) : nullptr;
    if (!given || !given->engine) return problem("a plan without an engine");
    plan.engine = given->engine;
  }
  if (plan.engine->finalize_status != 0) return last_error = "this engine does not", plan.engine->finalize_status;
  ++state.plans;
  return 0;
}

// Hands `count` of `items` out.
template <typename T>
Status give(const std::vector<T>& items, std::int64_t capacity, std::int64_t* count, void* elements) {
  *count = static_cast<std::int64_t>(items.size());
  const auto given = static_cast<std::size_t>(std::min(capacity, *count));
  if (elements) std::memcpy(elements, items.data(), given * sizeof(T));
  return 0;
}

// Fills the descriptors that the caller made.
Status give_engines(const std::vector<const FakeEngine*>& engines, std::int64_t capacity, std::int64_t* count,
                    void* elements) {
  *count = static_cast<std::int64_t>(engines.size());
  for (std::int64_t i = 0; i < std::min(capacity, *count); ++i) {
    Descriptor* descriptor = find(static_cast<RawDescriptor*>(elements)[i]);
    if (!descriptor) return problem("a list is read into no descriptor", kBadPointer);
    descriptor->engine = engines[static_cast<std::size_t>(i)];
    descriptor->finalized = true;
  }
  return 0;
}

Status get(Descriptor& d, Attribute attribute, std::int64_t capacity, std::int64_t* count, void* elements) {
  switch (attribute) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      std::vector<const FakeEngine*> all;
      // The fallback list is another one.
      if (values<int>(d, CUDNN_ATTR_ENGINEHEUR_MODE) == std::vector<int>{CUDNN_HEUR_MODE_A}) {
        for (const FakeEngine& engine : state.engines) all.push_back(&engine);
      }
      return give_engines(all, capacity, count, elements);
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG:
      return give_engines({d.engine}, capacity, count, elements);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give(std::vector<std::int64_t>{d.engine->index}, capacity, count, elements);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return give(d.engine->numerical_notes, capacity, count, elements);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return give(d.engine->behaviour_notes, capacity, count, elements);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give(std::vector<std::int64_t>{d.engine->workspace_bytes}, capacity, count, elements);
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: {
      const std::string text = text_of(*d.engine);
      return give(std::vector<char>(text.begin(), text.end()), capacity, count, elements);
    }
    default:
      return problem("an attribute is read that the fake does not have: " + std::to_string(attribute));
  }
}

}  // namespace

extern "C" {

FakeCudnn* fake_cudnn() { return &state; }

std::size_t cudnnGetVersion() { return state.version; }
std::size_t cudnnGetMaxDeviceVersion() { return state.newest_device; }
const char* cudnnGetErrorString(Status) { return "FAKE_STATUS"; }
void cudnnGetLastErrorString(char* message, std::size_t capacity) {
  std::strncpy(message, last_error.c_str(), capacity - 1);
}

Status cudnnCreate(Handle* handle) {
  if (!has_context()) return problem("cudnnCreate without a current context", kNotInitialized);
  if (fails("cudnnCreate")) return kInjected;
  auto* made = new FakeHandle;
  handles.insert(made);
  ++state.handles;
  return *handle = reinterpret_cast<Handle>(made), 0;
}
Status cudnnDestroy(Handle handle) {
  auto* given = reinterpret_cast<FakeHandle*>(handle);
  if (handles.erase(given) == 0) return problem("cudnnDestroy of no handle");
  if (!has_context()) problem("cudnnDestroy without a current context");
  check_stream(*given, "cudnnDestroy");
  --state.handles;
  delete given;
  return 0;
}
Status cudnnSetStream(Handle handle, Stream stream) {
  auto* given = reinterpret_cast<FakeHandle*>(handle);
  if (!handles.count(given)) return problem("cudnnSetStream of no handle");
  check_stream(*given, "cudnnSetStream");
  if (fails("cudnnSetStream")) return given->stream = nullptr, kInjected;
  return given->stream = stream, 0;
}

Status cudnnBackendCreateDescriptor(DescriptorType type, RawDescriptor* raw) {
  if (fails("cudnnBackendCreateDescriptor")) return kInjected;
  auto* made = new Descriptor;
  made->type = type;
  alive.insert(made);
  ++state.descriptors;
  return *raw = made, 0;
}
Status cudnnBackendDestroyDescriptor(RawDescriptor raw) {
  Descriptor* given = find(raw);
  if (!given) return problem("cudnnBackendDestroyDescriptor of no descriptor");
  alive.erase(given);
  --state.descriptors;
  delete given;
  return 0;
}
Status cudnnBackendFinalize(RawDescriptor raw) {
  Descriptor* given = find(raw);
  if (!given || given->finalized) return problem("cudnnBackendFinalize of no descriptor, or a second time");
  if (fails("cudnnBackendFinalize")) return kInjected;
  if (given->type == CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR && !has_context()) {
    return problem("a device is read without a current context");
  }
  if (given->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    if (const Status status = finalize_plan(*given); status != 0) return status;
  }
  return given->finalized = true, 0;
}
Status cudnnBackendSetAttribute(RawDescriptor raw, Attribute attribute, AttributeType type, std::int64_t count,
                                const void* elements) {
  Descriptor* given = find(raw);
  if (!given || given->finalized) return problem("cudnnBackendSetAttribute after the descriptor is finalised");
  if (fails("cudnnBackendSetAttribute")) return kInjected;
  if (count < 0 || (count > 0 && !elements)) return last_error = "no elements", kBadParam;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Descriptor* part = find(static_cast<const RawDescriptor*>(elements)[i]);
      if (!part || !part->finalized) return problem("a part is set that is not finalised");
    }
  }
  const auto* bytes = static_cast<const std::byte*>(elements);
  given->attributes[attribute].assign(bytes, bytes + static_cast<std::size_t>(count) * size_of(type));
  return 0;
}
Status cudnnBackendGetAttribute(RawDescriptor raw, Attribute attribute, AttributeType, std::int64_t capacity,
                                std::int64_t* count, void* elements) {
  Descriptor* given = find(raw);
  if (!given || !given->finalized) return problem("cudnnBackendGetAttribute before the descriptor is finalised");
  if (fails("cudnnBackendGetAttribute")) return kInjected;
  return get(*given, attribute, capacity, count, elements);
}

Status cudnnBackendExecute(Handle handle, RawDescriptor plan, RawDescriptor pack) {
  auto* given = reinterpret_cast<FakeHandle*>(handle);
  const Descriptor *planned = find(plan), *packed = find(pack);
  if (!handles.count(given) || !planned || !planned->engine || !planned->finalized || !packed || !packed->finalized) {
    return problem("cudnnBackendExecute of what is not ready");
  }
  if (!has_context()) return problem("cudnnBackendExecute without a current context");
  if (fails("cudnnBackendExecute")) return kInjected;
  if (planned->engine->execute_status != 0) {
    return last_error = "this engine plans and does not run", planned->engine->execute_status;
  }
  FakeExecution execution{*planned->engine, given->stream, {}, nullptr};
  const auto ids = values<std::int64_t>(*packed, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto addresses = values<void*>(*packed, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto workspace = values<void*>(*packed, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (ids.empty() || ids.size() != addresses.size() || workspace.size() != 1 || !workspace[0]) {
    return problem("a variant pack without addresses or workspace");
  }
  for (std::size_t i = 0; i < ids.size(); ++i) execution.addresses[ids[i]] = addresses[i];
  execution.workspace = workspace[0];
  state.executions.push_back(execution);
  if (state.execute) state.execute(execution);
  return 0;
}

}  // extern "C"
