#include "scheduler/lower/winograd/transform.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::KernelBuilder;
using ir::Op;
using Args = std::vector<Arg>;

Args WinogradTransform::input(const WinogradAxis& axis, const Args& d) const {
  if (axis.taps == 1) return d;
  if (axis.stride == 1) return axis.taps == 3 ? input_of_3(d) : input_of_2(d);
  Args points = input_of_2({d[0], d[2], d[4], d[6], d[8]});
  for (std::size_t i = 1; i < d.size(); i += 2) points.push_back(d[i]);
  return points;
}

Args WinogradTransform::weights(const WinogradAxis& axis, const Args& g) const {
  if (axis.taps == 1) return g;
  if (axis.stride == 1) return axis.taps == 3 ? weights_of_3(g) : weights_of_2(g);
  Args points = weights_of_2({g[0], g[2]});
  points.push_back(g[1]);
  return points;
}

Args WinogradTransform::results(const WinogradAxis& axis, const Args& m) const {
  if (axis.taps == 1) return m;
  if (axis.stride == 1) return axis.taps == 3 ? results_of_3(m) : results_of_2(m);
  Args results = results_of_2(m);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = add(results[i], m[WinogradAxis::kEvenPoints + i]);
  return results;
}

Args WinogradTransform::gradients(const WinogradAxis& axis, const Args& g) const {
  if (axis.taps == 1) return g;
  if (axis.stride == 1) return axis.taps == 3 ? gradients_of_3(g) : gradients_of_2(g);
  Args points = gradients_of_2(g);
  points.insert(points.end(), g.begin(), g.end());
  return points;
}

Args WinogradTransform::taps(const WinogradAxis& axis, const Args& m) const {
  if (axis.taps == 1) return m;
  if (axis.stride == 1) return axis.taps == 3 ? taps_of_3(m) : taps_of_2(m);
  const Args even = taps_of_2(m);
  return {even[0], m[WinogradAxis::kEvenPoints], even[1]};
}

// B' d: each pair of points 1, -1 and 2, -2 shares the sum of even terms and that of odd ones.
Args WinogradTransform::input_of_3(const Args& d) const {
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
Args WinogradTransform::weights_of_3(const Args& g) const {
  const Arg even1 = times(-1.0 / 6, add(g[0], g[2])), odd1 = times(-1.0 / 6, g[1]);
  const Arg even2 = times(1.0 / 24, times_plus(4, g[2], g[0])), odd2 = times(1.0 / 12, g[1]);
  return {times(1.0 / 4, g[0]), add(even1, odd1), sub(even1, odd1), add(even2, odd2), sub(even2, odd2), g[2]};
}

// A' m.
Args WinogradTransform::results_of_3(const Args& m) const {
  const Arg even1 = add(m[1], m[2]), odd1 = sub(m[1], m[2]), even2 = add(m[3], m[4]), odd2 = sub(m[3], m[4]);
  return {add(add(m[0], even1), even2), times_plus(2, odd2, odd1), times_plus(4, even2, even1),
          add(times_plus(8, odd2, odd1), m[5])};
}

// G g with a fourth term: its row for the point a is that of three, longer by a^3.
Args WinogradTransform::gradients_of_3(const Args& g) const {
  const Arg even1 = times(-1.0 / 6, add(g[0], g[2])), odd1 = times(-1.0 / 6, add(g[1], g[3]));
  const Arg even2 = times(1.0 / 24, times_plus(4, g[2], g[0])), odd2 = times(1.0 / 12, times_plus(4, g[3], g[1]));
  return {times(1.0 / 4, g[0]), add(even1, odd1), sub(even1, odd1), add(even2, odd2), sub(even2, odd2), g[3]};
}

// A' m with three rows, the last of which has the point at infinity.
Args WinogradTransform::taps_of_3(const Args& m) const {
  const Arg even1 = add(m[1], m[2]), odd1 = sub(m[1], m[2]), even2 = add(m[3], m[4]), odd2 = sub(m[3], m[4]);
  return {add(add(m[0], even1), even2), times_plus(2, odd2, odd1), add(times_plus(4, even2, even1), m[5])};
}

// Two taps: d[3] - d[1] is in three of the rows of B', d[3] - d[2] in those of 1 and -1.
Args WinogradTransform::input_of_2(const Args& d) const {
  const Arg odd = sub(d[3], d[1]), last = sub(d[3], d[2]);
  return {times_plus(2, sub(d[0], d[2]), odd), times_plus(-2, d[1], last), times_plus(2, sub(d[1], d[2]), last), odd,
          times_plus(-2, odd, sub(d[4], d[2]))};
}

Args WinogradTransform::weights_of_2(const Args& g) const {
  return {times(1.0 / 2, g[0]), times(-1.0 / 2, add(g[0], g[1])), times(1.0 / 6, sub(g[1], g[0])),
          times(1.0 / 6, times_plus(2, g[1], g[0])), g[1]};
}

Args WinogradTransform::results_of_2(const Args& m) const {
  const Arg even = add(m[1], m[2]), odd = sub(m[1], m[2]);
  return {add(add(m[0], even), m[3]), times_plus(2, m[3], odd), times_plus(4, m[3], even),
          add(times_plus(8, m[3], odd), m[4])};
}

Args WinogradTransform::gradients_of_2(const Args& g) const {
  const Arg even = add(g[0], g[2]), odd = add(g[1], g[3]);
  return {times(1.0 / 2, g[0]), times(-1.0 / 2, add(even, odd)), times(1.0 / 6, sub(odd, even)),
          times(1.0 / 6, times_plus(2, times_plus(4, g[3], g[1]), times_plus(4, g[2], g[0]))), g[3]};
}

Args WinogradTransform::taps_of_2(const Args& m) const {
  return {add(add(m[0], add(m[1], m[2])), m[3]), add(times_plus(2, m[3], sub(m[1], m[2])), m[4])};
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
