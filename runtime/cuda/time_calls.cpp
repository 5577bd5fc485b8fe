#include "runtime/cuda/time_calls.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "ir/base/check.h"

namespace fusejit::runtime::cuda {
namespace {

constexpr int kRounds = 5;  // the first of which is not counted

// The memory that calls are timed on. The allocator is ordered by the device's stream: what is given back may be handed
// out to it at once, so nothing is given back before the timing stream is done.
class Scratch {
 public:
  Scratch(CudaDevice& device, std::span<const std::int64_t> bytes, std::int64_t workspace_bytes)
      : workspace_(device.memory(), workspace_bytes) {
    for (const std::int64_t size : bytes) {
      blocks_.emplace_back(device.memory(), size);
      device.context().call(device.context().driver().fill_bytes, blocks_.back().get(), 0u, size, device.stream());
      addresses_.push_back(blocks_.back().get());
    }
    device.synchronize();  // whoever used the memory before, too
  }
  std::span<const CuPointer> addresses() const { return addresses_; }
  CuPointer workspace() const { return workspace_.get(); }

 private:
  DeviceBlock workspace_;
  std::vector<DeviceBlock> blocks_;
  std::vector<CuPointer> addresses_;
};

}  // namespace

std::size_t fastest(CudaDevice& device, std::span<const std::shared_ptr<const LibraryCall>> calls,
                    std::span<const std::int64_t> bytes) {
  FJ_ASSERT(!calls.empty(), "no call to be timed");
  std::int64_t workspace_bytes = 0;
  for (const auto& call : calls) workspace_bytes = std::max(workspace_bytes, call->workspace_bytes());
  DeviceContext& context = device.context();
  const Scratch scratch(device, bytes, workspace_bytes);
  const Stream stream(context);
  Event start(context, true), end(context, true);
  std::vector<float> best(calls.size(), std::numeric_limits<float>::max());
  std::vector<bool> out(calls.size());
  std::optional<DeviceError> failed;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (out[i]) continue;
      try {
        start.record(stream.get());
        calls[i]->execute(stream.get(), scratch.addresses(), scratch.workspace());
        end.record(stream.get());
        end.synchronize();
        const float milliseconds = end.elapsed_milliseconds(start);
        if (round > 0) best[i] = std::min(best[i], milliseconds);
      } catch (const DeviceError& error) {
        if (context.lost()) throw;
        out[i] = true, failed = error;
        context.release(context.driver().stream_synchronize, stream.get());
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

}  // namespace fusejit::runtime::cuda
