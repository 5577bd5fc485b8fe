// Tensor: a lazy value. Operations record what is to be computed and check shapes at once; computing happens when a
// value is asked for: eval(), item(), to_vector(), copy_to(), printing, or a training step.
//
// A Tensor is a handle: copies name the same value, and values never change. Handles may be used from several threads.
//
//   fj::Tensor x = fj::from_host(std::vector<float>{1, 2, 3, 4}, {2, 2});
//   fj::Tensor y = fj::matmul(x, x) + 1;                // nothing is computed yet
//   std::vector<float> values = y.to_vector<float>();   // 8, 11, 16, 23
//
// Asking for a value may throw what its computation throws: UnsupportedError for a graph that cannot be compiled yet,
// DeviceError for lack of memory. The tensors stay usable. Whatever is asked of an empty Tensor is a UserError.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fusejit/device.h"
#include "fusejit/error.h"
#include "fusejit/number.h"
#include "fusejit/type.h"

namespace fusejit {

struct TensorState;  // frontend/state.h

class Tensor {
 public:
  Tensor() = default;                                                                // empty: no value at all
  explicit Tensor(std::shared_ptr<TensorState> state) : state_(std::move(state)) {}  // internal

  // False for an empty tensor, which has no value at all.
  bool defined() const { return state_ != nullptr; }
  // A tensor is no condition: refused when it is compiled, with what to write instead.
  template <std::same_as<bool> B>
  explicit operator B() const {
    static_assert(
        kNever<B>,
        "a Tensor is no condition: where(condition, a, b) chooses element by element, item<bool>() asks for the "
        "value of one element, and defined() tells whether there is a value at all");
    return false;
  }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  int rank() const { return shape().rank(); }
  // The extent along `axis`; negative axes count from the end. UserError if out of range.
  std::int64_t size(int axis) const;
  std::int64_t elements() const { return type().elements(); }
  std::int64_t bytes() const { return type().bytes(); }

  // Computes the value now, if that has not happened yet. Returns *this.
  const Tensor& eval() const;
  // True if the value is there already, so that reading it computes nothing.
  bool evaluated() const;
  // The only element, converted. UserError unless the tensor has exactly one element.
  template <class T>
  T item() const;
  // All elements in row-major order of the logical shape, converted to T.
  template <class T>
  std::vector<T> to_vector() const;
  // Copies the elements in row-major order of the logical shape as bytes() bytes: f16 and bf16 as their bits, bool as
  // the bytes 0 and 1.
  void copy_to(void* destination) const;
  // The elements where they are, row-major, for reading, without a copy. Evaluates. T is the dtype's own type, or
  // std::uint16_t for the bits of f16 and bf16. Good as long as this handle or a copy of it is there, so there is none
  // of a temporary; host_view() (host.h) holds what it shows. UserError for another dtype, and on a device.
  //   for (float v : x.span<float>()) std::cout << v << ' ';
  template <class T>
  std::span<const T> span() const&;
  template <class T>
  std::span<const T> span() const&& {
    static_assert(kNever<T>,
                  "a span of a temporary tensor would show memory that is gone: keep the tensor in a variable, or take "
                  "host_view(), which holds what it shows");
    return {};
  }
  // The values as text, long axes shortened. Evaluates.
  std::string str() const;

  // The same value as another dtype, rounded to nearest even; floats become integers toward zero, saturating, NaN as 0
  // (docs/ops.md section 4, `cast`).
  Tensor to(DType dtype) const;
  // Where the value lives and what is computed from it runs. All tensors of an operation live on one device; numbers
  // and 0-d tensors of the cpu go along with any.
  Device device() const;
  // The same value on another device: "cpu", "cuda:0". Evaluates it, and copies; gradients flow back. UserError for an
  // unknown name, DeviceError or UnsupportedError, with what to try, for a device that cannot be used.
  Tensor to(const Device& device) const;
  Tensor to(const std::string& device) const { return to(Device(device)); }
  // The same value; gradients stop here.
  Tensor detach() const;
  // Marks the value as something gradients are asked for: its history, and that of all that is computed from it, is
  // kept when it is evaluated. One that is detached, or was recorded under NoGrad, becomes a leaf without history, so
  // that w = (w - step).detach().requires_grad() can be repeated for ever. Float tensors only. Returns *this.
  Tensor& requires_grad(bool required = true);
  bool needs_grad() const;

  // The slice at `index` of the first axis, as select(*this, 0, index): negative numbers count from the end. UserError
  // if it is out of range, or there is no axis. A value: x[i] = y, which would change nothing, does not compile.
  //
  //   fj::Tensor m = fj::reshape(fj::arange(6), {2, 3});
  //   m[-1].to_vector<int>();  // 3, 4, 5
  //   m[1][2].item<int>();     // 5
  const Tensor operator[](std::int64_t index) const;

  // As the functions of these names in ops.h.
  Tensor reshape(const std::vector<std::int64_t>& shape) const;
  Tensor permute(const std::vector<std::int64_t>& dims) const;
  Tensor flatten(int start_dim = 0, int end_dim = -1) const;
  Tensor sum(const std::vector<std::int64_t>& dim = {}, bool keepdim = false) const;
  Tensor mean(const std::vector<std::int64_t>& dim = {}, bool keepdim = false) const;

  const std::shared_ptr<TensorState>& state() const { return state_; }  // internal

 private:
  template <class>
  static constexpr bool kNever = false;
  // The elements converted to `dtype`, bytes(dtype, elements()) of them.
  void copy_as(DType dtype, void* destination) const;
  // Those of a value in host memory, which are of that dtype.
  const void* elements_in_place(DType dtype) const;
  std::shared_ptr<TensorState> state_;
};

// The dtype of a C++ element type: float -> f32, bool -> boolean, std::uint8_t -> u8, std::int64_t -> i64, ...
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return f64;
  } else if constexpr (std::is_same_v<T, bool>) {
    return boolean;
  } else if constexpr (std::is_same_v<T, std::int8_t>) {
    return i8;
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    return u8;
  } else if constexpr (std::is_same_v<T, std::int16_t>) {
    return i16;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) {
    return i32;
  } else {
    static_assert(std::is_integral_v<T> && sizeof(T) == 8, "no dtype for this element type");
    return i64;
  }
}

// The dtype whose elements a T reads in place: its own, or `of` where that is f16 or bf16 and T has their bits.
template <class T>
constexpr DType element_dtype(DType of) {
  if constexpr (std::is_same_v<T, std::uint16_t>) {
    return of == bf16 ? bf16 : f16;
  } else {
    return dtype_of<T>();
  }
}

// ---- creation -----------------------------------------------------------------------------------------------------
// Shapes have at most 8 axes and 2^40 elements, no extent is negative (shape.h); else UserError. On the default device
// (Options::device), which is the cpu unless set_options() says otherwise.

Tensor zeros(const Shape& shape, DType dtype = f32);
Tensor ones(const Shape& shape, DType dtype = f32);
// `value` rounded to the dtype.
Tensor full(const Shape& shape, Number value, DType dtype = f32);
// [count]: 0, 1, ..., count - 1. No bool.
Tensor arange(std::int64_t count, DType dtype = i64);
// [ceil((stop - start)/step)]: start, start + step, ... up to stop, that one left out. i64 if the three numbers are
// whole, else f32, unless a dtype is given. Floats are start + i*step in f64, rounded once. UserError for a step of 0
// or one that leads away from stop, for bool, and for an integer dtype that cannot hold the numbers.
//
//   fj::arange(2, 11, 3).to_vector<int>();  // 2, 5, 8
Tensor arange(Number start, Number stop, Number step = 1, std::optional<DType> dtype = {});
// [steps]: from start to stop in equal steps, both of them included; one step is start alone. In f64, counted from the
// nearer end, and rounded once (integers: toward zero). UserError for a negative number of steps.
//
//   fj::linspace(0, 1, 5).to_vector<float>();  // 0, 0.25, 0.5, 0.75, 1
Tensor linspace(Number start, Number stop, std::int64_t steps, DType dtype = f32);
// Filled as the functions without _like, with the shape and on the device of x, of its dtype unless one is given.
//
//   fj::full_like(fj::tensor<float>({1, 2}), 7).to_vector<float>();  // 7, 7
Tensor zeros_like(const Tensor& x, std::optional<DType> dtype = {});
Tensor ones_like(const Tensor& x, std::optional<DType> dtype = {});
Tensor full_like(const Tensor& x, Number value, std::optional<DType> dtype = {});
Tensor rand_like(const Tensor& x, std::optional<DType> dtype = {});
// Uniform in [0, 1) from the default generator (random.h). Float dtypes.
Tensor rand(const Shape& shape, DType dtype = f32);
// A 0-d tensor that is an argument of every trace it is part of, whatever its value: a new value compiles nothing.
Tensor scalar(Number value, DType dtype = f32);

// A copy of `bytes(dtype, shape.elements())` bytes in row-major order.
Tensor from_host(const void* elements, const Shape& shape, DType dtype);
// UserError if the number of values is not that of the shape.
template <class T>
Tensor from_host(std::span<const T> values, const Shape& shape);
template <class T>
Tensor from_host(const std::vector<T>& values, const Shape& shape) {
  return from_host(std::span<const T>(values), shape);
}
// A 1-d tensor of the values: tensor<float>({1, 2, 3}).
template <class T>
Tensor tensor(const std::vector<T>& values) {
  return from_host(std::span<const T>(values), {static_cast<std::int64_t>(values.size())});
}

// The elements where they are, in host memory, row-major, without a copy: the memory must stay valid and unchanged
// until `deleter` is called, which happens when nothing needs it any more. Results never overwrite it. With
// check_borrowed() (runtime.h; on in debug builds) every use verifies that the bytes are still those of the beginning
// and throws UserError if not. UserError for memory that is not aligned to its elements.
Tensor borrow(void* elements, const Shape& shape, DType dtype, std::function<void()> deleter = {});
template <class T>
Tensor borrow(T* elements, const Shape& shape, std::function<void()> deleter = {}) {
  return borrow(const_cast<std::remove_const_t<T>*>(elements), shape, dtype_of<std::remove_const_t<T>>(),
                std::move(deleter));
}
// Evaluates several values in one plan.
void eval(const std::vector<Tensor>& tensors);

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// Refused when they are compiled: C++'s own ask for conditions, and && and || would not even compute both sides.
template <class A, class B>
concept EitherTensor = std::same_as<A, Tensor> || std::same_as<B, Tensor>;
template <class A, class B>
requires EitherTensor<A, B> Tensor operator&&(const A&, const B&) {
  static_assert(!EitherTensor<A, B>,
                "tensors have no &&: logical_and(a, b) combines them element by element, defined() "
                "tells whether a tensor has a value at all");
  return {};
}
template <class A, class B>
requires EitherTensor<A, B> Tensor operator||(const A&, const B&) {
  static_assert(!EitherTensor<A, B>,
                "tensors have no ||: logical_or(a, b) combines them element by element, defined() "
                "tells whether a tensor has a value at all");
  return {};
}
template <std::same_as<Tensor> A>
Tensor operator!(const A&) {
  static_assert(!std::same_as<A, Tensor>,
                "tensors have no !: logical_not(x) negates element by element, and "
                "!x.defined() tells whether x is empty");
  return {};
}

// ---- templates ----------------------------------------------------------------------------------------------------

template <class T>
std::vector<T> Tensor::to_vector() const {
  std::vector<T> result(static_cast<std::size_t>(elements()));
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<char> values(result.size());
    copy_as(boolean, values.data());
    for (std::size_t i = 0; i < values.size(); ++i) result[i] = values[i] != 0;
  } else {
    copy_as(dtype_of<T>(), result.data());
  }
  return result;
}

template <class T>
std::span<const T> Tensor::span() const& {
  return {static_cast<const T*>(elements_in_place(element_dtype<T>(dtype()))), static_cast<std::size_t>(elements())};
}

template <class T>
T Tensor::item() const {
  if (elements() != 1)
    throw UserError("item: the tensor has " + std::to_string(elements()) + " elements (x: " + type().str() + ")");
  return to_vector<T>()[0];
}

template <class T>
Tensor from_host(std::span<const T> values, const Shape& shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.elements()) {
    throw UserError("from_host: " + std::to_string(values.size()) + " values given for shape " + shape.str());
  }
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<char> copy(values.begin(), values.end());
    return from_host(static_cast<const void*>(copy.data()), shape, boolean);
  } else {
    return from_host(static_cast<const void*>(values.data()), shape, dtype_of<T>());
  }
}

}  // namespace fusejit
