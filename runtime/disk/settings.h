// Where the cache on disk is and what it may do, as the environment says:
//
//   FUSEJIT_CACHE           on (default), read (nothing is written), off
//   FUSEJIT_CACHE_DIR       the folder; else $XDG_CACHE_HOME/fusejit/compiled, else ~/.cache/fusejit/compiled
//   FUSEJIT_CACHE_MAX_SIZE  4G, 500M: the least recently used goes when there is more
//   FUSEJIT_CACHE_BUNDLES   a.fjb:b.fjb, looked through for what is not in the folder
//   FUSEJIT_CACHE_SHARED=1  the folder may be written by others, who are all trusted
//   FUSEJIT_FREEZE=1        what is not there is an error instead of being made
#pragma once

#include <memory>
#include <string>

#include "runtime/disk/disk_cache.h"

namespace fusejit::runtime::disk {

struct CacheSettings {
  DiskCacheOptions options;
  std::string off;  // why there is no cache; empty if there is one
  bool is_wanted_off = false;
  std::string origin;  // what named the folder: "FUSEJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"
};

// Throws UserError for a value that cannot be meant. A program that runs with more rights than its user reads none.
CacheSettings cache_settings();
bool is_frozen();
// "4G", "500M", "64k", "1000": bytes. Throws UserError, naming `what`.
std::int64_t parse_size(const std::string& what, const std::string& text);

// The cache of those settings, one for a process as long as they stay; null if there is none. `mode`: "on", "read" or
// "off", where the environment does not ask for less.
std::shared_ptr<DiskCache> user_cache(const std::string& mode, const std::function<void(const std::string&)>& log);

}  // namespace fusejit::runtime::disk
