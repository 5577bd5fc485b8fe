// What verify accepts is right: random loads and stores, each iteration enumerated. No access leaves its memory (V3),
// no two parallel iterations touch one element where one of them stores (V1, V2).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

struct Visit {
  std::vector<std::pair<const ForStmt*, std::int64_t>> loops;  // outer to inner
  bool is_store;
};

// Two visits race if the outermost loop in which they differ is parallel.
bool race(const Visit& a, const Visit& b) {
  if (!a.is_store && !b.is_store) return false;
  for (std::size_t i = 0; i < std::min(a.loops.size(), b.loops.size()); ++i) {
    if (a.loops[i].first != b.loops[i].first) return false;  // one after the other
    const Binding binding = a.loops[i].first->binding;
    if (a.loops[i].second != b.loops[i].second) return binding != Binding::none && binding != Binding::unroll;
  }
  return false;
}

class Enumeration {
 public:
  explicit Enumeration(const Kernel& kernel) : k_(kernel) { block(kernel.phases[0].body); }

  bool outside = false;
  bool races() const {
    for (const auto& [element, visits] : touched_)
      for (const Visit& a : visits)
        for (const Visit& b : visits)
          if (race(a, b)) return true;
    return false;
  }

 private:
  std::int64_t value(const Index& index) const {
    return index.evaluate([&](const IndexAtom& leaf) { return values_.at(leaf.id); });
  }
  void block(const Block& b) {
    for (const Stmt& stmt : b.statements) {
      if (const auto* loop = std::get_if<ForStmt>(&stmt.node)) {
        std::int64_t low = INT64_MIN, high = INT64_MAX;
        for (const Index& i : loop->low) low = std::max(low, value(i));
        for (const Index& i : loop->high) high = std::min(high, value(i));
        for (std::int64_t v = low; v < high; ++v) {
          values_[loop->variable] = v;
          loops_.emplace_back(loop, v);
          block(loop->body);
          loops_.pop_back();
        }
      } else if (const auto* choice = std::get_if<IfStmt>(&stmt.node)) {
        bool holds = true;
        for (const Compare& c : choice->compares) {
          const std::int64_t left = value(c.left);
          holds = holds && (c.kind == CompareKind::lt   ? left < c.right
                            : c.kind == CompareKind::ge ? left >= c.right
                                                        : left == c.right);
        }
        block(holds ? choice->then_block : choice->else_block);
      } else if (const Place* place = touched(stmt)) {
        std::vector<std::int64_t> element;
        const std::vector<std::int64_t>& dims = k_.memories[static_cast<std::size_t>(place->memory)].dims;
        for (std::size_t d = 0; d < dims.size(); ++d) {
          element.push_back(value(place->index[d]));
          outside = outside || element[d] < 0 || element[d] >= dims[d];
        }
        touched_[element].push_back({loops_, std::holds_alternative<StoreStmt>(stmt.node)});
      }
    }
  }

  const Kernel& k_;
  std::map<VarId, std::int64_t> values_;
  std::vector<std::pair<const ForStmt*, std::int64_t>> loops_;
  std::map<std::vector<std::int64_t>, std::vector<Visit>> touched_;
};

class Writer {
 public:
  explicit Writer(std::mt19937& random) : random_(random) {}

  std::string run() {
    const int t = 1 + pick(6), u = 1 + pick(3);
    std::string text = fmt::format(
        "kernel @t(%y: f32[{},{}] update) on x86:avx2 {{ phase {{ for %t in 0..{} threads {{ for %u in 0..{} threads "
        "{{",
        8 + pick(30), 4 + pick(12), t, u);
    for (int n = 1 + pick(2); n > 0; --n) text += nest(n);
    return text + " } } } }";
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string nest(int n) {
    const std::string i = fmt::format("%i{}", n), l = fmt::format("%l{}", n);
    std::vector<std::string> variables = {"%t", "%u", i, l};
    const char* bounds[] = {"0..3", "1..5", "%t..%t + 2", "%t*2..min(9, %t*2 + 2)", "max(0, 2 - %u)..min(4, 7 - %t)"};
    std::string text = fmt::format(" for {} in {} {{ for {} in 0..{} vector {{", i, bounds[pick(5)], l, 2 << pick(2));
    std::string close = " } }";
    if (pick(2) == 0) {
      const char* kinds[] = {"<", ">=", "=="};
      text += fmt::format(" if {} {} {} {{", index(variables), kinds[pick(3)], pick(9));
      close += " }";
    }
    for (int a = 1 + pick(2); a > 0; --a) {
      const std::string place = fmt::format("%y[{}, {}]", index(variables), index(variables));
      text += pick(4) == 0 ? fmt::format(" %v{}{} = load {} : f32", n, a, place) : fmt::format(" store {}, 1", place);
    }
    return text + close;
  }
  std::string index(const std::vector<std::string>& variables) {
    std::string text;
    const int coefficients[] = {1, 1, 2, 3, 4, 6, 8, -1, -2};
    for (int terms = 1 + pick(3); terms > 0; --terms)
      text += fmt::format("{}{}*{}", text.empty() ? "" : " + ", variables[static_cast<std::size_t>(pick(4))],
                          std::abs(coefficients[pick(9)]));
    if (pick(4) == 0) text = fmt::format("({}) {} {}", text, pick(2) == 0 ? "/" : "%", 1 + pick(6));
    if (pick(3) == 0)
      text = fmt::format("{} - {}", 3 + pick(20), text.find('+') == std::string::npos ? text : "(" + text + ")");
    return text;
  }
  std::mt19937& random_;
};

TEST(VerifySound, AcceptedKernelsNeitherRaceNorLeaveTheirMemory) {
  std::mt19937 random(99);
  int accepted = 0, bounds = 0, races = 0;
  for (int round = 0; round < 30000; ++round) {
    const std::string text = Writer(random).run();
    const Kernel kernel = parse_kernel(text);
    std::string error;
    try {
      verify(kernel);
    } catch (const InternalError& e) {
      error = e.what();
    }
    if (error.empty()) {
      const Enumeration all(kernel);
      ASSERT_FALSE(all.outside) << text;
      ASSERT_FALSE(all.races()) << text;
      ++accepted;
    } else {
      bounds += error.find("V3") != std::string::npos ? 1 : 0;
      races += error.find("V1") != std::string::npos || error.find("V2") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(bounds, 100);
  EXPECT_GT(races, 100);
  RecordProperty("accepted", accepted);
}

}  // namespace
}  // namespace fusejit::ir
