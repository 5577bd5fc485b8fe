// The one process-wide object of the library: default session, generator, log, limits; and what is being recorded on
// this thread. The API speaks of "the" generator and "the" session (manual_seed, stats, NoGrad), so they must live
// somewhere; everything else takes what it needs as a parameter.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/state.h"
#include "fusejit/random.h"
#include "fusejit/runtime.h"

namespace fusejit {

struct ParameterStorage;  // frontend/parameter_storage.h
struct Engine;            // frontend/evaluation/engine.h

struct Context {
  std::mutex graph_mutex;                           // see state.h
  std::condition_variable given_back;               // nothing is Attachment::donated_to_run any more, of one plan
  std::vector<std::weak_ptr<TensorState>> pending;  // module state assigned but not computed; under graph_mutex

  std::mutex generator_mutex;
  RngState generator;  // hands out seeds: step n of seed s draws with seed_of(s, n)

  std::mutex log_mutex;
  std::function<void(std::string_view)> log;
  bool logs_fusions = false;  // by the environment; set once

  std::shared_ptr<Engine> engine;  // under engine_mutex
  std::mutex engine_mutex;
  Options options;
  std::atomic<int> default_ordinal{-1};  // of the device where tensors are made; -1: the cpu

  std::atomic<int> trace_limit{10000};
  std::atomic<bool> check_borrowed;
  std::atomic<std::uint32_t> regions{0};

  Context();
};
Context& context();
// Where tensors are made that are computed from none.
Device default_device();
void log_line(std::string_view line);

// A training step being recorded, or a frozen network being traced.
struct Recording {
  std::uint64_t seed = 0;
  ir::Value seed_leaf;       // made at the first draw
  std::int64_t streams = 0;  // draws so far
  bool split_logged = false;
  std::string name;
  // Parameters assigned in this recording with their values before it, in order; restored if it fails.
  std::vector<std::pair<std::shared_ptr<ParameterStorage>, Tensor>> before;
  bool frozen = false;  // a frozen network is traced: nothing is noted, evaluated or logged for a step
};

// Values that are read in place of the parameters' own.
using StandIns = std::unordered_map<const ParameterStorage*, Tensor>;

namespace nn {
struct ModuleCall;  // frontend/nn/module.cpp
}

// Nothing that ends with the thread: what is static may record when that is over.
struct ThreadState {
  Recording* recording = nullptr;
  const StandIns* stand_ins = nullptr;   // while a module is called with other values than its own, in evaluation mode
  bool gradients = true;                 // false inside NoGrad
  std::optional<DType> autocast;         // the narrow type of the innermost Autocast
  std::uint32_t region = 0;              // of what is recorded now
  std::int64_t moment;                   // the thread's number, then, in 40 bits, its evaluations so far
  const nn::ModuleCall* call = nullptr;  // the module that is being called, the innermost
  std::size_t placed_error = 0;          // std::hash of the last sentence that was given a module's name
  ThreadState();
};
// True if the thread has evaluated something between the two.
inline bool was_before(std::int64_t moment, std::int64_t now) { return moment < now && moment >> 40 == now >> 40; }
ThreadState& thread_state();

// While one lives, modules called on this thread read these values and are in evaluation mode.
class StandInScope {
 public:
  explicit StandInScope(const StandIns& values) : before_(thread_state().stand_ins) {
    thread_state().stand_ins = &values;
  }
  ~StandInScope() { thread_state().stand_ins = before_; }
  StandInScope(const StandInScope&) = delete;
  StandInScope& operator=(const StandInScope&) = delete;

 private:
  const StandIns* before_;
};

}  // namespace fusejit
