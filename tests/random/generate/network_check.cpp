#include "tests/random/generate/network_check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <regex>

#include "ir/base/number.h"
#include "ir/ops/compose.h"
#include "ir/passes/passes.h"
#include "runtime/arrays.h"
#include "runtime/session.h"
#include "tests/random/generate/graph_generator.h"
#include "tests/random/generate/network_layers.h"

namespace fusejit::testing {
namespace {

using ir::Array;
using ir::Graph;
using ir::Value;

DType widened(DType dtype) { return is_float(dtype) ? f64 : dtype; }

double largest(const Array& array) {
  double most = 0;
  for (std::int64_t i = 0; i < array.type.elements(); ++i) most = std::max(most, std::fabs(array.at(i).as_double()));
  return most;
}

bool is_finite(const Array& array) {
  for (std::int64_t i = 0; i < array.type.elements(); ++i)
    if (!std::isfinite(array.at(i).as_double())) return false;
  return true;
}

// An array's distance from what it should be, relative to its own size and not to less than what `least` is of it. In
// 16 bits the root of the mean square, because masks near 0 do flip there.
struct Distance {
  double relative = 0;
  std::int64_t worst = -1;  // element
};
Distance distance(const Array& got, const Array& want, double least, bool mean_square) {
  Distance d;
  double most = 0, square = 0, of_want = 0;
  for (std::int64_t i = 0; i < want.type.elements(); ++i) {
    const double g = got.at(i).as_double(), w = want.at(i).as_double();
    const double error = std::isfinite(g) ? std::fabs(g - w) : HUGE_VAL;
    if (error > most || d.worst < 0) most = error, d.worst = i;
    square += error * error, of_want += w * w;
  }
  const double n = std::max(1.0, static_cast<double>(want.type.elements()));
  d.relative = mean_square ? std::sqrt(square / n) / std::max(std::sqrt(of_want / n), least)
                           : most / std::max(largest(want), least);
  if (std::isnan(d.relative)) d.relative = most == 0 ? 0 : HUGE_VAL;
  return d;
}

// f64 arguments in the types that the graph takes.
std::vector<Array> in_types_of(const Graph& graph, const std::vector<Array>& arguments) {
  std::vector<Array> typed;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Array& array = typed.emplace_back(graph.parameters()[i].type());
    for (std::int64_t e = 0; e < array.type.elements(); ++e)
      array.set(e, ir::cast(arguments[i].at(e), array.type.dtype));
  }
  return typed;
}

struct Run {
  std::vector<Array> results;
  std::string error, fallback;
};

Run run(const Graph& graph, const std::vector<Array>& arguments, const CheckOptions& options, scheduler::Rules rules,
        std::uint64_t seed, bool compiled) {
  Run made;
  try {
    runtime::SessionOptions wanted{.target = options.target, .rules = rules, .threads = 1 + static_cast<int>(seed % 3)};
    if (rules.fuse()) wanted.memory_limit = options.memory_limit;
    if (!compiled) wanted.engine = runtime::Engine::kernel_interpreter, wanted.threads = 1;
    wanted.checks.poison = seed % 2 == 1;
    runtime::Session session(wanted);
    std::vector<runtime::Buffer> buffers;
    for (const Array& array : in_types_of(graph, arguments)) buffers.push_back(runtime::to_buffer(array));
    std::vector<char> donated(options.donated.begin(), options.donated.end());
    const std::span<const bool> given(reinterpret_cast<const bool*>(donated.data()), donated.size());
    for (const runtime::Buffer& b : session.run(graph, buffers, given)) made.results.push_back(runtime::to_array(b));
    // Strict mode lets nothing fall back; this is for runs without it.
    if (session.statistics().fallbacks != 0) made.fallback = "a group or the graph fell back";
  } catch (const std::exception& error) {
    made.error = error.what();
  }
  return made;
}

// "V2" of a text that names a rule of verify, else how it begins, numbers left out.
std::string kind_of_error(const std::string& text) {
  std::smatch found;
  if (std::regex_search(text, found, std::regex("\\bV[0-9]+\\b"))) return found.str();
  return std::regex_replace(text.substr(0, 60), std::regex("[%0-9\n].*"), "");
}

// What reads the parameter that a result belongs to.
std::string reader_of(const Graph& graph, const std::string& result) {
  for (const Value& parameter : graph.parameters()) {
    if (result.size() <= parameter->name.size() || !result.ends_with(" " + parameter->name)) continue;
    for (const Value& node : graph.nodes())
      for (const ir::Operand& operand : node->operands)
        if (operand.value == parameter) return ", which is read by " + ir::print_node(graph, *node);
  }
  return "";
}

// The same ops over f64; `read` says what a reader of the value `narrow`, now `wide`, finds.
Graph in_f64(const Graph& graph, const std::function<Value(const Value& narrow, Value wide)>& read) {
  std::vector<Value> parameters;
  for (const Value& p : graph.parameters())
    parameters.push_back(ir::parameter({widened(p.type().dtype), p.type().shape, p.type().layout}, p->name));
  std::vector<Value> now = parameters;
  const auto current = [&](const Value& v) { return now[static_cast<std::size_t>(graph.index_of(v.get()))]; };
  for (const Value& node : graph.nodes()) {
    std::vector<ir::Operand> operands = node->operands;
    for (ir::Operand& operand : operands)
      if (operand.value) operand.value = read(operand.value, current(operand.value));
    std::vector<ir::Attr> attrs;
    for (std::size_t i = 0; i < node->attrs.size(); ++i) {
      attrs.push_back(node->attrs[i]);
      attrs.back().dtype = widened(attrs.back().dtype);
    }
    const ir::Attrs all(node->attrs.schema(), attrs);
    now.push_back(node.type().shape.rank() == 4 ? ir::build_in(node.type().layout, node->op, operands, all)
                                                : ir::build(node->op, operands, all));
  }
  std::vector<Value> results;
  for (const Value& result : graph.results()) results.push_back(current(result));
  return ir::capture(graph.name(), parameters, results);
}

// What the interpreter says in f64, and how far from it rounding may take an engine, by result.
struct Expectation {
  std::vector<Array> want;
  double least = 0;            // what `distance` is relative to, at least
  std::vector<double> bounds;  // of `distance`

  void allow(const std::vector<Array>& results, double times, DType dtype) {
    for (std::size_t r = 0; r < results.size(); ++r)
      if (const double far = times * distance(results[r], want[r], least, bits(dtype) == 16).relative;
          far > bounds[r] || (dtype == f16 && std::isnan(far)))
        bounds[r] = far;  // not a number: they overflow
  }

  // As far as f64 goes astray where readers of a value find it rounded to 16 bits, as in memory (all of them in draw
  // 0), or not, as in the kernel that computes it. Few draws do not reach what is rare: the norm of a pool that finds
  // one maximum everywhere has no variance but rounding, and takes that 316 times (network 1130: f64 strays by 1.3
  // times the largest gradient in 30 draws, by 51 in one of the next 300; in f32 it is within a third of its bound).
  void allow_rounding(const Graph& graph, const std::vector<Array>& arguments, DType dtype, int first_draw, int draws) {
    const Graph expanded = ir::expand(graph);
    for (int draw = first_draw; draw < first_draw + draws; ++draw) {
      std::mt19937_64 random(static_cast<std::uint64_t>(draw));
      const Graph rounded = in_f64(expanded, [&](const Value& narrow, Value value) {
        const bool widened = narrow->op == ir::Op::cast && narrow->operands[0].value.type().dtype == dtype;
        if (!(narrow.type().dtype == dtype || widened) || (draw > 0 && random() % 2 == 0)) return value;
        return ir::compose::cast_to(ir::compose::cast_to(value, dtype), f64);
      });
      allow(ir::interpret(rounded, arguments), 3, dtype);
    }
  }
};

// f64: 2^-53 times what a few layers and their norms amplify; of 1,000 networks the farthest is off by 2e-12. f32 and
// bf16: a few times what the f64 results move by when every argument is rounded to that dtype, or a little below its
// precision; at least twice what the farthest of 500 networks was off by. 16 bits also: allow_rounding().
Expectation expect(const Graph& wide, const Graph& graph, const std::vector<Array>& arguments, DType dtype,
                   std::uint64_t seed) {
  Expectation e;
  e.want = ir::interpret(wide, arguments);
  double of_all = 0;
  for (const Array& array : e.want) of_all = std::max(of_all, largest(array));
  // What is nothing but rounding, as the gradient of a bias in front of a norm, is not compared with itself.
  e.least = of_all * (dtype == f64 ? 1e-3 : dtype == f32 ? 5e-2 : 1e-1);
  e.bounds.assign(e.want.size(), dtype == f64 ? 1e-9 : dtype == f32 ? 5e-4 : dtype == f16 ? 0.03 : 0.2);
  std::mt19937_64 random(seed);
  const double rounding = dtype == f32 ? 0x1p-23 : dtype == f16 ? 0x1p-11 : 0x1p-8;
  for (int draw = 0; draw < 2 && dtype != f64; ++draw) {
    std::vector<Array> moved = arguments;
    for (Array& array : moved) {
      if (!is_float(array.type.dtype)) continue;
      for (double& value : array.as<double>())
        value *= 1 + rounding * (static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    }
    e.allow(ir::interpret(wide, moved), dtype == f32 ? 16 : 4, dtype);
  }
  if (bits(dtype) == 16) e.allow_rounding(graph, arguments, dtype, 0, 3);
  return e;
}

}  // namespace

Graph in_f64(const Graph& graph) {
  return in_f64(graph, [](const Value&, Value wide) { return wide; });
}

std::vector<Array> network_arguments(const Graph& wide, const Graph& graph, std::uint64_t seed) {
  std::mt19937_64 random(seed + 77);
  std::vector<Array> arguments;
  for (std::size_t p = 0; p < graph.parameters().size(); ++p) {
    const Type& type = graph.parameters()[p].type();
    const std::string& name = graph.parameters()[p]->name;
    Array array(wide.parameters()[p].type());
    double low = -0.5, high = 0.5;
    if (name == "x" || name.starts_with("cut")) low = -1.5, high = 1.5;
    if (name.ends_with("gamma") || name.ends_with("var") || name == "rate") low = 0.5, high = 1.5;
    if (name.ends_with("_w"))
      high = std::sqrt(4.0 * static_cast<double>(type.shape[0]) / static_cast<double>(type.elements())), low = -high;
    if (const std::optional<double> number = number_in_name(name)) low = high = *number;
    const std::size_t of = name.find("class_of_");
    const int classes = of == std::string::npos ? 2 : std::stoi(name.substr(of + 9));
    std::vector<std::int64_t>
        places;  // of numbers that are ordered, as far apart as they get: rounding changes nothing
    if (name.ends_with("spaced")) {
      places.resize(static_cast<std::size_t>(type.elements()));
      std::iota(places.begin(), places.end(), 0);
      for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random() % i]);
    }
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      double unit = static_cast<double>(random() >> 11) * 0x1p-53;
      if (!places.empty())
        unit = (static_cast<double>(places[static_cast<std::size_t>(i)]) + 0.5) / static_cast<double>(places.size());
      // Class 0 is there: where every target is ignored, the loss is NaN.
      const ir::Scalar value = is_float(type.dtype)
                                   ? ir::Scalar::of(low + (high - low) * unit)
                                   : ir::Scalar::of(i == 0 ? 0 : static_cast<std::int64_t>(unit * classes));
      array.set(i, ir::cast(ir::cast(value, type.dtype), array.type.dtype));
    }
    arguments.push_back(std::move(array));
  }
  return arguments;
}

Finding check_graph(const Graph& graph, std::uint64_t seed, const CheckOptions& options) {
  const Graph wide = in_f64(graph);
  DType dtype = f64;  // the narrowest float
  for (const Value& p : graph.parameters())
    if (is_float(p.type().dtype) && bits(p.type().dtype) < bits(dtype)) dtype = p.type().dtype;
  std::vector<Array> arguments = network_arguments(wide, graph, seed);
  // In f32 a kink within reach of a rounding would be a difference that is nobody's mistake.
  for (std::uint64_t draw = 1; dtype == f32 && distance_to_kink(wide, arguments) < 2e-6; ++draw) {
    if (draw > 12) return {.compared = false};
    arguments = network_arguments(wide, graph, seed + draw * 1000003);
  }
  Expectation expected = expect(wide, graph, arguments, dtype, seed);
  for (std::size_t r = 0; r < expected.want.size(); ++r)
    if (!is_finite(expected.want[r])) return {"not finite", "result " + std::to_string(r) + " is not finite"};
  // What is rounded in f16 goes beyond 65,504.
  if (dtype == f16 && !std::all_of(expected.bounds.begin(), expected.bounds.end(), [](double b) { return b < 1e9; }))
    return {.compared = false};
  double of_bound = 0;
  for (const scheduler::Rules& rules : {scheduler::Rules::none, options.rules}) {
    const std::string named(name(rules));
    const std::string where = "rules=" + named + " on " + options.target.str() + ": ";
    Run interpreted;
    for (const bool compiled : {false, true}) {
      if (compiled && !options.compiled) continue;
      const Run got = run(graph, arguments, options, rules, seed, compiled);
      if (!got.error.empty()) return {named + ": " + kind_of_error(got.error), where + got.error};
      if (!got.fallback.empty()) return {named + ": fallback", where + got.fallback};
      for (std::size_t r = 0; r < got.results.size(); ++r) {
        const Array &result = got.results[r], &want = expected.want[r];
        const std::string name = r < options.results.size() ? options.results[r] : "result " + std::to_string(r);
        const std::string which = where + name + " (" + graph.results()[r].type().str() + ")" + reader_of(graph, name);
        const Distance d = distance(result, want, expected.least, bits(dtype) == 16);
        for (int draw = 3; bits(dtype) == 16 && d.relative > expected.bounds[r] && draw < 333; draw += 30)
          expected.allow_rounding(graph, arguments, dtype, draw, 30);
        of_bound = std::max(of_bound, d.relative / expected.bounds[r]);
        if (!(d.relative <= expected.bounds[r]))
          return {named + " is wrong",
                  which + ": off by " + ir::shortest_text(static_cast<float>(d.relative)) + " of the largest, " +
                      ir::shortest_text(static_cast<float>(expected.bounds[r])) + " is rounding; element " +
                      std::to_string(d.worst) + " is " + ir::literal_text(result.at(d.worst)) + " instead of " +
                      ir::literal_text(want.at(d.worst))};
        const std::string bits = compiled ? disagreement({result}, {interpreted.results[r]}, 0) : "";
        if (!bits.empty()) return {"bits", which + ": machine code and kernel interpreter differ: " + bits};
      }
      interpreted = got;
    }
  }
  return {"", "", of_bound};
}

Finding check_network(const Network& network, std::uint64_t seed, CheckOptions options) {
  const TrainingGraph made = training_graph(network);
  options.donated = made.donated, options.results = made.results;
  Finding found = check_graph(made.graph, seed, options);
  if (!found.kind.empty()) found.text += "\nnetwork " + network.str();
  return found;
}

std::string smallest(Network network, std::uint64_t seed, const CheckOptions& options, const std::string& kind) {
  network = shrink(network, [&](const Network& n) { return check_network(n, seed, options).kind == kind; });
  std::string text = check_network(network, seed, options).text;
  // Nodes, without the names and the in-place updates that the network knows of.
  const auto graph_fails = [&](const Graph& g) { return check_graph(g, seed, options).kind == kind; };
  Graph graph = training_graph(network).graph;
  if (graph_fails(graph)) {
    graph = shrink(graph, graph_fails);
    text += "\nas a graph: " + check_graph(graph, seed, options).text;
  }
  return text + "\n" + ir::print(graph);
}

}  // namespace fusejit::testing
