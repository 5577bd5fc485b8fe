// Random graphs on every engine: the graph interpreter, the kernel interpreter on plans, machine code with and without
// fusion. A failure prints a graph as small as shrinking makes it, to be kept as a case of tests/conformance.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "codegen/x86/compile.h"
#include "runtime/session.h"
#include "tests/random/generate/graph_generator.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using runtime::Buffer;

// 100 by day, 1,000 by night; FUSEJIT_RANDOM_GRAPHS asks for another number.
std::uint64_t graph_count() {
  const char* wanted = std::getenv("FUSEJIT_RANDOM_GRAPHS");
  if (wanted != nullptr) return std::strtoull(wanted, nullptr, 10);
  return testing::is_nightly() ? 1000 : 100;
}

// Random graphs have no nhwc parameters or results, so both orders of elements are one.
std::vector<Buffer> to_buffers(const std::vector<ir::Array>& arrays) {
  std::vector<Buffer> buffers;
  for (const ir::Array& array : arrays) {
    buffers.push_back(Buffer::allocate(array.type));
    std::memcpy(buffers.back().data(), array.bytes.data(), array.bytes.size());
  }
  return buffers;
}

std::vector<ir::Array> run(const ir::Graph& graph, const std::vector<ir::Array>& arguments,
                           runtime::SessionOptions options) {
  std::vector<ir::Array> results;
  for (const Buffer& buffer : runtime::Session(std::move(options)).run(graph, to_buffers(arguments))) {
    results.emplace_back(buffer.type());
    std::memcpy(results.back().bytes.data(), buffer.data(), results.back().bytes.size());
  }
  return results;
}

// Each engine against the interpreter, and the two that run the same kernels bit for bit.
std::string engines_disagree(const ir::Graph& graph, std::uint64_t seed) {
  const auto arguments = graph_arguments(graph, seed);
  const auto want = ir::interpret(graph, arguments);
  const double relative = 3e-5;
  for (const char* name : {"x86:avx512,tasks=7", "x86:avx2,l1=1k,l2=4k,l3=16k,tasks=5", "x86:v2,tasks=3"}) {
    const Target target = Target::parse(name);
    if (!codegen::x86::host_supports(target.isa)) continue;
    for (const scheduler::Rules rules : {scheduler::Rules::all, scheduler::Rules::none}) {
      const std::string where = fmt::format("{} rules={}: ", name, scheduler::name(rules));
      const auto compiled = run(graph, arguments, {.target = target, .rules = rules, .threads = 2});
      if (const std::string wrong = disagreement(compiled, want, relative); !wrong.empty()) return where + wrong;
      const auto interpreted =
          run(graph, arguments,
              {.target = target, .engine = runtime::Engine::kernel_interpreter, .rules = rules, .threads = 1});
      for (std::size_t r = 0; r < compiled.size(); ++r)
        if (disagreement({compiled[r]}, {interpreted[r]}, 0) != "")
          return where +
                 "machine code and kernel interpreter differ: " + disagreement({compiled[r]}, {interpreted[r]}, 0);
    }
  }
  return "";
}

std::string outcome(const ir::Graph& graph, std::uint64_t seed) {
  try {
    return engines_disagree(graph, seed);
  } catch (const UnsupportedError&) {
    return "";  // an op that no kernel says yet
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(RandomGraphs, EnginesAgree) {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= graph_count() && failures < 3; ++seed) {
    const ir::Graph graph = random_graph(seed, {});
    if (outcome(graph, seed).empty()) continue;
    ++failures;
    const ir::Graph small = shrink(graph, [&](const ir::Graph& g) { return !outcome(g, seed).empty(); });
    ADD_FAILURE() << "seed " << seed << ": " << outcome(small, seed) << "\n" << ir::print(small);
  }
}

}  // namespace
}  // namespace fusejit::testing
