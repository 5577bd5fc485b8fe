#include "tests/support/random_kernel.h"

#include <fmt/format.h>

#include <vector>

namespace fusejit::test {
namespace {

class RandomKernel {
 public:
  RandomKernel(std::mt19937& random, Isa isa) : random_(random), isa_(isa) {}

  std::string run() {
    const int tasks = 1 + pick(4), rows = 1 + pick(3), lanes = 2 << pick(4);
    Scope scope;
    scope.floats = {"%s"};
    line(fmt::format(
        "kernel @random(%a: f32[97] read, %n: i32[31] read, %s: f32 param, %y: f32[{},{},{}] write align 64) on {} {{",
        tasks, rows, lanes, name(isa_)));
    const bool cuda = isa_ == Isa::cuda;
    const char* row_binding = cuda ? " block.x" : "";
    line(fmt::format("phase {{ for %t in 0..{} {} {{", tasks, cuda ? "grid.x" : "threads"));
    scope.variables = {"%t"};
    if (cuda && chance(50)) shared(scope, rows, lanes);
    line(fmt::format("for %r in 0..{}{} {{", rows, row_binding));
    scope.variables.push_back("%r");
    if (chance(50)) lane_reduction(scope, lanes);
    if (!cuda && chance(50)) scratch(scope, lanes);
    const int columns = cuda ? 2 << pick(3) : 0;
    if (cuda && chance(40)) block_reduction(scope, columns);
    line(fmt::format("for %l in 0..{} vector {{", lanes));
    scope.variables.push_back("%l");
    if (!scratch_.empty()) {
      scope.floats.push_back(fresh());
      line(fmt::format("{} = load {}[{}{} - %l] : f32", scope.floats.back(), scratch_,
                       cuda ? fmt::format("{} - %r, ", rows - 1) : "", lanes - 1));
    }
    if (cuda && chance(40)) block_reduction(scope, columns);
    statements(scope, 3 + pick(6), 0);
    line(fmt::format("store %y[%t, %r, %l], {} }} }} }} }} }}", one(scope.floats)));
    return std::move(out_);
  }

 private:
  struct Scope {
    std::vector<std::string> floats, ints, bools, variables;
  };

  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return pick(100) < percent; }
  const std::string& one(const std::vector<std::string>& list) {
    return list[static_cast<std::size_t>(pick(static_cast<int>(list.size())))];
  }
  std::string fresh() { return fmt::format("%v{}", next_++); }
  void line(const std::string& text) { out_ += text + "\n"; }

  void lane_reduction(Scope& scope, int lanes) {
    const std::string result = fresh(), variable = fresh();
    const char* combiners[] = {"add", "maximum", "minimum"};
    line(fmt::format("{} = for {} in 0..{} vector reduce {} : f32 {{", result, variable, lanes, combiners[pick(3)]));
    Scope inner = scope;
    inner.variables.push_back(variable);
    statements(inner, 2 + pick(3), 1);
    line(fmt::format("yield {} }}", one(inner.floats)));
    scope.floats.push_back(result);
  }
  void scratch(const Scope& scope, int lanes) {
    scratch_ = fresh();
    const std::string variable = fresh();
    line(fmt::format("local {}: f32[{}] scratch for {} in 0..{} vector {{", scratch_, lanes, variable, lanes));
    Scope inner = scope;
    inner.variables.push_back(variable);
    statements(inner, 1 + pick(3), 1);
    line(fmt::format("store {}[{}], {} }}", scratch_, variable, one(inner.floats)));
  }

  // CUDA: a block loop writes what the next one reads in another order.
  void shared(const Scope& scope, int rows, int lanes) {
    scratch_ = fresh();
    const std::string row = "%r", variable = fresh();
    line(fmt::format("local {}: f32[{},{}] scratch for {} in 0..{} block.x {{ for {} in 0..{} vector {{", scratch_,
                     rows, lanes, row, rows, variable, lanes));
    Scope inner = scope;
    inner.variables.push_back(row), inner.variables.push_back(variable);
    statements(inner, 1 + pick(3), 1);
    line(fmt::format("store {}[{}, {}], {} }} }}", scratch_, row, variable, one(inner.floats)));
  }
  void block_reduction(Scope& scope, int columns) {
    const std::string sum = fresh(), most = fresh(), variable = fresh();
    line(fmt::format("{}, {} = for {} in 0..{} block.y reduce (add, maximum) : f32, f32 {{", sum, most, variable,
                     columns));
    Scope inner = scope;
    inner.variables.push_back(variable);
    statements(inner, 1 + pick(3), 1);
    line(fmt::format("yield {}, {} }}", one(inner.floats), one(inner.floats)));
    scope.floats.push_back(sum), scope.floats.push_back(most);
  }

  // An index of any value.
  std::string index(const Scope& scope) {
    std::string text = fmt::format("{}*{}", one(scope.variables), 1 + pick(9));
    if (chance(60)) text += fmt::format(" + {}*{}", one(scope.variables), pick(5));
    if (chance(30)) text = fmt::format("({}) / {}", text, 1 + pick(6));
    if (chance(60)) text += fmt::format(" - {}", pick(20));
    return text;
  }
  std::string compare(const Scope& scope) {
    const char* kinds[] = {"<", ">=", "=="};
    return fmt::format("{} {} {}", index(scope), kinds[pick(3)], pick(25));
  }
  std::string number() {
    const char* numbers[] = {"0", "1", "-0.5", "0.1", "3", "1e-05", "inf", "-2"};
    return numbers[pick(8)];
  }
  std::string operand(const Scope& scope) { return chance(25) ? number() : one(scope.floats); }

  void statements(Scope& scope, int count, int depth) {
    for (int i = 0; i < count; ++i) statement(scope, depth);
  }
  void statement(Scope& scope, int depth) {
    switch (pick(depth < 3 ? 12 : 7)) {
      case 0:
        return load(scope);
      case 1: {
        const std::string result = fresh();
        if (chance(50)) {
          line(fmt::format("{} = index({}) : f32", result, index(scope)));
          scope.floats.push_back(result);
        } else {
          line(fmt::format("{} = index({}) : i32", result, index(scope)));
          scope.ints.push_back(result);
        }
        return;
      }
      case 2: {
        const char* compares[] = {"lt", "le", "eq", "ne", "gt", "ge"};
        scope.bools.push_back(fresh());
        return line(fmt::format("{} = {}({}, {}) : bool", scope.bools.back(), compares[pick(6)], one(scope.floats),
                                operand(scope)));
      }
      case 3:
        return integers(scope);
      case 4:
      case 5:
      case 6:
        return arithmetic(scope);
      case 7:
      case 8:
        return choice(scope, depth);
      case 9:
        return reduction(scope, depth);
      case 10:
        return arguments(scope);
      default:
        return accumulate(scope, depth);
    }
  }
  void load(Scope& scope) {
    const std::string result = fresh();
    if (chance(30)) {  // a gather under the condition that bounds it
      const std::string at = fresh(), inner = fresh();
      line(fmt::format("{} = load %n[({}) % 31] : i32", at, index(scope)));
      line(fmt::format("{} = if {} >= 0 and {} < 97 : f32 {{ {} = load %a[{}] : f32 yield {} }} else {{ yield {} }}",
                       result, at, at, inner, at, inner, number()));
    } else {
      line(fmt::format("{} = load %a[({}) % 97] : f32", result, index(scope)));
    }
    scope.floats.push_back(result);
  }
  void arithmetic(Scope& scope) {
    const std::string result = fresh(), x = one(scope.floats);
    const char* binary[] = {"add", "sub", "mul", "maximum", "minimum", "div"};
    switch (pick(6)) {
      case 0:
        line(fmt::format("{} = sqrt({}) : f32", result, x));
        break;
      case 1:
        if (!scope.bools.empty()) {
          line(fmt::format("{} = where({}, {}, {}) : f32", result, one(scope.bools), x, operand(scope)));
          break;
        }
        [[fallthrough]];
      case 2:
        if (has_fma(isa_)) {
          line(fmt::format("{} = fma({}, {}, {}) : f32", result, x, operand(scope), operand(scope)));
          break;
        }
        [[fallthrough]];
      default:
        line(fmt::format("{} = {}({}, {}) : f32", result, binary[pick(6)], operand(scope), x));
    }
    scope.floats.push_back(result);
  }
  void integers(Scope& scope) {
    if (scope.ints.empty()) return arithmetic(scope);
    const char* binary[] = {"add", "sub", "mul", "maximum", "bitwise_and"};
    const std::string result = fresh(), real = fresh();
    line(fmt::format("{} = {}({}, {}) : i32", result, binary[pick(5)], one(scope.ints),
                     chance(50) ? fmt::format("{}", pick(100) - 50) : one(scope.ints)));
    line(fmt::format("{} = cast({}) : f32", real, result));
    scope.ints.push_back(result), scope.floats.push_back(real);
  }
  void choice(Scope& scope, int depth) {
    const std::string result = fresh();
    const bool by_value = !scope.bools.empty() && chance(30);
    std::string condition = by_value ? one(scope.bools) : compare(scope);
    if (!by_value && chance(30)) condition += " and " + compare(scope);
    line(fmt::format("{} = if {} : f32 {{", result, condition));
    for (const bool last : {false, true}) {
      Scope inner = scope;
      statements(inner, 1 + pick(3), depth + 1);
      line(fmt::format("yield {} }}{}", operand(inner), last ? "" : " else {"));
    }
    scope.floats.push_back(result);
  }
  // Bounds of a serial loop; they name uniform variables only.
  std::string bounds() {
    switch (pick(4)) {
      case 0:
        return fmt::format("{}..{}", pick(3), pick(6));
      case 1:
        return fmt::format("%t..%t + {}", 1 + pick(3));
      case 2:
        return fmt::format("max(0, %r - {})..min({}, %t + 2)", pick(3), 1 + pick(4));
      default:
        return fmt::format("(%t + 1) / 2..{}", 1 + pick(5));
    }
  }
  void reduction(Scope& scope, int depth) {
    const char* combiners[] = {"add", "mul", "maximum", "minimum"};
    const std::string result = fresh(), variable = fresh();
    const std::string range = chance(30) ? fmt::format("0..{} unroll", 1 + pick(4)) : bounds();
    line(fmt::format("{} = for {} in {} reduce {} : f32 {{", result, variable, range, combiners[pick(4)]));
    Scope inner = scope;
    inner.variables.push_back(variable);
    statements(inner, 1 + pick(3), depth + 1);
    line(fmt::format("yield {} }}", operand(inner)));
    scope.floats.push_back(result);
  }
  // An argmax and a Welford reduction side by side.
  void arguments(Scope& scope) {
    const std::string value = fresh(), at = fresh(), n = fresh(), mean = fresh(), m2 = fresh(), variable = fresh();
    const std::string loaded = fresh(), place = fresh(), real = fresh();
    line(fmt::format("{}, {}, {}, {}, {} = for {} in {} reduce (argmax, welford) : f32, i32, f32, f32, f32 {{", value,
                     at, n, mean, m2, variable, bounds()));
    Scope inner = scope;
    inner.variables.push_back(variable);
    line(fmt::format("{} = load %a[({}) % 97] : f32 {} = index({}) : i32 yield {}, {}, 1, {}, 0 }}", loaded,
                     index(inner), place, variable, loaded, place, loaded));
    line(fmt::format("{} = cast({}) : f32", real, at));
    for (const std::string& v : {value, mean, m2, real}) scope.floats.push_back(v);
    scope.ints.push_back(at);
  }
  // Register locals that a serial loop carries.
  void accumulate(Scope& scope, int depth) {
    const std::string local = fresh(), outer = fresh(), inner_variable = fresh(), old = fresh(), sum = fresh();
    const int size = 1 + pick(3);
    line(fmt::format("local {}: f32[{}] register = {}", local, size, number()));
    line(fmt::format("for {} in {} {{ for {} in 0..{} unroll {{ {} = load {}[{}] : f32", outer, bounds(),
                     inner_variable, size, old, local, inner_variable));
    Scope inner = scope;
    inner.variables.push_back(outer), inner.variables.push_back(inner_variable), inner.floats.push_back(old);
    statements(inner, 1 + pick(2), depth + 1);
    line(fmt::format("{} = add({}, {}) : f32 store {}[{}], {} }} }}", sum, old, one(inner.floats), local,
                     inner_variable, sum));
    const std::string result = fresh();
    line(fmt::format("{} = load {}[{}] : f32", result, local, pick(size)));
    scope.floats.push_back(result);
  }

  std::mt19937& random_;
  const Isa isa_;
  std::string out_;
  std::string scratch_;
  int next_ = 0;
};

}  // namespace

std::string random_kernel(std::mt19937& random, Isa isa) { return RandomKernel(random, isa).run(); }

}  // namespace fusejit::test
