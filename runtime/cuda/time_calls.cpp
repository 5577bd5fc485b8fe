#include "runtime/cuda/time_calls.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "ir/base/check.h"

namespace fusejit::runtime::cuda {
namespace {

constexpr int kRounds = 5;  // the first of which is not counted
constexpr std::int64_t kLeastWorkspace = 256;
constexpr std::int64_t kCachesWritten = 2;  // before each call: what it reads comes from memory, as in a step
constexpr unsigned char kFilling = 0x3c;    // small positive numbers in every type: products of zeros take less power

// A stream that calls are tried on, and their memory, which goes back to the driver: a plan wants other sizes. The
// limit that is set holds for both allocators together.
class Scratch {
 public:
  Scratch(CudaDevice& device, std::span<const std::int64_t> bytes, std::int64_t workspace_bytes, bool timed)
      : context_(device.context()), memory_(context_, stream_.get()) {
    const DeviceMemoryStatistics taken = device.memory().statistics();
    if (taken.limit > 0) memory_.set_limit(std::max(taken.limit - taken.reserved, std::int64_t{1}));
    workspace_ = DeviceBlock(memory_, std::max(workspace_bytes, kLeastWorkspace));
    for (const std::int64_t size : bytes) {
      blocks_.emplace_back(memory_, size);
      fill(blocks_.back(), size);
      addresses_.push_back(blocks_.back().get());
    }
    if (!timed) return;
    cache_bytes_ = kCachesWritten * context_.properties().l2_bytes;
    try {
      cache_ = DeviceBlock(memory_, cache_bytes_);
    } catch (const DeviceError&) {
      if (context_.lost()) throw;
      cache_bytes_ = 0;  // it is timed as it can be
    }
  }
  ~Scratch() { wait(); }
  void execute(const LibraryCall& call) const {
    context_.enter();
    call.execute(stream_.get(), addresses_, workspace_.get());
  }
  // Takes what was there before out of the device's cache. Meanwhile the host puts the call behind it: of one that is
  // several kernels no pause in between is timed.
  void write_cache() const {
    if (cache_bytes_ > 0) fill(cache_, cache_bytes_);
  }
  void wait() const noexcept { context_.release(context_.driver().stream_synchronize, stream_.get()); }
  CuStream stream() const { return stream_.get(); }

 private:
  void fill(const DeviceBlock& block, std::int64_t bytes) const {
    context_.call(context_.driver().fill_bytes, block.get(), kFilling, bytes, stream_.get());
  }

  DeviceContext& context_;
  const Stream stream_{context_};
  DeviceAllocator memory_;
  DeviceBlock workspace_, cache_;
  std::int64_t cache_bytes_ = 0;
  std::vector<DeviceBlock> blocks_;
  std::vector<CuPointer> addresses_;
};

// Without the device's cached blocks where it does not fit beside them. Throws DeviceError: it does not fit.
std::unique_ptr<const Scratch> scratch_for(CudaDevice& device, std::span<const std::int64_t> bytes,
                                           std::int64_t workspace_bytes, bool timed) {
  try {
    return std::make_unique<Scratch>(device, bytes, workspace_bytes, timed);
  } catch (const DeviceError&) {
    if (device.context().lost()) throw;
  }
  device.memory().release_cached();
  return std::make_unique<Scratch>(device, bytes, workspace_bytes, timed);
}

}  // namespace

std::size_t fastest(CudaDevice& device, std::span<const std::shared_ptr<const LibraryCall>> calls,
                    std::span<const std::int64_t> bytes) {
  FJ_ASSERT(!calls.empty(), "no call to be timed");
  std::int64_t workspace_bytes = 0;
  for (const auto& call : calls) workspace_bytes = std::max(workspace_bytes, call->workspace_bytes());
  DeviceContext& context = device.context();
  const auto scratch = scratch_for(device, bytes, workspace_bytes, true);
  Event start(context, true), end(context, true);
  std::vector<float> best(calls.size(), std::numeric_limits<float>::max());
  std::vector<bool> out(calls.size());
  std::optional<DeviceError> failed;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (out[i]) continue;
      try {
        scratch->write_cache();
        start.record(scratch->stream());
        scratch->execute(*calls[i]);
        end.record(scratch->stream());
        end.synchronize();
        const float milliseconds = end.elapsed_milliseconds(start);
        if (round > 0) best[i] = std::min(best[i], milliseconds);
      } catch (const DeviceError& error) {
        if (context.lost()) throw;
        out[i] = true, failed = error;
        scratch->wait();
      }
    }
  }
  if (std::all_of(out.begin(), out.end(), [](bool o) { return o; })) throw DeviceError(*failed);
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (out[chosen] || (!out[i] && best[i] < best[chosen])) chosen = i;
  }
  return chosen;
}

std::string why_it_fails(CudaDevice& device, const LibraryCall& call, std::span<const std::int64_t> bytes) {
  DeviceContext& context = device.context();
  std::string why;
  bool ran = false;
  try {
    const auto scratch = scratch_for(device, bytes, call.workspace_bytes(), false);
    ran = true;
    scratch->execute(call);
    context.call(context.driver().stream_synchronize, scratch->stream());  // what goes wrong there is said here
  } catch (const DriverError&) {                                           // says nothing of the library
    if (context.lost()) throw;
  } catch (const DeviceError& error) {
    if (context.lost()) throw;
    if (ran) why = error.what();
  }
  return why;
}

}  // namespace fusejit::runtime::cuda
