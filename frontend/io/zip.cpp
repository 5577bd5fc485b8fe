#include "frontend/io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <optional>

#include "frontend/io/named_array.h"
#include "ir/base/check.h"

namespace fusejit::io {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::uint32_t kSize32 = 0xffffffffu;

// Little-endian reads with bounds.
class View {
 public:
  View(std::span<const std::byte> bytes, const std::string& source) : bytes_(bytes), source_(source) {}
  std::uint64_t size() const { return bytes_.size(); }
  std::uint64_t get(std::uint64_t at, int width) const {
    need(at, static_cast<std::uint64_t>(width));
    std::uint64_t value = 0;
    for (int i = 0; i < width; ++i)
      value |= static_cast<std::uint64_t>(bytes_[at + static_cast<std::uint64_t>(i)]) << (8 * i);
    return value;
  }
  std::uint16_t u16(std::uint64_t at) const { return static_cast<std::uint16_t>(get(at, 2)); }
  std::uint32_t u32(std::uint64_t at) const { return static_cast<std::uint32_t>(get(at, 4)); }
  std::uint64_t u64(std::uint64_t at) const { return get(at, 8); }
  std::span<const std::byte> part(std::uint64_t at, std::uint64_t count) const {
    need(at, count);
    return bytes_.subspan(at, count);
  }
  [[noreturn]] void damaged() const { throw UserError(fmt::format("{}: the zip file is damaged or cut off", source_)); }

 private:
  void need(std::uint64_t at, std::uint64_t count) const {
    if (at > bytes_.size() || count > bytes_.size() - at) damaged();
  }
  std::span<const std::byte> bytes_;
  const std::string& source_;
};

// The end record stands last, before a comment of at most 65535 bytes.
std::optional<std::uint64_t> end_record(const View& file) {
  constexpr std::uint64_t kEndBytes = 22;
  if (file.size() < kEndBytes) return std::nullopt;
  const std::uint64_t last = file.size() - kEndBytes, first = last > 0xffff ? last - 0xffff : 0;
  for (std::uint64_t at = last + 1; at-- > first;) {
    if (file.u32(at) == kEnd && at + kEndBytes + file.u16(at + 20) == file.size()) return at;
  }
  return std::nullopt;
}

struct Directory {
  std::uint64_t entries = 0, offset = 0;
};

Directory directory_of(const View& file, std::uint64_t end) {
  Directory directory{file.u16(end + 10), file.u32(end + 16)};
  if (end >= 20 && file.u32(end - 20) == kLocator64) {
    const std::uint64_t end64 = file.u64(end - 20 + 8);
    if (file.u32(end64) != kEnd64) file.damaged();
    directory = {file.u64(end64 + 32), file.u64(end64 + 48)};
  }
  return directory;
}

// Sizes and offset that did not fit 32 bits stand, in this order, in the zip64 extra field.
void read_zip64(const View& file, std::uint64_t at, std::uint64_t bytes, ZipMember& member) {
  for (const std::uint64_t end = at + bytes; at + 4 <= end;) {
    const std::uint16_t tag = file.u16(at), length = file.u16(at + 2);
    at += 4;
    if (at + length > end) file.damaged();
    if (tag == 1) {
      std::uint64_t field = at;
      for (std::uint64_t* value : {&member.bytes, &member.stored_bytes, &member.header_offset}) {
        if (*value != kSize32) continue;
        if (field + 8 > at + length) file.damaged();
        *value = file.u64(field);
        field += 8;
      }
    }
    at += length;
  }
}

void put(std::string& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void write_text(NewFile& file, const std::string& text) {
  file.write(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

// Version, flags, method, time, date (1980-01-01: files are the same bytes whenever they are written), crc.
void put_common(std::string& out, const ZipMember& member, bool wide) {
  put(out, wide ? 45 : 20, 2);
  put(out, 0, 2), put(out, 0, 2), put(out, 0, 2), put(out, 0x21, 2);
  put(out, member.crc, 4);
}

}  // namespace

std::vector<ZipMember> zip_members(std::span<const std::byte> bytes, const std::string& source) {
  const View file(bytes, source);
  const std::optional<std::uint64_t> end = end_record(file);
  FJ_CHECK(end, "{}: is not a zip file, or is cut off", source);
  const Directory directory = directory_of(file, *end);
  std::vector<ZipMember> members;
  std::uint64_t at = directory.offset, unclaimed = file.size();
  for (std::uint64_t i = 0; i < directory.entries; ++i) {  // every entry advances or throws: bounded by the file
    if (file.u32(at) != kCentral) file.damaged();
    const std::uint16_t flags = file.u16(at + 8);
    const std::uint64_t name_bytes = file.u16(at + 28), extra_bytes = file.u16(at + 30), comment = file.u16(at + 32);
    const std::span<const std::byte> name = file.part(at + 46, name_bytes);
    ZipMember member{.name = std::string(reinterpret_cast<const char*>(name.data()), name.size()),
                     .method = file.u16(at + 10),
                     .crc = file.u32(at + 16),
                     .stored_bytes = file.u32(at + 20),
                     .bytes = file.u32(at + 24),
                     .header_offset = file.u32(at + 42)};
    FJ_CHECK((flags & 1) == 0, "{}: member {} is encrypted", source, shown(member.name));
    read_zip64(file, at + 46 + name_bytes, extra_bytes, member);
    // What claims more bytes than there can be is refused before memory is taken for it: members that overlap, and
    // deflated ones of more than 1032 times their size.
    if (member.stored_bytes > unclaimed || member.bytes / 1032 > member.stored_bytes) file.damaged();
    unclaimed -= member.stored_bytes;
    members.push_back(std::move(member));
    at += 46 + name_bytes + extra_bytes + comment;
  }
  return members;
}

// zlib's, over what is stored. Counts are handed over in steps that fit its types.
struct ZipMemberReader::Inflater {
  z_stream stream{};
  std::uint64_t in = 0;
  int status = Z_OK;

  // False where the stream ends early or is damaged.
  bool fill(std::span<const std::byte> stored, std::span<std::byte> to) {
    for (std::uint64_t out = 0; out < to.size();) {
      if (status != Z_OK) return false;
      out += step(stored, to.subspan(out));
    }
    return true;
  }
  uInt step(std::span<const std::byte> stored, std::span<std::byte> to) {
    const auto in_step = static_cast<uInt>(std::min<std::uint64_t>(stored.size() - in, 1u << 30));
    const auto out_step = static_cast<uInt>(std::min<std::uint64_t>(to.size(), 1u << 30));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data() + in));
    stream.avail_in = in_step;
    stream.next_out = reinterpret_cast<Bytef*>(to.data());
    stream.avail_out = out_step;
    status = inflate(&stream, Z_NO_FLUSH);
    in += in_step - stream.avail_in;
    return out_step - stream.avail_out;
  }
};

ZipMemberReader::ZipMemberReader(std::span<const std::byte> bytes, const ZipMember& member, const std::string& source)
    : member_(member), source_(source) {
  const View file(bytes, source);
  if (file.u32(member.header_offset) != kLocal) file.damaged();
  const std::uint64_t data =
      member.header_offset + 30 + file.u16(member.header_offset + 26) + file.u16(member.header_offset + 28);
  stored_ = file.part(data, member.stored_bytes);
  FJ_CHECK(member.method == 0 || member.method == 8,
           "{}: member {} uses compression method {}, only stored and deflated are read", source, shown(member.name),
           member.method);
  if (member.method == 0) {
    if (member.bytes != member.stored_bytes) file.damaged();
    return;
  }
  inflater_ = std::make_unique<Inflater>();
  FJ_CHECK(inflateInit2(&inflater_->stream, -MAX_WBITS) == Z_OK, "{}: inflate cannot be started", source);
}

ZipMemberReader::~ZipMemberReader() {
  if (inflater_) inflateEnd(&inflater_->stream);
}

void ZipMemberReader::damaged() const { View({}, source_).damaged(); }

void ZipMemberReader::read(std::span<std::byte> to) {
  if (to.size() > member_.bytes - at_) damaged();
  if (!inflater_) {
    std::copy_n(stored_.begin() + static_cast<std::ptrdiff_t>(at_), to.size(), to.begin());
  } else if (!inflater_->fill(stored_, to)) {
    damaged();
  }
  at_ += to.size();
  for (std::size_t at = 0; at < to.size(); at += std::size_t{1} << 30) {
    const std::size_t step = std::min<std::size_t>(to.size() - at, std::size_t{1} << 30);
    crc_ = static_cast<std::uint32_t>(
        crc32(crc_, reinterpret_cast<const Bytef*>(to.data() + at), static_cast<uInt>(step)));
  }
}

void ZipMemberReader::finish() {
  if (at_ != member_.bytes) damaged();
  if (inflater_) {
    // One byte more would show a member that holds more than it claims; without one, the stream's end is read.
    std::byte spare{};
    while (inflater_->status == Z_OK)
      if (inflater_->step(stored_, {&spare, 1}) > 0) damaged();
    if (inflater_->status != Z_STREAM_END || inflater_->in != stored_.size()) damaged();
  }
  FJ_CHECK(crc_ == member_.crc, "{}: member {} is damaged (its check sum differs)", source_, shown(member_.name));
}

void ZipWriter::add(const std::string& name, std::span<const std::span<const std::byte>> parts) {
  ZipMember member{.name = name, .header_offset = static_cast<std::uint64_t>(file_.written())};
  for (const std::span<const std::byte> part : parts) {
    member.bytes += part.size();
    for (std::size_t at = 0; at < part.size(); at += std::size_t{1} << 30) {
      const std::size_t step = std::min<std::size_t>(part.size() - at, std::size_t{1} << 30);
      member.crc = static_cast<std::uint32_t>(
          crc32(member.crc, reinterpret_cast<const Bytef*>(part.data() + at), static_cast<uInt>(step)));
    }
  }
  member.stored_bytes = member.bytes;
  const bool wide = member.bytes >= kSize32;
  std::string header;
  put(header, kLocal, 4);
  put_common(header, member, wide);
  put(header, wide ? kSize32 : member.bytes, 4), put(header, wide ? kSize32 : member.bytes, 4);
  put(header, name.size(), 2), put(header, wide ? 20 : 0, 2);
  header += name;
  if (wide) put(header, 1, 2), put(header, 16, 2), put(header, member.bytes, 8), put(header, member.bytes, 8);
  write_text(file_, header);
  for (const std::span<const std::byte> part : parts) file_.write(part);
  members_.push_back(std::move(member));
}

void ZipWriter::finish() {
  const auto start = static_cast<std::uint64_t>(file_.written());
  for (const ZipMember& member : members_) {
    const bool wide = member.bytes >= kSize32 || member.header_offset >= kSize32;
    std::string entry;
    put(entry, kCentral, 4), put(entry, wide ? 45 : 20, 2);
    put_common(entry, member, wide);
    put(entry, wide ? kSize32 : member.bytes, 4), put(entry, wide ? kSize32 : member.bytes, 4);
    put(entry, member.name.size(), 2), put(entry, wide ? 28 : 0, 2);
    put(entry, 0, 2), put(entry, 0, 2), put(entry, 0, 2), put(entry, 0, 4);
    put(entry, wide ? kSize32 : member.header_offset, 4);
    entry += member.name;
    if (wide) {
      put(entry, 1, 2), put(entry, 24, 2);
      put(entry, member.bytes, 8), put(entry, member.bytes, 8), put(entry, member.header_offset, 8);
    }
    write_text(file_, entry);
  }
  const std::uint64_t end = static_cast<std::uint64_t>(file_.written()), size = end - start, count = members_.size();
  std::string tail;
  const bool wide = count >= 0xffff || size >= kSize32 || start >= kSize32;
  if (wide) {
    put(tail, kEnd64, 4), put(tail, 44, 8), put(tail, 45, 2), put(tail, 45, 2), put(tail, 0, 4), put(tail, 0, 4);
    put(tail, count, 8), put(tail, count, 8), put(tail, size, 8), put(tail, start, 8);
    put(tail, kLocator64, 4), put(tail, 0, 4), put(tail, end, 8), put(tail, 1, 4);
  }
  put(tail, kEnd, 4), put(tail, 0, 2), put(tail, 0, 2);
  put(tail, wide ? 0xffff : count, 2), put(tail, wide ? 0xffff : count, 2);
  put(tail, wide ? kSize32 : size, 4), put(tail, wide ? kSize32 : start, 4), put(tail, 0, 2);
  write_text(file_, tail);
}

}  // namespace fusejit::io
