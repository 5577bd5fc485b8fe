// Recording: every public operation ends here. Checks are the op rows'; here are only the conversions that PyTorch's
// users expect (ops.h), host scalars as arguments of the trace, and the bound on the length of a trace.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/state.h"
#include "fusejit/number.h"

namespace fusejit {

struct Input {
  const Tensor* tensor = nullptr;
  Number number = 0;
  Input(const Tensor& t) : tensor(&t) {}
  Input(Number n) : number(n) {}
};

// What messages say of a tensor: its type, or "empty".
std::string text(const Tensor& tensor);

// A number attribute, and a number as a value of `dtype`: whole numbers stay exact.
ir::AttrInit number_attr(std::string_view name, Number value);
ir::Scalar scalar_in(Number value, DType dtype);

// Operands as they are; numbers become literals.
Tensor record(ir::Op op, std::span<const Input> inputs, std::vector<ir::AttrInit> attrs = {});
inline Tensor record(ir::Op op, std::initializer_list<Input> inputs, std::vector<ir::AttrInit> attrs = {}) {
  return record(op, std::span<const Input>(inputs.begin(), inputs.size()), std::move(attrs));
}
// An element-wise op: operands converted to one kind, numbers to arguments of the trace.
Tensor record_promoted(ir::Op op, std::initializer_list<Input> inputs, std::vector<ir::AttrInit> attrs = {});
// One float operand: bool and integer tensors are taken as f32.
Tensor record_float(ir::Op op, const Tensor& x, std::vector<ir::AttrInit> attrs = {});

// An operand as the innermost Autocast of this thread has it for ops of that rule.
Tensor autocast(ir::AutocastRule rule, const Tensor& x);
// Operands of a function that takes one dtype, as the innermost Autocast has them: those of f32, bf16 and f16 in the
// widest of theirs.
std::vector<Tensor> autocast_to_widest(std::vector<Tensor> tensors);
// In the dtype that arithmetic on x is done in, so that no inner value is rounded to 16 bits or overflows there.
inline Tensor wide(const Tensor& x) { return x.to(compute_type(x.dtype())); }
// What is computed from no tensor, on `device`.
Tensor record_on(std::optional<Device> device, ir::Op op, std::vector<ir::Operand> operands,
                 std::vector<ir::AttrInit> attrs);
// The dtype that PyTorch gives to what these are joined to: that of the highest kind, the wider of two.
DType common_dtype(std::span<const Tensor> tensors);

// While one lives, what this thread records is what the user calls `op`, a literal. For operations that are recorded as
// others.
class CalledAs {
 public:
  explicit CalledAs(const char* op) : scope_(renamed(op)) {}

 private:
  static ir::Origin renamed(const char* op) {
    ir::Origin origin = ir::current_origin();
    if (!origin.op) origin.op = op;
    return origin;
  }
  ir::OriginScope scope_;
};

// The seed operand and the stream number of the next draw (ops.md §11).
struct Draw {
  ir::Value seed;
  std::int64_t stream = 0;
};
Draw next_draw();
Tensor record_value(ir::Value value, std::span<const Input> inputs, std::optional<Device> device);

}  // namespace fusejit
