// The transforms along one axis (scheduler/schedule/winograd.h), as statements of a kernel: each row of the matrices
// B', G and A' of Lavin and Gray, and of G and A' with gradients of results in the place of taps, terms in an order
// that is part of the result's bits.
#pragma once

#include <vector>

#include "ir/kernel/builder.h"
#include "scheduler/schedule/winograd.h"

namespace fusejit::scheduler {

class WinogradTransform {
 public:
  WinogradTransform(ir::KernelBuilder& builder, bool has_fma, DType type)
      : builder_(builder), has_fma_(has_fma), type_(type) {}

  // What is read for an axis's results, at its points.
  std::vector<ir::Arg> input(const WinogradAxis& axis, const std::vector<ir::Arg>& d) const;
  // Its taps at the points of weights.
  std::vector<ir::Arg> weights(const WinogradAxis& axis, const std::vector<ir::Arg>& g) const;
  // Its results from sums of products at its points.
  std::vector<ir::Arg> results(const WinogradAxis& axis, const std::vector<ir::Arg>& m) const;
  // Of weight gradients: gradients of its results at its points, and those of the taps from sums of products at the
  // points of weights.
  std::vector<ir::Arg> gradients(const WinogradAxis& axis, const std::vector<ir::Arg>& g) const;
  std::vector<ir::Arg> taps(const WinogradAxis& axis, const std::vector<ir::Arg>& m) const;

 private:
  using Args = std::vector<ir::Arg>;
  Args input_of_3(const Args& d) const;
  Args input_of_2(const Args& d) const;
  Args weights_of_3(const Args& g) const;
  Args weights_of_2(const Args& g) const;
  Args results_of_3(const Args& m) const;
  Args results_of_2(const Args& m) const;
  Args gradients_of_3(const Args& g) const;
  Args gradients_of_2(const Args& g) const;
  Args taps_of_3(const Args& m) const;
  Args taps_of_2(const Args& m) const;
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
