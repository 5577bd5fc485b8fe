// A cuDNN without a device: the shared library fake_cudnn, which has the functions that runtime/cudnn calls, engines
// that the test says, and a record of what was asked. It is found like the real one, by FUSEJIT_CUDNN. Wrong use ends
// in `problems`; any call can be made to fail.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fusejit::test {

struct FakeEngine {
  std::int64_t index = 0;
  std::vector<int> numerical_notes = {}, behaviour_notes = {};
  int finalize_status = 0;  // of plans with it
  int execute_status = 0;
  std::int64_t workspace_bytes = 0;
  int tag = 0;  // the test's
};

struct FakeExecution {
  FakeEngine engine;
  void* stream = nullptr;
  std::map<std::int64_t, void*> addresses;  // by unique id
  void* workspace = nullptr;
};

struct FakeCudnn {
  std::vector<FakeEngine> engines;                     // the heuristics' list, best first
  std::function<void(const FakeExecution&)> execute;   // puts the work on the stream
  std::function<bool()> context_is_current = nullptr;  // asked where the real one needs it
  std::function<bool(void*)> is_alive = nullptr;       // a stream that a handle has
  std::size_t version = 91900, newest_device = 1210;
  std::int64_t fail_at = -1;  // the call of that number (`calls` counts from 1) fails
  std::int64_t calls = 0;
  std::int64_t plans = 0;  // that were finalised, from an engine or a text
  bool failed = false;
  std::string failed_call;
  int handles = 0, descriptors = 0;  // alive
  std::vector<FakeExecution> executions;
  std::vector<std::string> problems;
};

// The state of the loaded library; its symbol is "fake_cudnn".
using FakeCudnnState = FakeCudnn* (*)();

}  // namespace fusejit::test
