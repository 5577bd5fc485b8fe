#include "frontend/evaluation/options.h"

#include <unistd.h>

#include <initializer_list>
#include <string_view>
#include <utility>

#include "frontend/context.h"
#include "frontend/evaluation/engine.h"
#include "ir/base/check.h"
#include "runtime/disk/settings.h"

namespace fusejit {
namespace {

// What the word stands for.
template <class Value>
Value one_of(std::string_view option, const std::string& word,
             std::initializer_list<std::pair<std::string_view, Value>> choices) {
  std::string words;
  for (const auto& [known, value] : choices) {
    if (known == word) return value;
    words += (words.empty() ? "" : ", ") + std::string(known);
  }
  throw UserError(fmt::format("{} '{}' is not known ({})", option, word, words));
}

// The context outlives everything, the libraries that an engine is compiled with do not. What belongs to the thread
// that ends the process goes before what is static, in them too, however late they were loaded.
struct BackgroundEnds {
  bool is_set = false;
  ~BackgroundEnds() {
    std::shared_ptr<Engine> engine;
    {
      const std::lock_guard lock(context().engine_mutex);
      engine = context().engine;
    }
    if (!is_set || !engine) return;
    const std::lock_guard lock(engine->sessions_mutex);
    for (const auto& [device, session] : engine->sessions) session->stop_background();
  }
};

void stop_background_at_exit() {
  if (getpid() != gettid()) return;  // not the main thread, which may end without the process
  thread_local BackgroundEnds ends;
  ends.is_set = true;
}

}  // namespace

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions result;
  FJ_CHECK(options.threads >= 0 && options.threads <= 1024, "threads is {}, it must lie between 0 and 1024",
           options.threads);
  using runtime::Engine;
  using runtime::Tune;
  result.engine = one_of<Engine>("engine", options.engine,
                                 {{"compiled", Engine::compiled},
                                  {"graph_interpreter", Engine::graph_interpreter},
                                  {"kernel_interpreter", Engine::kernel_interpreter}});
  result.target = Target::parse(options.target);
  const auto winograd = one_of<WinogradMode>(
      "winograd", options.winograd,
      {{"off", WinogradMode::off}, {"auto", WinogradMode::automatic}, {"always", WinogradMode::always}});
  if (winograd != WinogradMode::off) result.target.winograd = winograd;
  result.rules = scheduler::parse_rules(options.rules);
  result.memory_limit = scheduler::parse_memory_limit(options.memory_limit);
  FJ_CHECK(result.memory_limit.is_none() || result.rules.fuse(),
           "memory_limit is '{}' and rules '{}': it is met by computing values again, which rules 'none' do not",
           options.memory_limit, options.rules);
  result.threads = options.threads;
  result.cudnn = one_of<CudnnMode>(
      "cudnn", options.cudnn,
      {{"off", CudnnMode::off}, {"precompiled", CudnnMode::precompiled}, {"compiled", CudnnMode::compiled}});
  result.tf32 = options.tf32;
  result.fast_norm = one_of<bool>("batch_norm", options.batch_norm, {{"exact", false}, {"fast", true}});
  result.compile_in_background =
      one_of<bool>("compile", options.compile, {{"foreground", false}, {"background", true}});
  result.fall_back = one_of<bool>("fallback", options.fallback, {{"error", false}, {"allow", true}});
  result.log = [](const std::string& line) { log_line(line); };
  result.log_fusions = options.log_fusions || context().logs_fusions;
  result.disk = runtime::disk::user_cache(options.cache, result.log);
  result.frozen = options.freeze || runtime::disk::is_frozen();
  result.tune = one_of<Tune>("tune", options.tune, {{"off", Tune::off}, {"quick", Tune::quick}, {"full", Tune::full}});
  return result;
}

void set_options(const Options& options) {
  auto engine = std::make_shared<Engine>(session_options(options));
  const Device device(options.device);
  engine->session(device);
  Context& c = context();
  if (options.compile == "background") stop_background_at_exit();
  const std::lock_guard lock(c.engine_mutex);
  c.options = options;
  c.default_ordinal = device.is_cpu() ? -1 : device.ordinal;
  c.engine.swap(engine);
}

Options options() {
  const std::lock_guard lock(context().engine_mutex);
  return context().options;
}

}  // namespace fusejit
