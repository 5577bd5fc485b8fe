// Tensor: handles, creation, and the ways in which a value leaves the library.
#include "fusejit/tensor.h"

#include <cstring>

#include "frontend/context.h"
#include "frontend/evaluation/evaluation.h"
#include "frontend/record.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

// Offset of row-major logical element `index` in the bytes of `type`, in elements.
std::int64_t physical_offset(const Type& type, std::int64_t index) {
  if (type.layout == Layout::standard) return index;
  const Shape& s = type.shape;
  const std::int64_t w = index % s[3], h = index / s[3] % s[2], c = index / (s[3] * s[2]) % s[1],
                     n = index / (s[3] * s[2] * s[1]);
  return ((n * s[2] + h) * s[3] + w) * s[1] + c;
}

}  // namespace

const Type& Tensor::type() const { return state_of(state_).type; }

std::int64_t Tensor::size(int axis) const {
  const int r = rank();
  FJ_CHECK(axis >= -r && axis < r, "size: axis {} is out of range for rank {} (x: {})", axis, r, type().str());
  return shape()[axis < 0 ? axis + r : axis];
}

const Tensor& Tensor::eval() const {
  state_of(state_);
  evaluate({this, 1});
  return *this;
}

bool Tensor::evaluated() const {
  state_of(state_);
  const std::lock_guard lock(context().graph_mutex);
  return fusejit::evaluated(state_->value.get());
}

void Tensor::copy_to(void* destination) const {
  const runtime::Buffer buffer = buffer_of(*this).on_host();
  if (buffer.type().layout == Layout::standard) {
    if (buffer.bytes() > 0) std::memcpy(destination, buffer.data(), static_cast<std::size_t>(buffer.bytes()));
    return;
  }
  for (std::int64_t i = 0; i < elements(); ++i) {
    ir::store_element(destination, dtype(), i,
                      ir::load_element(buffer.data(), dtype(), physical_offset(buffer.type(), i)));
  }
}

void Tensor::copy_as(DType to, void* destination) const {
  if (to == dtype()) return copy_to(destination);
  const runtime::Buffer buffer = buffer_of(*this).on_host();
  for (std::int64_t i = 0; i < elements(); ++i) {
    const ir::Scalar element = ir::load_element(buffer.data(), dtype(), physical_offset(buffer.type(), i));
    ir::store_element(destination, to, i, ir::cast(element, to));
  }
}

Tensor Tensor::to(DType dtype) const {
  state_of(state_);
  return dtype == this->dtype() ? *this : record(ir::Op::cast, {*this}, {{"dtype", dtype}});
}

Device Tensor::device() const { return state_of(state_).device.value_or(Device()); }

Tensor Tensor::to(const Device& device) const {
  if (state_of(state_).device == device) return *this;
  Tensor copy = copy_on(*this, device);
  if (!state_->needs_grad || !thread_state().gradients) return copy;
  auto custom = std::make_shared<CustomNote>();
  custom->inputs = {value_of(*this)};
  custom->device = device;
  custom->backward = [home = this->device()](const std::vector<Tensor>&, const Tensor& g) {
    return std::vector{g.to(home)};
  };
  copy.state()->needs_grad = true;
  const std::lock_guard lock(context().graph_mutex);
  attachment(copy.state()->value.get())->custom = std::move(custom);
  return copy;
}

Tensor Tensor::detach() const {
  state_of(state_);
  Tensor result = record(ir::Op::detach, {*this});
  result.state()->needs_grad = false;
  result.state()->without_history = true;
  return result;
}

Tensor& Tensor::requires_grad(bool required) {
  state_of(state_);
  FJ_CHECK(!required || is_float(type().dtype), "requires_grad: only float tensors have gradients (x: {})",
           type().str());
  if (state_->needs_grad == required) return *this;
  if (required && state_->without_history) return *this = as_leaf(*this, true);
  return *this = tensor_of(value_of(*this), required, state_->depth, state_->device);
}

bool Tensor::needs_grad() const { return state_of(state_).needs_grad; }

Tensor Tensor::reshape(const std::vector<std::int64_t>& shape) const { return fusejit::reshape(*this, shape); }
Tensor Tensor::permute(const std::vector<std::int64_t>& dims) const { return fusejit::permute(*this, dims); }
Tensor Tensor::flatten(int start_dim, int end_dim) const { return fusejit::flatten(*this, start_dim, end_dim); }
Tensor Tensor::sum(const std::vector<std::int64_t>& dim, bool keepdim) const {
  return fusejit::sum(*this, dim, keepdim);
}
Tensor Tensor::mean(const std::vector<std::int64_t>& dim, bool keepdim) const {
  return fusejit::mean(*this, dim, keepdim);
}

Tensor full(const Shape& shape, Number value, DType dtype) {
  return record(ir::Op::full, {}, {{"shape", shape.dims()}, number_attr("value", value), {"dtype", dtype}});
}
Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Tensor arange(std::int64_t count, DType dtype) {
  const Shape shape{count};
  return record(ir::Op::iota, {}, {{"shape", shape.dims()}, {"dim", 0}, {"dtype", dtype}});
}

Tensor scalar(Number value, DType dtype) { return tensor_of(leaf(scalar_in(value, dtype)), false, 0, std::nullopt); }

void eval(const std::vector<Tensor>& tensors) { evaluate(tensors); }

}  // namespace fusejit
