// fusejit cache: what is in the cache on disk, why something is not, and keeping it in order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/base/check.h"
#include "runtime/disk/plan_store.h"
#include "runtime/disk/settings.h"
#include "runtime/warmup/warmup.h"
#include "tools/fusejit/command.h"
#include "tools/fusejit/warmup.h"
#include "tools/output.h"

namespace fusejit::tools {
namespace {

using namespace runtime::disk;
using Json = nlohmann::json;

CacheSettings settings_for(const CacheOptions& options) {
  CacheSettings settings = cache_settings();
  if (!options.folder.empty())
    settings.options.folder = options.folder, settings.off.clear(), settings.origin = "--cache";
  FJ_CHECK(settings.off.empty(), "there is no cache: {}", settings.off);
  return settings;
}

// An open shard, a file in it, and what it holds if that can be read.
using Visit = std::function<void(const Handle& folder, const FileInfo& file, const std::optional<std::string>& bytes,
                                 const std::string& why)>;

void visit(const CacheSettings& settings, const Visit& each) {
  DiskCacheOptions reading = settings.options;
  reading.read_only = true;
  const DiskCache cache(reading);
  if (!cache.why_unusable().empty()) throw FileError("the cache cannot be read: " + cache.why_unusable());
  for (int shard = 0; shard < DiskCache::kShards; ++shard) {
    std::string why;
    const Handle folder = cache.open_shard(shard, false, why);
    if (!folder) continue;  // nothing was put there yet
    std::vector<FileInfo> files = list_files(folder);
    std::sort(files.begin(), files.end(), [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
    for (const FileInfo& file : files) {
      why.clear();
      const auto bytes = is_temporary(file.name)
                             ? std::nullopt
                             : read_file(folder, file.name, settings.options.trust, kMostEntryBytes, why);
      each(folder, file, bytes, why);
    }
  }
}

struct Totals {
  std::int64_t entries = 0, bytes = 0;
};

std::string size_text(std::int64_t bytes) {
  return bytes < 10240      ? fmt::format("{} B", bytes)
         : bytes < 10 << 20 ? fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024)
                            : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// What an entry is, in a few words.
std::string summary(const Entry& entry) {
  if (entry.key.kind() == "plan") {
    const std::string& graph = entry.section("graph");
    return graph.substr(0, std::min<std::size_t>(graph.find('('), 64));
  }
  const std::string first = entry.section("name") + " " + entry.key.parts()[0].text;
  return first.substr(0, std::min<std::size_t>(first.find('\n'), 64));
}

int put_text(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  finish_output();
  return kDone;
}

}  // namespace

int cache_path(const CacheOptions& options) {
  const CacheSettings settings = settings_for(options);
  return put_text(fmt::format("{}\n", settings.options.folder));
}

int cache_stats(const CacheOptions& options) {
  const CacheSettings settings = settings_for(options);
  std::map<std::string, Totals> by_kind;
  Totals all;
  std::int64_t damaged = 0, temporary = 0;
  std::time_t oldest = 0;
  visit(settings,
        [&](const Handle&, const FileInfo& file, const std::optional<std::string>& bytes, const std::string&) {
          if (is_temporary(file.name)) return void(++temporary);
          const auto entry = bytes ? decode(*bytes) : std::nullopt;
          if (!entry) return void(++damaged);
          for (Totals* sum : {&by_kind[entry->key.kind()], &all}) ++sum->entries, sum->bytes += file.bytes;
          if (oldest == 0 || file.used.tv_sec < oldest) oldest = file.used.tv_sec;
        });
  const auto& most = settings.options.most;
  if (options.json) {
    Json kinds = Json::object();
    for (const auto& [kind, sum] : by_kind) kinds[kind] = {{"entries", sum.entries}, {"bytes", sum.bytes}};
    return put_text(Json{{"schema_version", 1},
                         {"folder", settings.options.folder},
                         {"entries", all.entries},
                         {"bytes", all.bytes},
                         {"most_bytes", most.bytes},
                         {"most_entries", most.files},
                         {"damaged", damaged},
                         {"temporary", temporary},
                         {"oldest_use", oldest},
                         {"kinds", kinds}}
                        .dump(2) +
                    "\n");
  }
  std::string text = fmt::format("{} ({})\n", settings.options.folder, settings.origin);
  for (const auto& [kind, sum] : by_kind)
    text += fmt::format("{:>8} {:<12} {:>12}\n", sum.entries, kind, size_text(sum.bytes));
  text +=
      fmt::format("{:>8} {:<12} {:>12} of {}\n", all.entries, "in all", size_text(all.bytes), size_text(most.bytes));
  if (damaged > 0) text += fmt::format("{:>8} damaged or not to be trusted: fusejit cache verify\n", damaged);
  if (temporary > 0) text += fmt::format("{:>8} left behind by writers that were killed\n", temporary);
  if (oldest > 0) text += fmt::format("last use of the oldest: {} h ago\n", (std::time(nullptr) - oldest) / 3600);
  return put_text(text);
}

int cache_list(const CacheOptions& options) {
  Json list = Json::array();
  std::string text;
  visit(settings_for(options),
        [&](const Handle&, const FileInfo& file, const std::optional<std::string>& bytes, const std::string&) {
          const auto entry = bytes ? decode(*bytes) : std::nullopt;
          if (!entry) return;
          if (options.json) {
            list.push_back({{"id", entry->key.hash().hex()},
                            {"kind", entry->key.kind()},
                            {"bytes", file.bytes},
                            {"used", file.used.tv_sec},
                            {"what", summary(*entry)}});
          } else {
            text += fmt::format("{:.12}  {:<12} {:>11}  {}\n", entry->key.hash().hex(), entry->key.kind(),
                                size_text(file.bytes), summary(*entry));
          }
        });
  return put_text(options.json ? Json{{"schema_version", 1}, {"entries", list}}.dump(2) + "\n" : text);
}

int cache_explain(const CacheOptions& options) {
  const auto cache = std::make_shared<DiskCache>(settings_for(options).options);
  WarmupOptions what;
  what.sources = options.sources, what.targets = options.targets, what.rules = options.rules,
  what.memory_limit = options.memory_limit, what.dtype = options.dtype;
  std::vector<std::string> notes;
  std::string text;
  bool all_there = true;
  for (const WarmupItem& item : warmup_items(what, notes)) {
    for (const std::string& line : runtime::explain_warm(item.signature, item.target, cache)) {
      text += fmt::format("{} @{}: {}\n", item.source, item.signature.graph.name(), line);
      all_there &= line.ends_with(" there");
    }
  }
  for (const std::string& note : notes) std::fprintf(stderr, "fusejit: left out: %s\n", note.c_str());
  put_text(text);
  return all_there ? kDone : kDifferent;
}

int cache_verify(const CacheOptions& options) {
  std::int64_t good = 0, bad = 0;
  std::string text;
  visit(settings_for(options), [&](const Handle& folder, const FileInfo& file, const std::optional<std::string>& bytes,
                                   const std::string& why) {
    if (is_temporary(file.name)) return;
    std::string damage = why.empty() ? "it is gone" : why;
    auto entry = bytes ? decode(*bytes, &damage) : std::nullopt;
    if (entry && DiskCache::file_name(entry->key) != file.name) damage = "it is another key's", entry.reset();
    if (entry) return void(++good);
    ++bad;
    text +=
        fmt::format("{}: {}{}\n", file.name, damage, options.fix && unlink_if_same(folder, file) ? "; removed" : "");
  });
  put_text(text + fmt::format("{} entries are whole, {} are not\n", good, bad));
  return bad == 0 || options.fix ? kDone : kDifferent;
}

int cache_prune(const CacheOptions& options) {
  const CacheSettings settings = settings_for(options);
  std::vector<std::pair<int, FileInfo>> files;
  const DiskCache cache(settings.options);
  if (!cache.why_unusable().empty()) throw FileError("the cache cannot be used: " + cache.why_unusable());
  std::int64_t bytes = 0;
  for (int shard = 0; shard < DiskCache::kShards; ++shard) {
    std::string why;
    const Handle folder = cache.open_shard(shard, false, why);
    if (!folder) continue;
    for (FileInfo& file : list_files(folder)) bytes += file.bytes, files.emplace_back(shard, std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.second.used.tv_sec < b.second.used.tv_sec; });
  const std::int64_t most_bytes = options.clear ? 0 : options.most_bytes,
                     most_files = options.clear ? 0 : options.most_files;
  const std::time_t now = std::time(nullptr);
  std::int64_t left = static_cast<std::int64_t>(files.size()), removed = 0, freed = 0;
  for (const auto& [shard, file] : files) {
    const bool is_old =
        options.older_than_days >= 0 && static_cast<double>(now - file.used.tv_sec) > options.older_than_days * 86400;
    const bool is_over =
        options.clear || (most_bytes >= 0 && bytes > most_bytes) || (most_files >= 0 && left > most_files);
    if (!is_old && !is_over) continue;
    std::string why;
    const Handle folder = cache.open_shard(shard, false, why);
    if (!options.dry_run && !(folder && unlink_if_same(folder, file))) continue;
    bytes -= file.bytes, freed += file.bytes, --left, ++removed;
  }
  return put_text(fmt::format("{} {} entries ({}), {} are left ({})\n", options.dry_run ? "would remove" : "removed",
                              removed, size_text(freed), left, size_text(bytes)));
}

int cache_export(const CacheOptions& options) {
  BundleWriter writer(options.output);
  visit(settings_for(options),
        [&](const Handle&, const FileInfo&, const std::optional<std::string>& bytes, const std::string&) {
          if (const auto entry = bytes ? decode(*bytes) : std::nullopt) writer.add(entry->key, *bytes);
        });
  writer.finish();
  return put_text(fmt::format("{} entries in {}\n", writer.size(), options.output));
}

int cache_import(const CacheOptions& options) {
  FJ_CHECK(options.trust, "{} holds machine code: import it with --trust if you know who made it",
           fmt::join(options.sources, ", "));
  CacheSettings settings = settings_for(options);
  settings.options.durable = true;
  DiskCache cache(settings.options);
  if (!cache.why_unusable().empty()) throw FileError("the cache cannot be used: " + cache.why_unusable());
  std::size_t count = 0;
  std::vector<Bundle> bundles;
  for (const std::string& path : options.sources) {  // all of it is looked at before any of it is taken
    const Bundle& bundle = bundles.emplace_back(path, Trust::shared);
    for (std::size_t i = 0; i < bundle.size(); ++i) bundle.bytes(i);
  }
  for (const Bundle& bundle : bundles) {
    for (std::size_t i = 0; i < bundle.size(); ++i, ++count) {
      const auto entry = decode(bundle.bytes(i));
      cache.put(entry->key, entry->sections);
    }
  }
  const DiskCacheStatistics kept = cache.statistics();
  if (kept.not_stored > 0)
    throw FileError(fmt::format("{} of {} entries could not be written", kept.not_stored, count));
  return put_text(fmt::format("{} entries imported into {}\n", count, settings.options.folder));
}

int cache_merge(const CacheOptions& options) {
  BundleWriter writer(options.output);
  for (const std::string& path : options.sources) {
    const Bundle bundle(path, Trust::shared);
    for (std::size_t i = 0; i < bundle.size(); ++i) {
      const std::string bytes = bundle.bytes(i);
      writer.add(decode(bytes)->key, bytes);
    }
  }
  writer.finish();
  return put_text(fmt::format("{} entries in {}\n", writer.size(), options.output));
}

}  // namespace fusejit::tools
