#include "ir/base/cuda_libraries.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace fusejit::ir {
namespace {

std::filesystem::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return cache;
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".cache";
  return {};
}

}  // namespace

std::vector<std::string> cuda_library_names(const std::string& name) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code failed;  // whatever cannot be read holds nothing
  for (const auto& entry : fs::directory_iterator(cache_folder() / "fusejit/cuda/nvidia", failed)) {
    const fs::path file = entry.path() / "lib" / name;
    if (fs::exists(file, failed)) found.push_back(file.string());
  }
  std::sort(found.begin(), found.end());
  found.insert(found.begin(), name);
  return found;
}

}  // namespace fusejit::ir
