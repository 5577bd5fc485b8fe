// ONNX files made by hand, byte by byte in the wire format of protocol buffers: right ones and others.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace fusejit::testing::onnx_file {

inline std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}
inline std::string field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}
inline std::string field(int number, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
template <class... More>
std::string all(const More&... parts) {
  return (std::string() + ... + parts);
}

inline std::string attribute(const std::string& name, std::int64_t value) {
  return field(5, all(field(1, name), field(3, static_cast<std::uint64_t>(value)), field(20, 2)));
}
inline std::string attribute(const std::string& name, const std::string& value) {
  return field(5, all(field(1, name), field(4, value), field(20, 3)));
}
inline std::string attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string ints;
  for (const std::int64_t v : values) ints += field(8, static_cast<std::uint64_t>(v));
  return field(5, all(field(1, name), ints, field(20, 7)));
}

// A node, as a field of a graph.
inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& results, const std::string& attributes = "",
                        const std::string& name = "") {
  std::string text;
  for (const std::string& input : inputs) text += field(1, input);
  for (const std::string& result : results) text += field(2, result);
  if (!name.empty()) text += field(3, name);
  return field(1, all(text, field(4, op), attributes));
}

constexpr int kFloat = 1, kUint16 = 4, kInt64 = 7, kBool = 9;

// An initializer of these bytes, as a field of a graph.
inline std::string initializer(const std::string& name, const std::vector<std::int64_t>& dims, int type,
                               const std::string& raw) {
  std::string text;
  for (const std::int64_t d : dims) text += field(1, static_cast<std::uint64_t>(d));
  return field(5, all(text, field(2, static_cast<std::uint64_t>(type)), field(8, name), field(9, raw)));
}
// One whose bytes are elsewhere.
inline std::string external(const std::string& name, const std::vector<std::int64_t>& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text;
  for (const std::int64_t d : dims) text += field(1, static_cast<std::uint64_t>(d));
  text += field(2, kFloat) + field(8, name);
  for (const auto& [key, value] : entries) text += field(13, all(field(1, key), field(2, value)));
  return field(5, text + field(14, 1));
}

// An input (11) or a result (12) of floats; dims below 0 are open.
inline std::string port(int number, const std::string& name, const std::vector<std::int64_t>& dims, int type = kFloat) {
  std::string shape;
  for (const std::int64_t d : dims) shape += field(1, d < 0 ? field(2, "N") : field(1, static_cast<std::uint64_t>(d)));
  const std::string tensor = all(field(1, static_cast<std::uint64_t>(type)), field(2, shape));
  return field(number, all(field(1, name), field(2, field(1, tensor))));
}

inline std::string model(const std::string& graph, int opset = 17) {
  return all(field(1, 8), field(7, graph), field(8, field(2, static_cast<std::uint64_t>(opset))));
}

}  // namespace fusejit::testing::onnx_file
