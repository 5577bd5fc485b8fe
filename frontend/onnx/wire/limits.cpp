#include "frontend/onnx/wire/limits.h"

#include <array>
#include <cstdint>

#include "ir/base/check.h"

namespace fusejit::onnx::wire {
namespace {

constexpr std::int64_t kNodes = 100'000, kInitializers = 32'768, kFields = 2'097'152, kPackedBytes = 1 << 24;

enum class Message : std::uint8_t {
  none,  // no message, or one that is passed over
  model,
  op_set,
  graph,
  node,
  attribute,
  tensor,
  entry,
  value_info,
  value_type,
  tensor_type,
  dimensions,
  dimension,
};

// The fields of onnx.proto that are messages, and those of many numbers that may stand in one byte each.
struct Field {
  Message in;
  std::uint64_t number;
  Message is;
};
constexpr Field kMessages[] = {
    {Message::model, 7, Message::graph},
    {Message::model, 8, Message::op_set},
    {Message::graph, 1, Message::node},
    {Message::graph, 5, Message::tensor},
    {Message::graph, 11, Message::value_info},
    {Message::graph, 12, Message::value_info},
    {Message::node, 5, Message::attribute},
    {Message::attribute, 5, Message::tensor},
    {Message::tensor, 13, Message::entry},
    {Message::value_info, 2, Message::value_type},
    {Message::value_type, 1, Message::tensor_type},
    {Message::tensor_type, 2, Message::dimensions},
    {Message::dimensions, 1, Message::dimension},
};
constexpr Field kPacked[] = {
    {Message::tensor, 1, Message::none},
    {Message::tensor, 5, Message::none},
    {Message::tensor, 7, Message::none},
    {Message::attribute, 8, Message::none},
};
constexpr int kDeepest = 8;  // messages within messages of the lists above: seven

const Field* find(std::span<const Field> fields, Message in, std::uint64_t number) {
  for (const Field& field : fields) {
    if (field.in == in && field.number == number) return &field;
  }
  return nullptr;
}

class Walk {
 public:
  Walk(std::span<const std::byte> bytes, const std::string& source) : bytes_(bytes), source_(source) {}
  void run();

 private:
  [[noreturn]] void damaged() const {
    throw UserError(fmt::format("{}: the ONNX file is damaged, cut off, or no ONNX file", source_));
  }
  void count(std::int64_t& so_far, std::int64_t more, std::int64_t most, const char* what) const {
    so_far += more;
    FJ_CHECK(so_far <= most, "{}: the ONNX file has more than {} {}, the limit", source_, most, what);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end()) damaged();
      const auto byte = static_cast<std::uint64_t>(bytes_[at_++]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    damaged();
  }
  void skip(std::uint64_t count) {
    if (count > end() - at_) damaged();
    at_ += count;
  }
  std::size_t end() const { return open_[static_cast<std::size_t>(depth_)].end; }
  void read_field();

  struct Open {
    Message message = Message::none;
    std::size_t end = 0;
  };
  std::span<const std::byte> bytes_;
  const std::string& source_;
  std::size_t at_ = 0;
  std::array<Open, kDeepest> open_;
  int depth_ = 0;
  std::int64_t nodes_ = 0, initializers_ = 0, fields_ = 0, packed_ = 0;
};

void Walk::read_field() {
  const Message in = open_[static_cast<std::size_t>(depth_)].message;
  const std::uint64_t tag = varint(), number = tag >> 3;
  if (number == 0) damaged();
  count(fields_, 1, kFields, "fields");
  switch (tag & 7) {
    case 0:
      varint();
      return;
    case 1:
      return skip(8);
    case 5:
      return skip(4);
    case 2:
      break;
    default:  // groups, which no field of ONNX is
      damaged();
  }
  const std::uint64_t length = varint();
  if (length > end() - at_) damaged();
  if (find(kPacked, in, number))
    count(packed_, static_cast<std::int64_t>(length), kPackedBytes, "bytes of packed integers");
  const Field* message = find(kMessages, in, number);
  if (!message) return skip(length);
  if (message->is == Message::node) count(nodes_, 1, kNodes, "nodes");
  if (in == Message::graph && message->is == Message::tensor) count(initializers_, 1, kInitializers, "initializers");
  open_[static_cast<std::size_t>(++depth_)] = {message->is, at_ + length};
}

void Walk::run() {
  open_[0] = {Message::model, bytes_.size()};
  while (true) {
    while (depth_ > 0 && at_ == end()) --depth_;
    if (at_ == end()) return;
    read_field();
  }
}

}  // namespace

void check_limits(std::span<const std::byte> bytes, const std::string& source) { Walk(bytes, source).run(); }

}  // namespace fusejit::onnx::wire
