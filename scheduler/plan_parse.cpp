// Text -> Plan (grammar: plan_print.cpp). Whatever the bytes, the answer is a Plan or a ParseError. Numbers of values,
// steps and kernels are checked here; whether the plan makes sense is what verify says.
#include <limits>

#include "ir/base/check.h"
#include "ir/kernel/text/parser.h"
#include "ir/kernel/types.h"
#include "scheduler/plan.h"

namespace fusejit::scheduler {
namespace {

using ir::Lexer;
using ir::Token;
using ir::TokenKind;

constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 60;  // sums of two do not overflow

class PlanParser {
 public:
  explicit PlanParser(std::string_view text) : tokens_(text) {}

  Plan run() {
    tokens_.expect("plan");
    plan_.name = tokens_.expect(TokenKind::at, "the plan's @name").text;
    tokens_.expect("on");
    target();
    tokens_.expect("rules"), tokens_.expect("=");
    const bool some = tokens_.peek().kind == TokenKind::string;
    const Token word = tokens_.expect(some ? TokenKind::string : TokenKind::name, "rules");
    const std::optional<Rules> rules = rules_named(word.text);
    if (!rules) Lexer::fail(word, fmt::format("rules are all, none, inductor or \"-R5,-R6\", not '{}'", word.text));
    plan_.rules = *rules;
    tokens_.expect("{");
    tokens_.expect("arena");
    plan_.arena_bytes = number(kMaxBytes);
    tokens_.expect("bound");
    plan_.bound_bytes = number(kMaxBytes);
    if (tokens_.accept("recomputed")) {
      plan_.recomputed = static_cast<int>(number(std::numeric_limits<int>::max()));
      tokens_.expect("values"), tokens_.expect("in");
      plan_.extra_time = Lexer::number(tokens_.expect(TokenKind::number, "a number")).real;
      tokens_.expect("of"), tokens_.expect("the"), tokens_.expect("time");
    }
    while (tokens_.is("value")) value();
    while (tokens_.is("step")) step();
    tokens_.expect("parameters");
    if (tokens_.peek().kind == TokenKind::number) plan_.parameters = values();
    tokens_.expect("return");
    if (tokens_.peek().kind == TokenKind::number) plan_.results = values();
    while (tokens_.is("parts")) fallback();
    while (tokens_.is("refused")) refusal();
    tokens_.expect("}");
    kernels();
    return std::move(plan_);
  }

 private:
  // What a step says about its kernel, which stands behind the plan.
  struct KernelUse {
    Token number;
    std::size_t kernel;
  };

  std::int64_t number(std::int64_t max) {
    const Token at = tokens_.peek();
    const std::int64_t n = tokens_.integer("a number");
    if (n > max) Lexer::fail(at, fmt::format("{} is more than {}", at.text, max));
    return n;
  }
  int index(std::string_view what, std::size_t count) {
    const Token at = tokens_.peek();
    const std::int64_t n = number(std::numeric_limits<int>::max());
    if (static_cast<std::size_t>(n) >= count) Lexer::fail(at, fmt::format("there is no {} {}", what, n));
    return static_cast<int>(n);
  }
  // "value 3": what is defined here is number `next`.
  void header(std::string_view what, std::size_t next) {
    tokens_.expect(what);
    const Token at = tokens_.peek();
    const std::int64_t n = tokens_.integer("a number");
    if (static_cast<std::size_t>(n) != next) Lexer::fail(at, fmt::format("expected {} {}", what, next));
  }
  std::string quoted(std::string_view what) { return std::string(tokens_.expect(TokenKind::string, what).text); }
  std::vector<std::string> labels() {
    std::vector<std::string> list;
    do list.push_back(quoted("a label in quotes"));
    while (tokens_.accept(","));
    return list;
  }
  std::vector<int> values() {
    std::vector<int> list;
    do list.push_back(index("value", plan_.values.size()));
    while (tokens_.accept(","));
    return list;
  }
  // Of a graph that is not part of the text.
  std::vector<int> nodes() {
    std::vector<int> list;
    do list.push_back(static_cast<int>(number(std::numeric_limits<int>::max())));
    while (tokens_.accept(","));
    return list;
  }

  void target() {
    const Token at = tokens_.expect(TokenKind::string, "a target in quotes");
    try {
      plan_.target = Target::parse(at.text);
    } catch (const UserError& error) {
      Lexer::fail(at, error.what());
    }
    if (plan_.target.str() != at.text) Lexer::fail(at, "a plan's target is written in full: " + plan_.target.str());
  }

  void value() {
    header("value", plan_.values.size());
    PlanValue value;
    value.label = quoted("a label in quotes");
    tokens_.expect(":");
    value.dtype = tokens_.dtype();
    tokens_.expect(",");
    value.bytes = number(kMaxBytes);
    tokens_.expect("bytes"), tokens_.expect(",");
    storage(value);
    tokens_.expect(",");
    life(value);
    plan_.values.push_back(std::move(value));
  }

  void storage(PlanValue& value) {
    const Token at = tokens_.expect(TokenKind::name, "a storage");
    const auto numbered = [&](Storage storage) {
      value.storage = storage;
      value.index = static_cast<int>(number(std::numeric_limits<int>::max()));
    };
    if (at.text == "argument") return numbered(Storage::argument);
    if (at.text == "donated") return numbered(Storage::donated);
    if (at.text == "result") return numbered(Storage::result);
    if (at.text == "derived") return numbered(Storage::derived);
    if (at.text == "constant") return constant(value);
    if (at.text != "arena") Lexer::fail(at, "a storage is argument, donated, result, derived, constant or arena");
    const bool nowhere = tokens_.accept("-");
    const Token place = tokens_.peek();
    value.offset = number(kMaxBytes);
    if (nowhere && value.offset != 1) Lexer::fail(place, "an offset is a number, or -1: none");
    if (nowhere) value.offset = -1;
    if (tokens_.accept("in")) value.inside = static_cast<int>(number(std::numeric_limits<int>::max()));
  }

  void constant(PlanValue& value) {
    value.storage = Storage::constant;
    const Token open = tokens_.expect("[");
    std::vector<ir::Scalar> elements;
    if (!tokens_.is("]")) {
      do elements.push_back(ir::TokenReader::read(tokens_.literal(), ir::value_dtype(value.dtype)));
      while (tokens_.accept(","));
    }
    tokens_.expect("]");
    const auto count = static_cast<std::int64_t>(elements.size());
    if (bytes(value.dtype, count) != value.bytes)
      Lexer::fail(open, fmt::format("{} numbers of {} are not {} bytes", count, name(value.dtype), value.bytes));
    value.data.resize(static_cast<std::size_t>(value.bytes));
    for (std::int64_t i = 0; i < count; ++i)
      ir::store_element(value.data.data(), value.dtype, i, elements[static_cast<std::size_t>(i)]);
  }

  void life(PlanValue& value) {
    constexpr int kMaxStep = std::numeric_limits<int>::max() - 1;
    if (tokens_.accept("unused")) return;
    if (tokens_.accept("until")) {
      value.last_step = static_cast<int>(number(kMaxStep));
      return;
    }
    tokens_.expect("steps");
    value.first_step = static_cast<int>(number(kMaxStep));
    tokens_.expect("..");
    const bool never = tokens_.accept("-");
    const Token at = tokens_.peek();
    value.last_step = static_cast<int>(number(kMaxStep));
    if (never && value.last_step != 1) Lexer::fail(at, "a last step is a number, or -1: none");
    if (never) value.last_step = -1;
  }

  void step() {
    header("step", plan_.steps.size());
    PlanStep step;
    tokens_.expect("kernel");
    KernelUse use;
    use.number = tokens_.peek();
    use.kernel = static_cast<std::size_t>(number(std::numeric_limits<int>::max()));
    uses_.push_back(use);
    step.name = tokens_.expect(TokenKind::at, "the step's @name").text;
    tokens_.expect("(");
    if (!tokens_.is(")")) step.values = values();
    tokens_.expect(")"), tokens_.expect(":");
    tokens_.expect("reads");
    step.read_bytes = number(kMaxBytes);
    tokens_.expect(","), tokens_.expect("writes");
    step.written_bytes = number(kMaxBytes);
    tokens_.expect(","), tokens_.expect("flop");
    step.flop = Lexer::number(tokens_.expect(TokenKind::number, "a number")).real;
    if (tokens_.accept(",")) work(step);
    if (tokens_.accept("library")) library(step);
    if (tokens_.accept("of")) step.nodes = nodes();
    if (tokens_.accept("in")) step.layer = quoted("a layer in quotes");
    if (tokens_.accept("over")) step.overwrites = overwrites();
    if (tokens_.accept("computes")) step.ops = labels();
    while (is_scheduled_work(tokens_)) step.schedules.push_back(parse_scheduled_work(tokens_));
    plan_.steps.push_back(std::move(step));
  }
  std::vector<Overwritten> overwrites() {
    std::vector<Overwritten> list;
    do {
      const int value = index("value", plan_.values.size());
      list.push_back({value, quoted("a label in quotes")});
    } while (tokens_.accept(","));
    return list;
  }
  void work(PlanStep& step) {
    tokens_.expect("work");
    const Token at = tokens_.peek();
    step.work_bytes = number(kMaxBytes);
    if (step.work_bytes == 0) Lexer::fail(at, "work of no bytes is left out");
    tokens_.expect("at");
    step.work_offset = number(kMaxBytes);
  }

  void library(PlanStep& step) {
    const Token at = tokens_.expect(TokenKind::string, "a graph in quotes");
    try {
      step.library = LibraryOp{ir::parse_graph(at.text), {}};
    } catch (const ParseError& error) {
      Lexer::fail(at, fmt::format("in the graph: {}", error.what()));
    } catch (const UserError& error) {
      Lexer::fail(at, fmt::format("in the graph: {}", error.what()));
    }
    tokens_.expect("(");
    step.library->values = values();
    tokens_.expect(")");
  }

  void fallback() {
    tokens_.expect("parts");
    Fallback fallback;
    fallback.layer = tokens_.expect(TokenKind::at, "the group's @name").text;
    fallback.group = quoted("a group in quotes");
    tokens_.expect(":");
    fallback.why = quoted("a sentence in quotes");
    plan_.fallbacks.push_back(std::move(fallback));
  }

  void refusal() {
    tokens_.expect("refused");
    Refusal refusal;
    const Token code = tokens_.expect(TokenKind::name, "a refusal's code");
    int found = 0;
    while (found < kRefusalCodes && name(static_cast<RefusalCode>(found)) != code.text) ++found;
    if (found == kRefusalCodes) Lexer::fail(code, fmt::format("'{}' is no code of a refusal", code.text));
    refusal.code = static_cast<RefusalCode>(found);
    refusal.producer = quoted("a label in quotes");
    tokens_.expect("->");
    refusal.consumer = quoted("a label in quotes");
    tokens_.expect(",");
    refusal.bytes = number(kMaxBytes);
    tokens_.expect("bytes"), tokens_.expect(":");
    refusal.sentence = quoted("a sentence in quotes");
    plan_.refusals.push_back(std::move(refusal));
  }

  void kernels() {
    std::vector<std::shared_ptr<const ir::Kernel>> kernels;
    while (tokens_.is("kernel")) kernels.push_back(std::make_shared<const ir::Kernel>(ir::parse_kernel(tokens_)));
    tokens_.expect(TokenKind::end, "a kernel or the end of the text");
    std::size_t used = 0;
    for (std::size_t s = 0; s < uses_.size(); ++s) {
      const KernelUse& use = uses_[s];
      if (use.kernel >= kernels.size()) Lexer::fail(use.number, fmt::format("there is no kernel {}", use.kernel));
      if (use.kernel > used) Lexer::fail(use.number, "kernels are numbered as steps use them first");
      used = std::max(used, use.kernel + 1);
      plan_.steps[s].kernel = kernels[use.kernel];
    }
    if (used < kernels.size()) Lexer::fail(tokens_.peek(), fmt::format("no step runs kernel {}", used));
  }

  ir::TokenReader tokens_;
  Plan plan_;
  std::vector<KernelUse> uses_;
};

}  // namespace

Plan parse_plan(std::string_view text) {
  if (text.size() > kMaxTextBytes) throw ParseError(1, 1, "a plan's text has at most 256 MiB");
  return PlanParser(text).run();
}

}  // namespace fusejit::scheduler
