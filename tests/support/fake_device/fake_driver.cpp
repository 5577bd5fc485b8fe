// FakeDriver: the table, injected failures, devices and memory. Streams, launches and graphs: fake_driver_work.cpp.
#include "tests/support/fake_device/fake_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/cuda/driver/error.h"
#include "tests/support/fake_device/fake_driver_state.h"

namespace fusejit::test {
namespace {

constexpr std::size_t kRedZone = 256;  // before and after every block, checked when it is given back
constexpr std::size_t kAlignment = 256;
constexpr std::byte kRed{0xa5};
constexpr CuResult kInvalidContext = 201;

CuContext context_of(int ordinal) {
  return reinterpret_cast<CuContext>(std::uintptr_t{0xc0} + static_cast<std::uintptr_t>(ordinal));
}

}  // namespace

FakeDriver* FakeDriver::alive_ = nullptr;

struct FakeDriver::Kind {
  bool needs_context = true;
  bool always_done = false;  // whatever it returns
};

FakeDriver::FakeDriver(FakeDevice device) : device_(std::move(device)), table_(std::make_shared<Driver>()) {
  if (alive_) std::abort();  // the table's functions could not tell two apart
  alive_ = this;
  bind_all(*table_);
}

FakeDriver::~FakeDriver() { alive_ = nullptr; }

CuResult FakeDriver::counted(const char* symbol, const Kind& kind, const std::function<CuResult()>& act) {
  const std::lock_guard lock(mutex_);
  ++calls_;
  ++counts_[symbol];
  const bool fails = calls_ == fail_at_;
  if (fails) {
    failed_ = true;
    failed_symbol_ = symbol;
    if (is_sticky(fail_with_)) sticky_ = fail_with_;
  }
  if (kind.needs_context && here() < 0) {
    problem(fmt::format("{} without a current context", symbol));
    return kInvalidContext;
  }
  if (fails || sticky_ != kSuccess) {
    if (kind.always_done) act();
    return fails ? fail_with_ : sticky_;
  }
  const CuResult result = act();
  return sticky_ != kSuccess ? sticky_ : result;
}

int FakeDriver::here() const {
  const auto found = current_.find(std::this_thread::get_id());
  return found == current_.end() ? -1 : found->second;
}

template <auto Method, typename... P>
void FakeDriver::bind(Call<P...>& entry, const Kind& kind) {
  static const char* bound_symbol;
  static Kind bound_kind;
  bound_symbol = entry.symbol;
  bound_kind = kind;
  entry.function = [](P... arguments) -> CuResult {
    FakeDriver* fake = alive_;
    if (!fake) return 4;  // deinitialised
    return fake->counted(bound_symbol, bound_kind, [&] { return (fake->*Method)(arguments...); });
  };
}

void FakeDriver::bind_all(Driver& t) {
  using F = FakeDriver;
  constexpr Kind ordinary = {}, anywhere = {.needs_context = false}, done = {.always_done = true};
  bind<&F::init>(t.init, anywhere);
  bind<&F::driver_get_version>(t.driver_get_version, anywhere);
  t.get_error_name.function = [](CuResult, const char**) -> CuResult { return kInvalidValue; };
  t.get_error_string.function = [](CuResult, const char** text) -> CuResult { return *text = "as the fake says", 0; };
  bind<&F::device_get_count>(t.device_get_count, anywhere);
  bind<&F::device_get>(t.device_get, anywhere);
  bind<&F::device_get_name>(t.device_get_name, anywhere);
  bind<&F::device_get_attribute>(t.device_get_attribute, anywhere);
  bind<&F::device_total_memory>(t.device_total_memory, anywhere);
  bind<&F::primary_context_retain>(t.primary_context_retain, anywhere);
  bind<&F::primary_context_release>(t.primary_context_release, {.needs_context = false, .always_done = true});
  bind<&F::context_set_current>(t.context_set_current, anywhere);
  bind<&F::memory_get_info>(t.memory_get_info, ordinary);
  bind<&F::memory_allocate>(t.memory_allocate, ordinary);
  bind<&F::memory_free>(t.memory_free, done);
  bind<&F::host_allocate>(t.host_allocate, ordinary);
  bind<&F::host_free>(t.host_free, done);
  bind<&F::copy_to_device>(t.copy_to_device, ordinary);
  bind<&F::copy_to_host>(t.copy_to_host, ordinary);
  bind<&F::copy_on_device>(t.copy_on_device, ordinary);
  bind<&F::fill_bytes>(t.fill_bytes, ordinary);
  bind<&F::stream_create>(t.stream_create, ordinary);
  bind<&F::stream_destroy>(t.stream_destroy, done);
  bind<&F::stream_synchronize>(t.stream_synchronize, done);
  bind<&F::stream_wait_event>(t.stream_wait_event, ordinary);
  bind<&F::event_create>(t.event_create, ordinary);
  bind<&F::event_destroy>(t.event_destroy, done);
  bind<&F::event_record>(t.event_record, ordinary);
  bind<&F::event_query>(t.event_query, ordinary);
  bind<&F::event_synchronize>(t.event_synchronize, done);
  bind<&F::event_elapsed_time>(t.event_elapsed_time, ordinary);
  bind<&F::module_load_data>(t.module_load_data, ordinary);
  bind<&F::module_unload>(t.module_unload, done);
  bind<&F::module_get_function>(t.module_get_function, ordinary);
  bind<&F::function_get_attribute>(t.function_get_attribute, ordinary);
  bind<&F::function_set_attribute>(t.function_set_attribute, ordinary);
  bind<&F::launch_kernel>(t.launch_kernel, ordinary);
  bind<&F::stream_begin_capture>(t.stream_begin_capture, ordinary);
  bind<&F::stream_end_capture>(t.stream_end_capture, done);
  bind<&F::stream_get_capture_info>(t.stream_get_capture_info, ordinary);
  bind<&F::graph_instantiate>(t.graph_instantiate, ordinary);
  bind<&F::graph_set_kernel_node>(t.graph_set_kernel_node, ordinary);
  bind<&F::graph_launch>(t.graph_launch, ordinary);
  bind<&F::graph_exec_destroy>(t.graph_exec_destroy, done);
  bind<&F::graph_destroy>(t.graph_destroy, done);
}

void FakeDriver::problem(std::string sentence) { problems_.push_back(std::move(sentence)); }

void FakeDriver::fail_call(std::int64_t k, CuResult code) {
  fail_at_ = calls_ + k;
  fail_with_ = code;
  failed_ = false;
}

std::int64_t FakeDriver::count(const std::string& symbol) const {
  const auto found = counts_.find(symbol);
  return found == counts_.end() ? 0 : found->second;
}

std::vector<std::string> FakeDriver::leaks() const {
  std::vector<std::string> found;
  const auto note = [&](std::size_t count, const char* what) {
    if (count > 0) found.push_back(fmt::format("{} {}", count, what));
  };
  note(memory_.size(), "blocks of device memory");
  note(host_memory_.size(), "blocks of pinned memory");
  note(streams_.size(), "streams");
  note(events_.size(), "events");
  note(modules_.size(), "modules");
  note(graphs_.size(), "graphs");
  note(execs_.size(), "executable graphs");
  for (const auto& [ordinal, count] : retained_) note(static_cast<std::size_t>(count), "retained contexts");
  return found;
}

std::size_t FakeDriver::alive_on(int ordinal) const {
  const auto of = [&](const auto& object) { return object.second->ordinal == ordinal; };
  const auto at = [&](const auto& block) { return block.second.ordinal == ordinal; };
  return static_cast<std::size_t>(std::count_if(streams_.begin(), streams_.end(), of) +
                                  std::count_if(modules_.begin(), modules_.end(), of) +
                                  std::count_if(memory_.begin(), memory_.end(), at));
}

// ---- devices

CuResult FakeDriver::init(unsigned) { return device_.init; }
CuResult FakeDriver::driver_get_version(int* version) { return *version = device_.version, kSuccess; }
CuResult FakeDriver::device_get_count(int* count) { return *count = device_.devices, kSuccess; }
CuResult FakeDriver::device_get(CuDevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= device_.devices) return 101;
  return *device = ordinal, kSuccess;
}
CuResult FakeDriver::device_get_name(char* name, int bytes, CuDevice) {
  std::strncpy(name, device_.name.c_str(), static_cast<std::size_t>(bytes));
  return kSuccess;
}
CuResult FakeDriver::device_get_attribute(int* value, int attribute, CuDevice) {
  static const std::map<int, int> kValues = {{kMaxThreadsPerBlock, 1024},
                                             {kMaxSharedMemoryPerBlock, 48 << 10},
                                             {kWarpSize, 32},
                                             {kMultiprocessorCount, 132},
                                             {kMemoryClockRateKhz, 2619000},
                                             {kMemoryBusWidthBits, 5120},
                                             {kMaxThreadsPerMultiprocessor, 2048},
                                             {kMaxRegistersPerMultiprocessor, 65536},
                                             {kMaxSharedMemoryPerBlockOptin, 227 << 10}};
  if (attribute == kL2CacheBytes) return *value = device_.l2_bytes, kSuccess;
  if (attribute == kComputeCapabilityMajor) return *value = device_.compute_capability / 10, kSuccess;
  if (attribute == kComputeCapabilityMinor) return *value = device_.compute_capability % 10, kSuccess;
  const auto found = kValues.find(attribute);
  if (found == kValues.end()) return kInvalidValue;
  return *value = found->second, kSuccess;
}
CuResult FakeDriver::device_total_memory(std::size_t* bytes, CuDevice) {
  return *bytes = device_.memory_bytes, kSuccess;
}
CuResult FakeDriver::primary_context_retain(CuContext* context, CuDevice device) {
  return ++retained_[device], *context = context_of(device), kSuccess;
}
CuResult FakeDriver::primary_context_release(CuDevice device) {
  int& retained = retained_[device];
  if (retained == 0) return problem("cuDevicePrimaryCtxRelease of a context that is not retained"), kInvalidContext;
  if (--retained > 0) return kSuccess;
  drain_all();  // what is still to be done shows what it misses
  if (alive_on(device) > 0) problem("cuDevicePrimaryCtxRelease while streams, modules or memory of it are alive");
  std::erase_if(current_, [&](const auto& thread) { return thread.second == device; });
  return kSuccess;
}
CuResult FakeDriver::context_set_current(CuContext context) {
  for (const auto& [ordinal, count] : retained_) {
    if (count > 0 && context == context_of(ordinal)) return current_[std::this_thread::get_id()] = ordinal, kSuccess;
  }
  return problem("cuCtxSetCurrent of no context"), kInvalidContext;
}

// ---- memory

CuPointer FakeDriver::device_address(const void* host) { return reinterpret_cast<std::uintptr_t>(host) | kDeviceBit; }
std::byte* FakeDriver::host_address(CuPointer address) {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address & ~kDeviceBit));
}

namespace {

// The block that holds [address, address + bytes), or end().
template <typename Blocks>
auto block_of(Blocks& blocks, const std::byte* address, std::size_t bytes) {
  auto found = blocks.upper_bound(const_cast<std::byte*>(address));
  if (found == blocks.begin()) return blocks.end();
  --found;
  return address + bytes <= found->first + found->second.size ? found : blocks.end();
}

std::byte* first_byte(std::byte* raw) {
  const auto address = reinterpret_cast<std::uintptr_t>(raw) + kRedZone;
  return raw + kRedZone + (kAlignment - address % kAlignment) % kAlignment;
}

}  // namespace

bool FakeDriver::on_device(CuPointer address, std::size_t bytes, const char* who, int ordinal) {
  const auto block = (address & kDeviceBit) != 0 ? block_of(memory_, host_address(address), bytes) : memory_.end();
  if (block != memory_.end() && block->second.ordinal == ordinal) return true;
  if (block != memory_.end()) {
    problem(fmt::format("{}: memory of cuda:{} in work of cuda:{}", who, block->second.ordinal, ordinal));
    return false;
  }
  problem(fmt::format("{}: {} bytes at {:#x} are not in device memory that is alive", who, bytes, address));
  return false;
}

bool FakeDriver::pinned(const void* address, std::size_t bytes, const char* who) {
  if (block_of(host_memory_, static_cast<const std::byte*>(address), bytes) != host_memory_.end()) return true;
  problem(fmt::format("{}: {} bytes are not in pinned memory that is alive: the copy is not asynchronous", who, bytes));
  return false;
}

CuResult FakeDriver::memory_get_info(std::size_t* free, std::size_t* total) {
  return *free = device_.memory_bytes - in_use_, *total = device_.memory_bytes, kSuccess;
}

CuResult FakeDriver::memory_allocate(CuPointer* address, std::size_t bytes) {
  if (capture_forbids("cuMemAlloc")) return 900;
  if (bytes == 0) return problem("cuMemAlloc of 0 bytes"), kInvalidValue;
  if (bytes > device_.memory_bytes - in_use_) return kOutOfMemory;
  Memory memory{std::make_unique<std::byte[]>(bytes + 2 * kRedZone + kAlignment), bytes, here()};
  std::byte* raw = memory.bytes.get();
  std::fill(raw, raw + bytes + 2 * kRedZone + kAlignment, kRed);
  std::byte* first = first_byte(raw);
  std::memset(first, 0xff, bytes);  // NaN
  in_use_ += bytes;
  memory_.emplace(first, std::move(memory));
  return *address = device_address(first), kSuccess;
}

CuResult FakeDriver::memory_free(CuPointer address) {
  if (capture_forbids("cuMemFree")) return 900;
  const auto found = memory_.find(host_address(address));
  if ((address & kDeviceBit) == 0 || found == memory_.end()) {
    problem(fmt::format("cuMemFree of {:#x}, which is no block that is alive (double free?)", address));
    return kInvalidValue;
  }
  const auto red = [](std::byte b) { return b == kRed; };
  const std::byte* end = found->first + found->second.size;
  if (!std::all_of(found->first - kRedZone, found->first, red) || !std::all_of(end, end + kRedZone, red)) {
    problem(fmt::format("a block of {} bytes was written beyond its ends", found->second.size));
  }
  in_use_ -= found->second.size;
  freed_bytes_ += found->second.size;
  freed_.push_back(std::move(found->second));
  memory_.erase(found);
  for (; freed_bytes_ > kKeptFreed; freed_.pop_front()) freed_bytes_ -= freed_.front().size;
  return kSuccess;
}

CuResult FakeDriver::host_allocate(void** address, std::size_t bytes, unsigned) {
  if (capture_forbids("cuMemHostAlloc")) return 900;
  if (bytes == 0) return problem("cuMemHostAlloc of 0 bytes"), kInvalidValue;
  Memory memory{std::unique_ptr<std::byte[]>(new std::byte[bytes]), bytes, here()};
  *address = memory.bytes.get();
  host_memory_.emplace(memory.bytes.get(), std::move(memory));
  return kSuccess;
}

CuResult FakeDriver::host_free(void* address) {
  if (capture_forbids("cuMemFreeHost")) return 900;
  if (host_memory_.erase(static_cast<std::byte*>(address)) == 1) return kSuccess;
  return problem("cuMemFreeHost of no block that is alive (double free?)"), kInvalidValue;
}

}  // namespace fusejit::test
