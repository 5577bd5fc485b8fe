#include "tests/support/op_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fusejit/error.h"
#include "ir/kernel/math.h"
#include "ir/op.h"

namespace fusejit::test {
namespace {

const DType kDtypes[] = {DType::f32,     DType::f64, DType::i32,  DType::i64, DType::u32, DType::u64,
                         DType::boolean, DType::f16, DType::bf16, DType::i8,  DType::u8,  DType::i16};

// One definition on whole buffers.
struct Piece {
  std::string op;
  std::vector<DType> operands;
  std::vector<DType> results;
  bool lanes = true;
  std::string literal = "";  // a last operand
  double ulp = 0;            // of the function
};

// Pieces that run one after the other in each thread; every buffer has 512 elements.
struct Text {
  std::string params, body;
  std::vector<std::string> labels;  // of the buffers
  std::vector<double> ulps;

  void add(const Piece& p) {
    const std::size_t n = labels.size();
    const std::string label =
        fmt::format("{} of {} {} {}", p.op, name(p.operands[0]), p.lanes ? "lanes" : "", p.literal);
    const std::string at = fmt::format("%g*256 + %t*4 + %l{}", n);
    std::string loads, args, names, types, stores;
    const auto comma = [](std::string& list) { list += list.empty() ? "" : ", "; };
    const auto buffer = [&](char kind, std::size_t i, DType dtype, const char* access) {
      comma(params);
      params += fmt::format("%{}{}_{}: {}[512] {} align 64", kind, n, i, name(dtype), access);
      labels.push_back(label);
      ulps.push_back(p.ulp);
    };
    for (std::size_t i = 0; i < p.operands.size(); ++i) {
      buffer('x', i, p.operands[i], "read");
      comma(args);
      loads += fmt::format("%v{}_{} = load %x{}_{}[{}] : {}  ", n, i, n, i, at, name(p.operands[i]));
      args += fmt::format("%v{}_{}", n, i);
    }
    if (!p.literal.empty()) args += ", " + p.literal;
    for (std::size_t i = 0; i < p.results.size(); ++i) {
      buffer('y', i, p.results[i], "write");
      comma(names), comma(types);
      names += fmt::format("%r{}_{}", n, i);
      types += name(p.results[i]);
      stores += fmt::format("store %y{}_{}[{}], %r{}_{}  ", n, i, at, n, i);
    }
    body += fmt::format("for %l{} in 0..4{} {{ {}{} = {}({}) : {}  {} }}\n", n, p.lanes ? " vector" : "", loads, names,
                        p.op, args, types, stores);
  }
  std::string str() const {
    return fmt::format(
        "kernel @ops({}) on cuda {{ phase {{ for %g in 0..2 grid.x {{ for %t in 0..64 block.x {{ {} }} }} }} }}",
        params, body);
  }
};

bool legal(const Piece& piece) {
  Text text;
  text.add(piece);
  try {
    ir::verify(ir::parse_kernel(text.str()));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// An op without a spelling or fragment is expanded before kernels are written.
bool has_form(const ir::OpDef& def, DType dtype) {
  if (is_float(dtype) && bits(dtype) != 16 && ir::has_fragment(def.op, dtype)) return true;
  return !(is_float(dtype) ? def.cuda.floating : def.cuda.integral).empty();
}

// The dtypes that a row may have on `dtype`: a condition may come first, the result may be bool.
void add_pieces(const ir::OpDef& def, DType dtype, std::vector<Piece>& pieces) {
  for (DType first : {dtype, DType::boolean}) {
    for (DType result : {dtype, DType::boolean}) {
      Piece piece{
          std::string(def.name), std::vector<DType>(static_cast<std::size_t>(def.max_operands), dtype), {result}};
      piece.operands[0] = first;
      if (!legal(piece)) continue;
      piece.ulp = def.ulp > 0 ? def.ulp + 2 : 0;  // the fragment's error and this machine's library's
      pieces.push_back(piece);
      piece.lanes = false;
      pieces.push_back(piece);
      if (dtype == DType::boolean) return;
    }
  }
}

std::vector<Piece> all_pieces() {
  std::vector<Piece> pieces;
  for (int i = 0; i < static_cast<int>(ir::Op::count_); ++i) {
    const ir::OpDef& def = op_def(static_cast<ir::Op>(i));
    if (def.family != ir::Family::elementwise && def.family != ir::Family::kernel) continue;
    if (def.op == ir::Op::cast || def.op == ir::Op::dot2 || def.op == ir::Op::round_bf16) continue;
    for (DType dtype : kDtypes)
      if (has_form(def, dtype)) add_pieces(def, dtype, pieces);
  }
  for (DType from : kDtypes)
    for (DType to : kDtypes) pieces.push_back({"cast", {from}, {to}});
  const std::pair<DType, DType> words[] = {
      {DType::f32, DType::u32}, {DType::f64, DType::u64}, {DType::f16, DType::u32}, {DType::bf16, DType::u32}};
  for (const auto& [type, word] : words) {
    pieces.push_back({"bits", {type}, {word}});
    pieces.push_back({"from_bits", {word}, {type}});
    pieces.push_back({"shl", {word}, {word}, true, "5"});
    pieces.push_back({"shr", {word}, {word}, false, "5"});
  }
  for (const char* op : {"maximum", "minimum", "sub"})
    for (const char* literal : {"0", "-0.0", "1", "inf", "-inf", "nan"})
      for (DType dtype : {DType::f32, DType::f64}) pieces.push_back({op, {dtype}, {dtype}, true, literal});
  for (const char* literal : {"-2147483648", "-1", "2147483647"})
    pieces.push_back({"sub", {DType::i32}, {DType::i32}, true, literal});
  pieces.push_back({"sub", {DType::i64}, {DType::i64}, true, "-9223372036854775808"});
  pieces.push_back({"philox", {DType::i64, DType::i64, DType::i64}, std::vector<DType>(4, DType::u32)});
  return pieces;
}

}  // namespace

std::vector<OpKernel> op_kernels() {
  constexpr std::size_t kPieces = 24;  // of a kernel
  const std::vector<Piece> pieces = all_pieces();
  std::vector<OpKernel> kernels;
  for (std::size_t start = 0; start < pieces.size(); start += kPieces) {
    Text text;
    const std::size_t end = std::min(start + kPieces, pieces.size());
    for (std::size_t i = start; i < end; ++i) text.add(pieces[i]);
    OpKernel made{ir::parse_kernel(text.str()), static_cast<int>(end - start), text.labels, text.ulps};
    ir::verify(made.kernel);
    kernels.push_back(std::move(made));
  }
  return kernels;
}

}  // namespace fusejit::test
