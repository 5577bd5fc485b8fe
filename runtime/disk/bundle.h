// Bundles: many entries in one file that is only read, to be shipped and laid under a cache. Bytes, integers
// little-endian:
//
//   "fjbundle"  u32 schema  u64 number of entries
//   the entries' bytes, one after the other (entry.h)
//   for each entry: the hash of its subject, the hash of its key, u64 where it begins, u64 its bytes
//   XXH3-128 of the first 20 bytes and that table
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/disk/entry.h"
#include "runtime/disk/files.h"

namespace fusejit::runtime::disk {

struct BundleRow {
  ir::Hash subject, hash;
  std::uint64_t begin = 0, bytes = 0;
};

class Bundle {
 public:
  // Reads the table only. Throws FileError if it cannot be opened or trusted, UserError if it is no bundle.
  Bundle(const std::string& path, Trust trust);

  std::optional<Entry> find(const CacheKey& key) const;
  bool contains(const CacheKey& key) const;
  // Those of the same subject.
  std::vector<Entry> neighbours(const CacheKey& key) const;
  std::size_t size() const { return table_.size(); }
  // The bytes of entry i; UserError if they are damaged.
  std::string bytes(std::size_t i) const;
  const std::string& path() const { return path_; }

 private:
  std::optional<std::string> read(const BundleRow& row) const;

  const std::string path_;
  Handle file_;
  std::vector<BundleRow> table_;  // by hash
};

// Entries one by one, each once; the file appears when finish() has written all of it. Throws FileError.
class BundleWriter {
 public:
  explicit BundleWriter(const std::string& path);
  ~BundleWriter();
  void add(const CacheKey& key, std::string_view bytes);
  std::size_t size() const { return rows_.size(); }
  void finish();

 private:
  void write(std::string_view bytes);

  const std::string path_, temporary_;
  Handle file_;
  std::uint64_t at_ = 0;
  std::map<ir::Hash, BundleRow> rows_;
};

}  // namespace fusejit::runtime::disk
