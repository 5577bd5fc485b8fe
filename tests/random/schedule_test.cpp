// Any legal schedule gives the right numbers: random contractions times random legal schedules with epilogues and sums,
// on whole numbers, where every order of a sum has the same result, against the graph interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "ir/kernel/interp/interp.h"
#include "runtime/cpu/executor.h"
#include "runtime/session.h"
#include "scheduler/make_plan.h"

namespace fusejit::testing {
namespace {

using ir::Contraction;
using ir::Graph;
using runtime::Buffer;
using scheduler::Extent;
using scheduler::Schedule;
using scheduler::ScheduledLoop;

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  std::int64_t from(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(bits_);
  }
  bool chance(int percent) { return from(1, 100) <= percent; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(from(0, static_cast<std::int64_t>(list.size()) - 1))];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<std::size_t>(from(0, static_cast<std::int64_t>(i) - 1))]);
  }

 private:
  std::mt19937_64 bits_;
};

// What follows an anchor whose result is %0 of `type`: a bias, a residual, a relu, sums over everything but channels.
std::string finish(Random& random, const std::string& type, std::int64_t channels, bool image) {
  std::string text, last = "%0";
  int next = 1;
  const auto op = [&](const std::string& call, const std::string& of_type) {
    text += fmt::format("  %{} = {} : {}\n", next, call, of_type);
    return "%" + std::to_string(next++);
  };
  if (image && random.chance(40)) last = op(fmt::format("bias_add({}, %bias)", last), type);
  if (random.chance(40)) last = op(fmt::format("add({}, %side)", last), type);
  if (random.chance(40)) last = op(fmt::format("relu({})", last), type);
  std::string results = last;
  if (image && random.chance(40)) {
    const std::string sum = op(fmt::format("sum({}) {{dim=[0,2,3]}}", last), fmt::format("f32[{}]", channels));
    results += ", " + sum;
  }
  return text + "  return " + results + "\n}";
}

std::string layout(Random& random) { return random.chance(60) ? ":nhwc" : ""; }

// A convolution, one of its gradients, or a matrix product, small and odd.
std::string random_anchor(Random& random) {
  const std::int64_t n = random.from(1, 3), groups = random.of<std::int64_t>({1, 1, 2, 3, 20}),
                     c = groups == 20 ? 1 : random.from(1, 9),
                     k = groups == 20 ? 1 : random.from(1, 40) / (groups > 1 ? 4 : 1) + 1, kernel = random.from(1, 4),
                     width = random.from(1, 3), stride = random.from(1, 2), dilation = random.from(1, 2),
                     pad = random.from(0, 2), h = random.from(7, 10), w = random.from(7, 17);
  const std::int64_t p = (h + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1,
                     q = (w + 2 * pad - dilation * (width - 1) - 1) / stride + 1;
  const std::string attrs = fmt::format("stride=[{0},{0}], padding=[{1},{1},{1},{1}], dilation=[{2},{2}], groups={3}",
                                        stride, pad, dilation, groups);
  const std::string x = fmt::format("f32[{},{},{},{}]{}", n, c * groups, h, w, layout(random)),
                    y = fmt::format("f32[{},{},{},{}]{}", n, k * groups, p, q, layout(random)),
                    weight = fmt::format("f32[{},{},{},{}]{}", k * groups, c, kernel, width, layout(random));
  const auto graph = [](const std::string& a, const std::string& b, const std::string& result, std::int64_t channels) {
    return fmt::format("graph @g(%a: {}, %b: {}, %side: {}, %bias: f32[{}]) {{\n", a, b, result, channels);
  };
  switch (random.from(0, 4)) {
    case 0:
      return graph(x, weight, y, k * groups) + fmt::format("  %0 = conv2d(%a, %b) {{{}}} : {}\n", attrs, y) +
             finish(random, y, k * groups, true);
    case 1:
      return graph(y, weight, x, c * groups) +
             fmt::format("  %0 = conv2d_input_grad(%a, %b) {{input_size=[{},{}], {}}} : {}\n", h, w, attrs, x) +
             finish(random, x, c * groups, true);
    case 2:
      return graph(x, y, weight, 1) +
             fmt::format("  %0 = conv2d_weight_grad(%a, %b) {{kernel_size=[{},{}], {}}} : {}\n", kernel, width, attrs,
                         weight) +
             finish(random, weight, 1, false);
    case 3: {
      const std::string a = fmt::format("f32[{},{},{}]", n, h, c), b = fmt::format("f32[{},{}]", k, c),
                        result = fmt::format("f32[{},{},{}]", n, h, k);
      return graph(a, b, result, 1) + fmt::format("  %0 = linear(%a, %b) : {}\n", result) +
             finish(random, result, 1, false);
    }
    default: {
      const std::string batch = random.chance(50) ? fmt::format("{},", n) : "";
      const std::string a = fmt::format("f32[{},{},{}]", n, h, c), b = fmt::format("f32[{}{},{}]", batch, c, k),
                        result = fmt::format("f32[{},{},{}]", n, h, k);
      return graph(a, b, result, 1) + fmt::format("  %0 = matmul(%a, %b) : {}\n", result) +
             finish(random, result, 1, false);
    }
  }
}

// Loops, tiles and vectors drawn without much thought; most are legal. What cannot be drawn: a vector along a dim that
// the chosen schedule does not run its vectors along has other lanes than the kernel's sums, so lanes stay.
Schedule random_schedule(Random& random, const Contraction& c, const Schedule& chosen) {
  Schedule s;
  s.vector = chosen.vector, s.lanes = chosen.lanes;
  std::vector<std::string> parallel, reduced;
  for (const ir::ContractionDim& dim : c.dims)
    if (dim.name != s.vector) (dim.reduced ? reduced : parallel).push_back(dim.name);
  const auto extent = [&](const std::string& name) { return c.dims[static_cast<std::size_t>(c.find(name))].extent; };
  s.vectors = static_cast<int>(random.from(1, std::min<std::int64_t>(3, (extent(s.vector) + s.lanes - 1) / s.lanes)));
  std::int64_t room = 12 / s.vectors;
  std::vector<std::string> held;
  for (const std::string& name : parallel) {
    const std::int64_t count = random.from(2, 6);
    if (!random.chance(40) || count > room || c.b.mentions(c.find(name))) continue;
    s.tile.push_back({{name}, count}), room /= count;
  }
  for (const std::string& name : reduced)
    if (random.chance(30)) s.unroll.push_back({{name}, random.from(2, 3)});
  const auto sum = [&](const std::string& name) { return c.dims[static_cast<std::size_t>(c.find(name))].reduced; };
  // Where the last loop of each dim stands, and maybe a loop of blocks outside of it.
  std::vector<ScheduledLoop> sums;
  std::vector<std::string> all = parallel;
  all.push_back(s.vector);
  random.shuffle(all);
  bool cut = false;
  const auto blocks = [&](const std::string& name) {
    if (!random.chance(30) || extent(name) < 2) return;
    const std::int64_t step = s.held(name) * random.from(1, 3);
    if (s.tasks.size() < 2 && random.chance(50)) {
      s.tasks.push_back({{name}, step});
    } else {
      s.outer.push_back({{name}, step});
    }
    cut |= sum(name);
  };
  for (const std::string& name : all) {
    blocks(name);
    const bool vector = name == s.vector;
    const int where = static_cast<int>(random.from(0, 2));
    if (where == 0 && s.tasks.size() < 3 && s.held(name) == 1) {
      s.tasks.push_back({{name}, 0});
    } else if (where == 1 || vector) {
      s.outer.push_back({{name}, 0});
    } else {
      s.inner.push_back({{name}, 0});
    }
  }
  random.shuffle(reduced);
  for (const std::string& name : reduced) {
    blocks(name);
    if (random.chance(15) && s.held(name) == 1) {
      s.outer.push_back({{name}, 0}), cut = true;
    } else {
      s.inner.push_back({{name}, 0});
    }
  }
  if (cut || random.chance(15)) {
    std::vector<std::string> lanes{s.vector};
    for (const std::string& name : parallel)
      if (extent(name) > 1) lanes.push_back(name);
    s.combine = {random.of(lanes)};
  }
  if (chosen.pack_b > 0 && random.chance(70)) s.pack_b = s.block();
  if (random.chance(20)) s.fetch = {{random.of(all)}, 1};
  return s;
}

// On the kernel interpreter, tasks in any order, nothing defined before it is written.
std::vector<Buffer> run(const Graph& graph, const scheduler::Plan& plan, const std::vector<Buffer>& arguments) {
  runtime::Workers workers(1);
  const runtime::Checks checks{.poison = true, .order = ir::TaskOrder::shuffled, .kernel_interpreter = true};
  runtime::CpuExecutor executor(std::make_shared<const scheduler::Plan>(plan), {}, workers, checks);
  return executor.run(graph, arguments).results;
}

TEST(RandomSchedules, GiveTheNumbersOfTheGraphInterpreter) {
  const int wanted = std::getenv("FUSEJIT_NIGHTLY") != nullptr ? 20000 : 2000;
  int done = 0, refused = 0;
  for (std::uint64_t seed = 1; done < wanted; ++seed) {
    ASSERT_LT(refused, 20 * wanted) << "few schedules are legal";
    Random random(seed);
    const std::string text = random_anchor(random);
    const Graph graph = ir::parse_graph(text);
    std::string tried;
    bool legal = true;
    const bool sums = text.find(" sum(") != std::string::npos;
    scheduler::PlanOptions options;
    options.target = Target::parse(random.chance(50) ? "x86:avx512,tasks=7" : "x86:avx2,tasks=5,l1=1k,l2=4k");
    options.fall_back = false;
    options.reschedule = [&](const Contraction& contraction, const Schedule& chosen) {
      Schedule schedule = random_schedule(random, contraction, chosen);
      const std::string broken = check(contraction, schedule, options.target, sums);
      tried += print(schedule) + (broken.empty() ? "" : " (" + broken + ")") + "\n  of " + str(contraction) + "\n";
      EXPECT_EQ(scheduler::parse_schedule(print(schedule)), schedule);
      legal = legal && broken.empty();
      return broken.empty() ? schedule : chosen;
    };
    scheduler::Plan plan;
    try {
      plan = scheduler::make_plan(graph, options);
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what() << "\n" << text << "\n" << tried;
    }
    if (!legal) {
      ++refused;
      continue;
    }
    ++done;
    std::vector<Buffer> arguments;
    for (const ir::Value& parameter : graph.parameters()) {
      arguments.push_back(Buffer::allocate(parameter.type()));
      const auto elements = static_cast<std::size_t>(parameter.type().elements());
      for (std::size_t i = 0; i < elements; ++i) {  // whole numbers: every order of a sum is exact
        const auto number = static_cast<float>(random.from(-3, 3));
        std::memcpy(static_cast<std::byte*>(arguments.back().data()) + 4 * i, &number, 4);
      }
    }
    const std::vector<Buffer> want =
        runtime::Session({.engine = runtime::Engine::graph_interpreter, .threads = 1}).run(graph, arguments);
    std::vector<Buffer> got;
    try {
      got = run(graph, plan, arguments);
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what() << "\n" << text << "\n" << tried;
    }
    for (std::size_t r = 0; r < got.size(); ++r) {
      const std::size_t elements = static_cast<std::size_t>(want[r].bytes()) / 4;
      for (std::size_t i = 0; i < elements; ++i) {
        float is = 0, should = 0;
        std::memcpy(&is, static_cast<const std::byte*>(got[r].data()) + 4 * i, 4);
        std::memcpy(&should, static_cast<const std::byte*>(want[r].data()) + 4 * i, 4);
        ASSERT_EQ(is, should) << "seed " << seed << ", element " << i << " of " << elements << " of result " << r
                              << "\n"
                              << text << "\n"
                              << tried << ir::print(*plan.steps.back().kernel);
      }
    }
  }
  std::printf("%d legal, %d not\n", done, refused);
}

}  // namespace
}  // namespace fusejit::testing
