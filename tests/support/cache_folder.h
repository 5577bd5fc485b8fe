// An empty cache on disk, for as long as this object lives: FUSEJIT_CACHE_DIR of this process and its children.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace fusejit::test {

class CacheFolder {
 public:
  CacheFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fusejit-cache-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    ::setenv("FUSEJIT_CACHE", "on", 1);
    ::setenv("FUSEJIT_CACHE_DIR", path("cache").c_str(), 1);
  }
  ~CacheFolder() {
    ::setenv("FUSEJIT_CACHE", "off", 1);  // as tests/no_user_cache.cpp leaves it
    ::unsetenv("FUSEJIT_CACHE_DIR");
    ::unsetenv("FUSEJIT_FREEZE");
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  // A file of the test's, beside the cache.
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void clear() const { std::filesystem::remove_all(path("cache")); }

 private:
  std::string folder_;
};

}  // namespace fusejit::test
