#include "scheduler/names/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "scheduler/contents.h"

namespace fusejit::scheduler {
namespace {

using ir::Node;
using ir::Op;

constexpr std::string_view kPacked = " packed";
constexpr std::int64_t kSmaller = 16;  // so many times at most are images of one step that differ in size

// What parameters end in: of a network's path ("layer1.0.bn1.weight"), or as they are called in graph files.
constexpr std::string_view kParameters[] = {
    "running_mean", "running_var", "square_avg", "acc_delta", "exp_avg", "exp_avg_sq", "momentum", "weight", "bias",
    "target",       "seed",        "gamma",      "beta",      "scale",   "shift",      "mean",     "var",    "image",
    "input",        "mask",        "dy",         "x",         "w",       "b",          "y",        "z",      "g"};

std::string parameter_word(std::string_view name) {
  std::string_view longest;
  for (const std::string_view word : kParameters) {
    const bool ends =
        name.ends_with(word) && (name.size() == word.size() || name[name.size() - word.size() - 1] == '_');
    if (ends && word.size() > longest.size()) longest = word;
  }
  return std::string(longest);
}

// Words that are no function of C++: "log_values" of log.
std::string word_of(Op op) {
  static constexpr std::pair<Op, std::string_view> kWords[] = {
      {Op::mean, "mean"},   {Op::var, "var"},     {Op::sum, "sums"},    {Op::prod, "products"},
      {Op::amax, "maxima"}, {Op::amin, "minima"}, {Op::rand, "numbers"}};
  for (const auto& [known, word] : kWords)
    if (known == op) return std::string(word);
  return std::string(ir::name(op)) + "_values";
}

bool is_gradient(const Node& node) {
  return node.origin.role == ir::Role::gradient || node.origin.role == ir::Role::weight_gradient;
}

// What "%12 conv2d", "%x" and "%x packed" name; null if the graph has no such thing.
const Node* node_of(const ir::Graph& graph, std::string_view label) {
  if (label.ends_with(kPacked)) label.remove_suffix(kPacked.size());
  if (label.empty()) return nullptr;
  label.remove_prefix(1);
  for (std::size_t p = 0; p < graph.parameters().size(); ++p)
    if (graph.parameter_name(p) == label) return graph.parameters()[p].get();
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  if (error != std::errc() || number >= graph.nodes().size()) return nullptr;
  const Node* node = graph.nodes()[number].get();
  const std::string_view rest(end, static_cast<std::size_t>(label.data() + label.size() - end));
  return rest == fmt::format(" {}", ir::name(node->op)) ? node : nullptr;
}

class Namer {
 public:
  Namer(const PlanStep& step, const ir::Graph& graph, const Contents& contents) : graph_(graph) {
    for (const ir::KernelParam& param : step.kernel->params)
      if (param.memory >= 0) memories_.push_back(&step.kernel->memories[static_cast<std::size_t>(param.memory)]);
    std::vector<const Node*> open;
    for (std::size_t i = 0; i < memories_.size(); ++i) {
      labels_.push_back(contents[step.values[i]]);
      nodes_.push_back(node_of(graph, labels_.back()));
      if (nodes_[i] && (!largest_ || nodes_[i]->type.elements() > largest_->type.elements())) largest_ = nodes_[i];
      if (is_read(i) && nodes_[i]) read_.insert(nodes_[i]);
      if (!is_read(i) && nodes_[i]) open.push_back(nodes_[i]);
    }
    for (const std::string& op : step.ops)
      if (const Node* node = node_of(graph, op)) open.push_back(node);
    walk(std::move(open));
    for (const Node* node : computed_) find_operands(*node);
  }

  std::vector<BufferName> run() const {
    std::set<std::string> taken;
    std::vector<BufferName> names;
    for (std::size_t i = 0; i < memories_.size(); ++i) {
      const std::string word = word_for(i);
      std::string name = word;
      for (int n = 2; !word.empty() && !taken.insert(name).second; ++n) name = fmt::format("{}_{}", word, n);
      names.push_back({name, axes(i, word)});
    }
    return names;
  }

 private:
  bool is_read(std::size_t i) const { return memories_[i]->kind != ir::MemKind::write; }
  bool is_packed(std::size_t i) const { return labels_[i].ends_with(kPacked); }

  // The nodes between what is written and what is read.
  void walk(std::vector<const Node*> open) {
    std::set<const Node*> seen(open.begin(), open.end());
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (node->op == Op::parameter) continue;
      computed_.push_back(node);
      for (const ir::Operand& operand : node->operands) {
        if (operand.is_number() || read_.contains(operand.value.get())) continue;
        if (seen.insert(operand.value.get()).second) open.push_back(operand.value.get());
      }
    }
    std::sort(computed_.begin(), computed_.end(), [](const Node* a, const Node* b) { return a->serial < b->serial; });
  }

  // An anchor's operands have the names of its row, also through views and casts.
  void find_operands(const Node& node) {
    const ir::OpDef& row = ir::op_def(node.op);
    if (row.family != ir::Family::anchor) return;
    if (!anchor_) anchor_ = &node;
    for (std::size_t i = 0; i < node.operands.size() && i < row.operand_names.size(); ++i) {
      if (node.operands[i].is_number()) continue;
      const Node* from = node.operands[i].value.get();
      while (!read_.contains(from) && ir::op_def(from->op).copies_bits && !from->operands[0].is_number())
        from = from->operands[0].value.get();
      operands_.emplace(from, row.operand_names[i]);
    }
  }

  std::string word_for(std::size_t i) const {
    const Node* node = nodes_[i];
    if (!node) return "";
    if (is_packed(i) && !is_read(i)) return "packed";
    const auto operand = operands_.find(node);
    const bool is_operand = operand != operands_.end() && is_read(i);
    if (is_operand && operand->second != "a" && operand->second != "b") return std::string(operand->second);
    if (const Node* old = is_read(i) ? nullptr : updated(*node)) {
      const std::string word = parameter_word(old->name);
      if (!word.empty()) return "new_" + word;
    }
    if (node->op != Op::parameter) return computed_word(*node, is_read(i));
    const std::string word = parameter_word(node->name);
    if (word.empty() && node->type.elements() == 1) return "number";
    return word.empty() && is_operand ? std::string(operand->second) : word;
  }

  // The parameter of which a result is the next value: the nearest of its type in what it is computed from.
  const Node* updated(const Node& node) const {
    const auto is_node = [&](const ir::Value& result) { return result.get() == &node; };
    if (std::none_of(graph_.results().begin(), graph_.results().end(), is_node)) return nullptr;
    std::vector<const Node*> open{&node};
    std::set<const Node*> seen;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i]->op == Op::parameter && open[i]->type == node.type) return open[i];
      if (read_.contains(open[i])) continue;
      for (const ir::Operand& operand : open[i]->operands)
        if (!operand.is_number() && seen.insert(operand.value.get()).second) open.push_back(operand.value.get());
    }
    return nullptr;
  }

  std::string computed_word(const Node& node, bool read) const {
    if (node.op == Op::conv2d_weight_grad) return "dw";
    if (node.type.dtype == DType::boolean) return "mask";
    const bool one_over = node.op == Op::div && node.operands[0].is_number() && node.operands[0].number == 1;
    const bool norm = std::string_view(ir::called_op(node)).find("norm") != std::string_view::npos;
    const bool is_mean = node.op == Op::div && !node.operands[0].is_number() && node.operands[1].is_number() &&
                         node.operands[0].value->op == Op::sum;
    if (one_over || node.op == Op::rsqrt) return norm ? "inv_std" : "inverse";
    if (is_mean) return is_gradient(node) ? "mean_dy" : "mean";
    const ir::Family family = ir::op_def(node.op).family;
    const bool whole = family == ir::Family::anchor ||
                       (family != ir::Family::reduce && node.type.shape.rank() == largest_->type.shape.rank() &&
                        node.type.elements() * kSmaller >= largest_->type.elements());
    if (!whole && norm && node.op == Op::mul) return is_gradient(node) ? "coefficient" : "scale";
    if (!whole || node.origin.role == ir::Role::update) return word_of(node.op);
    if (is_gradient(node)) return read ? "dy" : "dx";
    return read ? "x" : "y";
  }

  std::vector<std::string> axes(std::size_t i, std::string_view word) const {
    const Node* node = nodes_[i];
    if (!node || is_packed(i) || word.empty()) return {};
    const Shape& shape = node->type.shape;
    std::vector<std::string> names;
    std::vector<std::int64_t> dims(shape.begin(), shape.end());
    const bool weight = word == "w" || word == "dw" || word == "weight";
    if (shape.rank() == 4 && node->type.layout == Layout::nhwc) {
      dims = {shape[0], shape[2], shape[3], shape[1]};
      names = weight ? std::vector<std::string>{"k", "r", "s", "c"} : std::vector<std::string>{"n", "row", "col", "c"};
    } else if (shape.rank() == 4) {
      names = weight ? std::vector<std::string>{"k", "c", "r", "s"} : std::vector<std::string>{"n", "c", "row", "col"};
    } else if (shape.rank() == 2) {
      names = {"row", "col"};
    }
    return dims == memories_[i]->dims ? names : std::vector<std::string>();
  }

  const ir::Graph& graph_;
  std::vector<const ir::Memory*> memories_;  // by buffer
  std::vector<std::string> labels_;          // by buffer
  std::vector<const Node*> nodes_;           // by buffer; null: unknown
  std::set<const Node*> read_;
  std::vector<const Node*> computed_;
  const Node* largest_ = nullptr;
  const Node* anchor_ = nullptr;
  std::map<const Node*, std::string_view> operands_;
};

}  // namespace

std::vector<std::vector<BufferName>> buffer_names(const Plan& plan, const ir::Graph& optimised) {
  Contents contents(plan);
  std::vector<std::vector<BufferName>> names;
  for (const PlanStep& step : plan.steps) {
    if (!plan.rules.fuse()) {  // labels are those of another graph
      names.emplace_back(step.values.size());
      continue;
    }
    names.push_back(Namer(step, optimised, contents).run());
    contents.pass(step);
  }
  return names;
}

}  // namespace fusejit::scheduler
