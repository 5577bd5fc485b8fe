// Mixed precision: convolutions and products in bf16 or f16, everything that would suffer from that in f32. Parameters
// stay f32, and so do their gradients and the optimiser's state; the copy of a weight in the narrow type is made where
// the product lays it out, not kept.
//
//   fj::nn::Linear net(4, 2);
//   fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
//   auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::mse_loss(net(x), y); },
//                              {.autocast = fj::bf16});
//   float loss = step(fj::ones({4, 4}), fj::zeros({4, 2})).item<float>();
#pragma once

#include <optional>

#include "fusejit/type.h"

namespace fusejit {

// While one lives, operations recorded on this thread take their f32, bf16 and f16 operands as docs/ops.md section 2
// says, after PyTorch's lists: convolutions and products in `dtype`; exp, log, pow, softmax, losses, sums, layer and
// group norm in f32; dot, grid_sample, scatter_add and concat of mixed ones in the widest of theirs; all others as they
// are, promoted where they meet. Batch norm computes in f32 whatever its input
// is. f64 and integers are left alone. The innermost one counts; dtype f32 is none at all. Gradients are those of what
// was recorded, so a loop of one's own leaves the scope before it asks for them, or not: it is the same.
//   fj::Tensor x = fj::ones({2, 8}), w = fj::ones({3, 8});
//   const fj::Autocast scope(fj::bf16);
//   std::cout << fj::linear(x, w).type().str();  // bf16[2,3]
//   std::cout << fj::softmax(fj::linear(x, w), 1).type().str();  // f32[2,3]
class Autocast {
 public:
  // UserError unless bf16, f16 or f32.
  explicit Autocast(DType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  std::optional<DType> before_;
};

}  // namespace fusejit
