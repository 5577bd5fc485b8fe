// fusejit warmup: plans in worker processes, then their kernels, each by itself; what it says while it does, and what
// it reports. Everything made is on disk at once, so whatever ends it, the next one goes on from there.
#include "tools/fusejit/warmup.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "ir/base/check.h"
#include "runtime/disk/settings.h"
#include "runtime/warmup/warmup.h"
#include "tools/fusejit/progress.h"
#include "tools/fusejit/workers.h"
#include "tools/output.h"

namespace fusejit::tools {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;

struct Outcome {
  std::string state;  // "there", "made", "missing", "failed"; empty: dropped
  std::string why;
  int plans = 0, plans_made = 0, kernels = 0, kernels_made = 0, library_calls = 0;
  double milliseconds = 0;  // of all workers
};

class Warmup {
 public:
  Warmup(const WarmupOptions& options, std::vector<WarmupItem> items, std::string folder)
      : options_(options),
        items_(std::move(items)),
        outcomes_(items_.size()),
        folder_(std::move(folder)),
        workers_({"/proc/self/exe", "warmup", "--worker"}, worker_count(options), options.timeout_seconds) {}

  int run() {
    std::vector<std::size_t> order(items_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return items_[a].signature.milliseconds > items_[b].signature.milliseconds;
    });
    if (!options_.check) workers_.start();
    for (const std::size_t i : order) add_plan(i);
    const auto over = [this] { return options_.budget_seconds > 0 && seconds() > options_.budget_seconds; };
    const bool whole = workers_.run([&] { return interrupted || over(); }, [this] { show(); });
    show();
    line_.finish();
    if (!options_.report.empty()) write_report();
    if (!options_.output.empty() && whole) write_bundle();
    summarise();
    if (interrupted) return kInterrupted;
    if (!whole) return kOverBudget;
    if (first_failure_ != kDone) return first_failure_;
    if (not_stored_ > 0) return kFile;
    return missing_ > 0 ? kDifferent : kDone;
  }

 private:
  static int worker_count(const WarmupOptions& options) {
    return options.workers > 0 ? options.workers : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void add_plan(std::size_t i) {
    ++total_;
    const Json work = {{"signature", runtime::print(items_[i].signature)},
                       {"target", items_[i].target.str()},
                       {"make", !options_.check}};
    workers_.add(work, [this, i](const Json& answer) { planned(i, answer); });
  }

  void planned(std::size_t i, const Json& answer) {
    Outcome& outcome = outcomes_[i];
    if (!take(i, answer)) return;
    outcome.plans = answer.at("plans"), outcome.plans_made = answer.at("plans_made");
    outcome.kernels = answer.at("kernels"), outcome.library_calls = answer.at("library_calls");
    const std::string not_there = answer.at("not_there");
    auto missing = answer.at("missing").get<std::vector<std::string>>();
    outcome.state = outcome.plans_made > 0 ? "made" : "there";
    if (options_.check) {
      if (!not_there.empty() || !missing.empty()) {
        ++missing_;
        outcome.state = "missing";
        outcome.why = !not_there.empty() ? not_there : fmt::format("{} of its kernels are not there", missing.size());
      }
      return;
    }
    const std::string target = items_[i].target.str();
    std::erase_if(missing, [&](const std::string& text) { return !claimed_.insert(target + text).second; });
    if (missing.empty()) return;
    outcome.state = "made";
    for (std::vector<std::string>& kernels : runtime::divide_kernels(std::move(missing), items_[i].target)) {
      ++total_;
      workers_.add({{"kernels", std::move(kernels)}, {"target", target}},
                   [this, i](const Json& done) { compiled(i, done); });
    }
  }

  void compiled(std::size_t i, const Json& answer) {
    if (!take(i, answer)) return;
    outcomes_[i].kernels_made += answer.at("made").get<int>();
    kernels_made_ += answer.at("made").get<int>();
  }

  // Counts what every answer says; false if it is a failure.
  bool take(std::size_t i, const Json& answer) {
    ++done_;
    Outcome& outcome = outcomes_[i];
    outcome.milliseconds += answer.value("milliseconds", 0.0);
    not_stored_ += answer.value("not_stored", 0);
    if (!answer.contains("error")) return true;
    ++failed_;
    if (first_failure_ == kDone) first_failure_ = answer.value("code", static_cast<int>(kInternal));
    outcome.state = "failed";
    if (outcome.why.empty()) outcome.why = answer.at("error");
    return false;
  }

  void show() {
    line_.show(done_, total_,
               fmt::format("{} kernels made{}, {} workers", kernels_made_,
                           failed_ > 0 ? fmt::format(", {} failed", failed_) : "", workers_.count()));
  }

  // One line an item that is not simply there, then one for all.
  void summarise() const {
    int plans = 0, made = 0, kernels = 0, calls = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Outcome& outcome = outcomes_[i];
      plans += outcome.plans, made += outcome.plans_made, kernels += outcome.kernels, calls += outcome.library_calls;
      if (outcome.state == "failed" || outcome.state == "missing")
        fmt::print("{} @{} for {}: {}: {}\n", items_[i].source, items_[i].signature.graph.name(),
                   items_[i].target.str(), outcome.state, outcome.why);
    }
    const std::string library = calls > 0 ? fmt::format("; {} calls of cuDNN are made on the device", calls) : "";
    fmt::print("{} plans ({} made), {} kernels ({} made) in {:.1f} s with {} workers{}; {}\n", plans, made, kernels,
               kernels_made_, seconds(), workers_.count(), library, folder_);
    if (options_.check && missing_ == 0) fmt::print("nothing would have to be compiled\n");
    if (not_stored_ > 0) fmt::print("{} entries could not be written\n", not_stored_);
  }

  void write_bundle() const {
    const auto cache = std::make_shared<runtime::disk::DiskCache>(runtime::disk::cache_settings().options);
    runtime::disk::BundleWriter writer(options_.output);
    for (const WarmupItem& item : items_) {
      for (const runtime::disk::CacheKey& key : runtime::warm_keys(item.signature, item.target, cache)) {
        if (const auto entry = cache->find(key)) writer.add(key, encode(key, entry->sections));
      }
    }
    writer.finish();
    fmt::print("{} entries in {}\n", writer.size(), options_.output);
  }

  void write_report() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Outcome& o = outcomes_[i];
      list.push_back({{"source", items_[i].source},
                      {"graph", items_[i].signature.graph.name()},
                      {"signature", ir::hash(items_[i].signature.graph).hex()},
                      {"target", items_[i].target.str()},
                      {"state", o.state.empty() ? "dropped" : o.state},
                      {"why", o.why},
                      {"plans", o.plans},
                      {"plans_made", o.plans_made},
                      {"kernels", o.kernels},
                      {"kernels_made", o.kernels_made},
                      {"library_calls", o.library_calls},
                      {"milliseconds", o.milliseconds}});
    }
    const Json report = {{"schema_version", 1},         {"cache", folder_},        {"seconds", seconds()},
                         {"workers", workers_.count()}, {"failed", failed_},       {"missing", missing_},
                         {"not_stored", not_stored_},   {"items", std::move(list)}};
    std::ofstream file(options_.report);
    file << report.dump(2) << '\n';
    file.close();
    if (!file) throw FileError(fmt::format("{} cannot be written", options_.report));
  }

  const WarmupOptions& options_;
  const std::vector<WarmupItem> items_;
  std::vector<Outcome> outcomes_;
  const std::string folder_;
  Workers workers_;
  ProgressLine line_;
  const Clock::time_point start_ = Clock::now();
  std::set<std::string> claimed_;  // kernels that some item makes
  std::int64_t done_ = 0, total_ = 0;
  int kernels_made_ = 0, failed_ = 0, missing_ = 0, not_stored_ = 0, first_failure_ = kDone;
};

}  // namespace

int warmup(const WarmupOptions& options) {
  const runtime::disk::CacheSettings settings = runtime::disk::cache_settings();
  FJ_CHECK(settings.off.empty(), "there is no cache to fill: {}", settings.off);
  const runtime::disk::DiskCache cache(settings.options);
  if (!cache.why_unusable().empty()) throw FileError("the cache cannot be used: " + cache.why_unusable());
  std::vector<std::string> notes;
  std::vector<WarmupItem> items = warmup_items(options, notes);
  for (const std::string& note : notes) std::fprintf(stderr, "fusejit: left out: %s\n", note.c_str());
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  const int code = Warmup(options, std::move(items), cache.folder()).run();
  finish_output();
  return code;
}

}  // namespace fusejit::tools
