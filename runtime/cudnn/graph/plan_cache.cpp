#include "runtime/cudnn/graph/plan_cache.h"

#include "ir/base/check.h"
#include "ir/base/hash.h"

namespace fusejit::runtime::cudnn {
namespace {

// "fusejit cudnn plan 1 <32 digits> <key>\n<json>"
constexpr std::string_view kMagic = "fusejit cudnn plan 1 ";
constexpr std::size_t kDigits = 32;

std::string check_sum(std::string_view key, std::string_view json) {
  return ir::hash_text(fmt::format("{}\n{}", key, json)).hex();
}

struct Read {
  bool ok = false;
  std::string key, json;
};

Read read(std::string_view text) {
  if (!text.starts_with(kMagic)) return {};
  text.remove_prefix(kMagic.size());
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || end < kDigits + 1 || text[kDigits] != ' ') return {};
  const std::string_view sum = text.substr(0, kDigits), key = text.substr(kDigits + 1, end - kDigits - 1);
  const std::string_view json = text.substr(end + 1);
  if (key.empty() || json.empty() || check_sum(key, json) != sum) return {};
  return {true, std::string(key), std::string(json)};
}

}  // namespace

std::string plan_text(const std::string& key, const std::string& json) {
  return fmt::format("{}{} {}\n{}", kMagic, check_sum(key, json), key, json);
}

PlanCache::Entry& PlanCache::enter(const std::string& key) {
  const auto [at, is_new] = entries_.try_emplace(key);
  if (is_new) {
    order_.push_front(key);
  } else {
    order_.splice(order_.begin(), order_, at->second.age);
  }
  at->second.age = order_.begin();
  Entry& entry = at->second;
  if (entries_.size() > capacity_) erase(std::string(order_.back()));
  return entry;
}

void PlanCache::erase(const std::string& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  order_.erase(at->second.age);
  entries_.erase(at);
}

PlanCache::Kept PlanCache::find(const std::string& key, const Reload& reload) {
  std::string json;
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(key);
    if (at == entries_.end()) return ++statistics_.misses, nullptr;
    order_.splice(order_.begin(), order_, at->second.age);
    if (at->second.plan) return ++statistics_.hits, at->second.plan;
    json = at->second.json;
  }
  Kept plan;
  try {
    plan = std::make_shared<const Plan>(reload(json));
  } catch (const Error&) {  // of another device or version, or no plan at all: planned anew
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(key);
    if (at != entries_.end() && !at->second.plan) erase(key);
    ++statistics_.refused_texts, ++statistics_.misses;
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  ++statistics_.hits, ++statistics_.reloads;
  Entry& entry = enter(key);
  if (!entry.plan) entry.plan = std::move(plan), entry.json.clear();
  return entry.plan;
}

void PlanCache::keep(const std::string& key, Kept plan) {
  FJ_ASSERT(plan, "cudnn: no plan is kept for {}", key);
  const std::lock_guard lock(mutex_);
  Entry& entry = enter(key);
  entry.plan = std::move(plan), entry.json.clear();
}

bool PlanCache::add_text(std::string_view text) {
  Read read = cudnn::read(text);
  const std::lock_guard lock(mutex_);
  if (!read.ok) return ++statistics_.refused_texts, false;
  Entry& entry = enter(read.key);
  if (!entry.plan) entry.json = std::move(read.json);
  return true;
}

std::vector<std::string> PlanCache::texts() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> result;
  for (auto key = order_.rbegin(); key != order_.rend(); ++key) {
    const Entry& entry = entries_.at(*key);
    result.push_back(plan_text(*key, entry.plan ? entry.plan->json() : entry.json));
  }
  return result;
}

std::size_t PlanCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

PlanCacheStatistics PlanCache::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace fusejit::runtime::cudnn
