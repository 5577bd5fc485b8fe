// Any legal schedule of a group without an anchor gives the right numbers: random point-wise groups, reductions and
// pooling gradients times random legal schedules, on whole numbers, where every order of a sum has the same result,
// against the graph interpreter; now and then as machine code.
#include "scheduler/schedule/domain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codegen/x86/compile.h"
#include "ir/base/scalar.h"
#include "scheduler/make_plan.h"
#include "tests/random/generate/schedule_trial.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using scheduler::Domain;
using scheduler::DomainAxis;
using scheduler::Extent;
using scheduler::Schedule;
using scheduler::ScheduledLoop;

// An expression of %x and %y, and what it is reduced to.
std::string random_reduction(Random& random) {
  const bool image = random.chance(60);
  const int rank = image ? 4 : static_cast<int>(random.from(1, 3));
  std::vector<std::int64_t> shape;
  for (int d = 0; d < rank; ++d) shape.push_back(random.from(1, rank == 1 ? 900 : rank == 2 ? 70 : 11));
  if (random.chance(40)) shape.back() = random.from(30, 150);
  if (image && random.chance(50)) std::swap(shape[1], shape[3]);
  const std::string layout = image && random.chance(60) ? ":nhwc" : "",
                    type = fmt::format("f32[{}]{}", fmt::join(shape, ","), layout);
  std::string text = fmt::format("graph @g(%x: {}, %y: {}) {{\n", type, type), last = "%x", results;
  int next = 0;
  const auto op = [&](const std::string& call, const std::string& of_type) {
    text += fmt::format("  %{} = {} : {}\n", next, call, of_type);
    return "%" + std::to_string(next++);
  };
  if (random.chance(50)) last = op(fmt::format("add({}, %y)", last), type);
  if (random.chance(50)) last = op(fmt::format("relu({})", last), type);
  if (random.chance(30) && last != "%x") results = last;
  std::vector<int> dims;
  for (int d = 0; d < rank; ++d)
    if (random.chance(60)) dims.push_back(d);
  const auto reduced_to = [&](const std::vector<int>& which) {
    std::vector<std::int64_t> left;
    for (int d = 0; d < rank; ++d)
      if (std::find(which.begin(), which.end(), d) == which.end()) left.push_back(shape[static_cast<std::size_t>(d)]);
    return fmt::format("[{}]", fmt::join(left, ","));
  };
  const auto add = [&](const std::string& result) { results += (results.empty() ? "" : ", ") + result; };
  if (random.chance(25)) {
    const int dim = static_cast<int>(random.from(0, rank - 1));
    add(op(fmt::format("argmax({}) {{dim={}}}", last, dim), "i64" + reduced_to({dim})));
  } else if (!dims.empty()) {
    const std::string list = fmt::format("{{dim=[{}]}}", fmt::join(dims, ",")), of = "f32" + reduced_to(dims);
    if (random.chance(70)) add(op(fmt::format("sum({}) {}", last, list), of));
    if (random.chance(30)) add(op(fmt::format("amax({}) {}", last, list), of));
    if (random.chance(30)) add(op(fmt::format("var({}) {}", last, list), of));
  }
  if (results.empty()) add(last == "%x" ? op("neg(%x)", type) : last);
  return text + "  return " + results + "\n}";
}

// Values of which some go to all of an image's channels, or are read at other places.
std::string random_pointwise(Random& random) {
  const std::int64_t n = random.from(1, 4), c = random.from(1, 70), h = random.from(1, 9), w = random.from(1, 9);
  const std::string layout = random.chance(60) ? ":nhwc" : "",
                    type = fmt::format("f32[{},{},{},{}]{}", n, c, h, w, layout);
  std::string text = fmt::format("graph @g(%x: {}, %b: f32[{}]) {{\n", type, c);
  switch (random.from(0, 2)) {
    case 0:
      return text + fmt::format("  %0 = neg(%x) : {}\n  return %0\n}}", type);
    case 1:
      return text + fmt::format("  %0 = bias_add(%x, %b) : {0}\n  %1 = relu(%0) : {0}\n  return %0, %1\n}}", type);
    default:
      return text + fmt::format(
                        "  %0 = max_pool2d(%x) {{kernel_size=[2,2], stride=[1,1], padding=[1,1,1,1]}} : "
                        "f32[{},{},{},{}]{}\n  return %0\n}}",
                        n, c, h + 1, w + 1, layout);
  }
}

// The gradient of a max pool, and sums of it.
std::string random_pooling(Random& random) {
  const bool tiles = random.chance(50);
  const std::int64_t n = random.from(1, 3), c = random.from(1, 80), stride = tiles ? 2 : random.from(1, 2),
                     kernel = tiles ? 2 : 3, pad = tiles ? 0 : random.from(0, 1), h = random.from(2, 9) * 2,
                     w = random.from(2, 6) * 2;
  const auto out = [&](std::int64_t in) { return (in + 2 * pad - kernel) / stride + 1; };
  const std::string x = fmt::format("f32[{},{},{},{}]:nhwc", n, c, h, w),
                    dy = fmt::format("f32[{},{},{},{}]:nhwc", n, c, out(h), out(w));
  std::string text = fmt::format("graph @g(%x: {}, %dy: {}) {{\n", x, dy) +
                     fmt::format(
                         "  %0 = max_pool2d_grad(%x, %dy) {{kernel_size=[{0},{0}], stride=[{1},{1}], "
                         "padding=[{2},{2},{2},{2}]}} : {3}\n",
                         kernel, stride, pad, x);
  const bool images = random.chance(20);  // apart
  const std::string sum = fmt::format("  %1 = sum(%0) {{dim=[{}2,3]}} : f32[{}{}]\n", images ? "" : "0,",
                                      images ? fmt::format("{},", n) : "", c);
  switch (random.from(0, 2)) {
    case 0:
      return text + "  return %0\n}";
    case 1:
      return text + sum + "  return %1\n}";
    default:
      return text + sum + "  return %0, %1\n}";
  }
}

std::string random_group(Random& random) {
  switch (random.from(0, 3)) {
    case 0:
      return random_pointwise(random);
    case 1:
      return random_pooling(random);
    default:
      return random_reduction(random);
  }
}

// Drawn without much thought; most of it is legal.
Schedule random_domain_schedule(Random& random, const Domain& d, const Schedule& chosen) {
  if (d.axes.empty()) return chosen;
  Schedule s;
  const DomainAxis& last = d.axes.back();
  const bool sums = !d.sums.empty(), lanes_kept = sums && !last.reduced;
  s.vector = last.name, s.lanes = random.chance(60) ? chosen.lanes : 1 << random.from(1, 4);
  const std::int64_t whole = last.extent / s.lanes;
  s.vectors = static_cast<int>(random.from(1, std::clamp<std::int64_t>(whole, 1, 4)));
  const bool maxima = !d.maxima_rows.empty() && random.chance(70);
  if (!d.windows.empty() && random.chance(60)) {
    s.unroll = d.windows;
  } else if (sums && last.reduced && random.chance(50)) {
    s.unroll = {{{last.name}, random.from(1, std::clamp<std::int64_t>(whole / s.vectors, 1, 4))}};
  } else if (lanes_kept && !maxima && random.chance(30)) {
    for (const DomainAxis& axis : d.axes)
      if (axis.reduced && axis.extent % 2 == 0 && random.chance(50)) s.unroll.push_back({{axis.name}, 2});
  }
  const auto unit = [&](const DomainAxis& axis) {
    if (axis.name == s.vector) return s.block();
    for (const Extent& extent : s.unroll)
      if (extent.dims[0] == axis.name) return extent.count;
    return std::int64_t{1};
  };
  std::vector<const DomainAxis*> axes;
  for (const DomainAxis& axis : d.axes) axes.push_back(&axis);
  if (random.chance(30)) random.shuffle(axes);
  std::vector<ScheduledLoop> of_lanes;
  for (const DomainAxis* axis : axes) {
    auto& list = sums && !axis->reduced ? s.outer : s.inner;
    bool left = true;
    if (s.tasks.size() < 3 && random.chance(35)) {
      const std::int64_t units = axis->extent / unit(*axis), step = random.from(1, std::max<std::int64_t>(1, units));
      const bool single = (step == 1 && axis->name != s.vector) || (lanes_kept && axis->name == s.vector);
      s.tasks.push_back({{axis->name}, single ? 0 : step * unit(*axis)});
      left = !single;
    }
    if (left) (axis == &last ? of_lanes : list).push_back({{axis->name}});
  }
  auto& innermost = lanes_kept ? s.outer : s.inner;
  const bool loops_inside = !sums && !maxima && random.chance(25);
  innermost.insert(loops_inside ? innermost.begin() : innermost.end(), of_lanes.begin(), of_lanes.end());
  if (random.chance(40)) random.shuffle(s.tasks);
  if (maxima) s.panel_maxima = d.maxima_rows;
  if (sums && last.reduced && random.chance(50))
    s.flush = {{last.name}, s.block() * (s.unroll.empty() ? 1 : s.unroll[0].count) * random.from(1, 3)};
  if (sums && random.chance(20))
    s.fetch = {{d.axes[static_cast<std::size_t>(random.from(0, static_cast<std::int64_t>(d.axes.size()) - 1))].name},
               random.from(1, 100)};
  if (const std::string& rows = rows_of_windows(d, s); !rows.empty())
    s.fetch = random.chance(50) ? Extent{{rows}, random.from(1, 3)} : Extent{};
  s.stream = random.chance(20);
  return s;
}

// Without sums: a block for each row, whose threads take its vectors in turn.
Schedule random_rows(Random& random, const Domain& d, Schedule s) {
  const auto cut = static_cast<std::size_t>(random.from(1, static_cast<std::int64_t>(d.axes.size()) - 1));
  std::vector<std::string> blocks, row;
  for (std::size_t a = 0; a < d.axes.size(); ++a) (a < cut ? blocks : row).push_back(d.axes[a].name);
  s.tasks = {{blocks, 0, 0, ir::Binding::grid_x}};
  s.inner = {{row, 0, std::int64_t{1} << random.from(1, 6), ir::Binding::block_x}, {row}};
  return s;
}

// Blocks, threads and parts of what is summed up, of any size.
Schedule random_cuda_domain_schedule(Random& random, const Domain& d, const Schedule& chosen) {
  using ir::Binding;
  if (d.axes.empty()) return chosen;
  Schedule s;
  const DomainAxis& last = d.axes.back();
  s.vector = last.name, s.lanes = random.chance(60) ? chosen.lanes : 1 << random.from(0, 2);
  std::vector<std::string> kept, reduced;
  std::int64_t outputs = 1, terms = 1;
  for (const DomainAxis& axis : d.axes) {
    const bool alone = d.sums.empty() && &axis != &last && random.chance(25);  // a thread's loop
    if (alone) s.inner.push_back({{axis.name}});
    if (!alone) (axis.reduced ? reduced : kept).push_back(axis.name);
    const std::int64_t count = (axis.extent + s.lanes - 1) / (&axis == &last ? s.lanes : 1);
    if (!alone) (axis.reduced ? terms : outputs) *= std::max<std::int64_t>(1, &axis == &last ? count : axis.extent);
  }
  if (d.sums.empty() && d.axes.size() > 1 && random.chance(25)) return random_rows(random, d, s);
  if (random.chance(30)) random.shuffle(s.inner);
  const auto unit = [&](const std::vector<std::string>& axes) {
    return axes == std::vector{s.vector} ? std::int64_t{s.lanes} : std::int64_t{1};
  };
  const std::int64_t threads = d.sums.empty() || random.chance(30) ? 1 : std::int64_t{1} << random.from(1, 6);
  if (!d.sums.empty() && !reduced.empty() && random.chance(40))
    s.tasks.push_back({reduced, unit(reduced) * threads * random.from(1, terms / threads + 1), 0, Binding::grid_y});
  const bool wide = !kept.empty() && (d.sums.empty() || random.chance(60));
  if (!kept.empty()) {
    std::int64_t width = random.from(1, 64);
    if (threads > 1)
      while (outputs % width != 0) --width;
    s.tasks.push_back({kept, wide ? width * unit(kept) : 0, 0, Binding::grid_x});
  }
  if (wide) s.tasks.push_back({kept, 0, 0, Binding::block_x});
  if (threads > 1 && !reduced.empty())
    s.inner.push_back({reduced, 0, threads, wide || random.chance(50) ? Binding::block_y : Binding::block_x});
  if (!reduced.empty()) s.inner.push_back({reduced});
  return s;
}

// Variances are rounded in the order of their parts; all else is exact.
std::string far_apart(const ir::Graph& graph, const std::vector<runtime::Buffer>& got,
                      const std::vector<runtime::Buffer>& want) {
  for (std::size_t r = 0; r < want.size(); ++r) {
    const Type& type = graph.results()[r].type();
    const double off = graph.results()[r]->op == ir::Op::var ? 1e-6 : 0;
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      const double is = ir::load_element(got[r].data(), type.dtype, i).as_double(),
                   should = ir::load_element(want[r].data(), type.dtype, i).as_double();
      if (is == should || (std::isnan(is) && std::isnan(should)) || std::abs(is - should) <= off * std::abs(should))
        continue;
      return fmt::format("element {} of result {} is {}, not {}", i, r, is, should);
    }
  }
  return "";
}

using Draw = Schedule (*)(Random&, const Domain&, const Schedule&);
void expect_right_numbers(int wanted, const std::vector<const char*>& targets, Draw draw) {
  int done = 0, refused = 0;
  for (std::uint64_t seed = 1; done < wanted; ++seed) {
    ASSERT_LT(refused, 10 * wanted) << "few schedules are legal";
    Random random(seed);
    const Target target = Target::parse(random.of(targets));
    const std::string text = random_group(random);
    SCOPED_TRACE(fmt::format("seed {} on {}\n{}", seed, target.str(), text));
    const ir::Graph graph = ir::parse_graph(text);
    std::string tried;
    scheduler::PlanOptions options;
    options.target = target, options.fall_back = false;
    options.reschedule.domain = [&](const std::string&, const Domain& domain, const Schedule& chosen) {
      const Schedule schedule = draw(random, domain, chosen);
      tried += fmt::format("{}\n  of {}\n", print(schedule), str(domain));
      EXPECT_EQ(scheduler::parse_schedule(print(schedule)), schedule);
      return schedule;
    };
    try {
      const scheduler::Plan plan = scheduler::make_plan(graph, options);
      ++done;
      const std::vector<runtime::Buffer> arguments = arguments_of(graph, random, true),
                                         want = on_graph_interpreter(graph, arguments);
      ASSERT_EQ(far_apart(graph, interpreted(graph, plan, arguments), want), "")
          << tried << ir::print(*plan.steps.back().kernel);
      if (done % 20 == 0 && target.isa != Isa::cuda && codegen::x86::host_supports(target.isa)) {
        ASSERT_EQ(far_apart(graph, as_machine_code(graph, plan, arguments, 3), want), "") << tried;
      }
    } catch (const UserError& error) {
      ASSERT_NE(std::string(error.what()).find(" is no schedule of "), std::string::npos) << error.what();
      ++refused;
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\n" << tried;
    }
  }
  std::printf("%d legal, %d not\n", done, refused);
}

const std::vector<const char*> kDomainProcessors = {"x86:avx512,tasks=7", "x86:avx2,tasks=5,l1=1k,l2=4k,l3=1k",
                                                    "x86:v2,tasks=4", "x86:avx2,tasks=3"},
                               kDevices = {"cuda:sm_90"};

TEST(RandomDomains, LegalSchedulesGiveTheNumbersOfTheGraphInterpreter) {
  expect_right_numbers(is_nightly() ? 20000 : 1500, kDomainProcessors, random_domain_schedule);
}

TEST(RandomDomains, ForDevicesGiveTheNumbersOfTheGraphInterpreter) {
  expect_right_numbers(is_nightly() ? 10000 : 500, kDevices, random_cuda_domain_schedule);
}

TEST(RandomDomains, ChosenOnesGiveTheNumbersOfTheGraphInterpreter) {
  const auto chosen_one = [](Random&, const Domain&, const Schedule& chosen) { return chosen; };
  expect_right_numbers(is_nightly() ? 5000 : 200, kDomainProcessors, chosen_one);
  expect_right_numbers(is_nightly() ? 5000 : 200, kDevices, chosen_one);
}

}  // namespace
}  // namespace fusejit::testing
