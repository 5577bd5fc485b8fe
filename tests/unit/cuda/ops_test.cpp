// Every row of the op table that kernels may hold, on every dtype, and every cast: CUDA text on the CPU against the
// interpreter, on ordinary and special values; and all of it through NVRTC.
#include <gtest/gtest.h>

#include "codegen/cuda/nvrtc.h"
#include "fusejit/error.h"
#include "ir/kernel/math.h"
#include "ir/op.h"
#include "tests/support/cuda_shim/shim.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::test {
namespace {

const DType kDtypes[] = {DType::f32, DType::f64,     DType::i32, DType::i64, DType::u32,
                         DType::u64, DType::boolean, DType::f16, DType::bf16};

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
    if (def.op == ir::Op::cast || def.op == ir::Op::dot2) continue;
    for (DType dtype : kDtypes)
      if (has_form(def, dtype)) add_pieces(def, dtype, pieces);
  }
  EXPECT_GT(pieces.size(), 250u);
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

TEST(CudaOps, EveryRowOnEveryDType) {
  const std::vector<Piece> pieces = all_pieces();
  std::vector<Text> texts;
  std::vector<ir::Kernel> kernels;
  std::vector<codegen::cuda::CudaSource> sources;
  for (std::size_t start = 0; start < pieces.size(); start += 24) {
    Text& text = texts.emplace_back();
    for (std::size_t i = start; i < std::min(start + 24, pieces.size()); ++i) text.add(pieces[i]);
    kernels.push_back(ir::parse_kernel(text.str()));
    ir::verify(kernels.back());
    sources.push_back(codegen::cuda::emit(kernels.back(), fmt::format("ops{}", texts.size())));
  }
  Shim shim(sources);
  shim.open();
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    for (const Values values : {Values::ordinary, Values::special}) {
      Operands expected = random_operands(kernels[k], values, 11);
      Operands actual = random_operands(kernels[k], values, 11);
      run_interpreted(kernels[k], expected);
      shim.run(k, actual, ir::TaskOrder::ascending);
      const std::string found =
          difference_in_ulp(kernels[k], expected, actual, [&](std::size_t i) { return texts[k].ulps[i]; });
      EXPECT_EQ(found, "") << texts[k].labels[found.empty() ? 0 : std::stoul(found.substr(7))];
    }
  }
  // CUDA's own front end takes the same text: the rows that are not arithmetic alone in one program.
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  EXPECT_NE(codegen::cuda::compile_to_ptx(codegen::cuda::program(sources), 90), "");
}

// All values of the 16-bit types widened, and f32 around every rounding boundary of theirs narrowed.
TEST(CudaOps, WidensAndRoundsEverySixteenBitValue) {
  for (DType half : {DType::f16, DType::bf16}) {
    const ir::Kernel kernel = ir::parse_kernel(fmt::format(
        "kernel @half(%x: {0}[65536] read align 16, %w: f32[65536] write align 16, %e: f32[65536] read align 16, "
        "%y: {0}[65536] write align 16) on cuda {{ phase {{ for %i in 0..256 grid.x {{ for %t in 0..32 block.x {{ "
        "for %l in 0..8 vector {{ %0 = load %x[%i*256 + %t*8 + %l] : {0}  %1 = cast(%0) : f32  "
        "store %w[%i*256 + %t*8 + %l], %1  %2 = load %e[%i*256 + %t*8 + %l] : f32  %3 = cast(%2) : {0}  "
        "store %y[%i*256 + %t*8 + %l], %3 }} }} }} }} }}",
        name(half)));
    Shim shim({codegen::cuda::emit(kernel)});
    shim.open();
    for (int step : {-1, 0, 1}) {
      const auto operands = [&] {
        Operands o = random_operands(kernel, Values::ordinary, 1);
        for (std::int64_t i = 0; i < 65536; ++i) {
          const ir::Scalar value{half, static_cast<std::uint64_t>(i)};
          ir::store_element(o.buffers[0].data(), half, i, value);
          // Half way to the next value, one unit below, at and above.
          const std::uint64_t middle = half == DType::bf16 ? (static_cast<std::uint64_t>(i) << 16) + 0x8000
                                                           : ir::cast(value, DType::f32).bits + 0x1000;
          ir::store_element(o.buffers[2].data(), DType::f32, i,
                            {DType::f32, (middle + static_cast<std::uint64_t>(step)) & 0xffffffff});
        }
        return o;
      };
      Operands expected = operands(), actual = operands();
      run_interpreted(kernel, expected);
      shim.run(0, actual, ir::TaskOrder::ascending);
      EXPECT_EQ(difference(kernel, expected, actual), "") << name(half);
    }
  }
}

}  // namespace
}  // namespace fusejit::test
