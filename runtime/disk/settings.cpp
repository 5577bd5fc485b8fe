#include "runtime/disk/settings.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "ir/base/check.h"

namespace fusejit::runtime::disk {
namespace {

std::string variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value ? value : "";
}

bool flag(const char* name) {
  const std::string value = variable(name);
  FJ_CHECK(value.empty() || value == "0" || value == "1", "{} is '{}' (0, 1)", name, value);
  return value == "1";
}

// The folder stays where it is when the program goes elsewhere.
std::string absolute(const std::string& path) {
  std::error_code no_current_folder;
  const std::string full = std::filesystem::absolute(path, no_current_folder).string();
  return no_current_folder ? path : full;
}

int place(const std::string& mode) {
  static constexpr std::string_view kModes[] = {"off", "read", "on"};
  return static_cast<int>(std::find(std::begin(kModes), std::end(kModes), mode) - std::begin(kModes));
}

}  // namespace

std::int64_t parse_size(const std::string& what, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  constexpr std::string_view kUnits = "kmgt";
  const std::size_t power =
      unit.size() == 1 ? kUnits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(unit[0])))) + 1 : 0;
  const bool is_meant = error == std::errc() && number >= 0 && (unit.empty() || (unit.size() == 1 && power > 0)) &&
                        number <= std::numeric_limits<std::int64_t>::max() >> (10 * power);
  FJ_CHECK(is_meant, "{} is '{}', it must be a size such as 500M or 4G", what, text);
  return number << (10 * power);
}

CacheSettings cache_settings() {
  CacheSettings settings;
  if (::getauxval(AT_SECURE) != 0) return settings.off = "this program runs with more rights than its user", settings;
  const std::string mode = variable("FUSEJIT_CACHE");
  FJ_CHECK(mode.empty() || place(mode) < 3, "FUSEJIT_CACHE is '{}' (on, read, off)", mode);
  settings.options.read_only = mode == "read";
  settings.options.trust = flag("FUSEJIT_CACHE_SHARED") ? Trust::shared : Trust::owner;
  if (const std::string size = variable("FUSEJIT_CACHE_MAX_SIZE"); !size.empty())
    settings.options.most.bytes = parse_size("FUSEJIT_CACHE_MAX_SIZE", size);
  for (std::string paths = variable("FUSEJIT_CACHE_BUNDLES"); !paths.empty();) {
    const std::size_t colon = std::min(paths.find(':'), paths.size());
    if (colon > 0) settings.options.bundles.push_back(paths.substr(0, colon));
    paths.erase(0, colon + 1);
  }
  std::string& folder = settings.options.folder;
  for (const auto& [name, below] :
       {std::pair("FUSEJIT_CACHE_DIR", ""), std::pair("XDG_CACHE_HOME", "/fusejit/compiled"),
        std::pair("HOME", "/.cache/fusejit/compiled")}) {
    const std::string value = variable(name);
    if (value.empty() || (value[0] != '/' && *below != '\0')) continue;  // XDG: a relative path counts as none
    folder = absolute(value + below), settings.origin = name;
    break;
  }
  if (folder.empty()) settings.off = "neither FUSEJIT_CACHE_DIR nor HOME is set";
  if (mode == "off") settings.off = "FUSEJIT_CACHE=off", settings.is_wanted_off = true;
  return settings;
}

bool is_frozen() { return flag("FUSEJIT_FREEZE"); }

std::shared_ptr<DiskCache> user_cache(const std::string& mode, const std::function<void(const std::string&)>& log) {
  FJ_CHECK(place(mode) < 3, "cache '{}' is not known (on, read, off)", mode);
  CacheSettings settings = cache_settings();
  if (mode == "off") return nullptr;
  if (!settings.off.empty()) {
    if (log && !settings.is_wanted_off) log("no cache on disk: " + settings.off);
    return nullptr;
  }
  settings.options.read_only |= mode == "read";
  settings.options.log = log;
  static auto& mutex = *new std::mutex;  // never destroyed: what is static may still evaluate at the end
  static auto& last = *new std::weak_ptr<DiskCache>;
  const std::lock_guard lock(mutex);
  const auto same = [&](const DiskCacheOptions& one, const DiskCacheOptions& other) {
    return one.folder == other.folder && one.read_only == other.read_only && one.trust == other.trust &&
           one.most.bytes == other.most.bytes && one.durable == other.durable && one.bundles == other.bundles;
  };
  if (auto cache = last.lock(); cache && same(cache->options(), settings.options)) return cache;
  auto cache = std::make_shared<DiskCache>(std::move(settings.options));
  last = cache;
  return cache;
}

}  // namespace fusejit::runtime::disk
