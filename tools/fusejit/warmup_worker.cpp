// A worker of a warm-up: a line of JSON is a piece of work, a line of JSON is the answer.
//   {"signature": "…", "target": "…", "make": true}  -> {"plans": 1, "plans_made": 1, "kernels": 172, "missing":
//   ["kernel @…"], …}
//   {"kernels": ["kernel @…"], "target": "…"}        -> {"made": 1}
// or {"error": sentence, "code": exit code}.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "runtime/disk/settings.h"
#include "runtime/warmup/warmup.h"
#include "tools/fusejit/command.h"

namespace fusejit::tools {
namespace {

using Json = nlohmann::json;

Json answer(const Json& work, const std::shared_ptr<runtime::disk::DiskCache>& cache) {
  const Target target = Target::parse(work.at("target").get<std::string>());
  if (work.contains("kernels")) {
    const auto texts = work.at("kernels").get<std::vector<std::string>>();
    runtime::warm_kernels(texts, target, *cache);
    return {{"made", texts.size()}};
  }
  const runtime::WarmPlan plan = runtime::warm_plan(runtime::parse_signature(work.at("signature").get<std::string>()),
                                                    target, cache, work.at("make").get<bool>());
  return {{"plans", plan.plans},     {"plans_made", plan.plans_made},       {"kernels", plan.kernels},
          {"missing", plan.missing}, {"library_calls", plan.library_calls}, {"not_there", plan.not_there}};
}

}  // namespace

int warmup_worker() {
  ::signal(SIGINT, SIG_IGN);  // who started us decides
  const int answers = ::dup(STDOUT_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // whatever else is said must not come between
  runtime::disk::DiskCacheOptions settings = runtime::disk::cache_settings().options;
  settings.durable = true;
  const auto cache = std::make_shared<runtime::disk::DiskCache>(settings);
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = std::chrono::steady_clock::now();
    Json said;
    try {
      said = answer(Json::parse(line), cache);
    } catch (const std::exception& error) {
      const std::string sentence = sentence_of(error);
      said = {{"error", sentence.substr(0, sentence.find('\n'))}, {"code", exit_code_of(error)}};
    }
    const runtime::disk::DiskCacheStatistics kept = cache->statistics();
    said["milliseconds"] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    said["not_stored"] = kept.not_stored, said["bytes_written"] = kept.bytes_written, said["evicted"] = kept.evicted;
    const std::string text = said.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t count = ::write(answers, text.data() + done, text.size() - done);
      if (count <= 0) return kFile;
      done += static_cast<std::size_t>(count);
    }
  }
  return kDone;
}

}  // namespace fusejit::tools
