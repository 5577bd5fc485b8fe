// Engine: the default sessions. Here the front end meets runtime/session.h, and nowhere else.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "frontend/evaluation/graph_cache.h"
#include "runtime/session.h"

namespace fusejit {

// The default sessions, one for each device in use, with what belongs to them.
struct Engine {
  explicit Engine(runtime::SessionOptions given);
  // Made at first use. Throws DeviceError, UnsupportedError.
  runtime::Session& session(const Device& device);

  const runtime::SessionOptions options;
  std::mutex sessions_mutex;
  std::vector<std::pair<Device, std::unique_ptr<runtime::Session>>> sessions;  // the first is the cpu's
  std::mutex mutex;                                                            // of the rest
  GraphCache graphs;
  std::int64_t evaluations = 0, traces = 0, hits = 0;
  Device ran_last;
};

// Made at first use, of the options set last.
std::shared_ptr<Engine> default_engine();
// Replaces the default sessions, as set_options() does, by ones with options that users do not have: ways to run that
// must change no bit, and what stands for the machine's CUDA device `options.device`.
void set_session(const runtime::SessionOptions& options);

}  // namespace fusejit
