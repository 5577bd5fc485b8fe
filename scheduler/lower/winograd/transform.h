// The transforms of F(4x4, 3x3) along one axis, as statements of a kernel: each row of the matrices B', G and A' of
// Lavin and Gray, and of G and A' of F(3x3, 4x4), terms in an order that is part of the result's bits.
#pragma once

#include <vector>

#include "ir/kernel/builder.h"

namespace fusejit::scheduler {

class WinogradTransform {
 public:
  WinogradTransform(ir::KernelBuilder& builder, bool has_fma, DType type)
      : builder_(builder), has_fma_(has_fma), type_(type) {}

  // What is read for 4 results, 6 elements, at the 6 points.
  std::vector<ir::Arg> input(const std::vector<ir::Arg>& d) const;
  // 3 taps at the 6 points.
  std::vector<ir::Arg> weights(const std::vector<ir::Arg>& g) const;
  // 4 results from sums of products at the 6 points.
  std::vector<ir::Arg> results(const std::vector<ir::Arg>& m) const;
  // F(3x3, 4x4): gradients of 4 results at the 6 points, and those of the 3 taps from sums of products there.
  std::vector<ir::Arg> gradients(const std::vector<ir::Arg>& g) const;
  std::vector<ir::Arg> taps(const std::vector<ir::Arg>& m) const;

 private:
  ir::Arg add(const ir::Arg& a, const ir::Arg& b) const;
  ir::Arg sub(const ir::Arg& a, const ir::Arg& b) const;
  ir::Arg times(double factor, const ir::Arg& a) const;
  // factor * a + b
  ir::Arg times_plus(double factor, const ir::Arg& a, const ir::Arg& b) const;

  ir::KernelBuilder& builder_;
  const bool has_fma_;
  const DType type_;
};

}  // namespace fusejit::scheduler
