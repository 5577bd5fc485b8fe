#include "ir/graph.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <unordered_set>
#include <utility>

#include "ir/base/at.h"
#include "ir/base/check.h"
#include "ir/base/limits.h"

namespace fusejit::ir {
namespace {

// Every node that `results` need, without parameters, in the order of creation: operands before users.
std::vector<const Node*> reachable(const std::vector<Value>& results) {
  std::vector<const Node*> open;
  std::vector<std::pair<std::uint64_t, const Node*>> by_serial;
  PointerMap seen;
  const auto visit = [&](const Node* node) {
    if (node->op != Op::parameter && seen.insert(node, 0).second) open.push_back(node);
  };
  for (const Value& result : results) visit(result.get());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    by_serial.emplace_back(node->serial, node);
    for (const Operand& operand : node->operands)
      if (operand.value) visit(operand.value.get());
  }
  std::sort(by_serial.begin(), by_serial.end());
  std::vector<const Node*> found;
  found.reserve(by_serial.size());
  for (const auto& [serial, node] : by_serial) found.push_back(node);
  return found;
}

bool same_number(const Operand& a, const Operand& b) {
  if (a.is_integer != b.is_integer) return false;
  return a.is_integer ? a.integer == b.integer
                      : std::bit_cast<std::uint64_t>(a.number) == std::bit_cast<std::uint64_t>(b.number);
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

// The values of a graph under construction: parameters, then nodes, each entered once per meaning.
class Merger {
 public:
  explicit Merger(std::size_t count) : places_(count), first_(std::bit_ceil(count + 1), -1) {
    values_.reserve(count), entries_.reserve(count);
  }

  void parameter(const Value& value) {
    FJ_CHECK(places_.insert(value.get(), size()).second, "a parameter is given twice: {}", value->name);
    values_.push_back(value), entries_.push_back({}), first_operand_.push_back(0);
  }
  // The node over operands of the graph, unless it is equal to an earlier one then.
  void enter(const Node* original) {
    std::uint64_t hash = mix(static_cast<std::uint64_t>(original->op), original->region);
    bool changed = false;
    const std::size_t first_operand = operands_.size();
    for (const Operand& operand : original->operands) {
      operands_.push_back(operand.value ? place_of(*original, operand.value) : -1);
      changed |= operand.value && values_[at(operands_.back())] != operand.value;
      hash = mix(hash, operand.value        ? at(operands_.back())
                       : operand.is_integer ? static_cast<std::uint64_t>(operand.integer)
                                            : std::bit_cast<std::uint64_t>(operand.number));
    }
    if (original->attrs.size()) hash = mix(hash, original->attrs.hash());
    int& first = first_[hash & (first_.size() - 1)];
    for (int known = first; known >= 0; known = entries_[at(known)].next) {
      if (entries_[at(known)].hash != hash || !equals(*original, *values_[at(known)])) continue;
      places_.insert(original, known);
      operands_.resize(first_operand);
      is_as_given_ = false;
      return;
    }
    places_.insert(original, size());
    first_operand_.push_back(first_operand);
    entries_.push_back({hash, std::exchange(first, size())});
    is_as_given_ &= !changed;
    values_.push_back(changed ? moved(*original) : shared(original));
  }

  // -1 for a parameter that is none of the graph's.
  int find(const Node* node) const { return places_.find(node); }
  const std::vector<Value>& values() const { return values_; }
  // Everything that a graph holds of its values.
  template <class Held>
  void move_to(Held& held) && {
    const auto parameters = static_cast<std::ptrdiff_t>(held.parameters.size());
    held.index = is_as_given_ ? std::move(places_) : PointerMap(values_.size());
    for (int i = 0; i < size() && !is_as_given_; ++i) held.index.insert(values_[at(i)].get(), i);
    held.nodes.assign(std::move_iterator(values_.begin() + parameters), std::move_iterator(values_.end()));
    first_operand_.push_back(operands_.size());
    held.operands = std::move(operands_), held.first_operand = std::move(first_operand_);
  }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    int next = -1;  // of those that begin at one place of first_
  };

  int size() const { return static_cast<int>(values_.size()); }
  int place_of(const Node& user, const Value& operand) const {
    const int place = places_.find(operand.get());
    FJ_CHECK(place >= 0, "{} needs the value of parameter '{}' ({}), which is not in the signature", name(user.op),
             operand->name, operand.type().str());
    return place;
  }
  // Of the node that is being entered.
  const int* last_operands(const Node& node) const {
    return operands_.data() + (operands_.size() - node.operands.size());
  }
  // Equal but for where they stand; `a` is being entered.
  bool equals(const Node& a, const Node& b) const {
    if (a.op != b.op || a.region != b.region || a.type != b.type || a.operands.size() != b.operands.size())
      return false;
    for (std::size_t i = 0; i < a.operands.size(); ++i) {
      const Operand &x = a.operands[i], &y = b.operands[i];
      if (x.value ? values_[at(last_operands(a)[i])] != y.value : y.value || !same_number(x, y)) return false;
    }
    return a.attrs == b.attrs;
  }
  Value moved(const Node& original) const {
    std::vector<Operand> operands = original.operands;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].value) operands[i].value = values_[at(last_operands(original)[i])];
    return rebuild(original, std::move(operands), original.serial);
  }
  static Value shared(const Node* node) {
    node->references.fetch_add(1, std::memory_order_relaxed);
    return Value(const_cast<Node*>(node));
  }

  PointerMap places_;  // of what was entered, in values_
  std::vector<Value> values_;
  std::vector<Entry> entries_;  // beside values_
  std::vector<int> first_;      // by hash
  std::vector<int> operands_;   // places, -1 for numbers: of one value after the other
  std::vector<std::size_t> first_operand_;
  bool is_as_given_ = true;  // what was entered is what is in values_
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
  void node(const Node& n, std::span<const int> operands) {
    number(name_word(n.op));
    number(n.region | static_cast<std::uint64_t>(n.operands.size()) << 32);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = n.operands[i];
      number(o.value ? 0 : 1 + std::uint64_t{o.is_integer});
      number(o.value        ? static_cast<std::uint64_t>(operands[i])
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
  for (int v = static_cast<int>(graph.parameters().size()); v < graph.value_count(); ++v)
    encoder.node(*graph.value(v), graph.operands(v));
  for (const Value& r : graph.results()) encoder.number(static_cast<std::uint64_t>(graph.index_of(r.get())));
  return encoder.hash();
}

}  // namespace

// Never freed: graphs outlive what is static.
const std::shared_ptr<const Graph::Held>& Graph::nothing() {
  static const auto* const held = new std::shared_ptr<const Held>(std::make_shared<const Held>());
  return *held;
}

namespace {
// A child that is forked while another thread makes it would wait for that for ever.
[[maybe_unused]] const bool made_before_any_fork = [] {
  const Graph made;
  return true;
}();
}  // namespace

int Graph::index_of(const Node* node) const {
  const int index = held_->index.find(node);
  FJ_ASSERT(index >= 0, "graph @{} does not hold this node ({})", name(), node ? fusejit::ir::name(node->op) : "none");
  return index;
}

const Value& Graph::value(int index) const {
  const auto i = static_cast<std::size_t>(index);
  return i < parameters().size() ? parameters()[i] : nodes().at(i - parameters().size());
}

Graph capture(std::string name, std::vector<Value> parameters, std::vector<Value> results) {
  FJ_CHECK(!results.empty(), "graph @{} has no results", name);
  for (const Value& result : results) FJ_ASSERT(result, "graph @{} has an empty result", name);
  const auto held = std::make_shared<Graph::Held>();
  std::unordered_set<std::string> graph_names, names;
  held->name = legal_name(name, "graph", graph_names);
  const std::vector<const Node*> needed = reachable(results);
  Merger merger(parameters.size() + needed.size());
  for (const Value& value : parameters) {
    FJ_ASSERT(value && value->op == Op::parameter, "graph @{} has a parameter that is none", name);
    merger.parameter(value);
    held->parameter_names.push_back(legal_name(value->name, fmt::format("p{}", names.size()), names));
  }
  for (const Node* node : needed) merger.enter(node);
  for (Value& result : results) {
    const int found = merger.find(result.get());
    FJ_CHECK(found >= 0, "result '{}' ({}) is a parameter that is not in the signature", result->name,
             result.type().str());
    result = merger.values()[static_cast<std::size_t>(found)];
  }
  held->parameters = std::move(parameters);
  held->results = std::move(results);
  std::move(merger).move_to(*held);
  Graph graph;
  graph.held_ = held;
  held->hash = take_hash(graph);
  return graph;
}

int count_distinct(const Graph& graph) {
  Merger merger(static_cast<std::size_t>(graph.value_count()));
  for (const Value& parameter : graph.parameters()) merger.parameter(parameter);
  for (const Value& node : graph.nodes()) merger.enter(node.get());
  return static_cast<int>(merger.values().size() - graph.parameters().size());
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

Hash hash(const Graph& graph) { return graph.held_->hash; }

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
