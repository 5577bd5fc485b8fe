#include "scheduler/report/bound.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/base/at.h"
#include "scheduler/fuse/gradients.h"
#include "scheduler/lower/expression/window.h"

namespace fusejit::scheduler {
namespace {

using ir::Family;

// How many positions of the input, taps and windows of a sliding window ever meet.
struct Met {
  std::int64_t inputs = 0, taps = 0, windows = 0;
};

Met met(const Window& w) {
  constexpr std::int64_t kMost = 1 << 20;
  Met met;
  if (w.in > kMost || w.out > kMost || w.kernel > kMost || w.out * w.kernel > kMost) {  // the first tap meets at least
    const std::int64_t first = w.first_result_of_tap(std::int64_t{0}),
                       end = std::min(w.out, w.end_result_of_tap(std::int64_t{0}));
    met.inputs = met.windows = std::max<std::int64_t>(end - first, 0);
    met.taps = met.windows > 0;
    return met;
  }
  std::vector<char> inputs(static_cast<std::size_t>(w.in)), windows(static_cast<std::size_t>(w.out));
  for (std::int64_t tap = 0; tap < w.kernel; ++tap) {
    bool used = false;
    for (std::int64_t o = 0; o < w.out; ++o) {
      const std::int64_t position = w.input(o, tap);
      if (position < 0 || position >= w.in) continue;
      used = true;
      inputs[static_cast<std::size_t>(position)] = windows[static_cast<std::size_t>(o)] = 1;
    }
    met.taps += used;
  }
  met.inputs = std::count(inputs.begin(), inputs.end(), 1);
  met.windows = std::count(windows.begin(), windows.end(), 1);
  return met;
}

class Bound {
 public:
  Bound(const ir::Graph& graph, const std::vector<bool>& fixed)
      : graph_(graph), fixed_(fixed), users_(at(graph.value_count())), needed_(users_.size()), sure_(users_.size()) {
    for (int v = 0; v < graph.value_count(); ++v) {
      for (const int operand : graph.operands(v)) {
        if (operand >= 0) users_[at(operand)].push_back(v);
      }
    }
  }

  std::int64_t run() {
    find_needed();
    find_least_read();
    find_least_width();
    find_sure();
    for (int v = 0; v < graph_.value_count(); ++v)
      if (needed_[at(v)] > 0 && graph_.value(v)->op == ir::Op::conv2d_input_grad)
        input_gradients_.emplace(graph_.operands(v)[0], v);
    std::int64_t total = 0;
    for (int v = 0; v < graph_.value_count(); ++v) {
      if (needed_[at(v)] > 0 && row(v).is_contraction()) total += read_by(v);
    }
    for (const auto& [value, bytes] : written_) total += bytes;
    for (int v = 0; v < graph_.value_count(); ++v) {
      if (needed_[at(v)] > 0 && row(v).is_contraction() && !written_.contains(v)) total += handed_on(v);
    }
    for (int p = 0; p < static_cast<int>(graph_.parameters().size()); ++p) {
      const bool is_fixed = at(p) < fixed_.size() && fixed_[at(p)];
      if (!is_fixed && !read_by_anchors_.contains(p)) total += bytes(type(p).dtype, needed_[at(p)]);
    }
    return total;
  }

 private:
  const Type& type(int v) const { return graph_.value(v).type(); }
  const ir::OpDef& row(int v) const { return ir::op_def(graph_.value(v)->op); }
  bool is_outside(int v) const {  // in memory before the plan begins
    return graph_.value(v)->op == ir::Op::parameter || graph_.value(v)->op == ir::Op::constant;
  }
  // Names elements of its operands, each once or, where it has more elements than they, all of them.
  bool is_plain_view(int v) const { return row(v).family == Family::view && row(v).copies_bits; }
  bool is_whole(int v) const { return needed_[at(v)] == type(v).elements(); }

  // Elements of the operand that `elements` of a view need.
  std::int64_t through_view(int view, int operand, std::int64_t elements) const {
    if (type(view).elements() <= type(operand).elements()) return elements;
    return elements == type(view).elements() ? type(operand).elements() : 0;
  }

  // Elements of every value that must be known, going backwards.
  void find_needed() {
    for (const ir::Value& result : graph_.results()) {
      const int v = graph_.index_of(result.get());
      if (!is_outside(v)) needed_[at(v)] = result.type().elements();  // else it is handed on as it is
    }
    for (int v = graph_.value_count() - 1; v >= 0; --v) {
      if (needed_[at(v)] == 0) continue;
      if (row(v).family == Family::anchor || row(v).family == Family::reduce) needed_[at(v)] = type(v).elements();
      const auto operands = graph_.operands(v);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (operands[i] < 0) continue;
        std::int64_t& needed = needed_[at(operands[i])];
        needed = std::max(needed, needed_of(v, i, operands[i]));
      }
    }
  }
  std::int64_t needed_of(int v, std::size_t i, int operand) const {
    const std::int64_t all = type(operand).elements();
    if (row(v).is_contraction()) return met_elements(v, i);
    if (is_plain_view(v)) return through_view(v, operand, needed_[at(v)]);
    if (row(v).family == Family::elementwise && all == type(v).elements()) return needed_[at(v)];
    if (row(v).family == Family::elementwise || row(v).family == Family::reduce) return is_whole(v) ? all : 0;
    return row(v).family == Family::anchor || row(v).family == Family::view ? 1 : 0;  // poolings, gathers
  }
  // Elements of operand `i` that some product of the anchor takes.
  std::int64_t met_elements(int anchor, std::size_t i) const {
    const ir::Node& node = *graph_.value(anchor);
    const Type& operand = node.operands[i].value.type();
    if (row(anchor).matrix) return operand.elements();
    // Of the three tensors of a convolution one is the result.
    const bool makes_input = node.op == ir::Op::conv2d_input_grad,
               makes_weights = node.op == ir::Op::conv2d_weight_grad;
    const Type &first = node.operands[0].value.type(), &second = node.operands[1].value.type();
    const Shape& input = (makes_input ? node.type : first).shape;
    const Shape& weights = (makes_weights ? node.type : second).shape;
    const Shape& output = (makes_input ? first : makes_weights ? second : node.type).shape;
    const bool takes_input = i == 0 && !makes_input, takes_weights = i == 1 && !makes_weights;
    std::int64_t elements = operand.shape[0] * operand.shape[1];
    for (int axis = 0; axis < operand.shape.rank() - 2; ++axis) {
      const Met m = met(convolution_window(node, static_cast<std::size_t>(axis), input[2 + axis], output[2 + axis],
                                           weights[2 + axis]));
      elements *= takes_weights ? m.taps : takes_input ? m.inputs : m.windows;
    }
    return elements;
  }
  // Bytes that are read at least by whoever computes all of a value, by node.
  void find_least_read() {
    for (int v = 0; v < graph_.value_count(); ++v) {
      std::int64_t read = 0;
      const Family family = row(v).family;
      if (family == Family::elementwise || is_plain_view(v)) {
        for (const int operand : graph_.operands(v)) {
          if (operand >= 0) read = std::max(read, least_read_[at(operand)]);
        }
        read = std::min(read, type(v).bytes());
      } else if (family == Family::leaf || family == Family::anchor || family == Family::reduce) {
        read = type(v).bytes();
      }
      least_read_.push_back(read);
    }
  }
  // The same of each element by itself, in bits, where not all are computed: 0 where it may take nothing.
  void find_least_width() {
    for (int v = 0; v < graph_.value_count(); ++v) {
      const Family family = row(v).family;
      int width = family == Family::leaf || family == Family::anchor || family == Family::reduce ? kAnyWidth : 0;
      if (family == Family::elementwise || is_plain_view(v)) {
        for (const int operand : graph_.operands(v)) {
          const bool one_each =
              operand >= 0 && (family == Family::elementwise ? type(operand).elements() == type(v).elements()
                                                             : type(operand).elements() >= type(v).elements());
          if (one_each) width = std::max(width, least_width_[at(operand)]);
        }
      }
      least_width_.push_back(std::min(width, static_cast<int>(bits(type(v).dtype))));
    }
  }

  // What is in memory in every plan: results, anchors, sums.
  void find_sure() {
    for (int v = 0; v < graph_.value_count(); ++v) {
      const Family family = row(v).family;
      sure_[at(v)] = is_outside(v) || family == Family::anchor || family == Family::reduce;
    }
    for (const ir::Value& result : graph_.results()) sure_[at(graph_.index_of(result.get()))] = true;
    for (const ir::Value& result : graph_.results()) note_written(graph_.index_of(result.get()), result.type().bytes());
  }
  void note_written(int v, std::int64_t bytes) {
    if (is_outside(v)) return;
    const auto [place, fresh] = written_.try_emplace(v, bytes);
    if (!fresh) place->second = std::min(place->second, bytes);
  }

  // An operand of an anchor: the value under its views that is in memory, or may be.
  struct Source {
    int value;
    std::int64_t elements;
    std::int64_t read, stored;  // bytes that are read of it, that are in memory of it or of a view of it
  };
  Source source(int operand, std::int64_t elements) const {
    Source found{operand, elements, bytes(type(operand).dtype, elements), type(operand).bytes()};
    while (!sure_[at(found.value)] && is_plain_view(found.value) && graph_.operands(found.value).size() == 1) {
      const int under = graph_.operands(found.value)[0];
      elements = through_view(found.value, under, elements);
      found.value = under, found.elements = elements;
      found.read = std::min(found.read, bytes(type(under).dtype, elements));
      found.stored = std::min(found.stored, type(under).bytes());
    }
    return found;
  }
  // Bytes that a tile reads of its operands; notes what has to be written for it.
  std::int64_t read_by(int anchor) {
    std::map<int, std::int64_t> read;
    const auto operands = graph_.operands(anchor);
    const bool beside = is_beside(anchor);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (beside && i == 1) continue;
      const Source from = source(operands[i], met_elements(anchor, i));
      std::int64_t bytes = from.read;
      // Operands that are computed are computed while they are copied to panels or packed, from whatever takes least,
      // and parts that are put together are read where they are. One that is a result may be stored in those panels.
      if (sure_[at(from.value)]) note_written(from.value, from.stored);
      if (!sure_[at(from.value)] || row(from.value).family == Family::elementwise) {
        bytes = std::min(bytes, least_read_[at(from.value)]);
        if (from.elements < type(from.value).elements())
          bytes = std::min(bytes, (from.elements * least_width_[at(from.value)] + 7) / 8);
        note_read_under(from.value);
      }
      if (beside) bytes = not_read_beside(anchor, operands[i], bytes);
      read[from.value] = std::max(read[from.value], bytes);
      read_by_anchors_.insert(from.value);
    }
    std::int64_t total = 0;
    for (const auto& [value, bytes] : read) total += bytes;
    return total;
  }
  // Of a weights' gradient: the gradient by the input may be in its kernel, and reads what both are given. That is
  // counted there; of the image what is not read for it as well.
  bool is_beside(int anchor) const {
    const auto [first, last] = input_gradients_.equal_range(second_operand(anchor));
    return graph_.value(anchor)->op == ir::Op::conv2d_weight_grad &&
           std::any_of(first, last, [&](const auto& one) { return go_over_same_rows(graph_, one.second, anchor); });
  }
  int second_operand(int anchor) const { return graph_.operands(anchor)[1]; }
  std::int64_t not_read_beside(int anchor, int image, std::int64_t bytes) const {
    const std::set<int> other = read_for(second_operand(anchor));
    for (const int v : read_for(image))
      if (other.contains(v)) bytes = std::min(bytes, std::max<std::int64_t>(0, bytes - least_read_[at(v)]));
    return bytes;
  }
  // A value, and what it may be computed from while it is read.
  std::set<int> read_for(int value) const {
    std::set<int> read;
    walk_under(value, [&](int v) {
      return read.insert(v).second && (row(v).family == Family::elementwise || is_plain_view(v));
    });
    return read;
  }
  // What a value that is not in memory is computed from.
  void note_read_under(int value) {
    walk_under(value, [&](int v) { return read_by_anchors_.insert(v).second; });
  }
  // A value, and what is under it as long as `goes_on` says so, up to what is in memory.
  template <class F>
  void walk_under(int value, F&& goes_on) const {
    std::vector<int> open{value};
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      if (!goes_on(v) || (v != value && sure_[at(v)])) continue;
      for (const int operand : graph_.operands(v)) {
        if (operand >= 0) open.push_back(operand);
      }
    }
  }

  // What an anchor's kernel writes beyond what is counted, and another kernel reads: the least on the way to what
  // cannot be in that kernel. What anchors compute operands from is read by them, and counted there.
  std::int64_t handed_on(int anchor) const {
    const std::map<int, bool> summed = followers(anchor);
    std::map<int, std::int64_t> written, read;                             // by value
    for (auto value = summed.rbegin(); value != summed.rend(); ++value) {  // users first
      const auto [v, is_summed] = *value;
      if (is_summed || written_.contains(v)) continue;
      std::int64_t most_written = 0, most_read = 0;
      bool read_by_anchor = false;
      for (const int user : users_[at(v)]) {
        const bool waits = waits_for_sums(user, summed), apart = is_pooling(user) || row(user).is_contraction();
        most_written = std::max(most_written, waits || apart ? type(v).bytes() : written[user]);
        most_read = std::max(most_read, waits ? type(v).bytes() : read[user]);
        read_by_anchor = read_by_anchor || read_by_anchors_.contains(user);
      }
      if (read_by_anchor) most_read = 0;
      written[v] = std::min(type(v).bytes(), most_written), read[v] = std::min(type(v).bytes(), most_read);
    }
    return written[anchor] + read[anchor];
  }
  // What could be in an anchor's kernel, if not for sums: is it computed from its sums?
  std::map<int, bool> followers(int anchor) const {
    constexpr std::size_t kMost = 256;
    std::map<int, bool> summed{{anchor, false}};
    std::set<int> open{anchor};
    while (!open.empty() && summed.size() < kMost) {
      const int v = *open.begin();
      open.erase(open.begin());
      for (const int user : users_[at(v)]) {
        const Family family = row(user).family;
        const bool follows = family == Family::elementwise || family == Family::view || family == Family::reduce;
        if (!follows || needed_[at(user)] == 0) continue;
        summed[user] |= summed[v] || family == Family::reduce;
        open.insert(user);
      }
    }
    return summed;
  }
  // An element needs sums of all of them: what sums them up has ended before.
  bool waits_for_sums(int user, const std::map<int, bool>& summed) const {
    if (!is_whole(user) || row(user).family != Family::elementwise) return false;
    const auto operands = graph_.operands(user);
    return std::any_of(operands.begin(), operands.end(), [&](int operand) {
      const auto known = summed.find(operand);
      return known != summed.end() && known->second;
    });
  }
  bool is_pooling(int user) const {
    return needed_[at(user)] > 0 && row(user).family == Family::anchor && !row(user).is_contraction() &&
           type(user).shape != type(graph_.operands(user)[0]).shape;
  }

  const ir::Graph& graph_;
  const std::vector<bool>& fixed_;
  std::vector<std::vector<int>> users_;
  std::vector<std::int64_t> needed_;  // by node: elements
  std::vector<bool> sure_;            // by node
  static constexpr int kAnyWidth = 1024;
  std::vector<std::int64_t> least_read_;  // by node: bytes
  std::vector<int> least_width_;          // by node: bits
  std::map<int, std::int64_t> written_;   // by node: bytes
  std::set<int> read_by_anchors_;
  std::multimap<int, int> input_gradients_;  // of convolutions, by the gradient that they are given
};

}  // namespace

std::int64_t least_bytes(const ir::Graph& graph, const std::vector<bool>& fixed) { return Bound(graph, fixed).run(); }

}  // namespace fusejit::scheduler
