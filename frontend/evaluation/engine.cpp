#include "frontend/evaluation/engine.h"

#include "frontend/context.h"
#include "frontend/evaluation/options.h"
#include "frontend/evaluation/statistics.h"
#include "fusejit/memory.h"
#include "fusejit/runtime.h"
#include "ir/base/check.h"
#include "runtime/backends.h"

namespace fusejit {

Engine::Engine(runtime::SessionOptions given) : options(std::move(given)) {
  runtime::SessionOptions here = options;
  here.backend = nullptr;
  // A target for cuda is the CUDA devices'; interpreters run its plans on the cpu too.
  if (here.target.isa == Isa::cuda && here.engine == runtime::Engine::compiled) here.target = Target::host();
  sessions.emplace_back(Device(), std::make_unique<runtime::Session>(here));
}

runtime::Session& Engine::session(const Device& device) {
  const std::lock_guard lock(sessions_mutex);
  for (const auto& [where, session] : sessions) {
    if (where == device) return *session;
  }
  sessions.emplace_back(device, std::make_unique<runtime::Session>(runtime::on_device(options, device)));
  if (const std::string why = sessions.back().second->why_no_library(); !why.empty()) {
    log_line(fmt::format("{}: convolutions are generated kernels: {}", device.str(), why));
  }
  return *sessions.back().second;
}

std::shared_ptr<Engine> default_engine() {
  Context& c = context();
  const std::lock_guard lock(c.engine_mutex);
  if (!c.engine) c.engine = std::make_shared<Engine>(session_options(c.options));
  say_statistics_at_exit();
  return c.engine;
}

void set_session(const runtime::SessionOptions& options) {
  auto engine = std::make_shared<Engine>(options);
  const std::lock_guard lock(context().engine_mutex);
  context().engine.swap(engine);
}

void finish_compiling() {
  const std::shared_ptr<Engine> engine = default_engine();
  const std::lock_guard lock(engine->sessions_mutex);
  for (const auto& [device, session] : engine->sessions) session->finish_background();
}

void synchronize(const Device& device) { default_engine()->session(device).synchronize(); }

namespace memory {
std::int64_t allocated(const Device& device) { return default_engine()->session(device).memory().allocated; }
std::int64_t peak(const Device& device) { return default_engine()->session(device).memory().peak; }
std::int64_t reserved(const Device& device) { return default_engine()->session(device).memory().reserved; }
void reset_peak(const Device& device) { default_engine()->session(device).reset_peak_memory(); }
void release(const Device& device) { default_engine()->session(device).release_memory(); }
void set_limit(std::int64_t bytes, const Device& device) { default_engine()->session(device).limit_memory(bytes); }
}  // namespace memory

}  // namespace fusejit
