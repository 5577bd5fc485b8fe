#include "tests/conformance/engines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "codegen/x86/compile.h"
#include "ir/op.h"
#include "runtime/cpu/kernel_cache.h"

namespace fusejit::testing {

using runtime::Buffer;

namespace {

// Every argument is given up, so results may be written over them.
std::vector<Buffer> run_donated(const ir::Graph& graph, const std::vector<Buffer>& arguments,
                                const runtime::SessionOptions& options) {
  std::vector<Buffer> copies;
  for (const Buffer& argument : arguments) {
    copies.push_back(Buffer::allocate(argument.type()));
    std::memcpy(copies.back().data(), argument.data(), static_cast<std::size_t>(argument.bytes()));
  }
  const auto donated = std::make_unique<bool[]>(copies.size());
  std::fill_n(donated.get(), copies.size(), true);
  return runtime::Session(options).run(graph, copies, {donated.get(), copies.size()});
}

// CUDA kernels on the kernel interpreter, blocks and threads in order and shuffled.
std::string compare_cuda(const ir::Graph& graph, const std::vector<Buffer>& arguments, const std::vector<Buffer>& want,
                         Tolerance tolerance) {
  // With cuDNN in the target, kernels stand in for its calls.
  using scheduler::Rules;
  std::vector<std::pair<const char*, Rules>> ways = {
      {"cuda:sm_90", Rules::all}, {"cuda:sm_90", Rules::none}, {"cuda:sm_90,cudnn=1", Rules::all}};
  const bool convolves = std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Value& value) {
    return ir::op_def(value->op).is_contraction() && !ir::op_def(value->op).matrix;
  });
  if (convolves) ways.emplace_back("cuda:sm_90,cudnn=2", Rules::all);
  for (const auto& [target, rules] : ways) {
    runtime::SessionOptions options{
        .target = Target::parse(target), .engine = runtime::Engine::kernel_interpreter, .rules = rules, .threads = 1};
    const std::vector<Buffer> ascending = runtime::Session(options).run(graph, arguments);
    if (const double e = excess(ascending, want, tolerance); e > 0)
      return fmt::format("kernel interpreter {} rules={}: off by {}", target, name(rules), e);
    options.checks = {.poison = true, .order = runtime::TaskOrder::shuffled};
    if (!same_bits(runtime::Session(options).run(graph, arguments), ascending))
      return fmt::format("kernel interpreter {} rules={}: other bits with blocks and threads shuffled", target,
                         name(rules));
  }
  return "";
}

}  // namespace

std::string compare_engines(const ir::Graph& graph, std::uint64_t seed, Tolerance tolerance, std::int64_t integer_bound,
                            bool kernel_interpreter) {
  return compare_engines(graph, random_arguments(graph, seed, integer_bound), tolerance, kernel_interpreter);
}

std::string compare_engines(const ir::Graph& graph, const std::vector<Buffer>& arguments, Tolerance tolerance,
                            bool kernel_interpreter) {
  const auto run = [&](runtime::SessionOptions options) {
    return runtime::Session(std::move(options)).run(graph, arguments);
  };
  const std::vector<Buffer> want = run({.engine = runtime::Engine::graph_interpreter, .threads = 1});
  const auto kernels = std::make_shared<runtime::KernelCache>();  // the ways to run differ, their machine code does not
  for (const char* name : {"x86:avx512,tasks=7", "x86:avx2,tasks=7", "x86:v2,tasks=7"}) {
    const Target target = Target::parse(name);
    for (const scheduler::Rules rules : {scheduler::Rules::all, scheduler::Rules::none}) {
      const std::string where = fmt::format("{} rules={}", name, scheduler::name(rules));
      const runtime::SessionOptions base{.target = target, .rules = rules, .threads = 1, .kernels = kernels};
      std::vector<Buffer> plain;
      if (codegen::x86::host_supports(target.isa)) {
        plain = run(base);
        if (const double e = excess(plain, want, tolerance); e > 0)
          return fmt::format("compiled {}: off by {} beyond the tolerance", where, e);
        struct Way {
          const char* what;
          runtime::Checks checks;
          int threads;
        };
        for (const Way& way : {Way{"separate values, poisoned", {.separate_values = true, .poison = true}, 2},
                               Way{"poisoned arena", {.poison = true}, 3},
                               Way{"tasks descending", {.order = runtime::TaskOrder::descending}, 1},
                               Way{"tasks shuffled", {.order = runtime::TaskOrder::shuffled}, 8}}) {
          runtime::SessionOptions options = base;
          options.checks = way.checks, options.threads = way.threads;
          if (!same_bits(run(options), plain)) return fmt::format("compiled {}: other bits with {}", where, way.what);
        }
        if (!same_bits(run_donated(graph, arguments, base), plain))
          return fmt::format("compiled {}: other bits with donated arguments", where);
      }
      if (kernel_interpreter) {
        runtime::SessionOptions options = base;
        options.engine = runtime::Engine::kernel_interpreter;
        const std::vector<Buffer> interpreted = run(options);
        if (!plain.empty() && !same_bits(interpreted, plain))
          return fmt::format("kernel interpreter {}: other bits than compiled", where);
        if (const double e = excess(interpreted, want, tolerance); e > 0)
          return fmt::format("kernel interpreter {}: off by {}", where, e);
      }
    }
  }
  return kernel_interpreter ? compare_cuda(graph, arguments, want, tolerance) : "";
}

runtime::SessionOptions options_for(const std::string& target) {
  runtime::SessionOptions options{.target = Target::parse(target), .threads = 1};
  if (!codegen::x86::host_supports(options.target.isa)) options.engine = runtime::Engine::kernel_interpreter;
  return options;
}

std::vector<Buffer> expect_results(const ir::Graph& graph, const std::vector<Buffer>& arguments,
                                   runtime::SessionOptions options, const std::vector<Buffer>& want,
                                   Tolerance tolerance) {
  const std::string where = options.target.str() + "\n" + ir::print(graph);
  std::vector<Buffer> alone = runtime::Session(options).run(graph, arguments);
  EXPECT_LE(excess(alone, want, tolerance), 0) << where;
  options.threads = 3;
  EXPECT_TRUE(same_bits(runtime::Session(options).run(graph, arguments), alone)) << where;
  return alone;
}

}  // namespace fusejit::testing
