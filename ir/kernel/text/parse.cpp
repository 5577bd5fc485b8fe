// Text to Kernel (kernel-ir.md §2). Ids are given by first appearance; indices are canonical with the ranges of the
// loops around them.
#include "ir/kernel/text/parser.h"
#include "ir/kernel/types.h"

namespace fusejit::ir {
namespace {

constexpr std::size_t kMaxDims = 16;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

class KernelParser {
 public:
  explicit KernelParser(TokenReader& tokens) : tokens_(tokens), indices_(tokens_, scopes_, ranges_) {}

  Kernel run() {
    scopes_.enter();
    tokens_.expect("kernel");
    k_.name = tokens_.expect(TokenKind::at, "the kernel's @name").text;
    tokens_.expect("(");
    do param();
    while (tokens_.accept(","));
    tokens_.expect(")"), tokens_.expect("on");
    isa();
    tokens_.expect("{");
    while (tokens_.is("work")) work();
    do phase();
    while (!tokens_.accept("}"));
    return std::move(k_);
  }

 private:
  // --- header ---
  void param() {
    const Token id = tokens_.expect(TokenKind::percent, "a parameter");
    tokens_.expect(":");
    Memory memory;
    memory.dtype = tokens_.dtype();
    if (tokens_.accept("param")) {
      k_.params.push_back({-1, new_value(memory.dtype)});
      return scopes_.define(id, {SymbolKind::value, k_.params.back().scalar});
    }
    memory.dims = dims();
    if (tokens_.accept("read")) {
      memory.kind = MemKind::read;
    } else if (tokens_.accept("write")) {
      memory.kind = MemKind::write;
    } else if (tokens_.accept("update")) {
      memory.kind = MemKind::update;
    } else {
      Lexer::fail(tokens_.peek(), "expected 'read', 'write' or 'update' after a buffer's type");
    }
    align(memory);
    k_.params.push_back({new_memory(id, memory), -1});
  }
  void work() {
    tokens_.expect("work");
    const Token id = tokens_.expect(TokenKind::percent, "a name");
    tokens_.expect(":");
    Memory memory{MemKind::work, tokens_.dtype(), {}, 0, false, {}};
    memory.dims = dims();
    align(memory);
    k_.works.push_back(new_memory(id, memory));
  }
  void align(Memory& memory) {
    if (!tokens_.accept("align")) return;
    const Token at = tokens_.peek();
    memory.align = tokens_.integer("an alignment");
    if (memory.align <= 0 || memory.align > 4096 || (memory.align & (memory.align - 1)) != 0)
      Lexer::fail(at, "an alignment is a power of two of at most 4096 bytes");
    if (memory.align == bytes(memory.dtype)) memory.align = 0;
  }
  std::vector<std::int64_t> dims() {
    std::vector<std::int64_t> list;
    const Token at = tokens_.expect("[");
    if (tokens_.accept("]")) return list;
    __int128 elements = 1;
    do {
      list.push_back(tokens_.integer("an extent"));
      elements *= list.back();
      if (list.size() > kMaxDims || elements > kMaxElements || list.back() > kMaxElements)
        Lexer::fail(at, fmt::format("memory has at most {} dims and 2^40 elements", kMaxDims));
    } while (tokens_.accept(","));
    tokens_.expect("]");
    return list;
  }
  void isa() {
    const Token at = tokens_.expect(TokenKind::name, "an instruction set");
    std::string text(at.text);
    if (tokens_.accept(":")) text.append(":").append(tokens_.expect(TokenKind::name, "an instruction set").text);
    for (int i = 0; i <= static_cast<int>(Isa::any); ++i) {
      k_.isa = static_cast<Isa>(i);
      if (name(k_.isa) == text) return;
    }
    Lexer::fail(at, fmt::format("'{}' is not an instruction set", text));
  }
  void phase() {
    tokens_.expect("phase");
    k_.phases.emplace_back();
    if (tokens_.accept("registers")) {
      const std::int64_t count = tokens_.integer("a number of registers");
      k_.phases.back().registers = static_cast<int>(std::min<std::int64_t>(count, 1 << 16));  // verify knows the limit
    }
    k_.phases.back().body = block({});
  }

  // --- statements ---
  // `expected` are the dtypes that the block yields.
  Block block(const std::vector<DType>& expected) {
    Block b;
    const Token open = tokens_.expect("{");
    if (++nesting_ > kMaxNesting) Lexer::fail(open, fmt::format("more than {} nested blocks", kMaxNesting));
    scopes_.enter();
    while (!tokens_.is("}") && !tokens_.is("yield")) {
      Stmt stmt = statement();
      b.statements.push_back(std::move(stmt));
    }
    if (tokens_.is("yield")) yields(b, expected);
    const Token close = tokens_.expect("}");
    if (b.yields.size() != expected.size())
      Lexer::fail(close,
                  fmt::format("this block yields {} values, its header names {}", b.yields.size(), expected.size()));
    scopes_.leave();
    --nesting_;
    return b;
  }
  void yields(Block& b, const std::vector<DType>& expected) {
    const Token at = tokens_.expect("yield");
    do {
      if (b.yields.size() == expected.size())
        Lexer::fail(at, fmt::format("this block yields more than the {} values of its header", expected.size()));
      b.yields.push_back(arg(expected[b.yields.size()]));
    } while (tokens_.accept(","));
  }

  Stmt statement() {
    const Token& first = tokens_.peek();
    Stmt stmt{LocalStmt{}, first.at};
    if (first.kind == TokenKind::percent) {
      stmt.node = assignment();
    } else if (tokens_.is("local")) {
      stmt.node = local();
    } else if (tokens_.is("for")) {
      stmt.node = loop({});
    } else if (tokens_.is("if")) {
      stmt.node = choice({});
    } else if (tokens_.accept("store")) {
      StoreStmt s;
      s.place = place();
      tokens_.expect(",");
      s.value = arg(value_dtype(memory(s.place.memory).dtype));
      s.non_temporal = tokens_.accept("nt");
      stmt.node = std::move(s);
    } else if (tokens_.accept("prefetch")) {
      stmt.node = prefetch();
    } else {
      Lexer::fail(first, fmt::format("expected a statement but found '{}'", first.text.substr(0, 40)));
    }
    return stmt;
  }
  PrefetchStmt prefetch() {
    PrefetchStmt s{place(), PrefetchKind::l1};
    if (tokens_.accept("l2")) {
      s.kind = PrefetchKind::l2;
    } else if (tokens_.accept("write")) {
      s.kind = PrefetchKind::write;
    } else {
      tokens_.expect("l1");
    }
    return s;
  }
  LocalStmt local() {
    tokens_.expect("local");
    const Token id = tokens_.expect(TokenKind::percent, "a name");
    tokens_.expect(":");
    Memory memory{MemKind::register_local, tokens_.dtype(), {}, 0, false, {}};
    memory.dims = dims();
    if (tokens_.accept("scratch")) {
      memory.kind = MemKind::scratch_local;
    } else {
      tokens_.expect("register");
    }
    if (tokens_.accept("=")) {
      memory.has_init = true;
      memory.init = TokenReader::read(tokens_.literal(), value_dtype(memory.dtype));
    }
    return {new_memory(id, memory)};
  }

  decltype(Stmt::node) assignment() {
    std::vector<Token> names;
    do names.push_back(tokens_.expect(TokenKind::percent, "a name"));
    while (tokens_.accept(","));
    tokens_.expect("=");
    if (tokens_.is("for")) return loop(names);
    if (tokens_.is("if")) return choice(names);
    if (tokens_.is("load") || tokens_.is("index")) {
      if (names.size() != 1) Lexer::fail(names[1], fmt::format("'{}' has one result", tokens_.peek().text));
      return tokens_.accept("load") ? load(names) : index(names);
    }
    return definition(names);
  }
  decltype(Stmt::node) load(const std::vector<Token>& names) {
    LoadStmt s;
    s.place = place();
    s.result = new_values(names, tokens_.types())[0];
    define(names, {s.result});
    return s;
  }
  decltype(Stmt::node) index(const std::vector<Token>& names) {
    tokens_.expect("index"), tokens_.expect("(");
    IndexStmt s{-1, indices_.read()};
    tokens_.expect(")");
    s.result = new_values(names, tokens_.types())[0];
    define(names, {s.result});
    return s;
  }
  decltype(Stmt::node) definition(const std::vector<Token>& names) {
    const Token at = tokens_.expect(TokenKind::name, "an op");
    const std::optional<Op> op = op_named(at.text);
    if (!op) Lexer::fail(at, fmt::format("'{}' is not an op", at.text));
    struct Raw {
      ValueId value = -1;
      RawLiteral literal;
    };
    std::vector<Raw> raws;
    std::vector<std::optional<DType>> dtypes;
    tokens_.expect("(");
    if (!tokens_.is(")")) {
      do {
        if (tokens_.at_literal()) {
          raws.push_back({-1, tokens_.literal()});
          dtypes.push_back(std::nullopt);
        } else {
          raws.push_back({value(), {}});
          dtypes.push_back(k_.values[static_cast<std::size_t>(raws.back().value)]);
        }
      } while (tokens_.accept(","));
    }
    tokens_.expect(")");
    const std::vector<DType> types = tokens_.types();
    dtypes = operand_dtypes(*op, dtypes, types);
    DefStmt s{{}, *op, {}, {}};
    for (std::size_t i = 0; i < raws.size(); ++i) {
      if (raws[i].value >= 0) {
        s.args.push_back(raws[i].value);
      } else {
        if (!dtypes[i])
          Lexer::fail(raws[i].literal.token,
                      fmt::format("nothing says which dtype {} has", raws[i].literal.token.text));
        s.args.push_back(TokenReader::read(raws[i].literal, *dtypes[i]));
      }
    }
    s.results = new_values(names, types);
    define(names, s.results);
    return s;
  }

  ForStmt loop(const std::vector<Token>& names) {
    tokens_.expect("for");
    const Token id = tokens_.expect(TokenKind::percent, "a loop variable");
    tokens_.expect("in");
    ForStmt s;
    s.low = bound("max");
    tokens_.expect("..");
    s.high = bound("min");
    s.binding = binding();
    if (s.binding == Binding::unroll && tokens_.peek().kind == TokenKind::number) {
      const Token at = tokens_.peek();
      const std::int64_t count = tokens_.integer("a number of copies");
      if (count == 0) Lexer::fail(at, "a loop of 0 copies");
      s.binding = Binding::none, s.copies = static_cast<int>(std::min<std::int64_t>(count, 1 << 16));  // as above
    }
    std::vector<DType> types;
    const bool reduces = tokens_.is("reduce");
    if (reduces != !names.empty())
      Lexer::fail(tokens_.peek(), reduces ? "a reduce has results" : "a loop with results says 'reduce'");
    if (tokens_.accept("reduce")) {
      combiners(s.combiners);
      types = tokens_.types();
      s.results = new_values(names, types);
    }
    s.variable = k_.variable_count++;
    ranges_.enter(s);
    scopes_.enter();
    scopes_.define(id, {SymbolKind::variable, s.variable});
    s.body = block(types);
    scopes_.leave();
    define(names, s.results);
    return s;
  }
  std::vector<Index> bound(std::string_view both) {
    if (!tokens_.accept(both)) return {indices_.read()};
    tokens_.expect("(");
    std::vector<Index> list{indices_.read()};
    tokens_.expect(",");
    list.push_back(indices_.read());
    tokens_.expect(")");
    return list;
  }
  Binding binding() {
    if (tokens_.accept("threads")) return Binding::threads;
    if (tokens_.accept("unroll")) return Binding::unroll;
    if (tokens_.accept("vector")) return Binding::vector;
    if (tokens_.accept("tile")) return Binding::tile;
    const bool grid = tokens_.is("grid");
    if (!grid && !tokens_.is("block")) return Binding::none;
    tokens_.take();
    tokens_.expect(".");
    const Token axis = tokens_.expect(TokenKind::name, "x, y or z");
    if (axis.text.size() != 1 || axis.text[0] < 'x' || axis.text[0] > 'z') Lexer::fail(axis, "an axis is x, y or z");
    const int first = static_cast<int>(grid ? Binding::grid_x : Binding::block_x);
    return static_cast<Binding>(first + (axis.text[0] - 'x'));
  }
  void combiners(std::vector<Combiner>& list) {
    const bool tuple = tokens_.accept("(");
    do {
      const Token at = tokens_.expect(TokenKind::name, "a combiner");
      const std::optional<Combiner> found = combiner_named(at.text);
      if (!found) Lexer::fail(at, fmt::format("'{}' is not a combiner", at.text));
      list.push_back(*found);
    } while (tuple && tokens_.accept(","));
    if (tuple) tokens_.expect(")");
  }

  IfStmt choice(const std::vector<Token>& names) {
    tokens_.expect("if");
    IfStmt s;
    if (tokens_.peek().kind == TokenKind::percent && (tokens_.is(":", 1) || tokens_.is("{", 1))) {
      s.condition = value();
    } else {
      do s.compares.push_back(indices_.compare());
      while (tokens_.accept("and"));
    }
    std::vector<DType> types;
    if (tokens_.is(":") || !names.empty()) types = tokens_.types();
    s.results = new_values(names, types);
    s.then_block = block(types);
    if (!names.empty() || tokens_.is("else")) {
      tokens_.expect("else");
      s.else_block = block(types);
    }
    define(names, s.results);
    return s;
  }

  // --- leaves ---
  Place place() {
    const Token id = tokens_.expect(TokenKind::percent, "a buffer or local");
    const Symbol symbol = scopes_.find(id);
    if (symbol.kind != SymbolKind::memory) Lexer::fail(id, fmt::format("%{} is not memory", id.text));
    Place p{symbol.id, {}};
    tokens_.expect("[");
    if (tokens_.accept("]")) return p;
    do p.index.push_back(indices_.read());
    while (tokens_.accept(","));
    tokens_.expect("]");
    return p;
  }
  ValueId value() {
    const Token id = tokens_.expect(TokenKind::percent, "a value or number");
    const Symbol symbol = scopes_.find(id);
    if (symbol.kind != SymbolKind::value)
      Lexer::fail(id, fmt::format("V8: %{} is not a value; loop variables stand in indices only", id.text));
    return symbol.id;
  }
  Arg arg(DType dtype) {
    if (tokens_.at_literal()) return TokenReader::read(tokens_.literal(), dtype);
    return value();
  }

  // --- tables ---
  ValueId new_value(DType dtype) {
    k_.values.push_back(dtype);
    return static_cast<ValueId>(k_.values.size()) - 1;
  }
  std::vector<ValueId> new_values(const std::vector<Token>& names, const std::vector<DType>& types) {
    if (names.size() != types.size())
      Lexer::fail(tokens_.peek(),
                  fmt::format("{} names stand before '=' and {} types after ':'", names.size(), types.size()));
    std::vector<ValueId> ids;
    for (DType t : types) ids.push_back(new_value(t));
    return ids;
  }
  void define(const std::vector<Token>& names, const std::vector<ValueId>& ids) {
    for (std::size_t i = 0; i < names.size(); ++i) scopes_.define(names[i], {SymbolKind::value, ids[i]});
  }
  MemId new_memory(const Token& id, const Memory& memory) {
    k_.memories.push_back(memory);
    const MemId mem = static_cast<MemId>(k_.memories.size()) - 1;
    scopes_.define(id, {SymbolKind::memory, mem});
    return mem;
  }
  const Memory& memory(MemId id) const { return k_.memories[static_cast<std::size_t>(id)]; }

  TokenReader& tokens_;
  Scopes scopes_;
  VariableRanges ranges_;
  IndexReader indices_;
  Kernel k_;
  int nesting_ = 0;
};

}  // namespace

Kernel parse_kernel(TokenReader& tokens) { return KernelParser(tokens).run(); }

Kernel parse_kernel(std::string_view text) {
  TokenReader tokens(text);
  Kernel kernel = parse_kernel(tokens);
  tokens.expect(TokenKind::end, "the end of the text");
  return kernel;
}

}  // namespace fusejit::ir
