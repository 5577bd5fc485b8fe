// DiskCache: entries in a folder of the user's, found by key. Any number of processes use one folder at a time; no lock
// decides what is right: a file is written whole or not at all, and what cannot be read, trusted or understood is a
// miss. Nothing that goes wrong here stops a program; it is counted, said once, and the work is done again.
//
//   root/v1/<x>/<subject>-<hash>.entry      x: the first digit of the subject, so that neighbours share a folder
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/disk/bundle.h"
#include "runtime/disk/entry.h"
#include "runtime/disk/files.h"
#include "runtime/disk/prune.h"
#include "runtime/disk/turn.h"

namespace fusejit::runtime::disk {

struct DiskCacheOptions {
  std::string folder;
  std::vector<std::string> bundles = {};  // looked through, in this order, for what is not in the folder
  bool read_only = false;
  bool durable = false;  // what was put survives a power cut; otherwise that may lose it, and a damaged file is a miss
  Trust trust = Trust::owner;
  Bound most = {std::int64_t{4} << 30, 65536};  // the least recently used go first
  int stamp_seconds = 3600;                     // a use is noted on the file once in that time
  std::function<void(const std::string& line)> log = {};
};

struct DiskCacheStatistics {
  std::int64_t hits = 0;
  std::int64_t misses = 0;
  std::int64_t damaged = 0;  // misses because a file was not what had been written
  std::int64_t stored = 0;
  std::int64_t not_stored = 0;
  std::int64_t evicted = 0;
  std::int64_t bytes_read = 0, bytes_written = 0;
};

class DiskCache {
 public:
  static constexpr int kShards = 16;

  // A folder that cannot be used is a cache that finds and keeps nothing; said once through `log`.
  explicit DiskCache(DiskCacheOptions options);

  // Nothing also where there is no memory for it.
  std::optional<Entry> find(const CacheKey& key);
  bool contains(const CacheKey& key);  // without reading more than its name, or counting
  void put(const CacheKey& key, const std::vector<Section>& sections) noexcept;
  // Before an entry is made: afterwards, another process may have made it. Held until the handle goes, or not at all.
  Handle take_turn(const CacheKey& key);
  // Entries of the same kind and subject, wherever they are, and when they were last used (0: in a bundle).
  std::vector<std::pair<Entry, std::time_t>> neighbours(const CacheKey& key) const;
  void remove(const CacheKey& key) noexcept;
  // Its bytes were as written, but who is to run them does not take them: it is removed, and the log says so once.
  void refused(const CacheKey& key, const std::string& why);

  const DiskCacheOptions& options() const { return options_; }
  // root/v1
  std::string folder() const;
  // Why nothing is kept; empty if things are.
  std::string why_unusable() const;
  DiskCacheStatistics statistics() const;

  static std::string file_name(const CacheKey& key);
  static int shard_of(const CacheKey& key);
  // Not open, with `why`, if it is not there or not to be trusted.
  Handle open_shard(int shard, bool create, std::string& why) const;

 private:
  struct Shard {
    bool was_seen = false;
    Bound since_seen;  // what this process wrote there
  };
  // False if so much is not allowed.
  bool make_room(int shard, const Handle& folder, std::int64_t bytes, std::string& why);
  void say(bool& said, const std::string& line);
  void failed(const std::string& why);

  std::optional<Entry> find_anywhere(const CacheKey& key);
  std::optional<Entry> find_in_folder(const CacheKey& key, std::string& why, std::string& damage);

  const DiskCacheOptions options_;
  std::vector<Bundle> bundles_;
  mutable std::mutex mutex_;  // of what follows
  std::string why_unusable_;
  bool said_failure_ = false, said_damage_ = false, said_refusal_ = false;  // one line for each
  DiskCacheStatistics statistics_;
  std::array<Shard, kShards> shards_;
  Turns turns_;
};

}  // namespace fusejit::runtime::disk
