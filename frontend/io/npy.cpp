// Reads and writes one .npy array. The header is a Python dict literal; only the forms that NumPy writes are read.
#include "frontend/io/npy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "ir/base/check.h"

namespace fusejit::io {
namespace {

struct Description {
  std::string_view text;
  DType dtype;
};
constexpr std::array<Description, 10> kDescriptions = {{{"|b1", DType::boolean},
                                                        {"|i1", DType::i8},
                                                        {"|u1", DType::u8},
                                                        {"<i2", DType::i16},
                                                        {"<i4", DType::i32},
                                                        {"<i8", DType::i64},
                                                        {"<f2", DType::f16},
                                                        {"<u2", DType::bf16},
                                                        {"<f4", DType::f32},
                                                        {"<f8", DType::f64}}};

std::string_view description_of(DType dtype) {
  for (const Description& d : kDescriptions) {
    if (d.dtype == dtype) return d.text;
  }
  throw UserError(fmt::format("arrays of {} cannot be stored", name(dtype)));
}

// A cursor over the header's text.
class NpyHeaderReader {
 public:
  NpyHeaderReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  NpyHeader read() {
    NpyHeader header;
    bool seen[3] = {};
    take('{');
    while (!accept('}')) {
      const std::string key = quoted();
      take(':');
      const int index = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (index < 0 || std::exchange(seen[index], true)) fail();
      if (index == 0) {
        blanks();
        if (peek() == '[') throw UserError(fmt::format("{}: structured dtypes are not read", source_));
        header.description = quoted();
      } else if (index == 1) {
        header.fortran_order = truth();
      } else {
        header.shape = tuple();
      }
      if (!accept(',')) {
        take('}');
        break;
      }
    }
    blanks();
    if (at_ != text_.size() || !seen[0] || !seen[1] || !seen[2]) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const { throw UserError(fmt::format("{}: the .npy header cannot be read", source_)); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void blanks() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }
  bool accept(char c) {
    blanks();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void take(char c) {
    if (!accept(c)) fail();
  }
  std::string quoted() {
    blanks();
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail();
    const std::size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) fail();
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  bool truth() {
    blanks();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail();
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> dims;
    take('(');
    while (!accept(')')) {
      blanks();
      if (peek() < '0' || peek() > '9') fail();
      std::int64_t value = 0;
      for (; peek() >= '0' && peek() <= '9'; ++at_) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, peek() - '0', &value)) {
          throw UserError(fmt::format("{}: a dimension does not fit 64 bits", source_));
        }
      }
      dims.push_back(value);
      if (dims.size() > static_cast<std::size_t>(kMaxRank)) {
        throw UserError(fmt::format("{}: the rank exceeds {}", source_, kMaxRank));
      }
      if (!accept(',')) {
        take(')');
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
};

// Row-major copy of an array whose first index runs fastest.
std::vector<std::byte> from_fortran(std::span<const std::byte> elements, const Shape& shape, std::size_t item) {
  std::vector<std::byte> result(elements.size());
  std::array<std::int64_t, kMaxRank> index{}, stride{};
  std::int64_t step = 1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    stride[static_cast<std::size_t>(axis)] = std::exchange(step, step * shape[axis]);
  std::int64_t from = 0;
  for (std::int64_t to = 0, n = shape.elements(); to < n; ++to) {
    std::memcpy(&result[static_cast<std::size_t>(to) * item], &elements[static_cast<std::size_t>(from) * item], item);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      from += stride[a];
      if (++index[a] < shape[axis]) break;
      from -= stride[a] * shape[axis];
      index[a] = 0;
    }
  }
  return result;
}

}  // namespace

std::string npy_header(const NamedArray& array) {
  std::string dims;
  for (const std::int64_t d : array.shape) dims += fmt::format("{}, ", d);
  if (array.shape.rank() > 1) dims.resize(dims.size() - 2);
  if (array.shape.rank() == 1) dims.pop_back();
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", description_of(array.dtype), dims);
  constexpr std::size_t kPrefix = 10;  // magic, version, 2 bytes of length
  text.append((64 - (kPrefix + text.size() + 1) % 64) % 64, ' ').push_back('\n');
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

namespace {

// The header's text, and how many bytes of the file it ends at.
std::pair<std::string, std::uint64_t> header_text(const ReadBytes& read, std::uint64_t total,
                                                  const std::string& source) {
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 20;  // NumPy reads no more than 10,000 bytes
  std::array<std::byte, 12> front{};
  if (total >= 10) read(std::span(front).first(10));
  FJ_CHECK(total >= 10 && std::memcmp(front.data(), "\x93NUMPY", 6) == 0, "{}: is not a .npy array", source);
  const int version = static_cast<int>(front[6]);
  FJ_CHECK(version >= 1 && version <= 3 && front[7] == std::byte{0},
           "{}: version {}.{} of the .npy format is not known", source, version, static_cast<int>(front[7]));
  const std::size_t length_bytes = version == 1 ? 2 : 4, start = 8 + length_bytes;
  FJ_CHECK(total >= start, "{}: is cut off in its header", source);
  if (length_bytes == 4) read(std::span(front).last(2));
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= static_cast<std::size_t>(front[8 + i]) << (8 * i);
  FJ_CHECK(length <= total - start, "{}: is cut off in its header", source);
  FJ_CHECK(length <= kLongest, "{}: the .npy header has {} bytes, at most {} are read", source, length, kLongest);
  std::string text(length, ' ');
  read(std::as_writable_bytes(std::span(text)));
  return {std::move(text), start + length};
}

}  // namespace

NpyHeader read_npy_header(const ReadBytes& read, std::uint64_t total, const std::string& source) {
  const auto [text, start] = header_text(read, total, source);
  NpyHeader header = NpyHeaderReader(text, source).read();
  header.start = start;
  return header;
}

NamedArray read_npy(const ReadBytes& read, std::uint64_t total, const std::string& name, const std::string& source,
                    const WantedArray& wanted) {
  const NpyHeader header = read_npy_header(read, total, source);
  std::optional<DType> dtype;
  for (const Description& d : kDescriptions) {
    if (d.text == header.description || (d.dtype == DType::boolean && header.description == "?")) dtype = d.dtype;
  }
  FJ_CHECK(dtype, "{}: arrays of dtype {} are not read (only |b1 |i1 |u1 <i2 <i4 <i8 <f2 <f4 <f8, and <u2 for bf16)",
           source, shown(header.description));
  NamedArray array{.name = name, .dtype = *dtype, .shape = {}, .bytes = {}};
  try {
    array.shape = Shape(std::span<const std::int64_t>(header.shape));
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", source, error.what()));
  }
  const std::int64_t expected = bytes(*dtype, array.shape.elements());
  FJ_CHECK(static_cast<std::int64_t>(total - header.start) == expected, "{}: holds {} bytes of elements, {}{} has {}",
           source, total - header.start, fusejit::name(*dtype), array.shape.str(), expected);
  if (wanted && !wanted(array)) return array;
  array.bytes.resize(static_cast<std::size_t>(expected));
  read(array.bytes);
  if (header.fortran_order)
    array.bytes = from_fortran(array.bytes, array.shape, static_cast<std::size_t>(bytes(*dtype)));
  if (*dtype == DType::boolean) {
    for (std::byte& b : array.bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  return array;
}

NamedArray parse_npy(std::span<const std::byte> file, const std::string& name, const std::string& source) {
  std::size_t at = 0;
  const auto next = [&](std::span<std::byte> to) {
    std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
    at += to.size();
  };
  return read_npy(next, file.size(), name, source, {});
}

}  // namespace fusejit::io
