#include "frontend/onnx/call.h"

#include <algorithm>
#include <cstring>

#include "frontend/context.h"
#include "frontend/evaluation/trace.h"
#include "frontend/state.h"
#include "ir/base/check.h"
#include "ir/interp.h"

namespace fusejit::onnx {
namespace {

Tensor host_tensor(const void* bytes, const Shape& shape, DType dtype) {
  runtime::Buffer buffer = runtime::Buffer::allocate({dtype, shape, Layout::standard});
  if (buffer.bytes() > 0) std::memcpy(buffer.data(), bytes, static_cast<std::size_t>(buffer.bytes()));
  return fusejit::tensor_of(std::move(buffer));
}

ir::Array array_of(const Attachment& note, const Type& type) {
  ir::Array array(type);
  if (note.number) {
    array.set(0, *note.number);
  } else if (!array.bytes.empty()) {
    std::memcpy(array.bytes.data(), note.buffer.data(), array.bytes.size());
  }
  return array;
}

Number number_of(const Tensor& x) {
  return is_float(x.dtype()) ? Number(x.item<double>()) : Number(x.item<std::int64_t>());
}

}  // namespace

Tensor folded(const Tensor& tensor) {
  Trace trace;
  std::vector<ir::Array> arguments;
  {
    const std::lock_guard lock(context().graph_mutex);
    trace.add_result(tensor.state()->value);
    for (const int a : trace.arguments()) {
      const ir::Node* node = trace.entries()[static_cast<std::size_t>(a)].node;
      arguments.push_back(array_of(*attachment(node), node->type));
    }
  }
  const ir::Array result = ir::interpret(trace.graph("folded"), arguments)[0];
  return host_tensor(result.bytes.data(), result.type.shape, result.type.dtype);
}

Tensor known_integers(const Dims& numbers) {
  return host_tensor(numbers.data(), {static_cast<std::int64_t>(numbers.size())}, i64);
}
Tensor known_integer(std::int64_t number) { return host_tensor(&number, {}, i64); }

Tensor Call::tensor(int input) const {
  if (!has(input)) return {};
  const Tensor& x = at(input).tensor;
  // Constants are in host memory; those without axes go along with any device.
  const bool stays = !device_ || x.rank() == 0 || x.device() == *device_ || !x.device().is_cpu();
  return stays ? x : x.to(*device_);
}

std::vector<Tensor> Call::tensors() const {
  std::vector<Tensor> all;
  for (int i = 0; i < inputs(); ++i) {
    FJ_CHECK(has(i), "operand {} is left out", i);
    all.push_back(tensor(i));
  }
  return all;
}

const Tensor& Call::known(int input) const {
  FJ_CHECK(at(input).known, "operand '{}' must be a constant, or follow from shapes alone",
           printable(graph_.names[static_cast<std::size_t>(node_.inputs[static_cast<std::size_t>(input)])]));
  return at(input).tensor;
}

Dims Call::integers_at(int input) const {
  if (!has(input)) return {};
  const Tensor& x = known(input);
  FJ_CHECK(is_int(x.dtype()) && x.rank() <= 1, "operand {} must be a list of integers (it is {})", input,
           x.type().str());
  return x.to_vector<std::int64_t>();
}

std::vector<double> Call::numbers_at(int input) const {
  return has(input) ? known(input).to_vector<double>() : std::vector<double>();
}

Number Call::number_at(int input, Number otherwise) const {
  if (!has(input)) return otherwise;
  const Tensor& x = known(input);
  FJ_CHECK(x.elements() == 1, "operand {} must be one number (it is {})", input, x.type().str());
  return number_of(x);
}

std::optional<Number> Call::number_beside(int input, int other) const {
  const Value& value = at(input);
  const DType dtype = value.tensor.dtype(), beside = at(other).tensor.dtype();
  const bool goes_along = value.known && value.tensor.elements() == 1 && dtype != boolean &&
                          value.tensor.rank() <= at(other).tensor.rank() &&
                          (dtype == beside || (is_float(dtype) && is_float(beside)));
  return goes_along ? std::optional(number_of(value.tensor)) : std::nullopt;
}

const Attribute* Call::find(std::string_view attribute) const {
  const auto found = std::find_if(node_.attributes.begin(), node_.attributes.end(),
                                  [&](const Attribute& a) { return a.name == attribute; });
  return found == node_.attributes.end() ? nullptr : &*found;
}

double Call::number(std::string_view attribute, double otherwise) const {
  const Attribute* a = find(attribute);
  return a ? a->number : otherwise;
}
std::int64_t Call::integer(std::string_view attribute, std::int64_t otherwise) const {
  const Attribute* a = find(attribute);
  return a ? a->integer : otherwise;
}
Dims Call::integers(std::string_view attribute, const Dims& otherwise) const {
  const Attribute* a = find(attribute);
  return a ? a->integers : otherwise;
}
std::string Call::text(std::string_view attribute, const char* otherwise) const {
  const Attribute* a = find(attribute);
  return a ? a->text : otherwise;
}

int axis_of(std::int64_t axis, int rank) {
  FJ_CHECK(axis >= -rank && axis < rank, "axis {} is out of range for rank {}", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Tensor taken(const Tensor& x, int axis, const Dims& places) {
  Dims column(static_cast<std::size_t>(x.rank()), 1), whole(x.shape().begin(), x.shape().end());
  column[static_cast<std::size_t>(axis)] = whole[static_cast<std::size_t>(axis)] =
      static_cast<std::int64_t>(places.size());
  Tensor index = known_integers(places);
  if (!x.device().is_cpu()) index = index.to(x.device());
  return gather(x, axis, expand(reshape(index, column), whole));
}

}  // namespace fusejit::onnx
