#include "runtime/disk/prune.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace fusejit::runtime::disk {
namespace {

constexpr std::time_t kAbandoned = 3600;  // seconds

bool is_earlier(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

FileInfo info(std::string name, const struct stat& status) {
  return {std::move(name), std::int64_t{status.st_blocks} * 512, status.st_mtim, status.st_ino};
}

}  // namespace

std::vector<FileInfo> list_files(const Handle& folder) {
  std::vector<FileInfo> files;
  const int fd = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  if (!entries) return files;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (!is_entry(entry->d_name) && !is_temporary(entry->d_name)) continue;  // not ours
    struct stat status = {};
    if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    files.push_back(info(entry->d_name, status));
  }
  return files;
}

bool unlink_if_same(const Handle& folder, const FileInfo& file) {
  struct stat status = {};
  if (::fstatat(folder.get(), file.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const FileInfo now = info(file.name, status);
  if (now.inode != file.inode || is_earlier(file.used, now.used)) return false;
  return ::unlinkat(folder.get(), file.name.c_str(), 0) == 0;
}

Pruned prune(const Handle& folder, const Bound& most) {
  Pruned pruned;
  const auto note = [&](Bound& sum, const FileInfo& file) { sum.bytes += file.bytes, ++sum.files; };
  std::vector<FileInfo> files = list_files(folder);
  const std::time_t now = std::time(nullptr);
  std::erase_if(files, [&](const FileInfo& file) {
    const bool is_abandoned = is_temporary(file.name) && now - file.used.tv_sec > kAbandoned;
    const bool goes = is_abandoned && unlink_if_same(folder, file);
    note(goes ? pruned.removed : pruned.left, file);
    return is_temporary(file.name);  // it counts, but its writer needs it
  });
  if (pruned.left.bytes <= most.bytes && pruned.left.files <= most.files) return pruned;
  std::sort(files.begin(), files.end(),
            [](const FileInfo& a, const FileInfo& b) { return is_earlier(a.used, b.used); });
  for (const FileInfo& file : files) {
    if (pruned.left.bytes <= most.bytes / 5 * 4 && pruned.left.files <= most.files * 4 / 5) break;
    if (!unlink_if_same(folder, file)) continue;
    note(pruned.removed, file);
    pruned.left.bytes -= file.bytes, --pruned.left.files;
  }
  return pruned;
}

}  // namespace fusejit::runtime::disk
