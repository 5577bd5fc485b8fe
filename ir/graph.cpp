#include "ir/graph.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <unordered_set>

#include "ir/base/check.h"

namespace fusejit::ir {
namespace {

constexpr std::size_t kMaxName = 255;

// Every node that `results` need, without parameters, in the order of creation: operands before users.
std::vector<const Node*> reachable(const std::vector<Value>& results) {
  std::vector<const Node*> found, open;
  std::unordered_set<const Node*> seen;
  const auto visit = [&](const Node* node) {
    if (node->op != Op::parameter && seen.insert(node).second) open.push_back(node);
  };
  for (const Value& result : results) visit(result.get());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    found.push_back(node);
    for (const Operand& operand : node->operands)
      if (operand.value) visit(operand.value.get());
  }
  std::sort(found.begin(), found.end(), [](const Node* a, const Node* b) { return a->serial < b->serial; });
  return found;
}

bool same_number(const Operand& a, const Operand& b) {
  if (a.is_integer != b.is_integer) return false;
  return a.is_integer ? a.integer == b.integer
                      : std::bit_cast<std::uint64_t>(a.number) == std::bit_cast<std::uint64_t>(b.number);
}

bool same_operands(const std::vector<Operand>& a, const std::vector<Operand>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Operand& x, const Operand& y) {
    return x.value == y.value && (x.value || same_number(x, y));
  });
}

// Equal but for where they stand; `operands` are those of `a` in the graph being made.
bool same_node(const Node& a, const std::vector<Operand>& operands, const Node& b) {
  return a.op == b.op && a.region == b.region && a.type == b.type && same_operands(operands, b.operands) &&
         a.attrs == b.attrs;
}

std::uint64_t merge_hash(const Node& node, const std::vector<Operand>& operands) {
  std::uint64_t h = mix(static_cast<std::uint64_t>(node.op), node.region);
  for (const Operand& o : operands) {
    const auto number = o.is_integer ? static_cast<std::uint64_t>(o.integer) : std::bit_cast<std::uint64_t>(o.number);
    h = mix(h, o.value ? reinterpret_cast<std::uintptr_t>(o.value.get()) : number);
  }
  return node.attrs.size() ? mix(h, node.attrs.hash()) : h;
}

// A legal name that `taken` does not hold.
std::string legal_name(std::string_view wanted, std::string_view otherwise, std::unordered_set<std::string>& taken) {
  std::string name(wanted.substr(0, kMaxName - 10));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (name.empty()) name = otherwise;
  if (std::isdigit(static_cast<unsigned char>(name[0]))) name.insert(name.begin(), '_');
  std::string unique = name;
  for (int i = 1; !taken.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
  return unique;
}

// The nodes of a graph under construction: each is entered once per meaning.
class Merger {
 public:
  explicit Merger(std::size_t count) {
    canonical_.reserve(count);
    by_hash_.reserve(count);
  }
  void parameter(const Value& value) {
    FJ_CHECK(place(value.get(), value), "a parameter is given twice: {}", value->name);
  }

  // `original` with its operands in the graph; nothing if it became an earlier node.
  std::optional<Value> enter(const Node* original) {
    std::vector<Operand> operands = original->operands;
    bool changed = false;
    for (Operand& operand : operands) {
      if (!operand.value) continue;
      const auto at = canonical_.find(operand.value.get());
      FJ_CHECK(at != canonical_.end(), "{} needs the value of parameter '{}' ({}), which is not in the signature",
               name(original->op), operand.value->name, operand.value.type().str());
      changed |= at->second.get() != operand.value.get();
      operand.value = at->second;
    }
    const std::uint64_t hash = merge_hash(*original, operands);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (!same_node(*original, operands, *it->second)) continue;
      place(original, it->second);
      return std::nullopt;
    }
    original->references.fetch_add(!changed, std::memory_order_relaxed);
    Value value =
        changed ? rebuild(*original, std::move(operands), original->serial) : Value(const_cast<Node*>(original));
    by_hash_.emplace(hash, value);
    place(original, value);
    return value;
  }

  const Value* find(const Node* node) const {
    const auto at = canonical_.find(node);
    return at == canonical_.end() ? nullptr : &at->second;
  }

 private:
  bool place(const Node* node, const Value& value) { return canonical_.emplace(node, value).second; }
  std::unordered_map<const Node*, Value> canonical_;
  std::unordered_multimap<std::uint64_t, Value> by_hash_;
};

// What is hashed: every fact of the text but the names, as words that no other graph has.
class Encoder {
 public:
  void number(std::uint64_t v) { words_.push_back(v); }
  void type(const Type& t) {
    number(static_cast<std::uint64_t>(t.dtype) | static_cast<std::uint64_t>(t.layout) << 8 |
           static_cast<std::uint64_t>(t.shape.rank()) << 16);
    for (std::int64_t d : t.shape) number(static_cast<std::uint64_t>(d));
  }
  void node(const Graph& graph, const Node& n) {
    number(name_word(n.op));
    number(n.region | static_cast<std::uint64_t>(n.operands.size()) << 32);
    for (const Operand& o : n.operands) {
      number(o.value ? 0 : 1 + std::uint64_t{o.is_integer});
      number(o.value        ? static_cast<std::uint64_t>(graph.index_of(o.value.get()))
             : o.is_integer ? static_cast<std::uint64_t>(o.integer)
                            : std::bit_cast<std::uint64_t>(o.number));
    }
    n.attrs.append_words(words_);
    type(n.type);
  }
  // Hashed as bytes of fixed order, so that a hash in a file means the same on every machine.
  Hash hash() {
    if constexpr (std::endian::native == std::endian::big) {
      for (std::uint64_t& w : words_) w = __builtin_bswap64(w);
    }
    return hash_bytes(words_.data(), words_.size() * sizeof(std::uint64_t));
  }

 private:
  // By name: the numbers of ops change from version to version.
  static std::uint64_t name_word(Op op) { return hash_text(name(op)).low; }
  std::vector<std::uint64_t> words_;
};

Hash take_hash(const Graph& graph) {
  Encoder encoder;
  encoder.number(graph.parameters().size());
  for (const Value& p : graph.parameters()) encoder.type(p.type());
  encoder.number(graph.nodes().size());
  for (const Value& n : graph.nodes()) encoder.node(graph, *n);
  for (const Value& r : graph.results()) encoder.number(static_cast<std::uint64_t>(graph.index_of(r.get())));
  return encoder.hash();
}

}  // namespace

int Graph::index_of(const Node* node) const {
  const auto at = index_.find(node);
  FJ_ASSERT(at != index_.end(), "graph @{} does not hold this node ({})", name_,
            node ? fusejit::ir::name(node->op) : "none");
  return at->second;
}

const Value& Graph::value(int index) const {
  const auto i = static_cast<std::size_t>(index);
  return i < parameters_.size() ? parameters_[i] : nodes_.at(i - parameters_.size());
}

Graph capture(std::string name, std::vector<Value> parameters, std::vector<Value> results) {
  FJ_CHECK(!results.empty(), "graph @{} has no results", name);
  for (const Value& result : results) FJ_ASSERT(result, "graph @{} has an empty result", name);
  Graph graph;
  std::unordered_set<std::string> graph_names, names;
  graph.name_ = legal_name(name, "graph", graph_names);
  const std::vector<const Node*> needed = reachable(results);
  Merger merger(parameters.size() + needed.size());
  for (const Value& value : parameters) {
    FJ_ASSERT(value && value->op == Op::parameter, "graph @{} has a parameter that is none", name);
    merger.parameter(value);
    graph.parameter_names_.push_back(legal_name(value->name, fmt::format("p{}", names.size()), names));
  }
  for (const Node* node : needed)
    if (std::optional<Value> value = merger.enter(node)) graph.nodes_.push_back(std::move(*value));
  for (Value& result : results) {
    const Value* found = merger.find(result.get());
    FJ_CHECK(found, "result '{}' ({}) is a parameter that is not in the signature", result->name, result.type().str());
    result = *found;
  }
  graph.parameters_ = std::move(parameters);
  graph.results_ = std::move(results);
  graph.index_.reserve(static_cast<std::size_t>(graph.value_count()));
  for (int i = 0; i < graph.value_count(); ++i) graph.index_.emplace(graph.value(i).get(), i);
  graph.hash_ = take_hash(graph);
  return graph;
}

namespace {

bool same_line(const Graph& ga, const Node& a, const Graph& gb, const Node& b) {
  return a.op == b.op && a.region == b.region && a.type == b.type && a.attrs == b.attrs &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(),
                    [&](const Operand& x, const Operand& y) {
                      if (x.is_number() || y.is_number()) return x.is_number() == y.is_number() && same_number(x, y);
                      return ga.index_of(x.value.get()) == gb.index_of(y.value.get());
                    });
}

}  // namespace

Hash hash(const Graph& graph) { return graph.hash_; }

bool operator==(const Graph& a, const Graph& b) {
  if (a.name() != b.name() || a.parameters().size() != b.parameters().size() || a.nodes().size() != b.nodes().size() ||
      a.results().size() != b.results().size())
    return false;
  for (std::size_t i = 0; i < a.parameters().size(); ++i)
    if (a.parameter_name(i) != b.parameter_name(i) || a.parameters()[i].type() != b.parameters()[i].type())
      return false;
  for (std::size_t i = 0; i < a.nodes().size(); ++i)
    if (!same_line(a, *a.nodes()[i], b, *b.nodes()[i])) return false;
  for (std::size_t i = 0; i < a.results().size(); ++i)
    if (a.index_of(a.results()[i].get()) != b.index_of(b.results()[i].get())) return false;
  return true;
}

}  // namespace fusejit::ir
