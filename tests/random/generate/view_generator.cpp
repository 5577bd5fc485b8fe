#include "tests/random/generate/view_generator.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/passes/grad.h"
#include "tests/random/generate/dims.h"

namespace fusejit::testing {
namespace {

using namespace ir;

class Views {
 public:
  Views(std::uint64_t seed, const ViewOptions& options) : random_(seed), options_(options) {}

  Graph graph() {
    Dims dims;
    for (std::int64_t rank = 1 + below(4); rank > 0; --rank) dims.push_back(1 + below(6));
    Value x = fresh(Shape(dims));
    for (int made = 0, tries = 0; made < options_.views && tries < 1000; ++tries) {
      Value next;
      try {
        next = step(x);
      } catch (const UserError&) {
        continue;  // the dice asked for what the row refuses
      }
      const std::int64_t elements = next ? next.type().elements() : 0;
      if (elements == 0 || elements > options_.most_elements) continue;
      x = next, ++made;
    }
    const Graph chain = capture("views", parameters_, {x});
    if (!options_.gradient) return chain;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < parameters_.size(); ++i) names.push_back(chain.parameter_name(i));
    return differentiate(chain, names);
  }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1)));
  }
  bool chance(int percent) { return below(100) < percent; }
  Value fresh(const Shape& shape) {
    parameters_.push_back(parameter({DType::f32, shape}, "p" + std::to_string(parameters_.size())));
    return parameters_.back();
  }

  Value step(const Value& x) {
    switch (below(14)) {
      case 0:
      case 1:
        return reshape(x);
      case 2:
      case 3:
        return permute(x);
      case 4:
      case 5:
        return slice(x);
      case 6:
        return flip(x);
      case 7:
        return pad(x);
      case 8:
        return concat(x);
      case 9:
      case 10:
        return unslice(x);
      case 11:
        return expand(x);
      case 12:
        return upsample(x);
      default:
        return other(x);
    }
  }

  // A random factorisation of the elements: prime factors put into dims at random.
  Value reshape(const Value& x) {
    Dims dims(static_cast<std::size_t>(1 + below(5)), 1);
    std::int64_t rest = x.type().elements();
    for (std::int64_t p = 2; rest > 1; ++p) {
      for (; rest % p == 0; rest /= p)
        dims[static_cast<std::size_t>(below(static_cast<std::int64_t>(dims.size())))] *= p;
    }
    return build(Op::reshape, {x}, {{"shape", list(dims)}});
  }
  Value permute(const Value& x) {
    Dims dims(static_cast<std::size_t>(x.type().shape.rank()));
    std::iota(dims.begin(), dims.end(), 0);
    for (std::size_t i = dims.size(); i > 1; --i)
      std::swap(dims[i - 1], dims[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    return build(Op::permute, {x}, {{"dims", list(dims)}});
  }
  Value slice(const Value& x) {
    Dims starts, stops, steps;
    for (const std::int64_t d : x.type().shape) {
      starts.push_back(chance(50) ? 0 : below((d + 1) / 2));
      stops.push_back(chance(50) ? d : d - below((d - starts.back() + 1) / 2));
      steps.push_back(chance(60) ? 1 : 1 + below(3));
    }
    return build(Op::slice, {x}, {{"starts", list(starts)}, {"stops", list(stops)}, {"steps", list(steps)}});
  }
  Value flip(const Value& x) {
    Dims dims;
    for (int d = 0; d < x.type().shape.rank(); ++d)
      if (chance(50)) dims.push_back(d);
    return build(Op::flip, {x}, {{"dims", list(dims)}});
  }
  Value pad(const Value& x) {
    Dims low, high;
    for (int d = 0; d < x.type().shape.rank(); ++d)
      low.push_back(chance(60) ? 0 : below(4)), high.push_back(chance(60) ? 0 : below(4));
    return build(Op::pad, {x}, {{"low", list(low)}, {"high", list(high)}, {"value", chance(70) ? 0.0 : 1.5}});
  }
  Value concat(const Value& x) {
    if (x.type().shape.rank() == 0) return {};
    std::vector<Operand> parts{x};
    for (std::int64_t more = 1 + below(2); more > 0; --more)
      parts.insert(parts.begin() + below(static_cast<std::int64_t>(parts.size()) + 1),
                   chance(60) ? x : fresh(x.type().shape));
    return build(Op::concat, parts, {{"dim", below(x.type().shape.rank())}});
  }
  Value unslice(const Value& x) {
    Dims shape, starts, steps;
    for (const std::int64_t d : x.type().shape) {
      starts.push_back(below(3)), steps.push_back(chance(50) ? 1 : 1 + below(3));
      shape.push_back(starts.back() + (d - 1) * steps.back() + 1 + below(2));
    }
    return build(Op::unslice, {x}, {{"shape", list(shape)}, {"starts", list(starts)}, {"steps", list(steps)}});
  }
  Value expand(const Value& x) {
    Dims shape;
    if (chance(40)) shape.push_back(1 + below(3));
    for (const std::int64_t d : x.type().shape) shape.push_back(d == 1 ? 1 + below(4) : d);
    return build(Op::expand, {x}, {{"shape", list(shape)}});
  }
  Value upsample(const Value& x) {
    const Shape& s = x.type().shape;
    if (s.rank() != 4) return {};
    const Dims size{s[2] + below(s[2] + 2), s[3] + below(s[3] + 2)};
    return build(chance(70) ? Op::upsample_nearest2d : Op::upsample_bilinear2d, {x}, {{"output_size", list(size)}});
  }
  Value other(const Value& x) {
    const Shape& s = x.type().shape;
    switch (below(3)) {
      case 0:
        return build(Op::add, {build(Op::mul, {x, 0.5}), fresh(s)});
      case 1:
        return s.rank() == 0 ? Value() : build(Op::sum, {x}, {{"dim", {below(s.rank())}}, {"keepdim", chance(50)}});
      default:
        return build(Op::tanh, {x});
    }
  }

  std::mt19937_64 random_;
  ViewOptions options_;
  std::vector<Value> parameters_;
};

}  // namespace

Graph random_views(std::uint64_t seed, const ViewOptions& options) { return Views(seed, options).graph(); }

Graph alternating_views(int views) {
  const Value x = parameter({DType::f32, {4, 6, 10}}, "x");
  Value y = x;
  const Shape shapes[] = {{8, 5, 6}, {3, 16, 5}, {12, 2, 10}, {4, 6, 10}};
  for (int i = 0; i < views; ++i) {
    y = i % 2 == 0 ? build(Op::permute, {y}, {{"dims", {1, 2, 0}}})
                   : build(Op::reshape, {y}, {{"shape", shapes[static_cast<std::size_t>(i / 2) % 4].dims()}});
  }
  return capture("alternating", {x}, {y});
}

}  // namespace fusejit::testing
