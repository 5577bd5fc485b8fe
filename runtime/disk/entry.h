// What a cache on disk holds: an entry is its whole key and its sections, one file each, with a check sum over all of
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/hash.h"

namespace fusejit::runtime::disk {

struct KeyPart {
  std::string name;
  std::string text;
  friend bool operator==(const KeyPart&, const KeyPart&) = default;
};

// Everything that decides about what was made, part by part, so that a miss can be explained. The first part says what
// is made, the others how and for whom: entries that agree in kind and first part are each other's neighbours.
class CacheKey {
 public:
  CacheKey(std::string kind, std::vector<KeyPart> parts);
  const std::string& kind() const { return kind_; }
  const std::vector<KeyPart>& parts() const { return parts_; }
  // "" if there is no part of that name.
  const std::string& part(std::string_view name) const;
  const ir::Hash& subject() const { return subject_; }  // of kind and first part
  const ir::Hash& hash() const { return hash_; }        // of everything
  friend bool operator==(const CacheKey& a, const CacheKey& b) { return a.kind_ == b.kind_ && a.parts_ == b.parts_; }

 private:
  std::string kind_;
  std::vector<KeyPart> parts_;
  ir::Hash subject_, hash_;
};

struct Section {
  std::string name;
  std::string bytes;
};

struct Entry {
  CacheKey key;
  std::vector<Section> sections;
  // "" if there is none of that name.
  const std::string& section(std::string_view name) const;
};

// The layout of an entry's bytes: raised with every change of it. Part of the folder's name, so that other versions
// never meet.
constexpr int kSchema = 1;
// More than that is neither written nor read.
constexpr std::size_t kMostEntryBytes = std::size_t{64} << 20;

// UserError if it is too large.
std::string encode(const CacheKey& key, const std::vector<Section>& sections);
// Nothing if these are not exactly the bytes that encode() wrote; then `why` is a sentence. Allocates no more than
// kMostEntryBytes whatever the bytes claim.
std::optional<Entry> decode(std::string_view bytes, std::string* why = nullptr);

}  // namespace fusejit::runtime::disk
