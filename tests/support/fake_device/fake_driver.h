// A CUDA driver without a device: a table of functions that keeps memory, streams, events, modules and graphs of its
// own and checks how they are used. Work is queued and done only when somebody waits for it, so that a missing wait
// shows as wrong numbers; giving memory, pinned memory, modules or streams back is no wait, and what work still needs
// must be there when it is done. Fresh memory holds NaN; device addresses are no addresses of the host; handles belong
// to the context that was current when they were made. Wrong use ends in problems(), what was not given back in
// leaks(). Any call can be made to fail.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/driver/driver_api.h"

namespace fusejit::test {

using namespace runtime::cuda;

using Extents = std::array<unsigned, 3>;

// A pointer argument: the bytes that it must be good for.
struct FakePointer {
  std::int64_t bytes = 0;
  std::int64_t align = 1;
  bool written = false;  // then no other pointer may reach its bytes
};

// An entry of a module. Arguments are pointers, then scalars (8 bytes are read for each; their width is
// `scalar_bytes`).
struct FakeKernel {
  std::vector<FakePointer> pointers;
  std::vector<int> scalar_bytes;
  int pointers_after_scalars = 0;  // the last of `pointers` stand behind the scalars
  Extents grid = {};               // of the launch; 0: any
  Extents block = {};
  std::int64_t shared_bytes = 0;
  float milliseconds = 0;  // that it takes, as events measure it
  // Host addresses of the pointers and bits of the scalars.
  std::function<void(std::span<void* const> pointers, std::span<const std::uint64_t> scalars)> run;
};

// What was launched, directly or by a graph, in the order of its execution.
struct FakeLaunch {
  std::string entry;
  Extents grid = {}, block = {};
  bool from_graph = false;
};

struct FakeDevice {
  std::string name = "Fake GPU";
  int compute_capability = 90;
  std::size_t memory_bytes = std::size_t{1} << 30;
  int l2_bytes = 50 << 20;
  int version = 13000;
  int devices = 1;
  CuResult init = kSuccess;
  std::size_t module_bytes = 0;  // of device memory that a loaded module takes
  bool faults = false;           // kernels given a bad pointer run and fault, as on a device; it is no problem then
};

class FakeDriver {
 public:
  // The functions of the table act on the one FakeDriver alive.
  explicit FakeDriver(FakeDevice device = {});
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  std::shared_ptr<const Driver> table() const { return table_; }
  void define(const std::string& entry, FakeKernel kernel) {
    const std::lock_guard lock(mutex_);
    kernels_[entry] = std::move(kernel);
  }
  // How long an entry that is defined takes, as events measure it.
  void set_milliseconds(const std::string& entry, float milliseconds) {
    const std::lock_guard lock(mutex_);
    kernels_.at(entry).milliseconds = milliseconds;
  }

  // The k-th call from now (1: the next) returns `code` and does nothing, unless it gives something back or waits: that
  // is done all the same. A sticky code makes every later call return it too.
  void fail_call(std::int64_t k, CuResult code);
  void fail_nothing() { fail_at_ = -1; }
  // The next kernel that runs goes wrong: every later call that could notice returns `code`.
  void break_next_kernel(CuResult code) { break_kernel_ = code; }
  std::int64_t calls() const { return calls_; }
  std::int64_t count(const std::string& symbol) const;
  bool failed() const { return failed_; }  // whether the failing call was reached
  const std::string& failed_symbol() const { return failed_symbol_; }

  void problem(std::string sentence);
  const std::vector<std::string>& problems() const { return problems_; }
  std::vector<std::string> leaks() const;
  const std::vector<FakeLaunch>& launches() const { return launches_; }
  std::size_t memory_in_use() const { return in_use_; }
  std::size_t graph_updates() const { return graph_updates_; }
  // Of this thread: the device whose context is current; -1: none.
  int current_device() const {
    const std::lock_guard lock(mutex_);
    return here();
  }
  bool is_alive(CuStream stream) const {
    const std::lock_guard lock(mutex_);
    return streams_.contains(reinterpret_cast<StreamState*>(stream));
  }
  void forget_launches() { launches_.clear(); }

 private:
  struct Kind;
  struct Work {
    std::string what;
    std::function<void()> run;
    float milliseconds = 0;
    const void* graph = nullptr;  // the executable one that it is of
  };
  struct KernelWork {
    CuFunction function = nullptr;
    Extents grid = {}, block = {};
    std::vector<std::uint64_t> arguments;
    int ordinal = 0;
    Work work(FakeDriver& fake, bool from_graph) const;
  };
  struct StreamState;
  struct EventState;
  struct ModuleState;
  struct FunctionState;
  struct GraphState;
  struct ExecState;
  struct Memory {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    int ordinal = 0;
  };

  template <auto Method, typename... P>
  void bind(Call<P...>& entry, const Kind& kind);
  void bind_all(Driver& table);
  CuResult counted(const char* symbol, const Kind& kind, const std::function<CuResult()>& act);
  int here() const;  // the device whose context is current; -1: none
  std::size_t alive_on(int ordinal) const;

  // Device addresses are host addresses with a bit set that no host address has.
  static CuPointer device_address(const void* host);
  static std::byte* host_address(CuPointer address);
  bool on_device(CuPointer address, std::size_t bytes, const char* who, int ordinal);
  bool pinned(const void* address, std::size_t bytes, const char* who);
  StreamState* stream(CuStream handle, const char* who);
  void enqueue(StreamState& stream, Work work);
  void drain(StreamState& stream, std::size_t until);
  void drain_all();
  bool capture_forbids(const char* who);
  CuResult copy(CuStream stream, std::byte* to, const std::byte* from, std::size_t bytes, const char* who,
                const std::function<bool(int ordinal)>& is_good);
  FunctionState* function(CuFunction handle);
  bool can_launch(CuFunction handle, const Extents& grid, const Extents& block, unsigned shared, void** arguments,
                  KernelWork& work);
  bool read_arguments(const FunctionState& function, void** arguments, KernelWork& work);

  CuResult init(unsigned);
  CuResult driver_get_version(int* version);
  CuResult device_get_count(int* count);
  CuResult device_get(CuDevice* device, int ordinal);
  CuResult device_get_name(char* name, int bytes, CuDevice);
  CuResult device_get_attribute(int* value, int attribute, CuDevice);
  CuResult device_total_memory(std::size_t* bytes, CuDevice);
  CuResult primary_context_retain(CuContext* context, CuDevice device);
  CuResult primary_context_release(CuDevice device);
  CuResult context_set_current(CuContext context);
  CuResult memory_get_info(std::size_t* free, std::size_t* total);
  CuResult memory_allocate(CuPointer* address, std::size_t bytes);
  CuResult memory_free(CuPointer address);
  CuResult host_allocate(void** address, std::size_t bytes, unsigned);
  CuResult host_free(void* address);
  CuResult copy_to_device(CuPointer to, const void* from, std::size_t bytes, CuStream stream);
  CuResult copy_to_host(void* to, CuPointer from, std::size_t bytes, CuStream stream);
  CuResult copy_on_device(CuPointer to, CuPointer from, std::size_t bytes, CuStream stream);
  CuResult fill_bytes(CuPointer to, unsigned char value, std::size_t bytes, CuStream stream);
  CuResult stream_create(CuStream* stream, unsigned flags);
  CuResult stream_destroy(CuStream handle);
  CuResult stream_synchronize(CuStream handle);
  CuResult stream_wait_event(CuStream handle, CuEvent event, unsigned);
  CuResult event_create(CuEvent* event, unsigned flags);
  CuResult event_destroy(CuEvent event);
  CuResult event_record(CuEvent event, CuStream handle);
  CuResult event_query(CuEvent event);
  CuResult event_synchronize(CuEvent event);
  CuResult event_elapsed_time(float* milliseconds, CuEvent start, CuEvent end);
  CuResult module_load_data(CuModule* module, const void* image);
  CuResult module_unload(CuModule module);
  CuResult module_get_function(CuFunction* function, CuModule module, const char* name);
  CuResult function_get_attribute(int* value, int attribute, CuFunction function);
  CuResult function_set_attribute(CuFunction function, int attribute, int value);
  CuResult launch_kernel(CuFunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned shared, CuStream handle, void** arguments, void** extra);
  CuResult stream_begin_capture(CuStream handle, int mode);
  CuResult stream_end_capture(CuStream handle, CuGraph* graph);
  CuResult stream_get_capture_info(CuStream handle, int* status, std::uint64_t* id, CuGraph* graph,
                                   const CuGraphNode** nodes, std::size_t* count);
  CuResult graph_instantiate(CuGraphExec* exec, CuGraph graph, unsigned long long);
  CuResult graph_set_kernel_node(CuGraphExec exec, CuGraphNode node, const CuKernelNodeParams* parameters);
  CuResult graph_launch(CuGraphExec exec, CuStream handle);
  CuResult graph_exec_destroy(CuGraphExec exec);
  CuResult graph_destroy(CuGraph graph);

  static FakeDriver* alive_;

  const FakeDevice device_;
  std::shared_ptr<Driver> table_;
  std::map<std::string, FakeKernel> kernels_;
  mutable std::recursive_mutex mutex_;
  std::int64_t calls_ = 0, fail_at_ = -1;
  CuResult fail_with_ = kSuccess, sticky_ = kSuccess, break_kernel_ = kSuccess;
  bool failed_ = false;
  std::string failed_symbol_;
  std::map<std::string, std::int64_t> counts_;
  std::vector<std::string> problems_;
  std::vector<FakeLaunch> launches_;
  std::size_t in_use_ = 0, graph_updates_ = 0;
  std::map<int, int> retained_;             // contexts, by device
  std::map<std::thread::id, int> current_;  // whose context a thread has current
  std::map<std::byte*, Memory> memory_, host_memory_;
  // What was freed last keeps its addresses from the next blocks: whether two are equal is not the host heap's to say.
  static constexpr std::size_t kKeptFreed = std::size_t{16} << 20;
  std::deque<Memory> freed_;
  std::size_t freed_bytes_ = 0;
  std::map<StreamState*, std::unique_ptr<StreamState>> streams_;
  std::vector<std::unique_ptr<StreamState>> ended_;  // destroyed; what was put on them is done all the same
  std::map<EventState*, std::unique_ptr<EventState>> events_;
  std::map<ModuleState*, std::unique_ptr<ModuleState>> modules_;
  std::map<GraphState*, std::unique_ptr<GraphState>> graphs_;
  std::map<ExecState*, std::unique_ptr<ExecState>> execs_;
};

}  // namespace fusejit::test
