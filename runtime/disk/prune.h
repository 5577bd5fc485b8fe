// What lies in a folder of the cache, and keeping it within bounds.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "runtime/disk/files.h"

namespace fusejit::runtime::disk {

struct Bound {
  std::int64_t bytes = 0;  // on the disk
  std::int64_t files = 0;
};

struct FileInfo {
  std::string name;
  std::int64_t bytes = 0;  // on the disk
  timespec used = {};      // when it was written or last found
  std::uint64_t inode = 0;
};

// Entries and what writers left behind, in no order.
std::vector<FileInfo> list_files(const Handle& folder);
// Unlinks the file unless it is another one by now. True if it went.
bool unlink_if_same(const Handle& folder, const FileInfo& file);

struct Pruned {
  Bound removed, left;
};
// Nothing, if the folder is within `most`; else the least recently used go until it is within four fifths of it, so
// that the next ones find room. What writers left behind goes after an hour.
Pruned prune(const Handle& folder, const Bound& most);

}  // namespace fusejit::runtime::disk
