// Reads and writes safetensors. The header is read as it is lexed, without a tree: what does not belong where it stands
// is refused there, so that nothing that a hostile header asks for is built first.
#include "frontend/io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "frontend/io/files.h"
#include "ir/base/check.h"

namespace fusejit::io {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLengthBytes = 8, kMostHeader = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::array<std::pair<std::string_view, DType>, 10> kDTypes = {{{"BOOL", DType::boolean},
                                                                         {"I8", DType::i8},
                                                                         {"U8", DType::u8},
                                                                         {"I16", DType::i16},
                                                                         {"I32", DType::i32},
                                                                         {"I64", DType::i64},
                                                                         {"F16", DType::f16},
                                                                         {"BF16", DType::bf16},
                                                                         {"F32", DType::f32},
                                                                         {"F64", DType::f64}}};

std::string_view word_of(DType dtype) {
  for (const auto& [word, known] : kDTypes) {
    if (known == dtype) return word;
  }
  throw UserError(fmt::format("arrays of {} cannot be stored", name(dtype)));
}

// As a JSON string. Throws Json::type_error for what is no UTF-8.
std::string quoted(const std::string& text) { return Json(text).dump(); }

struct Entry {
  NamedArray array;
  std::uint64_t begin = 0, end = 0;  // in the elements
};

struct Header {
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
};

// What the lexer says, in order, becomes the header. Every answer is yes: whatever is wrong is thrown.
class JsonHeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit JsonHeaderReader(const std::string& source) : source_(source) {}
  Header take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (at_ == At::outside) return enter(At::names);
    if (at_ != At::names) misplaced("an object");
    if (name_ == kMetadata) {
      FJ_CHECK(!std::exchange(has_metadata_, true), "{}: the header has two entries {}", source_, shown(name_));
      return enter(At::metadata);
    }
    header_.entries.push_back({.array = {.name = name_, .dtype = {}, .shape = {}, .bytes = {}}});
    seen_ = {};
    return enter(At::entry);
  }
  bool end_object() override {
    if (at_ == At::entry) {
      for (std::size_t member = 0; member < kMembers.size(); ++member)
        FJ_CHECK(seen_[member], "{}: array {} has no {}", source_, shown(name_), kMembers[member]);
    }
    return enter(at_ == At::names ? At::outside : At::names);
  }
  bool key(std::string& text) override {
    if (at_ == At::names) {
      name_ = std::move(text);
    } else if (at_ == At::metadata) {
      FJ_CHECK(!header_.metadata.contains(text), "{}: its metadata has two values {}", source_, shown(text));
      metadata_key_ = std::move(text);
    } else {
      const auto found = std::find(kMembers.begin(), kMembers.end(), text);
      FJ_CHECK(found != kMembers.end(), "{}: array {} has a member {}, which is not known", source_, shown(name_),
               shown(text));
      member_ = static_cast<std::size_t>(found - kMembers.begin());
      FJ_CHECK(!std::exchange(seen_[member_], true), "{}: array {} has two members {}", source_, shown(name_), text);
    }
    return true;
  }
  bool string(std::string& text) override {
    if (at_ == At::metadata) return header_.metadata.emplace(std::move(metadata_key_), std::move(text)).second;
    if (at_ != At::entry || member_ != kDType) misplaced("a string");
    const auto* found = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& d) { return d.first == text; });
    FJ_CHECK(found != kDTypes.end(),
             "{}: array {} has dtype {}, which is not read (only BOOL I8 U8 I16 I32 I64 F16 BF16 F32 F64)", source_,
             shown(name_), shown(text));
    header_.entries.back().array.dtype = found->second;
    return true;
  }
  bool start_array(std::size_t) override {
    if (at_ != At::entry || member_ == kDType) misplaced("a list");
    numbers_.clear();
    return enter(At::numbers);
  }
  bool number_unsigned(std::uint64_t number) override {
    if (at_ != At::numbers) misplaced("a number");
    if (member_ == kShape) {
      FJ_CHECK(numbers_.size() < kMaxRank, "{}: array {}: the rank exceeds {}", source_, shown(name_), kMaxRank);
      FJ_CHECK(number <= std::uint64_t{INT64_MAX}, "{}: array {}: a dimension does not fit 64 bits", source_,
               shown(name_));
    } else {
      FJ_CHECK(numbers_.size() < 2, "{}: array {} has more than two data_offsets", source_, shown(name_));
    }
    numbers_.push_back(number);
    return true;
  }
  bool end_array() override {
    Entry& entry = header_.entries.back();
    if (member_ == kShape) {
      entry.array.shape = shape_of_numbers();
    } else {
      FJ_CHECK(numbers_.size() == 2, "{}: array {} has {} data_offsets, there are two", source_, shown(name_),
               numbers_.size());
      entry.begin = numbers_[0], entry.end = numbers_[1];
    }
    return enter(At::entry);
  }
  bool number_integer(std::int64_t) override { misplaced("a negative number"); }
  bool number_float(double, const std::string&) override { misplaced("a number that is not whole or too large"); }
  bool null() override { misplaced("null"); }
  bool boolean(bool) override { misplaced("a truth value"); }
  bool binary(Json::binary_t&) override { misplaced("bytes"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw UserError(fmt::format("{}: the safetensors header is no JSON (byte {} of it)", source_, position));
  }

 private:
  enum class At : std::uint8_t { outside, names, metadata, entry, numbers };
  static constexpr std::size_t kDType = 0, kShape = 1;
  static constexpr std::array<std::string_view, 3> kMembers = {"dtype", "shape", "data_offsets"};

  bool enter(At place) {
    at_ = place;
    return true;
  }
  [[noreturn]] void misplaced(const char* what) const {
    const std::string where = at_ == At::outside    ? "in place of the safetensors header"
                              : at_ == At::metadata ? fmt::format("in its metadata, as {}", shown(metadata_key_))
                              : at_ == At::names    ? fmt::format("as {}", shown(name_))
                                                    : fmt::format("as {} of array {}", kMembers[member_], shown(name_));
    throw UserError(fmt::format("{}: {} stands {}", source_, what, where));
  }
  Shape shape_of_numbers() const {
    std::vector<std::int64_t> dims;
    for (const std::uint64_t number : numbers_) dims.push_back(static_cast<std::int64_t>(number));
    try {
      return Shape(std::span<const std::int64_t>(dims));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: array {}: {}", source_, shown(name_), error.what()));
    }
  }

  const std::string& source_;
  Header header_;
  At at_ = At::outside;
  std::string name_, metadata_key_;
  bool has_metadata_ = false;
  std::size_t member_ = 0;
  std::array<bool, kMembers.size()> seen_{};
  std::vector<std::uint64_t> numbers_;
};

void check_names(std::span<const Entry> entries, const std::string& source) {
  std::vector<const std::string*> names;
  for (const Entry& entry : entries) names.push_back(&entry.array.name);
  std::sort(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a < *b; });
  const auto twice =
      std::adjacent_find(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a == *b; });
  if (twice != names.end()) throw UserError(fmt::format("{}: there are two arrays named {}", source, shown(**twice)));
}

// Each array has the bytes of its type, and all of them cover `total` bytes, each once.
void check_offsets(std::span<const Entry> entries, std::uint64_t total, const std::string& source) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) {
    const NamedArray& array = entry.array;
    const std::int64_t expected = bytes(array.dtype, array.shape.elements());
    FJ_CHECK(entry.begin <= entry.end && entry.end - entry.begin == static_cast<std::uint64_t>(expected),
             "{}: array {} has data_offsets {} and {}, {}{} has {} bytes", source, shown(array.name), entry.begin,
             entry.end, name(array.dtype), array.shape.str(), expected);
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(),
            [](const Entry* a, const Entry* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  std::uint64_t covered = 0;
  for (const Entry* entry : order) {
    FJ_CHECK(entry->begin == covered, "{}: array {} begins at byte {} of the elements, where {} are taken", source,
             shown(entry->array.name), entry->begin, covered);
    FJ_CHECK(entry->end <= total, "{}: array {} ends at byte {} of the elements, the file holds {}", source,
             shown(entry->array.name), entry->end, total);
    covered = entry->end;
  }
  FJ_CHECK(covered == total, "{}: its arrays have {} bytes, the file holds {}", source, covered, total);
}

// The length of the header of a file of `total` bytes that begins so.
std::uint64_t header_bytes(std::span<const std::byte> front, std::uint64_t total, const std::string& source) {
  FJ_CHECK(front.size() >= kLengthBytes && total >= kLengthBytes, "{}: is not a safetensors file, or is cut off",
           source);
  std::uint64_t length = 0;
  for (std::uint64_t i = 0; i < kLengthBytes; ++i) length |= static_cast<std::uint64_t>(front[i]) << (8 * i);
  FJ_CHECK(length <= kMostHeader, "{}: is not a safetensors file: its header would have {} bytes, at most {} are read",
           source, length, kMostHeader);
  FJ_CHECK(length <= total - kLengthBytes, "{}: is cut off in its header", source);
  return length;
}

// front: of a file of `total` bytes, at least to the end of the header.
Header read_header(std::span<const std::byte> front, std::uint64_t total, const std::string& source) {
  const std::uint64_t length = header_bytes(front, total, source);
  FJ_CHECK(length <= front.size() - kLengthBytes, "{}: is cut off in its header", source);
  const auto* text = reinterpret_cast<const char*>(front.data()) + kLengthBytes;
  FJ_CHECK(length > 0 && *text == '{', "{}: is not a safetensors file: its header does not begin with {{", source);
  JsonHeaderReader reader(source);
  Json::sax_parse(text, text + length, &reader);
  Header header = reader.take();
  check_names(header.entries, source);
  check_offsets(header.entries, total - kLengthBytes - length, source);
  return header;
}

void check_writable(std::span<const NamedArray* const> sorted, const std::string& path) {
  std::set<std::string_view> seen;
  for (const NamedArray* array : sorted) {
    check_bytes(*array);
    FJ_CHECK(seen.insert(array->name).second, "{}: there are two arrays named '{}'", path, array->name);
    FJ_CHECK(array->name != kMetadata, "{}: no array can be named '{}'", path, kMetadata);
  }
}

std::string header_text(std::span<const NamedArray* const> sorted, const std::map<std::string, std::string>& metadata,
                        const std::string& path) {
  std::string text = "{";
  try {
    if (!metadata.empty()) text += fmt::format("\"{}\":{},", kMetadata, Json(metadata).dump());
    std::uint64_t at = 0;
    for (const NamedArray* array : sorted) {
      std::string dims;
      for (const std::int64_t d : array->shape) dims += fmt::format("{}{}", dims.empty() ? "" : ",", d);
      text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)", quoted(array->name),
                          word_of(array->dtype), dims, at, at + array->bytes.size());
      at += array->bytes.size();
    }
  } catch (const Json::type_error&) {
    throw UserError(fmt::format("{}: the names of arrays and metadata must be UTF-8", path));
  }
  if (text.size() > 1) text.pop_back();
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');  // so that elements are aligned
  FJ_CHECK(text.size() <= kMostHeader, "{}: its header would have {} bytes, at most {} are read", path, text.size(),
           kMostHeader);
  return text;
}

}  // namespace

Safetensors parse_safetensors(std::span<const std::byte> file, const std::string& source, const WantedArray& wanted) {
  Header header = read_header(file, file.size(), source);
  const std::span<const std::byte> elements = file.subspan(kLengthBytes + header_bytes(file, file.size(), source));
  Safetensors read{{}, std::move(header.metadata)};
  for (Entry& entry : header.entries) {
    if (wanted && !wanted(entry.array)) continue;
    const std::span<const std::byte> own = elements.subspan(entry.begin, entry.end - entry.begin);
    entry.array.bytes.assign(own.begin(), own.end());
    if (entry.array.dtype == DType::boolean) {
      for (std::byte& b : entry.array.bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
    }
    read.arrays.push_back(std::move(entry.array));
  }
  return read;
}

Safetensors read_safetensors(const std::string& path, const WantedArray& wanted) {
  return parse_safetensors(read_file(path), path, wanted);
}

Safetensors describe_safetensors(const std::string& path) {
  std::error_code error;
  const auto total = std::filesystem::file_size(path, error);
  if (error) {  // a pipe, which must be read to its end; or nothing that can be read, as read_file says
    return parse_safetensors(read_file(path), path, [](const NamedArray&) { return false; });
  }
  const std::uint64_t length = header_bytes(read_beginning(path, kLengthBytes), total, path);
  Header header = read_header(read_beginning(path, kLengthBytes + length), total, path);
  Safetensors described{{}, std::move(header.metadata)};
  for (Entry& entry : header.entries) described.arrays.push_back(std::move(entry.array));
  return described;
}

void write_safetensors(const std::string& path, std::span<const NamedArray> arrays,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedArray*> sorted;
  for (const NamedArray& array : arrays) sorted.push_back(&array);
  std::sort(sorted.begin(), sorted.end(), [](const NamedArray* a, const NamedArray* b) {
    return std::pair(-bits(a->dtype), std::string_view(a->name)) <
           std::pair(-bits(b->dtype), std::string_view(b->name));
  });
  check_writable(sorted, path);
  const std::string header = header_text(sorted, metadata, path);
  std::array<std::byte, kLengthBytes> length{};
  for (std::uint64_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i) & 0xff);
  NewFile file(path);
  file.write(length);
  file.write(std::as_bytes(std::span<const char>(header.data(), header.size())));
  for (const NamedArray* array : sorted) file.write(array->bytes);
  file.commit();
}

}  // namespace fusejit::io
