// LruCache: values by key, of which the least recently used ones go when there are too many, or when all together take
// too many bytes. Not thread-safe: its owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>

#include "ir/base/hash.h"

namespace fusejit::ir {

template <class Value>
class LruCache {
 public:
  LruCache(std::size_t most_entries, std::int64_t most_bytes) : most_entries_(most_entries), most_bytes_(most_bytes) {}

  // Null if it is not there. Good until the next add().
  Value* find(const Hash& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }
  // False if there is one already, which stays. What it drives out is moved to `gone`; itself it never is.
  bool add(const Hash& key, Value value, std::int64_t bytes, std::list<Value>& gone) {
    if (places_.contains(key)) return false;
    entries_.push_front({key, std::move(value), bytes});
    places_[key] = entries_.begin();
    bytes_ += bytes;
    while (entries_.size() > 1 && (entries_.size() > most_entries_ || bytes_ > most_bytes_)) {
      Entry& last = entries_.back();
      gone.push_back(std::move(last.value));
      bytes_ -= last.bytes;
      places_.erase(last.key);
      entries_.pop_back();
      ++evictions_;
    }
    return true;
  }

  std::size_t size() const { return entries_.size(); }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t evictions() const { return evictions_; }
  // visit(value) for each, the most recently used first.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Entry& entry : entries_) visit(entry.value);
  }

 private:
  struct Entry {
    Hash key;
    Value value;
    std::int64_t bytes = 0;
  };
  const std::size_t most_entries_;
  const std::int64_t most_bytes_;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<Hash, typename std::list<Entry>::iterator, HashOfHash> places_;
  std::int64_t bytes_ = 0, evictions_ = 0;
};

}  // namespace fusejit::ir
