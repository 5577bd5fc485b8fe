#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "fusejit/data/dataset.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

namespace fs = std::filesystem;

bool has_ending_of_images(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

// What At, an iterator over folders, finds below `folder`.
template <class At>
std::vector<fs::directory_entry> listed(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (At at(folder, error), end; !error && at != end; at.increment(error)) entries.push_back(*at);
  if (error) throw FileError(fmt::format("{}: cannot be listed: {}", folder.string(), error.message()));
  return entries;
}

}  // namespace

ImageFolder::ImageFolder(const std::string& root, ImageReadMode mode) : mode_(mode) {
  std::error_code ignored;
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : listed<fs::directory_iterator>(root))
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  if (folders.empty()) throw FileError(fmt::format("{}: has no folders, one a class is expected", root));
  for (const fs::path& folder : folders) {
    std::vector<fs::path> images;
    for (const fs::directory_entry& entry : listed<fs::recursive_directory_iterator>(folder)) {
      const fs::file_type type = entry.status(ignored).type();
      if (type == fs::file_type::directory && !entry.is_symlink(ignored)) continue;
      // A link that leads nowhere is named when it is read.
      const bool is_file = type == fs::file_type::regular || type == fs::file_type::not_found;
      if (is_file && has_ending_of_images(entry.path())) {
        images.push_back(entry.path());
      } else {
        skipped_.push_back(entry.path().string());
      }
    }
    if (images.empty()) throw FileError(fmt::format("{}: has no image (.png, .jpg, .jpeg)", folder.string()));
    std::sort(images.begin(), images.end(), [](const fs::path& a, const fs::path& b) {
      return std::tuple(a.parent_path().string(), a.string()) < std::tuple(b.parent_path().string(), b.string());
    });
    const auto label = static_cast<std::int64_t>(classes_.size());
    for (const fs::path& image : images) files_.push_back({image.string(), label});
    classes_.push_back(folder.filename().string());
  }
  std::sort(skipped_.begin(), skipped_.end());
}

const ImageFolder::File& ImageFolder::file(std::int64_t index) const {
  FJ_CHECK(index >= 0 && index < size(), "there is no image {} ({} images)", index, size());
  return files_[static_cast<std::size_t>(index)];
}

Example ImageFolder::get(std::int64_t index) const { return {read_image(file(index).path, mode_), file(index).label}; }

std::string ImageFolder::name(std::int64_t index) const { return file(index).path; }

}  // namespace fusejit::data
