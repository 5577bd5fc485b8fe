// Casts and views around an anchor: what its operands are read through, and what its results become.
#include <algorithm>
#include <map>
#include <numeric>

#include "ir/rewrite.h"
#include "tests/random/generate/dims.h"
#include "tests/random/generate/schedule_generator.h"

namespace fusejit::testing {
namespace {

using namespace ir;

class Surroundings {
 public:
  Surroundings(Random& random, const Graph& graph, Around what) : random_(random), graph_(graph), what_(what) {}

  Graph graph() {
    std::map<const Node*, Value> now;
    for (const Value& p : graph_.parameters()) {
      parameters_.push_back(p);
      const bool stays = what_ == Around::views_of_results || p->name == "bias" || !random_.chance(40);
      now[p.get()] = stays ? p : read_through(p);
    }
    for (const Value& node : graph_.nodes()) {
      std::vector<Operand> operands = node->operands;
      for (Operand& operand : operands)
        if (!operand.is_number()) operand = now.at(operand.value.get());
      now[node.get()] = rebuild(*node, operands);
    }
    std::vector<Value> results;
    for (const Value& result : graph_.results()) {
      results.push_back(now.at(result.get()));
      // A sum is rounded when it is stored: what is computed with it afterwards need not have been.
      if (results.back()->op == Op::sum || !random_.chance(80)) continue;
      const Value became = become(results.back());
      if (random_.chance(20)) {
        results.push_back(became);  // both
      } else {
        results.back() = became;
      }
      if (random_.chance(25)) results.push_back(summed(became));
    }
    return capture("g", parameters_, results);
  }

 private:
  // `like` with other numbers in it, which come from a parameter in its place.
  Value read_through(const Value& like) {
    const Type& type = like.type();
    const auto in_place = [&](Type of) {
      parameters_.back() = parameter(of, like->name);
      return parameters_.back();
    };
    const auto as = [&](Op op, const Value& x, std::vector<AttrInit> attrs) {
      const Value value = build_as(type, op, {x}, std::move(attrs), 0);
      return value ? value : in_place(type);
    };
    const Dims dims(type.shape.begin(), type.shape.end());
    Type other = type;
    switch (random_.from(0, 5)) {
      case 0:
        other.dtype = type.dtype == DType::f32 ? random_.of<DType>({DType::f16, DType::bf16}) : DType::f32;
        return as(Op::cast, in_place(other), {{"dtype", type.dtype}});
      case 1: {  // a part of something larger
        Dims starts, stops, steps, whole;
        for (const std::int64_t d : dims) {
          starts.push_back(random_.from(0, 2)), steps.push_back(random_.chance(80) ? 1 : 2);
          stops.push_back(starts.back() + (d - 1) * steps.back() + 1);
          whole.push_back(stops.back() + random_.from(0, 2));
        }
        other.shape = Shape(whole);
        return as(Op::slice, in_place(other),
                  {{"starts", list(starts)}, {"stops", list(stops)}, {"steps", list(steps)}});
      }
      case 2: {  // zeros around something smaller
        Dims low, high, inside;
        for (const std::int64_t d : dims) {
          low.push_back(random_.from(0, std::min<std::int64_t>(d - 1, 1)));
          high.push_back(random_.from(0, std::min<std::int64_t>(d - 1 - low.back(), 1)));
          inside.push_back(d - low.back() - high.back());
        }
        other.shape = Shape(inside);
        return as(Op::pad, in_place(other), {{"low", list(low)}, {"high", list(high)}, {"value", 0.0}});
      }
      case 3: {
        const Dims order = shuffled(dims.size());
        Dims from(dims.size());
        for (std::size_t k = 0; k < order.size(); ++k) from[static_cast<std::size_t>(order[k])] = dims[k];
        return as(Op::permute, in_place(Type{type.dtype, Shape(from)}), {{"dims", list(order)}});
      }
      case 4: {
        const std::int64_t first = dims[0];
        return as(Op::reshape, in_place(Type{type.dtype, Shape(Dims{first, type.elements() / first})}),
                  {{"shape", list(dims)}});
      }
      default: {  // the same along a dim
        Dims from = dims;
        from[static_cast<std::size_t>(random_.from(0, static_cast<std::int64_t>(dims.size()) - 1))] = 1;
        other.shape = Shape(from);
        return as(Op::expand, in_place(other), {{"shape", list(dims)}});
      }
    }
  }

  Value become(Value x) {
    for (auto steps = random_.of<int>({1, 1, 2, 4}); steps > 0; --steps) {
      const Type& type = x.type();
      const Dims dims(type.shape.begin(), type.shape.end());
      switch (random_.from(what_ == Around::views_of_results ? 3 : 0, 7)) {
        case 0:
        case 1:
          x = build(Op::cast, {x},
                    {{"dtype", type.dtype == DType::f32 ? random_.of<DType>({DType::f16, DType::bf16}) : DType::f32}});
          break;
        case 2:
          parameters_.push_back(parameter(type, "other"));
          x = build(Op::add, {x, parameters_.back()});
          break;
        case 3:
          x = build(Op::relu, {x});
          break;
        case 4: {
          Dims starts, stops, steps_of;
          for (const std::int64_t d : dims) {
            starts.push_back(random_.chance(70) ? 0 : random_.from(0, d - 1));
            stops.push_back(random_.chance(70) ? d : random_.from(starts.back() + 1, d));
            steps_of.push_back(random_.chance(80) ? 1 : 2);
          }
          x = build(Op::slice, {x}, {{"starts", list(starts)}, {"stops", list(stops)}, {"steps", list(steps_of)}});
          break;
        }
        case 5: {
          x = build(Op::permute, {x}, {{"dims", list(shuffled(dims.size()))}});
          break;
        }
        case 6:
          x = build(Op::reshape, {x}, {{"shape", list(random_.chance(50) ? merged(dims) : split(dims))}});
          break;
        default: {
          Dims low, high;
          for (std::size_t d = 0; d < dims.size(); ++d)
            low.push_back(random_.chance(70) ? 0 : 1), high.push_back(random_.chance(70) ? 0 : 2);
          x = build(Op::pad, {x}, {{"low", list(low)}, {"high", list(high)}, {"value", 0.0}});
        }
      }
    }
    return x;
  }

  // Over all dims but the last, as for a bias, or over some.
  Value summed(const Value& x) {
    Dims over;
    const int rank = x.type().shape.rank();
    const bool of_bias = random_.chance(60);
    for (int d = 0; d < rank; ++d)
      if (of_bias ? d + 1 < rank : random_.chance(50)) over.push_back(d);
    return over.empty() ? x : build(Op::sum, {x}, {{"dim", list(over)}, {"keepdim", random_.chance(20)}});
  }

  // Two neighbouring dims as one; one as two.
  Dims merged(Dims dims) {
    if (dims.size() < 2) return dims;
    const auto at = static_cast<std::ptrdiff_t>(random_.from(0, static_cast<std::int64_t>(dims.size()) - 2));
    dims[static_cast<std::size_t>(at)] *= dims[static_cast<std::size_t>(at) + 1];
    dims.erase(dims.begin() + at + 1);
    return dims;
  }
  Dims split(Dims dims) {
    const auto at = random_.from(0, static_cast<std::int64_t>(dims.size()) - 1);
    std::int64_t& dim = dims[static_cast<std::size_t>(at)];
    const std::int64_t by = dim % 2 == 0 ? 2 : dim % 3 == 0 ? 3 : 1;
    dim /= by;
    dims.insert(dims.begin() + at + random_.from(0, 1), by);
    return dims;
  }

  Dims shuffled(std::size_t count) {
    Dims order(count);
    std::iota(order.begin(), order.end(), 0);
    random_.shuffle(order);
    return order;
  }

  Random& random_;
  const Graph& graph_;
  Around what_;
  std::vector<Value> parameters_;
};

}  // namespace

std::string with_casts_and_views(Random& random, const std::string& graph, Around what) {
  return print(Surroundings(random, parse_graph(graph), what).graph());
}

}  // namespace fusejit::testing
