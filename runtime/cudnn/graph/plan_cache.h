// PlanCache: plans of cuDNN by key (plan_key), in memory, the least recently used the first to go. A plan goes out as a
// text and comes back from it in milliseconds, compiled code included, so that a disk can keep it. A text that is
// damaged, or that cuDNN does not take, is a miss and never an error.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/cudnn/graph/plan.h"

namespace fusejit::runtime::cudnn {

struct PlanCacheStatistics {
  std::int64_t hits = 0;
  std::int64_t reloads = 0;  // hits that were made from a text
  std::int64_t misses = 0;
  std::int64_t refused_texts = 0;  // damaged, or not taken by cuDNN
};

// The text form: a line with key and check sum, then cuDNN's JSON.
std::string plan_text(const std::string& key, const std::string& json);

class PlanCache {
 public:
  using Kept = std::shared_ptr<const Plan>;
  // Makes a plan from its JSON. Throws where cuDNN refuses.
  using Reload = std::function<Plan(const std::string& json)>;

  explicit PlanCache(std::size_t capacity = 1024) : capacity_(capacity) {}

  // The plan of that key; null: a miss.
  Kept find(const std::string& key, const Reload& reload);
  void keep(const std::string& key, Kept plan);

  // Takes a text in, to be tried when its key is asked for; a plan that is there already stays. False if the text is
  // damaged.
  bool add_text(std::string_view text);
  // All that is kept, the least recently used first: taken in again in this order they are as recent as they were.
  std::vector<std::string> texts() const;

  std::size_t size() const;
  PlanCacheStatistics statistics() const;

 private:
  struct Entry {
    Kept plan;         // null: only its JSON is here
    std::string json;  // empty: cuDNN has it
    std::list<std::string>::iterator age;
  };
  Entry& enter(const std::string& key);
  void erase(const std::string& key);

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
  std::list<std::string> order_;  // most recently used first
  PlanCacheStatistics statistics_;
};

}  // namespace fusejit::runtime::cudnn
