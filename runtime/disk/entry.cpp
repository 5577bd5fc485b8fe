// Bytes of an entry, integers little-endian:
//
//   "fusejit\n"  u32 schema  u32 number of key parts  u32 number of sections
//   for the kind, each part, each section: u32 bytes of the name, u32 1 if compressed, u64 bytes here, u64 bytes in
//   full for each of them: the name, then the bytes XXH3-128 of everything before
#include "runtime/disk/entry.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/base/check.h"
#include "runtime/disk/bytes.h"

namespace fusejit::runtime::disk {
namespace {

constexpr std::string_view kEntryMagic = "fusejit\n";
constexpr std::size_t kWorthCompressing = 256;
constexpr std::uint32_t kMostItems = 4096;

struct Item {
  std::uint32_t name_bytes = 0;
  bool is_compressed = false;
  std::uint64_t stored_bytes = 0, full_bytes = 0;
};

std::string compressed(const std::string& full) {
  if (full.size() < kWorthCompressing) return full;
  std::string out(ZSTD_compressBound(full.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), full.data(), full.size(), 1);
  if (ZSTD_isError(size) || size >= full.size()) return full;
  out.resize(size);
  return out;
}

bool expand(const Item& item, std::string_view stored, std::string& full) {
  if (!item.is_compressed) {
    full = stored;
    return item.full_bytes == item.stored_bytes;
  }
  if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != item.full_bytes) return false;
  full.resize(item.full_bytes);
  return ZSTD_decompress(full.data(), full.size(), stored.data(), stored.size()) == item.full_bytes;
}

const std::string& kEmpty = *new std::string;

}  // namespace

CacheKey::CacheKey(std::string kind, std::vector<KeyPart> parts) : kind_(std::move(kind)), parts_(std::move(parts)) {
  FJ_ASSERT(!parts_.empty(), "a key has at least one part");
  const auto hash_of = [this](std::size_t count) {
    std::string hashes;
    append(hashes, ir::hash_text(kind_));
    for (std::size_t i = 0; i < count; ++i) {
      append(hashes, ir::hash_text(parts_[i].name));
      append(hashes, ir::hash_text(parts_[i].text));
    }
    return ir::hash_text(hashes);
  };
  subject_ = hash_of(1);
  hash_ = hash_of(parts_.size());
}

const std::string& CacheKey::part(std::string_view name) const {
  const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const KeyPart& p) { return p.name == name; });
  return found == parts_.end() ? kEmpty : found->text;
}

const std::string& Entry::section(std::string_view name) const {
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const Section& s) { return s.name == name; });
  return found == sections.end() ? kEmpty : found->bytes;
}

std::string encode(const CacheKey& key, const std::vector<Section>& sections) {
  std::vector<std::pair<std::string_view, const std::string*>> items = {{"kind", &key.kind()}};
  for (const KeyPart& part : key.parts()) items.emplace_back(part.name, &part.text);
  for (const Section& section : sections) items.emplace_back(section.name, &section.bytes);
  std::size_t full_bytes = 0;
  for (const auto& [name, full] : items) full_bytes += full->size();
  FJ_CHECK(full_bytes <= kMostEntryBytes && items.size() <= kMostItems,
           "{} bytes are too many for an entry of the cache on disk (at most {})", full_bytes, kMostEntryBytes);

  std::string out(kEntryMagic), payload;
  append(out, static_cast<std::uint32_t>(kSchema));
  append(out, static_cast<std::uint32_t>(key.parts().size()));
  append(out, static_cast<std::uint32_t>(sections.size()));
  for (const auto& [name, full] : items) {
    const std::string stored = compressed(*full);
    append(out, static_cast<std::uint32_t>(name.size()));
    append(out, static_cast<std::uint32_t>(stored.size() < full->size()));
    append(out, static_cast<std::uint64_t>(stored.size()));
    append(out, static_cast<std::uint64_t>(full->size()));
    payload.append(name).append(stored);
  }
  out += payload;
  append(out, ir::hash_text(out));
  return out;
}

std::optional<Entry> decode(std::string_view bytes, std::string* why) {
  const auto refuse = [&](const char* sentence) {
    if (why) *why = sentence;
    return std::nullopt;
  };
  if (bytes.size() > kMostEntryBytes) return refuse("it is larger than any entry");
  Reader reader{bytes};
  if (reader.bytes(kEntryMagic.size()) != kEntryMagic) return refuse("it is no entry of a fusejit cache");
  if (reader.integer<std::uint32_t>() != kSchema) return refuse("its format is that of another version");
  constexpr std::size_t kHash = sizeof(ir::Hash);
  if (bytes.size() < kEntryMagic.size() + 4 + kHash) return refuse("it is cut off");
  std::string sum;
  append(sum, ir::hash_text(bytes.substr(0, bytes.size() - kHash)));
  if (bytes.substr(bytes.size() - kHash) != sum) return refuse("its check sum is wrong");
  // From here on only a hostile writer can be wrong.
  reader.rest.remove_suffix(kHash);
  const auto parts = reader.integer<std::uint32_t>(), sections = reader.integer<std::uint32_t>();
  if (reader.failed || parts < 1 || parts > kMostItems || sections > kMostItems) return refuse("its table is wrong");
  std::vector<Item> items(1 + std::size_t{parts} + sections);
  std::uint64_t full_bytes = 0;
  for (Item& item : items) {
    item.name_bytes = reader.integer<std::uint32_t>();
    item.is_compressed = reader.integer<std::uint32_t>() != 0;
    item.stored_bytes = reader.integer<std::uint64_t>();
    item.full_bytes = reader.integer<std::uint64_t>();
    if (reader.failed || item.full_bytes > kMostEntryBytes - full_bytes) return refuse("its table is wrong");
    full_bytes += item.full_bytes;
  }
  std::vector<std::pair<std::string, std::string>> read(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    read[i].first = reader.bytes(items[i].name_bytes);
    const std::string_view stored = reader.bytes(items[i].stored_bytes);
    if (reader.failed || !expand(items[i], stored, read[i].second)) return refuse("its table is wrong");
  }
  if (!reader.rest.empty()) return refuse("its table is wrong");
  std::vector<KeyPart> key;
  for (std::size_t i = 1; i <= parts; ++i) key.push_back({std::move(read[i].first), std::move(read[i].second)});
  Entry entry{CacheKey(std::move(read[0].second), std::move(key)), {}};
  for (std::size_t i = 1 + parts; i < read.size(); ++i)
    entry.sections.push_back({std::move(read[i].first), std::move(read[i].second)});
  return entry;
}

}  // namespace fusejit::runtime::disk
