#include "tests/conformance/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "ir/base/scalar.h"

namespace fusejit::testing {

using runtime::Buffer;

std::vector<Buffer> random_arguments(const ir::Graph& graph, std::uint64_t seed, std::int64_t integer_bound) {
  std::mt19937_64 random(seed);
  std::vector<Buffer> arguments;
  for (const ir::Value& parameter : graph.parameters()) {
    const Type& type = parameter.type();
    Buffer buffer = Buffer::allocate(type);
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      const double u = static_cast<double>(random() >> 11) * 0x1p-53;
      // Narrow integers are from their whole range, so that they wrap.
      const std::int64_t low = is_narrow_int(type.dtype) ? ir::end_of_range(type.dtype, false).integer() : 0,
                         count = is_narrow_int(type.dtype) ? std::int64_t{1} << bits(type.dtype) : integer_bound;
      const ir::Scalar scalar = is_float(type.dtype)
                                    ? ir::Scalar::of(2 * u - 1)
                                    : ir::Scalar::of(low + static_cast<std::int64_t>(u * static_cast<double>(count)));
      ir::store_element(buffer.data(), type.dtype, i, ir::cast(scalar, type.dtype));
    }
    arguments.push_back(buffer);
  }
  return arguments;
}

double excess(const std::vector<Buffer>& got, const std::vector<Buffer>& want, Tolerance tolerance) {
  double worst = -1e300;
  for (std::size_t r = 0; r < want.size(); ++r) {
    for (std::int64_t i = 0; i < want[r].type().elements(); ++i) {
      const double a = ir::load_element(got[r].data(), want[r].type().dtype, i).as_double();
      const double b = ir::load_element(want[r].data(), want[r].type().dtype, i).as_double();
      if (std::isnan(a) && std::isnan(b)) continue;
      if (a == b) continue;
      const double difference = std::abs(a - b) - (tolerance.absolute + tolerance.relative * std::abs(b));
      worst = std::max(worst, std::isnan(difference) ? HUGE_VAL : difference);
    }
  }
  return worst;
}

bool same_bits(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  for (std::size_t r = 0; r < a.size(); ++r) {
    if (std::memcmp(a[r].data(), b[r].data(), static_cast<std::size_t>(a[r].bytes())) != 0) return false;
  }
  return true;
}

}  // namespace fusejit::testing
