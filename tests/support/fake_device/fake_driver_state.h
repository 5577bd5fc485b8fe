// What the handles of FakeDriver stand for.
#pragma once

#include "tests/support/fake_device/fake_driver.h"

namespace fusejit::test {

constexpr std::uint64_t kDeviceBit = std::uint64_t{1} << 62;  // of addresses of the device
// What the driver answers.
constexpr CuResult kInvalidValue = 1, kInvalidHandle = 400, kCaptureUnsupported = 900;

struct FakeDriver::StreamState {
  std::vector<Work> queue;  // [done, size) waits
  std::size_t done = 0;
  bool draining = false;
  int ordinal = 0;
  bool capturing = false, capture_broken = false;
  std::thread::id captured_by;  // other threads may go on calling the driver
  std::unique_ptr<GraphState> captured;
};

struct FakeDriver::EventState {
  StreamState* stream = nullptr;  // where it was recorded last
  std::size_t position = 0;       // reached once the stream has done so much
  bool timing = false;
  bool captured = false;  // it was recorded in a capture: nothing outside of it can wait for it
};

struct FakeDriver::FunctionState {
  std::string entry;
  const FakeKernel* kernel = nullptr;
  int dynamic_shared_bytes = 48 << 10;
  int ordinal = 0;
};

struct FakeDriver::ModuleState {
  int ordinal = 0;
  std::map<std::string, std::unique_ptr<FunctionState>> functions;
};

// Nodes are numbered by their addresses, which stay.
struct FakeDriver::GraphState {
  struct Node {
    Work work;          // of a copy or fill
    KernelWork kernel;  // of a launch
    bool is_kernel = false;
  };
  std::vector<std::unique_ptr<Node>> nodes;
};

struct FakeDriver::ExecState {
  struct Step {
    const void* node = nullptr;  // of the graph it was made from
    GraphState::Node what;
  };
  std::vector<Step> steps;
};

// The handle of a live object, or null.
template <typename State, typename Handle>
State* find(const std::map<State*, std::unique_ptr<State>>& alive, Handle handle) {
  const auto found = alive.find(reinterpret_cast<State*>(handle));
  return found == alive.end() ? nullptr : found->first;
}

template <typename Handle, typename State>
Handle add(std::map<State*, std::unique_ptr<State>>& alive, std::unique_ptr<State> state) {
  State* raw = state.get();
  alive.emplace(raw, std::move(state));
  return reinterpret_cast<Handle>(raw);
}

}  // namespace fusejit::test
