// What a session holds. Its functions are in two files: planning.cpp makes and keeps what runs, session.cpp runs it.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "ir/base/check.h"
#include "ir/base/lru_cache.h"
#include "ir/strict.h"
#include "runtime/backends.h"
#include "runtime/pieces.h"
#include "runtime/process/background.h"
#include "runtime/session.h"

namespace fusejit::runtime {

constexpr std::size_t kMostPlans = 256;
constexpr std::int64_t kMostPlanBytes = 256 << 20;

// What a plan may do with each argument; an empty list is a no for all of them.
struct Permissions {
  std::vector<bool> donated;  // overwrite it
  std::vector<bool> fixed;    // keep what depends on it alone: nobody writes to it
};

struct Session::State {
  const SessionOptions options;
  const ir::Hash options_hash;  // of what changes a plan
  Backends backends;
  std::mutex mutex;  // of what follows
  SessionStatistics statistics;
  ir::LruCache<std::shared_ptr<const Executable>> plans{kMostPlans, kMostPlanBytes};

  explicit State(SessionOptions o)
      : options(std::move(o)),
        options_hash(ir::hash_text(
            fmt::format("{}\n{}\n{}", options.target.str(), name(options.rules), options.memory_limit.str()))),
        backends(options) {}

  // Graph, donation pattern and every option that changes a plan (design: the plan key).
  ir::Hash plan_key(const ir::Graph& graph, const Permissions& given) const {
    std::string key;
    key.reserve(2 * sizeof(ir::Hash) + given.donated.size() + given.fixed.size());
    for (const ir::Hash& part : {ir::hash(graph), options_hash}) {
      key.append(reinterpret_cast<const char*>(&part), sizeof part);
    }
    const auto add = [&key](const std::vector<bool>& flags, char kind) {
      for (std::size_t i = 0; i < flags.size(); ++i) {
        if (flags[i]) key.append(1, kind).append(reinterpret_cast<const char*>(&i), sizeof i);
      }
    };
    add(given.donated, 'd');
    add(given.fixed, 'f');
    return ir::hash_text(key);
  }

  std::shared_ptr<const Executable> executable(const ir::Graph& graph, const Permissions& given);
  std::shared_ptr<const Executable> make_somehow(const ir::Graph& graph, const Permissions& given);
  // Null if it was stopped. `quick`: as PrepareOptions.
  std::shared_ptr<const Executable> make(const ir::Graph& graph, const Target& target, const Permissions& given,
                                         bool quick, const std::stop_token& stop = {});
  void improve(const ir::Hash& key, const ir::Graph& graph, const Permissions& given, const std::stop_token& stop);
  void improve_code(const ir::Hash& key, const std::string& name, const std::stop_token& stop);
  void failed_in_background(const std::string& name, const std::string& why_not);
  Target first_target() {
    return options.compile_in_background ? backends.of_plans().first_target(options.target) : options.target;
  }
  std::vector<Buffer> placed(std::vector<Buffer> values) {
    for (Buffer& value : values) value = backends.of_results().place(value);
    return values;
  }

  std::shared_ptr<const Executable> in_pieces(const scheduler::NoKernel& no_kernel, const Target& target,
                                              const std::stop_token& stop);
  std::vector<Buffer> run(const Executable& executable, const ir::Graph& graph, std::span<const Buffer> arguments);
  std::vector<Buffer> run_pieces(const Pieces& pieces, std::span<const Buffer> arguments);
  // Whoever says how something is computed wants to see that, or why not.
  bool may_fall_back() const { return options.fall_back && !options.reschedule && !ir::is_strict(); }
  // Counts, and says it once: one line a reason.
  void fell_back(const std::string& name, const std::string& what, const std::string& why) {
    {
      std::lock_guard lock(mutex);
      ++statistics.fallbacks;
    }
    warn(name, what, why);
  }
  void warn(const std::string& name, const std::string& what, const std::string& why) {
    const std::string line =
        fmt::format("graph @{} {}: {}", name, what, std::string_view(why).substr(0, why.find('\n')));
    {
      std::lock_guard lock(mutex);
      if (!warned.insert(line).second) return;
    }
    if (options.log) options.log(line);
  }
  std::set<std::string> warned;
  Background background;  // last: what it runs uses the rest
};

}  // namespace fusejit::runtime
