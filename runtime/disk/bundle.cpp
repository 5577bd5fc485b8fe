#include "runtime/disk/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ir/base/check.h"
#include "runtime/disk/bytes.h"

namespace fusejit::runtime::disk {
namespace {

constexpr std::string_view kBundleMagic = "fjbundle";
constexpr std::size_t kHead = 20, kRow = 48, kSum = 16;
constexpr std::uint64_t kMostEntries = 1 << 24;

std::string failure(const std::string& path) { return fmt::format("{}: {}", path, std::strerror(errno)); }

std::optional<std::string> read_at(const Handle& file, std::uint64_t at, std::uint64_t count) {
  std::string bytes(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const ssize_t got = ::pread(file.get(), bytes.data() + have, count - have, static_cast<off_t>(at + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    have += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace

Bundle::Bundle(const std::string& path, Trust trust)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_) throw FileError(failure(path));
  struct stat status = {};
  if (::fstat(file_.get(), &status) != 0) throw FileError(failure(path));
  FJ_CHECK(S_ISREG(status.st_mode), "{} is no bundle: it is no file", path);
  if (const std::string untrusted = why_untrusted(status, trust); !untrusted.empty())
    throw FileError(fmt::format("{} {}", path, untrusted));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto head = size >= kHead + kSum ? read_at(file_, 0, kHead) : std::nullopt;
  FJ_CHECK(head && head->starts_with(kBundleMagic), "{} is no bundle of fusejit", path);
  Reader reader{std::string_view(*head).substr(kBundleMagic.size())};
  const auto schema = reader.integer<std::uint32_t>();
  FJ_CHECK(schema == kSchema, "{} is a bundle of schema {}, this version reads {}", path, schema, kSchema);
  const auto count = reader.integer<std::uint64_t>();
  FJ_CHECK(count <= kMostEntries && kHead + count * kRow + kSum <= size, "{} is damaged: its table is cut off", path);
  const std::uint64_t table_at = size - kSum - count * kRow;
  const auto tail = read_at(file_, table_at, count * kRow + kSum);
  if (!tail) throw FileError(failure(path));
  std::string sum;
  append(sum, ir::hash_text(*head + tail->substr(0, count * kRow)));
  FJ_CHECK(tail->ends_with(sum), "{} is damaged: the check sum of its table is wrong", path);
  Reader rows{*tail};
  for (std::uint64_t i = 0; i < count; ++i) {
    BundleRow row{rows.hash(), rows.hash(), rows.integer<std::uint64_t>(), rows.integer<std::uint64_t>()};
    FJ_CHECK(row.begin >= kHead && row.begin <= table_at && row.bytes <= table_at - row.begin &&
                 row.bytes <= kMostEntryBytes,
             "{} is damaged: its table is wrong", path);
    table_.push_back(row);
  }
  std::sort(table_.begin(), table_.end(), [](const BundleRow& a, const BundleRow& b) { return a.hash < b.hash; });
}

std::optional<std::string> Bundle::read(const BundleRow& row) const { return read_at(file_, row.begin, row.bytes); }

std::optional<Entry> Bundle::find(const CacheKey& key) const {
  const auto row = std::lower_bound(table_.begin(), table_.end(), key.hash(),
                                    [](const BundleRow& r, const ir::Hash& hash) { return r.hash < hash; });
  if (row == table_.end() || row->hash != key.hash()) return std::nullopt;
  const auto bytes = read(*row);
  std::optional<Entry> entry = bytes ? decode(*bytes) : std::nullopt;
  return entry && entry->key == key ? std::move(entry) : std::nullopt;
}

bool Bundle::contains(const CacheKey& key) const {
  return std::binary_search(table_.begin(), table_.end(), BundleRow{{}, key.hash()},
                            [](const BundleRow& a, const BundleRow& b) { return a.hash < b.hash; });
}

std::vector<Entry> Bundle::neighbours(const CacheKey& key) const {
  std::vector<Entry> entries;
  for (const BundleRow& row : table_) {
    if (row.subject != key.subject()) continue;
    const auto bytes = read(row);
    if (auto entry = bytes ? decode(*bytes) : std::nullopt) entries.push_back(*std::move(entry));
  }
  return entries;
}

std::string Bundle::bytes(std::size_t i) const {
  auto bytes = read(table_[i]);
  std::string why = "it cannot be read";
  const auto entry = bytes ? decode(*bytes, &why) : std::nullopt;
  FJ_CHECK(entry && entry->key.hash() == table_[i].hash, "{}: entry {} is damaged: {}", path_, i,
           entry ? "it is another key's" : why);
  return *std::move(bytes);
}

BundleWriter::BundleWriter(const std::string& path)
    : path_(path),
      temporary_(fmt::format("{}.{}.tmp", path, ::getpid())),
      file_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
  if (!file_) throw FileError(failure(temporary_));
  write(std::string(kHead, '\0'));  // what stands there is known at the end
}

BundleWriter::~BundleWriter() {
  if (file_) ::unlink(temporary_.c_str());
}

void BundleWriter::write(std::string_view bytes) {
  at_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw FileError(failure(path_));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void BundleWriter::add(const CacheKey& key, std::string_view bytes) {
  if (rows_.contains(key.hash())) return;
  const std::uint64_t begin = at_;
  write(bytes);
  rows_[key.hash()] = {key.subject(), key.hash(), begin, bytes.size()};
}

void BundleWriter::finish() {
  std::string head(kBundleMagic), table;
  append(head, static_cast<std::uint32_t>(kSchema));
  append(head, static_cast<std::uint64_t>(rows_.size()));
  for (const auto& [hash, row] : rows_) {
    append(table, row.subject);
    append(table, hash);
    append(table, row.begin);
    append(table, row.bytes);
  }
  const ir::Hash sum = ir::hash_text(head + table);
  append(table, sum);
  write(table);
  const bool is_whole = ::pwrite(file_.get(), head.data(), head.size(), 0) == static_cast<ssize_t>(head.size());
  if (!is_whole || ::fsync(file_.get()) != 0 || !file_.close() || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const std::string why = failure(path_);
    ::unlink(temporary_.c_str());
    throw FileError(why);
  }
}

}  // namespace fusejit::runtime::disk
