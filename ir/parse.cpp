// Text -> Graph (ops.md §1). One pass, no recursion; whatever the bytes, the answer is a Graph or a ParseError.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "ir/base/limits.h"
#include "ir/base/text.h"
#include "ir/graph.h"

namespace fusejit::ir {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxNodes = 1'000'000;

class GraphParser {
 public:
  explicit GraphParser(std::string_view text) : lexer_(text) {}

  Graph graph() {
    lexer_.expect("graph");
    const std::string graph_name(name(lexer_.expect(TokenKind::at, "the graph's name, '@name'")));
    parameters();
    lexer_.expect("{");
    while (lexer_.peek().kind == TokenKind::percent) node();
    const Token back = lexer_.expect("return");
    do results_.push_back(use(lexer_.expect(TokenKind::percent, "a value, '%id'")));
    while (lexer_.accept(","));
    lexer_.expect("}");
    if (lexer_.peek().kind != TokenKind::end) Lexer::fail(lexer_.peek(), "a file holds one graph; text follows it");
    try {
      return capture(graph_name, parameters_, results_);
    } catch (const UserError& error) {
      Lexer::fail(back, error.what());
    }
  }

 private:
  static bool is_name(std::string_view text) { return !text.empty() && (text[0] < '0' || text[0] > '9'); }

  static std::string_view name(const Token& token) {
    if (token.text.size() > kMaxName) Lexer::fail(token, "a name has at most 255 bytes");
    if (!is_name(token.text)) Lexer::fail(token, "expected a name that begins with a letter or '_'");
    return token.text;
  }

  void define(const Token& token, Value value) {
    if (token.text.size() > kMaxName) Lexer::fail(token, "a name has at most 255 bytes");
    if (!values_.emplace(token.text, std::move(value)).second)
      Lexer::fail(token, "%" + std::string(token.text) + " is defined twice");
  }

  const Value& use(const Token& token) {
    const auto found = values_.find(token.text);
    if (found == values_.end())
      Lexer::fail(token, "%" + std::string(token.text.substr(0, kMaxName)) + " is not defined before its use");
    return found->second;
  }

  void parameters() {
    lexer_.expect("(");
    if (lexer_.accept(")")) return;
    do {
      const Token token = lexer_.expect(TokenKind::percent, "a parameter, '%name'");
      name(token);
      lexer_.expect(":");
      const Token at = lexer_.peek();
      const Type t = type();
      parameters_.push_back(parameter(t, std::string(token.text)));
      define(token, parameters_.back());
      if (parameters_.size() > kMaxNodes) Lexer::fail(at, "a graph has at most 1000000 parameters");
    } while (lexer_.accept(","));
    lexer_.expect(")");
  }

  Type type() {
    const Token at = lexer_.expect(TokenKind::name, "a type, for example f32[2,3]");
    const std::optional<DType> dtype = dtype_named(at.text);
    if (!dtype || !is_tensor_dtype(*dtype))
      Lexer::fail(at, "'" + std::string(at.text.substr(0, kMaxName)) + "' is no dtype of a tensor");
    lexer_.expect("[");
    std::vector<std::int64_t> dims;
    if (!lexer_.accept("]")) {
      do {
        dims.push_back(integer());
        if (dims.size() > static_cast<std::size_t>(kMaxRank)) Lexer::fail(at, "a type has at most 8 dims");
      } while (lexer_.accept(","));
      lexer_.expect("]");
    }
    Type result{*dtype, {}, Layout::standard};
    try {
      result.shape = Shape(dims);
    } catch (const UserError& error) {
      Lexer::fail(at, error.what());
    }
    if (!lexer_.accept(":")) return result;
    const Token layout = lexer_.expect(TokenKind::name, "a layout");
    if (layout.text != "nhwc") Lexer::fail(layout, "the only layout that is written is 'nhwc'");
    if (result.shape.rank() != 4) Lexer::fail(layout, "only a type of rank 4 can be nhwc");
    result.layout = Layout::nhwc;
    return result;
  }

  std::int64_t integer() {
    const Token at = lexer_.peek();
    const Operand value = number();
    if (!value.is_integer) Lexer::fail(at, "expected an integer");
    return value.integer;
  }

  // A literal with its sign. Callers that want any value take it as an Operand.
  Operand number() {
    const Token at = lexer_.peek();
    const bool negative = lexer_.accept("-");
    const Token token = lexer_.take();
    if (token.kind == TokenKind::name && (token.text == "inf" || (token.text == "nan" && !negative))) {
      const double value =
          token.text == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
      return Operand(negative ? -value : value);
    }
    if (token.kind != TokenKind::number) Lexer::fail(token, "expected a number");
    const NumberToken read = Lexer::number(token);
    const bool integer_form = token.text.find_first_not_of("0123456789") == std::string_view::npos;
    if (!integer_form) return Operand(negative ? -read.real : read.real);
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    if (!read.is_integer || read.integer > kMax + (negative ? 1 : 0))
      Lexer::fail(at, "an integer literal must fit 64 bits with sign");
    return Operand(static_cast<std::int64_t>(negative ? 0 - read.integer : read.integer));
  }

  Operand argument() {
    if (lexer_.peek().kind == TokenKind::percent) return use(lexer_.take());
    return number();
  }

  AttrInit list(std::string_view attr) {
    std::vector<std::int64_t> ints;
    std::vector<double> reals;
    bool whole = true;
    if (!lexer_.accept("]")) {
      do {
        const Token at = lexer_.peek();
        const Operand value = number();
        whole &= value.is_integer;
        ints.push_back(value.integer);
        reals.push_back(value.number);
        if (ints.size() > kMaxListNumbers) Lexer::fail(at, "an attribute list has at most 65536 numbers");
      } while (lexer_.accept(","));
      lexer_.expect("]");
    }
    if (whole) return AttrInit(attr, std::span<const std::int64_t>(ints));
    return AttrInit(attr, std::span<const double>(reals));
  }

  AttrInit attribute() {
    const Token token = lexer_.expect(TokenKind::name, "an attribute's name");
    const std::string_view attr = name(token);
    lexer_.expect("=");
    if (lexer_.accept("[")) return list(attr);
    const Token value = lexer_.peek();
    if (value.kind == TokenKind::name && value.text != "inf" && value.text != "nan")
      return AttrInit(attr, name(lexer_.take()));
    const Operand read = number();
    return read.is_integer ? AttrInit(attr, read.integer) : AttrInit(attr, read.number);
  }

  std::uint32_t region() {
    if (lexer_.peek().kind != TokenKind::at) return 0;
    const Token token = lexer_.take();
    std::uint64_t value = 0;
    for (char c : token.text) {
      if (c < '0' || c > '9' || value > std::numeric_limits<std::uint32_t>::max())
        Lexer::fail(token, "a region is an integer of 32 bits");
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    if (token.text.empty() || value > std::numeric_limits<std::uint32_t>::max())
      Lexer::fail(token, "a region is an integer of 32 bits");
    return static_cast<std::uint32_t>(value);
  }

  Op op(const Token& token) {
    const std::optional<Op> found = op_named(token.text);
    if (!found || op_def(*found).family == Family::kernel)
      Lexer::fail(token, "there is no op '" + std::string(token.text.substr(0, kMaxName)) + "'");
    return *found;
  }

  void node() {
    const Token target = lexer_.take();
    lexer_.expect("=");
    const Token op_token = lexer_.expect(TokenKind::name, "an op");
    const Op which = op(op_token);
    lexer_.expect("(");
    std::vector<Operand> operands;
    if (!lexer_.accept(")")) {
      do operands.push_back(argument());
      while (lexer_.accept(","));
      lexer_.expect(")");
    }
    std::vector<AttrInit> attrs;
    if (lexer_.accept("{")) {
      do attrs.push_back(attribute());
      while (lexer_.accept(","));
      lexer_.expect("}");
    }
    const std::uint32_t in_region = region();
    lexer_.expect(":");
    const Token type_token = lexer_.peek();
    const Type declared = type();
    Value value;
    try {
      value = build(which, std::move(operands), std::move(attrs), in_region);
      if (value.type().layout != declared.layout && value.type().shape == declared.shape)
        value = build_in(declared.layout, which, value->operands, value->attrs, in_region);
    } catch (const ParseError&) {
      throw;
    } catch (const UserError& error) {
      Lexer::fail(op_token, error.what());
    }
    if (!(value.type() == declared))
      Lexer::fail(type_token, "the result is " + value.type().str() + ", the text says " + declared.str());
    define(target, std::move(value));
    if (++nodes_ > kMaxNodes) Lexer::fail(target, "a graph has at most 1000000 nodes");
  }

  Lexer lexer_;
  std::unordered_map<std::string_view, Value> values_;
  std::vector<Value> parameters_, results_;
  std::size_t nodes_ = 0;
};

}  // namespace

Graph parse_graph(std::string_view text) {
  if (text.size() > kMaxTextBytes) throw ParseError(1, 1, "a graph text has at most 256 MiB");
  return GraphParser(text).graph();
}

}  // namespace fusejit::ir
