// Every row of the op table that has an x86 form, on every dtype that the kernel language allows it, and every cast:
// machine code against the interpreter, as vectors and as scalars, on ordinary and special values.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "ir/op.h"
#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

const DType kDtypes[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u32, DType::u64, DType::boolean, DType::f16, DType::bf16};
constexpr int kElements = 512;

// One definition on whole buffers; `lanes` = 1: no vector loop. `literal`: the last operand is that number.
std::string text_of(const std::string& op, const std::vector<DType>& operands, const std::vector<DType>& results, int lanes, Isa isa,
                    const std::string& literal = "") {
  std::string params, loads, args, names, types, stores;
  const std::string at = lanes > 1 ? fmt::format("%i*{} + %l", lanes) : "%i";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    params += fmt::format("%x{}: {}[{}] read, ", i, name(operands[i]), kElements);
    loads += fmt::format("%v{} = load %x{}[{}] : {}  ", i, i, at, name(operands[i]));
    args += (i > 0 ? ", " : "") + fmt::format("%v{}", i);
  }
  if (!literal.empty()) args += ", " + literal;
  for (std::size_t i = 0; i < results.size(); ++i) {
    params += fmt::format("{}%y{}: {}[{}] write", i > 0 ? ", " : "", i, name(results[i]), kElements);
    names += (i > 0 ? ", " : "") + fmt::format("%r{}", i);
    types += (i > 0 ? ", " : "") + std::string(name(results[i]));
    stores += fmt::format("store %y{}[{}], %r{}  ", i, at, i);
  }
  const std::string body = fmt::format("{}{} = {}({}) : {}  {}", loads, names, op, args, types, stores);
  const std::string loop = lanes > 1 ? fmt::format("for %l in 0..{} vector {{ {} }}", lanes, body) : body;
  return fmt::format("kernel @k({}) on {} {{ phase {{ for %i in 0..{} {{ {} }} }} }}", params, name(isa), kElements / lanes, loop);
}

// "" or the first difference; nothing if the language does not have this op on these dtypes.
std::optional<std::string> check(const std::string& text, Values values) {
  ir::Kernel kernel;
  try {
    kernel = ir::parse_kernel(text);
    ir::verify(kernel);
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto compiled = codegen::x86::compile(kernel, Target{});
  Operands expected = random_operands(kernel, values, 11);
  Operands actual = random_operands(kernel, values, 11);
  run_interpreted(kernel, expected);
  run_compiled(*compiled, actual, ir::TaskOrder::ascending);
  return difference(kernel, expected, actual);
}

// An op without a spelling or fragment is expanded before kernels are written.
bool has_form(const ir::OpDef& def, DType dtype) {
  if (def.family == ir::Family::kernel || !def.kernel_types.empty()) return true;
  if (is_float(dtype)) return !def.llvm.floating.empty() || !(dtype == DType::f64 ? def.fragment_f64 : def.fragment_f32).empty();
  if (dtype == DType::boolean) return !def.llvm.boolean.empty();
  return !(is_unsigned(dtype) ? def.llvm.unsigned_int : def.llvm.signed_int).empty();
}

class Ops : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!codegen::x86::host_supports(GetParam())) GTEST_SKIP() << "this processor cannot run " << name(GetParam());
  }
};

TEST_P(Ops, EveryRowOnEveryDType) {
  int tested = 0;
  for (int i = 0; i < static_cast<int>(ir::Op::count_); ++i) {
    const ir::OpDef& def = op_def(static_cast<ir::Op>(i));
    if (def.family != ir::Family::elementwise && def.family != ir::Family::kernel) continue;
    if (def.op == ir::Op::cast || def.op == ir::Op::dot2) continue;  // below; (l) of the worked kernels
    for (DType dtype : kDtypes) {
      if (!has_form(def, dtype)) continue;
      // The first operand may be a condition, the result a bool.
      for (bool condition : {false, true}) {
        for (DType result : {dtype, DType::boolean}) {
          std::vector<DType> operands(static_cast<std::size_t>(def.max_operands), dtype);
          if (condition) operands[0] = DType::boolean;
          for (int lanes : {1, 16}) {
            for (Values values : {Values::ordinary, Values::special}) {
              const auto outcome = check(text_of(std::string(def.name), operands, {result}, lanes, GetParam()), values);
              if (!outcome) continue;
              ++tested;
              EXPECT_EQ(*outcome, "") << def.name << " " << name(dtype) << " lanes " << lanes;
            }
          }
          if (dtype == DType::boolean) break;
        }
        if (dtype == DType::boolean) break;
      }
    }
  }
  EXPECT_GT(tested, 300);
}

TEST_P(Ops, EveryCast) {
  for (DType from : kDtypes) {
    for (DType to : kDtypes) {
      if (from == to) continue;
      for (int lanes : {1, 8, 16}) {
        for (Values values : {Values::ordinary, Values::special}) {
          const auto outcome = check(text_of("cast", {from}, {to}, lanes, GetParam()), values);
          ASSERT_TRUE(outcome) << name(from) << " to " << name(to);
          EXPECT_EQ(*outcome, "") << name(from) << " to " << name(to) << " lanes " << lanes;
        }
      }
    }
  }
}

TEST_P(Ops, BitsAndShifts) {
  const std::pair<DType, DType> words[] = {{DType::f32, DType::u32}, {DType::f64, DType::u64}, {DType::f16, DType::u32}, {DType::bf16, DType::u32}};
  for (const auto& [type, word] : words) {
    for (int lanes : {1, 16}) {
      EXPECT_EQ(check(text_of("bits", {type}, {word}, lanes, GetParam()), Values::special), "") << name(type);
      EXPECT_EQ(check(text_of("from_bits", {word}, {type}, lanes, GetParam()), Values::special), "") << name(type);
      EXPECT_EQ(check(text_of("shl", {word}, {word}, lanes, GetParam(), "5"), Values::special), "");
      EXPECT_EQ(check(text_of("shr", {word}, {word}, lanes, GetParam(), "5"), Values::special), "");
    }
  }
  const std::vector<DType> words4(4, DType::u32);
  EXPECT_EQ(check(text_of("philox", {DType::i64, DType::i64, DType::i64}, words4, 16, GetParam()), Values::ordinary), "");
}

// A literal that is no NaN saves an instruction; signs of zeros and NaN stay as with any operand.
TEST_P(Ops, ExtremaWithLiterals) {
  for (const char* op : {"maximum", "minimum"}) {
    for (const char* literal : {"0", "-0.0", "1", "inf", "-inf", "nan"}) {
      for (DType dtype : {DType::f32, DType::f64}) {
        for (int lanes : {1, 16}) {
          EXPECT_EQ(check(text_of(op, {dtype}, {dtype}, lanes, GetParam(), literal), Values::special), "") << op << literal;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(X86, Ops, testing::Values(Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2),
                         [](const auto& info) { return fmt::format("isa{}", static_cast<int>(info.param)); });

// All 65536 values of the 16-bit types, and f32 around every rounding boundary of theirs.
TEST(HalfPrecision, WidensAndRoundsEveryValue) {
  for (Isa isa : {Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2}) {
    if (!codegen::x86::host_supports(isa)) continue;
    for (DType half : {DType::f16, DType::bf16}) {
      const ir::Kernel kernel = ir::parse_kernel(fmt::format(
          "kernel @k(%x: {0}[65536] read, %w: f32[65536] write, %e: f32[65536] read, %y: {0}[65536] write) on {1} {{ phase {{ for %i in "
          "0..4096 {{ for %l in 0..16 vector {{ %0 = load %x[%i*16 + %l] : {0}  %1 = cast(%0) : f32  store %w[%i*16 + %l], %1  "
          "%2 = load %e[%i*16 + %l] : f32  %3 = cast(%2) : {0}  store %y[%i*16 + %l], %3 }} }} }} }}",
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
          ir::store_element(expected.buffers[2].data(), DType::f32, i, {DType::f32, (middle + static_cast<std::uint64_t>(step)) & 0xffffffff});
        }
        Operands actual = random_operands(kernel, Values::ordinary, 1);
        for (std::size_t b : {0u, 2u}) std::memcpy(actual.buffers[b].data(), expected.buffers[b].data(), static_cast<std::size_t>(actual.buffers[b].size()));
        run_interpreted(kernel, expected);
        run_compiled(*compiled, actual, ir::TaskOrder::ascending);
        EXPECT_EQ(difference(kernel, expected, actual), "") << name(half) << " on " << name(isa);
      }
    }
  }
}

}  // namespace
}  // namespace fusejit::test
