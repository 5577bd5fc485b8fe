// Streams and events of a device, owned. Work of one stream runs in order; an event marks a point of a stream that
// another stream or the host can wait for.
#pragma once

#include <utility>

#include "runtime/cuda/driver/context.h"

namespace fusejit::runtime::cuda {

class Stream {
 public:
  explicit Stream(DeviceContext& context) : context_(&context) {
    context.call(context.driver().stream_create, &stream_, kStreamNonBlocking);
  }
  ~Stream() {
    if (stream_) context_->release(context_->driver().stream_destroy, stream_);
  }
  Stream(Stream&& other) noexcept : context_(other.context_), stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;

  CuStream get() const { return stream_; }
  // Waits for all work of the stream. An error of an earlier kernel is reported here.
  void synchronize() { context_->call(context_->driver().stream_synchronize, stream_); }

 private:
  DeviceContext* context_;
  CuStream stream_ = nullptr;
};

class Event {
 public:
  // With `timing`, elapsed_milliseconds() can be asked.
  explicit Event(DeviceContext& context, bool timing = false) : context_(&context) {
    context.call(context.driver().event_create, &event_, timing ? 0u : kEventDisableTiming);
  }
  ~Event() {
    if (event_) context_->release(context_->driver().event_destroy, event_);
  }
  Event(Event&& other) noexcept : context_(other.context_), event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;

  void record(CuStream stream) { context_->call(context_->driver().event_record, event_, stream); }
  // Later work of `stream` waits for the recorded point.
  void make_wait(CuStream stream) { context_->call(context_->driver().stream_wait_event, stream, event_, 0u); }
  void synchronize() { context_->call(context_->driver().event_synchronize, event_); }
  bool reached() {
    const CuResult code = context_->ask(context_->driver().event_query, event_);
    if (code != kNotReady) context_->check(context_->driver().event_query.symbol, code);
    return code == kSuccess;
  }
  // From `start` to this event, both recorded with timing and reached.
  float elapsed_milliseconds(const Event& start) {
    float milliseconds = 0;
    context_->call(context_->driver().event_elapsed_time, &milliseconds, start.event_, event_);
    return milliseconds;
  }

 private:
  DeviceContext* context_;
  CuEvent event_ = nullptr;
};

}  // namespace fusejit::runtime::cuda
