#include "scheduler/lower/winograd/transform.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::KernelBuilder;
using ir::Op;

// B' d: each pair of points 1, -1 and 2, -2 shares the sum of even terms and that of odd ones.
std::vector<Arg> WinogradTransform::input(const std::vector<Arg>& d) const {
  const Arg even1 = times_plus(-4, d[2], d[4]), odd1 = times_plus(-4, d[1], d[3]);
  const Arg even2 = sub(d[4], d[2]), odd2 = sub(d[3], d[1]);
  return {times_plus(-5, d[2], times_plus(4, d[0], d[4])),
          add(even1, odd1),
          sub(even1, odd1),
          times_plus(2, odd2, even2),
          times_plus(-2, odd2, even2),
          times_plus(-5, d[3], times_plus(4, d[1], d[5]))};
}

// G g.
std::vector<Arg> WinogradTransform::weights(const std::vector<Arg>& g) const {
  const Arg even1 = times(-1.0 / 6, add(g[0], g[2])), odd1 = times(-1.0 / 6, g[1]);
  const Arg even2 = times(1.0 / 24, times_plus(4, g[2], g[0])), odd2 = times(1.0 / 12, g[1]);
  return {times(1.0 / 4, g[0]), add(even1, odd1), sub(even1, odd1), add(even2, odd2), sub(even2, odd2), g[2]};
}

// A' m.
std::vector<Arg> WinogradTransform::results(const std::vector<Arg>& m) const {
  const Arg even1 = add(m[1], m[2]), odd1 = sub(m[1], m[2]), even2 = add(m[3], m[4]), odd2 = sub(m[3], m[4]);
  return {add(add(m[0], even1), even2), times_plus(2, odd2, odd1), times_plus(4, even2, even1),
          add(times_plus(8, odd2, odd1), m[5])};
}

// G g with a fourth term: its row for the point a is that of three, longer by a^3.
std::vector<Arg> WinogradTransform::gradients(const std::vector<Arg>& g) const {
  const Arg even1 = times(-1.0 / 6, add(g[0], g[2])), odd1 = times(-1.0 / 6, add(g[1], g[3]));
  const Arg even2 = times(1.0 / 24, times_plus(4, g[2], g[0])), odd2 = times(1.0 / 12, times_plus(4, g[3], g[1]));
  return {times(1.0 / 4, g[0]), add(even1, odd1), sub(even1, odd1), add(even2, odd2), sub(even2, odd2), g[3]};
}

// A' m with three rows, the last of which has the point at infinity.
std::vector<Arg> WinogradTransform::taps(const std::vector<Arg>& m) const {
  const Arg even1 = add(m[1], m[2]), odd1 = sub(m[1], m[2]), even2 = add(m[3], m[4]), odd2 = sub(m[3], m[4]);
  return {add(add(m[0], even1), even2), times_plus(2, odd2, odd1), add(times_plus(4, even2, even1), m[5])};
}

Arg WinogradTransform::add(const Arg& a, const Arg& b) const { return builder_.def(Op::add, {a, b}, type_); }
Arg WinogradTransform::sub(const Arg& a, const Arg& b) const { return builder_.def(Op::sub, {a, b}, type_); }
Arg WinogradTransform::times(double factor, const Arg& a) const {
  return builder_.def(Op::mul, {a, KernelBuilder::literal(factor, type_)}, type_);
}
Arg WinogradTransform::times_plus(double factor, const Arg& a, const Arg& b) const {
  if (!has_fma_) return add(times(factor, a), b);
  return builder_.def(Op::fma, {a, KernelBuilder::literal(factor, type_), b}, type_);
}

}  // namespace fusejit::scheduler
