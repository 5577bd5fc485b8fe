#include "tests/random/generate/graph_generator.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <set>

#include "tests/random/generate/dims.h"

namespace fusejit::testing {
namespace {

using namespace ir;

class Generator {
 public:
  Generator(std::uint64_t seed, const GraphOptions& options) : random_(seed), options_(options) {}

  Graph graph() {
    const int rank4 = static_cast<int>(pick(3));
    for (int i = 0; i < 2; ++i)
      fresh({options_.dtype,
             rank4 ? Shape{2, 1 + below(4), 3 + below(4), 3 + below(4)} : Shape{2 + below(3), 1 + below(5)}});
    if (!options_.smooth && chance(40)) fresh({integer(), parameters_[0].type().shape});
    for (int made = 0, tries = 0; made < options_.nodes && tries < 2000; ++tries) {
      Value value;
      try {
        value = attempt();
      } catch (const UserError&) {
        continue;  // the dice asked for what the row refuses
      }
      if (!value || value.type().elements() > 4096) continue;
      pool_.push_back(value);
      ++made;
    }
    std::vector<Value> results;
    for (int i = 0; i < 3; ++i)
      results.push_back(pool_[pool_.size() - 1 - pick(std::min<std::size_t>(pool_.size(), 5))]);
    return capture("random", parameters_, results);
  }

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(pick(static_cast<std::uint64_t>(n))); }
  DType integer() {
    static constexpr DType kInts[] = {DType::i32, DType::i8, DType::u8, DType::i16};
    return kInts[pick(std::size(kInts))];
  }
  bool chance(int percent) { return pick(100) < static_cast<std::uint64_t>(percent); }

  Value fresh(Type type) {
    parameters_.push_back(parameter(type, "p" + std::to_string(parameters_.size())));
    pool_.push_back(parameters_.back());
    return parameters_.back();
  }
  // Later values are likelier, so that graphs are deep.
  Value any() { return pool_[std::max(pick(pool_.size()), pick(pool_.size()))]; }
  Value floating() {
    for (int i = 0; i < 20; ++i)
      if (Value v = any(); is_float(v.type().dtype)) return v;
    return parameters_[0];
  }

  Value attempt() {
    const std::uint64_t kind = pick(100);
    if (kind < 50) return elementwise();
    if (kind < 62) return composite();
    if (kind < 72) return reduction();
    if (kind < 85) return view();
    return options_.anchors ? anchor() : elementwise();
  }

  const OpDef& row_of(Family family) {
    while (true) {
      const OpDef& row = op_def(static_cast<Op>(pick(static_cast<std::uint64_t>(Op::count_))));
      if (row.family == family) return row;
    }
  }

  Operand operand(const Value& like) {
    if (chance(15))
      return is_float(like.type().dtype) ? Operand(0.25 * static_cast<double>(below(9) - 4)) : Operand(below(2));
    for (int i = 0; i < 10; ++i)
      if (Value v = any(); v.type().dtype == like.type().dtype) return v;
    return like;
  }

  Value elementwise() {
    static const std::set<std::string_view> kRough = {
        "floor_divide", "remainder", "fmod",  "pow",  "reciprocal", "rsqrt", "div",         "log",
        "log2",         "log10",     "log1p", "sign", "floor",      "ceil",  "trunc",       "round",
        "sqrt",         "exp2",      "expm1", "erfc", "eq",         "ne",    "bitwise_not", "cast"};
    const OpDef& row = row_of(Family::elementwise);
    if (options_.smooth && kRough.contains(row.name)) return {};
    if (row.op == Op::exp) return build(Op::exp, {build(Op::tanh, {floating()})});
    if (row.op == Op::cast) return build(Op::cast, {any()}, {{"dtype", chance(50) ? options_.dtype : integer()}});
    if (row.op == Op::clamp) return build(Op::clamp, {floating()}, {{"min", -0.5}, {"max", 1.0}});
    if (row.op == Op::where) {
      const Value a = floating();
      // Continuous where it switches: |a| written with a comparison.
      return build(Op::where, {build(Op::gt, {a, 0.0}), a, build(Op::neg, {a})});
    }
    if (options_.smooth && row.dtype_rule == DTypeRule::to_bool) return {};
    std::vector<Operand> operands{row.dtype_rule == DTypeRule::floating || options_.smooth ? floating() : any()};
    while (static_cast<int>(operands.size()) < row.min_operands) operands.push_back(operand(operands[0].value));
    if (operands.size() == 2 && chance(30)) std::swap(operands[0], operands[1]);
    return build(row.op, operands);
  }

  Value composite() {
    const OpDef& row = row_of(Family::composite);
    const Value x = floating();
    const Shape& shape = x.type().shape;
    const auto channels = [&] { return fresh({x.type().dtype, {shape[1]}}); };
    if (row.op == Op::bias_add) return shape.rank() < 2 ? Value() : build(row.op, {x, channels()});
    if (row.op == Op::softmax || row.op == Op::log_softmax)
      return shape.rank() == 0 ? Value() : build(row.op, {x}, {{"dim", below(shape.rank())}});
    if (row.op == Op::batch_norm_train) {
      // A variance near 0 would amplify every rounding.
      if (shape.rank() < 2 || shape[1] == 0 || shape.elements() / shape[1] < 6) return {};
      return build(row.op, {x, 1.0, 0.0}, {{"eps", 0.1}});
    }
    if (row.op == Op::mse_loss) return build(row.op, {x, operand(x)});
    if (row.max_operands != 1 || row.op == Op::var) return {};
    return build(row.op, {x});
  }

  Value reduction() {
    const OpDef& row = row_of(Family::reduce);
    const Value x = options_.smooth || chance(70) ? floating() : any();
    const int rank = x.type().shape.rank();
    if (rank == 0 || row.op == Op::prod) return {};
    if (options_.smooth && row.no_gradient) return {};
    if (row.attrs[0].kind == AttrKind::dim) return build(row.op, {x}, {{"dim", below(rank)}, {"keepdim", chance(50)}});
    Dims dims;
    for (int d = 0; d < rank; ++d)
      if (chance(50)) dims.push_back(d);
    if (dims.empty()) dims.push_back(0);
    return build(row.op, {x}, {{"dim", std::span<const std::int64_t>(dims)}, {"keepdim", chance(50)}});
  }

  Value view() {
    const Value x = any();
    const Shape& s = x.type().shape;
    const auto list = [](const Dims& dims) { return std::span<const std::int64_t>(dims); };
    Dims a, b, c;
    switch (pick(7)) {
      case 0:
        return build(Op::reshape, {x}, {{"shape", {s.elements()}}});
      case 1:
        for (int d = 0; d < s.rank(); ++d) a.push_back(d);
        std::shuffle(a.begin(), a.end(), random_);
        return build(Op::permute, {x}, {{"dims", list(a)}});
      case 2:
        return build(Op::unsqueeze, {x}, {{"dim", below(s.rank() + 1)}});
      case 3:
        for (std::int64_t d : s)
          a.push_back(below(d)), b.push_back(a.back() + 1 + below(d - a.back())), c.push_back(1 + below(2));
        return build(Op::slice, {x}, {{"starts", list(a)}, {"stops", list(b)}, {"steps", list(c)}});
      case 4:
        for (int d = 0; d < s.rank(); ++d) a.push_back(below(2)), b.push_back(below(2));
        return build(Op::pad, {x}, {{"low", list(a)}, {"high", list(b)}});
      case 5:
        if (s.rank() == 0) return {};
        return build(Op::concat, {x, x, x}, {{"dim", below(s.rank())}});
      default:
        if (s.rank() == 0) return {};
        return build(Op::flip, {x}, {{"dims", {below(s.rank())}}});
    }
  }

  Value anchor() {
    const Value x = floating();
    const Shape& s = x.type().shape;
    if (s.rank() == 4 && s[1] > 0) {
      const std::int64_t kernel = 1 + 2 * below(2), stride = 1 + below(2), pad = below(2);
      std::vector<AttrInit> window = {{"stride", {stride, stride}}, {"padding", {pad, pad, pad, below(2)}}};
      if (chance(30)) {
        std::vector<AttrInit> attrs = {{"kernel_size", {2, 2}}, {"stride", {stride, stride}}};
        return build(chance(50) ? Op::max_pool2d : Op::avg_pool2d, {x}, attrs);
      }
      const std::int64_t groups = s[1] % 2 == 0 && chance(40) ? 2 : s[1] > 1 && chance(40) ? s[1] : 1;
      window.emplace_back("groups", groups);
      return build(Op::conv2d, {x, fresh({x.type().dtype, {groups * (1 + below(4)), s[1] / groups, kernel, kernel}})},
                   window);
    }
    if (s.rank() >= 1 && s[s.rank() - 1] > 0)
      return build(Op::linear, {x, fresh({x.type().dtype, {1 + below(4), s[s.rank() - 1]}})});
    return {};
  }

  std::mt19937_64 random_;
  GraphOptions options_;
  std::vector<Value> parameters_, pool_;
};

// The graph with node `index` replaced: by one of its operands, or by a new parameter.
std::optional<Graph> without(const Graph& graph, std::size_t index, std::optional<std::size_t> operand) {
  const Value& target = graph.nodes()[index];
  if (operand) {
    const Operand& o = target->operands[*operand];
    if (o.is_number() || o.value.type() != target.type()) return std::nullopt;
  }
  std::vector<Value> parameters = graph.parameters(), now = parameters;
  for (const Value& node : graph.nodes()) {
    std::vector<Operand> operands = node->operands;
    for (Operand& o : operands)
      if (o.value) o.value = now[static_cast<std::size_t>(graph.index_of(o.value.get()))];
    if (!(node == target)) {
      now.push_back(rebuild(*node, operands));
    } else if (operand) {
      now.push_back(operands[*operand].value);
    } else {
      parameters.push_back(parameter(target.type(), "cut" + std::to_string(parameters.size())));
      now.push_back(parameters.back());
    }
  }
  std::vector<Value> results;
  for (const Value& result : graph.results())
    results.push_back(now[static_cast<std::size_t>(graph.index_of(result.get()))]);
  return capture(graph.name(), parameters, results);
}

// Without parameters that nothing needs.
Graph trimmed(const Graph& graph) {
  std::set<const Node*> used;
  for (const Value& node : graph.nodes())
    for (const Operand& o : node->operands) used.insert(o.value.get());
  for (const Value& result : graph.results()) used.insert(result.get());
  std::vector<Value> parameters;
  for (const Value& p : graph.parameters())
    if (used.contains(p.get())) parameters.push_back(p);
  return capture(graph.name(), parameters, graph.results());
}

}  // namespace

Graph random_graph(std::uint64_t seed, const GraphOptions& options) { return Generator(seed, options).graph(); }

std::vector<Array> graph_arguments(const Graph& graph, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Array> arguments;
  for (const Value& p : graph.parameters()) {
    Array array(p.type());
    for (std::int64_t i = 0; i < p.type().elements(); ++i) {
      const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
      const double value = random() % 8 == 0 ? static_cast<double>(random() % 3) - 1 : 4 * unit - 2;
      array.set(i, is_float(p.type().dtype)
                       ? cast(Scalar::of(value), p.type().dtype)
                       : cast(Scalar::of(static_cast<std::int64_t>(random() % 7) - 3), p.type().dtype));
    }
    arguments.push_back(std::move(array));
  }
  return arguments;
}

std::string disagreement(const std::vector<Array>& got, const std::vector<Array>& want, double relative) {
  for (std::size_t r = 0; r < want.size(); ++r) {
    double scale = 1e-3;
    for (std::int64_t i = 0; i < want[r].type.elements(); ++i)
      if (const double w = std::fabs(want[r].at(i).as_double()); std::isfinite(w)) scale = std::max(scale, w);
    for (std::int64_t i = 0; i < want[r].type.elements(); ++i) {
      const Scalar gs = got[r].at(i), ws = want[r].at(i);
      const double g = gs.as_double(), w = ws.as_double();
      const bool agree =
          gs == ws || (std::isnan(g) && std::isnan(w)) || g == w ||
          (is_float(gs.dtype) && std::isfinite(g) && std::isfinite(w) && std::fabs(g - w) <= relative * scale);
      if (!agree)
        return "result " + std::to_string(r) + " (" + want[r].type.str() + ") element " + std::to_string(i) + ": " +
               literal_text(gs) + " instead of " + literal_text(ws);
    }
  }
  return "";
}

Graph shrink(Graph graph, const std::function<bool(const Graph&)>& fails) {
  const auto better = [&](const std::optional<Graph>& candidate) {
    if (!candidate || !fails(*candidate)) return false;
    graph = *candidate;
    return true;
  };
  // Any one value as the only result.
  for (std::size_t i = 0; i < graph.nodes().size(); ++i)
    if (better(capture(graph.name(), graph.parameters(), {graph.nodes()[i]}))) break;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = graph.nodes().size(); i-- > 0 && !changed;) {
      changed = better(without(graph, i, std::nullopt));
      for (std::size_t k = 0; !changed && k < graph.nodes()[i]->operands.size(); ++k)
        changed = better(without(graph, i, k));
    }
  }
  better(trimmed(graph));
  return graph;
}

}  // namespace fusejit::testing
