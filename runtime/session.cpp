#include "runtime/session.h"

#include <cstring>

#include "ir/base/check.h"
#include "ir/interp.h"

namespace fusejit::runtime {
namespace {

// Physical offset, in elements, of row-major logical element `index` of a 4-d NCHW value stored as NHWC.
std::int64_t nhwc_offset(const Shape& s, std::int64_t index) {
  const std::int64_t w = index % s[3], h = index / s[3] % s[2], c = index / (s[3] * s[2]) % s[1],
                     n = index / (s[3] * s[2] * s[1]);
  return ((n * s[2] + h) * s[3] + w) * s[1] + c;
}

ir::Array to_array(const Buffer& buffer) {
  ir::Array array(buffer.type());
  if (buffer.type().layout == Layout::standard) {
    std::memcpy(array.bytes.data(), buffer.data(), array.bytes.size());
  } else {
    for (std::int64_t i = 0; i < buffer.type().elements(); ++i) {
      array.set(i, ir::load_element(buffer.data(), buffer.type().dtype, nhwc_offset(buffer.type().shape, i)));
    }
  }
  return array;
}

Buffer to_buffer(const ir::Array& array) {
  Buffer buffer = Buffer::allocate(array.type);
  if (array.type.layout == Layout::standard) {
    std::memcpy(buffer.data(), array.bytes.data(), array.bytes.size());
  } else {
    for (std::int64_t i = 0; i < array.type.elements(); ++i) {
      ir::store_element(buffer.data(), array.type.dtype, nhwc_offset(array.type.shape, i), array.at(i));
    }
  }
  return buffer;
}

std::vector<Buffer> interpret_graph(const ir::Graph& graph, std::span<const Buffer> arguments) {
  std::vector<ir::Array> inputs;
  for (const Buffer& argument : arguments) inputs.push_back(to_array(argument));
  std::vector<Buffer> results;
  for (const ir::Array& result : ir::interpret(graph, inputs)) results.push_back(to_buffer(result));
  return results;
}

}  // namespace

struct Session::State {
  SessionOptions options;
  SessionStatistics statistics;
};

Session::Session(SessionOptions options) : state_(std::make_unique<State>()) { state_->options = std::move(options); }
Session::~Session() = default;
const SessionOptions& Session::options() const { return state_->options; }
SessionStatistics Session::statistics() const { return state_->statistics; }

std::vector<Buffer> Session::run(const ir::Graph& graph, std::span<const Buffer> arguments, std::span<const bool>) {
  FJ_CHECK(arguments.size() == graph.parameters().size(), "graph @{} takes {} arguments, {} were given", graph.name(),
           graph.parameters().size(), arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    FJ_CHECK(arguments[i].type() == graph.parameters()[i].type(), "argument {} of graph @{} is {}, the parameter is {}", i,
             graph.name(), arguments[i].type().str(), graph.parameters()[i].type().str());
  }
  ++state_->statistics.runs;
  return interpret_graph(graph, arguments);
}

}  // namespace fusejit::runtime
