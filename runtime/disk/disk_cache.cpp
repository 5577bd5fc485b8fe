#include "runtime/disk/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <utility>

#include "fusejit/error.h"

namespace fusejit::runtime::disk {
namespace {

// Makes backup programs leave the folder out (bford.info/cachedir).
constexpr std::string_view kTag = "Signature: 8a477f597d28d172789f06886806bc55\n# Kernels and plans of fusejit.\n";

std::string shard_name(int shard) { return fmt::format("{:x}", shard); }

// One file's part of a bound, of which every process may write so much between two looks at the folder.
bool is_due(const Bound& written, const Bound& most) {
  return written.bytes * 50 >= most.bytes || written.files * 50 >= most.files;
}

}  // namespace

DiskCache::DiskCache(DiskCacheOptions options) : options_(std::move(options)) {
  for (const std::string& path : options_.bundles) {
    try {
      bundles_.emplace_back(path, options_.trust);
    } catch (const Error& error) {
      failed(error.what());
    }
  }
  std::string why;
  const Handle root = open_folder(options_.folder, options_.trust, !options_.read_only, why);
  const Handle version =
      root ? open_folder_in(root, fmt::format("v{}", kSchema), options_.trust, !options_.read_only, why) : Handle();
  if (version) {
    if (!options_.read_only && ::faccessat(root.get(), "CACHEDIR.TAG", F_OK, 0) != 0) {
      std::string ignored;
      write_file(root, "CACHEDIR.TAG", kTag, false, ignored);
    }
    return;
  }
  why_unusable_ = why.empty() ? "it is not there" : why;
  if (!why.empty() || !options_.read_only) failed(why_unusable_);
}

std::string DiskCache::folder() const { return fmt::format("{}/v{}", options_.folder, kSchema); }

std::string DiskCache::file_name(const CacheKey& key) {
  return fmt::format("{:.16}-{}.entry", key.subject().hex(), key.hash().hex());
}

int DiskCache::shard_of(const CacheKey& key) { return static_cast<int>(key.subject().high >> 60); }

Handle DiskCache::open_shard(int shard, bool create, std::string& why) const {
  return open_folder(folder() + "/" + shard_name(shard), options_.trust, create, why);
}

std::optional<Entry> DiskCache::find_in_folder(const CacheKey& key, std::string& why, std::string& damage) {
  if (!why_unusable_.empty()) return std::nullopt;
  const Handle folder = open_shard(shard_of(key), false, why);
  if (!folder) return std::nullopt;
  const std::string name = file_name(key);
  struct stat status = {};
  const std::optional<std::string> bytes = read_file(folder, name, options_.trust, kMostEntryBytes, why, &status);
  if (!bytes) return std::nullopt;
  std::optional<Entry> entry = decode(*bytes, &damage);
  if (entry && !(entry->key == key)) damage = "it is another key's", entry.reset();
  if (!entry && !options_.read_only) unlink_if_same(folder, {name, 0, status.st_mtim, status.st_ino});
  if (entry && !options_.read_only && std::time(nullptr) - status.st_mtim.tv_sec >= options_.stamp_seconds) {
    const timespec now[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
    ::utimensat(folder.get(), name.c_str(), now, AT_SYMLINK_NOFOLLOW);
  }
  const std::lock_guard lock(mutex_);
  statistics_.bytes_read += static_cast<std::int64_t>(bytes->size());
  return entry;
}

std::optional<Entry> DiskCache::find(const CacheKey& key) {
  try {
    return find_anywhere(key);
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    return ++statistics_.misses, std::nullopt;
  }
}

std::optional<Entry> DiskCache::find_anywhere(const CacheKey& key) {
  std::string why, damage;
  std::optional<Entry> entry = find_in_folder(key, why, damage);
  for (std::size_t i = 0; i < bundles_.size() && !entry; ++i) entry = bundles_[i].find(key);
  {
    const std::lock_guard lock(mutex_);
    entry ? ++statistics_.hits : ++statistics_.misses;
    if (!damage.empty()) ++statistics_.damaged;
  }
  if (!damage.empty()) say(said_damage_, fmt::format("{}: {}; it is made again", file_name(key), damage));
  if (!why.empty()) failed(why);
  return entry;
}

bool DiskCache::contains(const CacheKey& key) {
  std::string why;
  const Handle folder = open_shard(shard_of(key), false, why);
  if (folder && ::faccessat(folder.get(), file_name(key).c_str(), R_OK, AT_SYMLINK_NOFOLLOW) == 0) return true;
  return std::any_of(bundles_.begin(), bundles_.end(), [&](const Bundle& bundle) { return bundle.contains(key); });
}

Handle DiskCache::take_turn(const CacheKey& key) {
  return why_unusable_.empty() && !options_.read_only ? turns_.take(folder(), key.hash()) : Handle();
}

std::vector<std::pair<Entry, std::time_t>> DiskCache::neighbours(const CacheKey& key) const {
  std::vector<std::pair<Entry, std::time_t>> found;
  std::string why;
  const Handle folder = open_shard(shard_of(key), false, why);
  const std::string name = file_name(key);
  const std::string prefix = name.substr(0, name.find('-') + 1);
  std::vector<FileInfo> files = folder ? list_files(folder) : std::vector<FileInfo>();
  std::sort(files.begin(), files.end(), [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  for (const FileInfo& file : files) {
    if (!file.name.starts_with(prefix)) continue;
    const auto bytes = read_file(folder, file.name, options_.trust, kMostEntryBytes, why);
    std::optional<Entry> entry = bytes ? decode(*bytes) : std::nullopt;
    if (entry && file_name(entry->key) == file.name) found.emplace_back(*std::move(entry), file.used.tv_sec);
  }
  for (const Bundle& bundle : bundles_) {
    for (Entry& entry : bundle.neighbours(key)) found.emplace_back(std::move(entry), 0);
  }
  std::erase_if(found, [&](const auto& one) { return one.first.key.kind() != key.kind(); });
  return found;
}

void DiskCache::put(const CacheKey& key, const std::vector<Section>& sections) noexcept {
  if (!why_unusable_.empty() || options_.read_only) return;
  try {
    const std::string bytes = encode(key, sections);
    const int shard = shard_of(key);
    std::string why;
    const Handle folder = open_shard(shard, true, why);
    const bool stored = folder && make_room(shard, folder, static_cast<std::int64_t>(bytes.size()), why) &&
                        write_file(folder, file_name(key), bytes, options_.durable, why);
    if (!stored) failed(why);
    const std::lock_guard lock(mutex_);
    ++(stored ? statistics_.stored : statistics_.not_stored);
    if (stored) statistics_.bytes_written += static_cast<std::int64_t>(bytes.size());
  } catch (const std::exception&) {  // too large, or no memory: it is not kept
    const std::lock_guard lock(mutex_);
    ++statistics_.not_stored;
  }
}

void DiskCache::remove(const CacheKey& key) noexcept {
  if (options_.read_only) return;
  std::string why;
  if (const Handle folder = open_shard(shard_of(key), false, why)) ::unlinkat(folder.get(), file_name(key).c_str(), 0);
}

void DiskCache::refused(const CacheKey& key, const std::string& why) {
  remove(key);
  say(said_refusal_, fmt::format("{}: {}; it is made again", file_name(key), why));
}

bool DiskCache::make_room(int shard, const Handle& folder, std::int64_t bytes, std::string& why) {
  const Bound most = {options_.most.bytes / kShards, options_.most.files / kShards};
  if (bytes > most.bytes || most.files < 1)
    return why = fmt::format("an entry of {} bytes needs more than its part of the {} that are allowed", bytes,
                             options_.most.bytes),
           false;
  {
    const std::lock_guard lock(mutex_);
    Shard& state = shards_[static_cast<std::size_t>(shard)];
    state.since_seen.bytes += bytes, ++state.since_seen.files;
    if (state.was_seen && !is_due(state.since_seen, most)) return true;
    state.was_seen = true;
    state.since_seen = {};
  }
  const Pruned pruned = prune(folder, most);
  const std::lock_guard lock(mutex_);
  statistics_.evicted += pruned.removed.files;
  return true;
}

void DiskCache::say(bool& said, const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(said, true)) return;
  }
  if (options_.log) options_.log(fmt::format("cache {}: {}", options_.folder, line));
}

void DiskCache::failed(const std::string& why) {
  say(said_failure_, why + " (FUSEJIT_CACHE_DIR names another folder, FUSEJIT_CACHE=off does without)");
}

std::string DiskCache::why_unusable() const { return why_unusable_; }

DiskCacheStatistics DiskCache::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace fusejit::runtime::disk
