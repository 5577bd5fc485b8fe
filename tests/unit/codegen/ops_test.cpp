// Every row of the op table that has an x86 form, on every dtype that the kernel language allows it, and every cast:
// machine code against the interpreter, as vectors and as scalars, on ordinary and special values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ir/op.h"
#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

const DType kDtypes[] = {DType::f32,     DType::f64, DType::i32,  DType::i64, DType::u32, DType::u64,
                         DType::boolean, DType::f16, DType::bf16, DType::i8,  DType::u8,  DType::i16};
constexpr int kElements = 512;

// One definition on whole buffers, as vectors of `lanes`; 1: no vector loop.
struct Piece {
  std::string op;
  std::vector<DType> operands;
  std::vector<DType> results;
  int lanes;
  std::string literal = "";  // a last operand
};

struct Text {
  std::string params, body;
  std::vector<std::string> labels;  // of the buffers

  // Ids carry the piece's number.
  void add(const Piece& p) {
    const std::size_t n = labels.size();
    const std::string label =
        fmt::format("{} of {} lanes {} {}", p.op, p.operands.empty() ? "" : name(p.operands[0]), p.lanes, p.literal);
    const std::string at = p.lanes > 1 ? fmt::format("%i{}*{} + %l{}", n, p.lanes, n) : fmt::format("%i{}", n);
    std::string loads, args, names, types, stores;
    const auto comma = [](std::string& list) { list += list.empty() ? "" : ", "; };
    for (std::size_t i = 0; i < p.operands.size(); ++i) {
      comma(params), comma(args);
      params += fmt::format("%x{}_{}: {}[{}] read", n, i, name(p.operands[i]), kElements);
      loads += fmt::format("%v{}_{} = load %x{}_{}[{}] : {}  ", n, i, n, i, at, name(p.operands[i]));
      args += fmt::format("%v{}_{}", n, i);
      labels.push_back("operand of " + label);
    }
    if (!p.literal.empty()) args += ", " + p.literal;
    for (std::size_t i = 0; i < p.results.size(); ++i) {
      comma(params), comma(names), comma(types);
      params += fmt::format("%y{}_{}: {}[{}] write", n, i, name(p.results[i]), kElements);
      names += fmt::format("%r{}_{}", n, i);
      types += name(p.results[i]);
      stores += fmt::format("store %y{}_{}[{}], %r{}_{}  ", n, i, at, n, i);
      labels.push_back(label);
    }
    const std::string work = fmt::format("{}{} = {}({}) : {}  {}", loads, names, p.op, args, types, stores);
    body += fmt::format("for %i{} in 0..{} {{ {} }}\n", n, kElements / p.lanes,
                        p.lanes > 1 ? fmt::format("for %l{} in 0..{} vector {{ {} }}", n, p.lanes, work) : work);
  }
  std::string str(Isa isa) const {
    return fmt::format("kernel @k({}) on {} {{ phase {{ {} }} }}", params, name(isa), body);
  }
};

// Is the piece in the language?
bool legal(const Piece& piece, Isa isa) {
  Text text;
  text.add(piece);
  try {
    ir::verify(ir::parse_kernel(text.str(isa)));
    return true;
  } catch (const Error&) {
    return false;
  }
}

void run(const Text& text, Isa isa) {
  const ir::Kernel kernel = ir::parse_kernel(text.str(isa));
  const auto compiled = codegen::x86::compile(kernel, Target{});
  for (Values values : {Values::ordinary, Values::special}) {
    Operands expected = random_operands(kernel, values, 11);
    Operands actual = random_operands(kernel, values, 11);
    run_interpreted(kernel, expected);
    run_compiled(*compiled, actual, ir::TaskOrder::ascending);
    const std::string found = difference(kernel, expected, actual);
    EXPECT_EQ(found, "") << text.labels[found.empty() ? 0 : std::stoul(found.substr(7))] << " on " << name(isa);
  }
}

// Kernels of at most 24 pieces, so that code generation is set up seldom.
void run_all(const std::vector<Piece>& pieces, Isa isa) {
  for (std::size_t start = 0; start < pieces.size(); start += 24) {
    Text text;
    for (std::size_t i = start; i < std::min(start + 24, pieces.size()); ++i) text.add(pieces[i]);
    run(text, isa);
  }
}

// An op without a spelling or fragment is expanded before kernels are written.
bool has_form(const ir::OpDef& def, DType dtype) {
  if (def.family == ir::Family::kernel || !def.kernel_types.empty()) return true;
  if (is_float(dtype))
    return !def.llvm.floating.empty() || !(dtype == DType::f64 ? def.fragment_f64 : def.fragment_f32).empty();
  if (dtype == DType::boolean) return !def.llvm.boolean.empty();
  return !(is_unsigned(dtype) ? def.llvm.unsigned_int : def.llvm.signed_int).empty();
}

class Ops : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!codegen::x86::host_supports(GetParam())) GTEST_SKIP() << "this processor cannot run " << name(GetParam());
  }
};

// The dtypes that a row may have on `dtype`: a condition may come first, the result may be bool.
std::vector<Piece> pieces_of(const ir::OpDef& def, DType dtype, Isa isa) {
  std::vector<Piece> pieces;
  for (DType first : {dtype, DType::boolean}) {
    for (DType result : {dtype, DType::boolean}) {
      Piece piece{
          std::string(def.name), std::vector<DType>(static_cast<std::size_t>(def.max_operands), dtype), {result}, 16};
      piece.operands[0] = first;
      if (!legal(piece, isa)) continue;
      pieces.push_back(piece);
      piece.lanes = 1;
      pieces.push_back(piece);
      if (dtype == DType::boolean) return pieces;
    }
  }
  return pieces;
}

TEST_P(Ops, EveryRowOnEveryDType) {
  std::vector<Piece> pieces;
  for (int i = 0; i < static_cast<int>(ir::Op::count_); ++i) {
    const ir::OpDef& def = op_def(static_cast<ir::Op>(i));
    if (def.family != ir::Family::elementwise && def.family != ir::Family::kernel) continue;
    if (def.op == ir::Op::cast || def.op == ir::Op::dot2 || def.op == ir::Op::round_bf16)
      continue;  // below; (l) of the worked kernels
    for (DType dtype : kDtypes) {
      if (!has_form(def, dtype)) continue;
      for (Piece& piece : pieces_of(def, dtype, GetParam())) pieces.push_back(std::move(piece));
    }
  }
  EXPECT_GT(pieces.size(), 250u);
  run_all(pieces, GetParam());
}

TEST_P(Ops, EveryCast) {
  std::vector<Piece> pieces;
  for (DType from : kDtypes) {
    for (DType to : kDtypes) {
      for (int lanes : {1, 8, 16}) {
        pieces.push_back({"cast", {from}, {to}, lanes});
        ASSERT_TRUE(legal(pieces.back(), GetParam())) << name(from) << " to " << name(to);
      }
    }
  }
  run_all(pieces, GetParam());
}

TEST_P(Ops, BitsAndShifts) {
  const std::pair<DType, DType> words[] = {
      {DType::f32, DType::u32}, {DType::f64, DType::u64}, {DType::f16, DType::u32}, {DType::bf16, DType::u32}};
  std::vector<Piece> pieces;
  for (const auto& [type, word] : words) {
    for (int lanes : {1, 16}) {
      pieces.push_back({"bits", {type}, {word}, lanes});
      pieces.push_back({"from_bits", {word}, {type}, lanes});
      pieces.push_back({"shl", {word}, {word}, lanes, "5"});
      pieces.push_back({"shr", {word}, {word}, lanes, "5"});
    }
  }
  pieces.push_back({"philox", {DType::i64, DType::i64, DType::i64}, std::vector<DType>(4, DType::u32), 16});
  run_all(pieces, GetParam());
}

// A literal that is no NaN saves an instruction; signs of zeros and NaN stay as with any operand.
TEST_P(Ops, ExtremaWithLiterals) {
  std::vector<Piece> pieces;
  for (const char* op : {"maximum", "minimum"}) {
    for (const char* literal : {"0", "-0.0", "1", "inf", "-inf", "nan"}) {
      for (DType dtype : {DType::f32, DType::f64}) {
        for (int lanes : {1, 16}) pieces.push_back({op, {dtype}, {dtype}, lanes, literal});
      }
    }
  }
  run_all(pieces, GetParam());
}

// Exists beside dot2 alone.
TEST(RoundBf16, IsTheInstructionAtAnyNumberOfLanes) {
  if (!codegen::x86::host_supports(Isa::x86_avx512bf16)) GTEST_SKIP() << "no AVX512-BF16 here";
  std::vector<Piece> pieces;
  for (const int lanes : {1, 4, 8, 16, 32}) pieces.push_back({"round_bf16", {DType::f32}, {DType::bf16}, lanes});
  run_all(pieces, Isa::x86_avx512bf16);
  EXPECT_FALSE(legal(pieces[0], Isa::x86_avx512));
}

INSTANTIATE_TEST_SUITE_P(X86, Ops, ::testing::Values(Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2),
                         [](const auto& info) { return fmt::format("isa{}", static_cast<int>(info.param)); });

// All 65536 values of the 16-bit types, and f32 around every rounding boundary of theirs.
TEST(HalfPrecision, WidensAndRoundsEveryValue) {
  for (Isa isa : {Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2}) {
    if (!codegen::x86::host_supports(isa)) continue;
    for (DType half : {DType::f16, DType::bf16}) {
      const ir::Kernel kernel = ir::parse_kernel(fmt::format(
          "kernel @k(%x: {0}[65536] read, %w: f32[65536] write, %e: f32[65536] read, %y: {0}[65536] write, "
          "%v: f32[65536] write) on {1} {{ phase {{ for %i in "
          "0..4096 {{ for %l in 0..16 vector {{ %0 = load %x[%i*16 + %l] : {0}  %1 = cast(%0) : f32  store "
          "%w[%i*16 + %l], %1  "
          "%2 = load %e[%i*16 + %l] : f32  %3 = cast(%2) : {0}  store %y[%i*16 + %l], %3  %4 = cast(%3) : f32  "
          "store %v[%i*16 + %l], %4 }} }} }} }}",
          name(half), name(isa)));
      const auto compiled = codegen::x86::compile(kernel, Target{});
      for (int step : {-1, 0, 1}) {
        Operands expected = random_operands(kernel, Values::ordinary, 1);
        for (std::int64_t i = 0; i < 65536; ++i) {
          const ir::Scalar value{half, static_cast<std::uint64_t>(i)};
          ir::store_element(expected.buffers[0].data(), half, i, value);
          // Half way to the next value, one unit below, at and above.
          const std::uint64_t middle = half == DType::bf16 ? (static_cast<std::uint64_t>(i) << 16) + 0x8000
                                                           : ir::cast(value, DType::f32).bits + 0x1000;
          ir::store_element(expected.buffers[2].data(), DType::f32, i,
                            {DType::f32, (middle + static_cast<std::uint64_t>(step)) & 0xffffffff});
        }
        Operands actual = random_operands(kernel, Values::ordinary, 1);
        for (std::size_t b : {0u, 2u})
          std::memcpy(actual.buffers[b].data(), expected.buffers[b].data(),
                      static_cast<std::size_t>(actual.buffers[b].size()));
        run_interpreted(kernel, expected);
        run_compiled(*compiled, actual, ir::TaskOrder::ascending);
        EXPECT_EQ(difference(kernel, expected, actual), "") << name(half) << " on " << name(isa);
      }
    }
  }
}

// What is chosen among values that were bf16 is one, and no rounding is written for it.
TEST(HalfPrecision, ChoicesOfBf16AreNotRounded) {
  constexpr const char* kText =
      "kernel @k(%x: bf16[65536] read, %y: bf16[65536] write, %z: bf16[65536] write) on ISA { phase { for %i in "
      "0..4096 { for %l in 0..16 vector { %0 = load %x[%i*16 + %l] : bf16  %1 = cast(%0) : f32  %2 = maximum(%1, 0) : "
      "f32  %3 = cast(%2) : bf16  store %y[%i*16 + %l], %3  %4 = load %x[65535 - %i*16 - %l] : bf16  %5 = cast(%4) : "
      "f32  %6 = lt(%1, %5) : bool  %7 = neg(%1) : f32  %8 = abs(%5) : f32  %9 = where(%6, %7, %8) : f32  %10 = "
      "minimum(%9, LIMIT) : f32  %11 = cast(%10) : bf16  store %z[%i*16 + %l], %11 } } } }";
  const auto with = [](std::string text, const std::string& word, const std::string& by) {
    return text.replace(text.find(word), word.size(), by);
  };
  for (Isa isa : {Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2}) {
    if (!codegen::x86::host_supports(isa)) continue;
    for (const char* limit : {"3.5", "3.51"}) {
      const ir::Kernel kernel = ir::parse_kernel(with(with(kText, "ISA", std::string(name(isa))), "LIMIT", limit));
      Operands expected = random_operands(kernel, Values::ordinary, 1),
               actual = random_operands(kernel, Values::ordinary, 1);
      for (Operands* o : {&expected, &actual})
        for (std::int64_t i = 0; i < 65536; ++i)
          ir::store_element(o->buffers[0].data(), DType::bf16, i, {DType::bf16, static_cast<std::uint64_t>(i)});
      run_interpreted(kernel, expected);
      run_compiled(*codegen::x86::compile(kernel, Target{}), actual, ir::TaskOrder::ascending);
      EXPECT_EQ(difference(kernel, expected, actual), "") << limit << " on " << name(isa);
      const bool rounds = codegen::x86::llvm_text(kernel, Target{}).find("i32 32767") != std::string::npos;
      EXPECT_EQ(rounds, std::string(limit) == "3.51") << name(isa);
    }
  }
}

// And f64, once, however narrow what they become.
TEST(HalfPrecision, RoundsWideValuesOnce) {
  for (Isa isa : {Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2}) {
    if (!codegen::x86::host_supports(isa)) continue;
    for (DType half : {DType::f16, DType::bf16}) {
      const ir::Kernel kernel = ir::parse_kernel(fmt::format(
          "kernel @k(%x: f64[65536] read, %y: {0}[65536] write) on {1} {{ phase {{ for %i in 0..8192 {{ for %l in 0..8 "
          "vector {{ %0 = load %x[%i*8 + %l] : f64  %1 = cast(%0) : {0}  store %y[%i*8 + %l], %1 }} }} }} }}",
          name(half), name(isa)));
      const auto compiled = codegen::x86::compile(kernel, Target{});
      for (int step : {-1, 0, 1}) {
        Operands expected = random_operands(kernel, Values::ordinary, 1),
                 actual = random_operands(kernel, Values::ordinary, 1);
        for (Operands* o : {&expected, &actual}) {
          for (std::uint64_t i = 0; i < 65536; ++i)
            static_cast<double*>(o->buffers[0].data())[i] = half_way(half, i, step);
        }
        run_interpreted(kernel, expected);
        run_compiled(*compiled, actual, ir::TaskOrder::ascending);
        EXPECT_EQ(difference(kernel, expected, actual), "") << name(half) << " on " << name(isa) << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace fusejit::test
