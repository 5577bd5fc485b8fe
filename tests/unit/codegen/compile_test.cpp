// Compilation as a service: several threads at once, objects kept as bytes, code freed with its kernel, readable texts.
#include "codegen/x86/compile.h"

#include <gtest/gtest.h>

#include <thread>

#include "fusejit/error.h"
#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

Isa best_isa() {
  for (Isa isa : {Isa::x86_avx512, Isa::x86_avx2}) {
    if (codegen::x86::host_supports(isa)) return isa;
  }
  return Isa::x86_v2;
}

ir::Kernel worked(const char* file) { return ir::parse_kernel(for_isa(kernel_text(file), best_isa())); }

void expect_right(const ir::Kernel& kernel, const codegen::CompiledKernel& compiled) {
  Operands expected = random_operands(kernel, Values::ordinary, 1);
  Operands actual = random_operands(kernel, Values::ordinary, 1);
  run_interpreted(kernel, expected);
  run_compiled(compiled, actual, ir::TaskOrder::ascending);
  EXPECT_EQ(difference(kernel, expected, actual), "");
}

TEST(Compile, IsSafeInSeveralThreads) {
  std::vector<std::thread> threads;
  for (const char* file : {"toy/b_bias_relu_bits.kir", "toy/c_bn_train.kir", "toy/e_argmax.kir", "toy/i_maxpool.kir"}) {
    threads.emplace_back([file] {
      const ir::Kernel kernel = worked(file);
      for (int i = 0; i < 3; ++i) expect_right(kernel, *codegen::x86::compile(kernel, Target{}));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Compile, ObjectsAreEqualAndCanBeLoadedAgain) {
  const ir::Kernel kernel = worked("toy/c_bn_train.kir");
  const codegen::x86::ObjectCode code = codegen::x86::generate_object(kernel, Target{});
  EXPECT_EQ(code.object, codegen::x86::generate_object(kernel, Target{}).object);
  EXPECT_EQ(code.tasks, (std::vector<std::int64_t>{4, 1, 4}));
  EXPECT_EQ(code.work_bytes, 2 * 4 * 32 * 4);
  auto loaded = codegen::x86::load(code);
  const std::shared_ptr<const codegen::CompiledKernel> copy = std::make_shared<codegen::CompiledKernel>(*loaded);
  loaded.reset();
  expect_right(kernel, *copy);  // the code lives as long as its last owner
}

TEST(Compile, BrokenBytesAreAnError) {
  codegen::x86::ObjectCode code = codegen::x86::generate_object(worked("toy/k_put_a.kir"), Target{});
  code.object = "no object";
  EXPECT_THROW(codegen::x86::load(code), DeviceError);
  code.object.clear();
  EXPECT_THROW(codegen::x86::load(code), DeviceError);
}

TEST(Compile, OtherMachinesAreErrors) {
  const ir::Kernel kernel =
      ir::parse_kernel("kernel @k(%y: f32[1] write) on cuda { phase { for %i in 0..1 grid.x { store %y[0], 1 } } }");
  EXPECT_THROW(codegen::x86::compile(kernel, Target{}), UnsupportedError);
}

TEST(Compile, TextsShowTheKernel) {
  const ir::Kernel kernel = worked("toy/k_put_b.kir");
  const std::string assembly = codegen::x86::assembly(kernel, Target{});
  EXPECT_NE(assembly.find("# kernel @put_b("), std::string::npos);
  EXPECT_NE(assembly.find("phase_0:"), std::string::npos);
  EXPECT_NE(codegen::x86::llvm_text(kernel, Target{}).find("define void @phase_0("), std::string::npos);
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// Two kernels of one name, one of them with two phases, as one module for other tools.
TEST(Compile, AModuleHasManyKernelsByTheirSymbols) {
  using codegen::x86::Form;
  const ir::Kernel first = worked("toy/k_put_b.kir"), second = worked("toy/c_bn_train.kir");
  const std::vector<codegen::x86::SymbolKernel> kernels = {{&first, "one"}, {&second, "two"}, {&first, "three"}};
  const Target target{.isa = best_isa()};
  const std::string llvm = codegen::x86::module_of(kernels, target, Form::llvm);
  EXPECT_EQ(count(llvm, "\ntarget triple = \"x86_64-"), 1u);
  EXPECT_EQ(count(llvm, "\ndefine void @"), 2 + second.phases.size());
  for (const char* symbol : {"one_phase_0", "two_phase_0", "two_phase_1", "three_phase_0"}) {
    EXPECT_EQ(count(llvm, std::string("define void @") + symbol + "("), 1u) << symbol;
    EXPECT_EQ(count(codegen::x86::module_of(kernels, target, Form::assembly), std::string("\n") + symbol + ":"), 1u);
    EXPECT_EQ(count(codegen::x86::module_of(kernels, target, Form::object), std::string("\0", 1) + symbol), 1u);
  }
  // The instructions are those that run.
  const std::string alone = codegen::x86::assembly(first, target);
  const std::string body = alone.substr(alone.find("phase_0:"), alone.find("retq") - alone.find("phase_0:"));
  EXPECT_EQ(count(codegen::x86::module_of({kernels.data(), 1}, target, Form::assembly), body.substr(body.find('\t'))),
            1u);
  EXPECT_THROW(codegen::x86::module_of(kernels, Target{.isa = Isa::cuda}, Form::llvm), UnsupportedError);
}

// Without fast-math flags or contraction: a product and a sum stay two instructions.
TEST(Compile, NothingIsContracted) {
  const ir::Kernel kernel = ir::parse_kernel(
      "kernel @k(%x: f32[16] read, %y: f32[16] write) on x86:avx2 { phase { for %l in 0..16 vector { %0 = load %x[%l] "
      ": f32  "
      "%1 = mul(%0, %0) : f32  %2 = add(%1, %0) : f32  store %y[%l], %2 } } }");
  const std::string assembly = codegen::x86::assembly(kernel, Target{});
  EXPECT_EQ(assembly.find("vfm"), std::string::npos);
  EXPECT_NE(assembly.find("vmulps"), std::string::npos);
  EXPECT_EQ(codegen::x86::llvm_text(kernel, Target{}).find("fast"), std::string::npos);
}

}  // namespace
}  // namespace fusejit::test
