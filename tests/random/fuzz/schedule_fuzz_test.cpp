// Damaged schedules, as files for fusejit-dump --schedule may hold: the parser ends with a schedule whose text is
// stable or with a ParseError, and whatever parses is refused by the check with a sentence, or is built, passes
// verification and gives the numbers of the graph interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/random/generate/schedule_trial.h"
#include "tests/support/mutate.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

using scheduler::Extent;
using scheduler::Schedule;
using scheduler::ScheduledLoop;

constexpr std::string_view kGraphs[] = {
    R"(graph @sums(%x: f32[2,16,9,9], %w: f32[24,16,3,3]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,24,9,9]
  %1 = relu(%0) : f32[2,24,9,9]
  %2 = sum(%1) {dim=[0,2,3]} : f32[24]
  return %1, %2
})",
    R"(graph @groups(%x: f32[2,16,9,9], %w: f32[32,4,3,3]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1], groups=4} : f32[2,32,9,9]
  return %0
})",
    R"(graph @phases(%dy: f32[2,8,5,5], %w: f32[8,16,3,3]) {
  %0 = conv2d_input_grad(%dy, %w) {input_size=[11,11], stride=[2,2]} : f32[2,16,11,11]
  return %0
})",
    R"(graph @weights(%x: f32[3,16,9,9], %dy: f32[3,32,9,9]) {
  %0 = conv2d_weight_grad(%x, %dy) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[32,16,3,3]
  return %0
})",
    R"(graph @pairs(%x: f32[4,32,9,9]:nhwc, %dy: f32[4,32,9,9]:nhwc) {
  %0 = conv2d_weight_grad(%x, %dy) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[32,32,3,3]
  return %0
})",
    R"(graph @depthwise(%x: f32[3,32,9,9], %dy: f32[3,32,9,9]) {
  %0 = conv2d_weight_grad(%x, %dy) {kernel_size=[3,3], padding=[1,1,1,1], groups=32} : f32[32,1,3,3]
  return %0
})",
    R"(graph @product(%a: f32[3,20,64], %b: f32[3,64,40]) {
  %0 = matmul(%a, %b) : f32[3,20,40]
  return %0
})",
};

// One to three things of a schedule changed: much of this is still one.
class Alter {
 public:
  explicit Alter(Random& random) : random_(random) {}
  Schedule operator()(Schedule s) {
    for (std::size_t edits = 1 + below(2); edits > 0; --edits) edit(s);
    return s;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.from(0, static_cast<int>(n) - 1)); }
  std::int64_t number() {
    const std::int64_t numbers[] = {1, 2, 3, 4, 5, 8, 9, 16, 32, 64, 65, 96, 4096, 1048577, std::int64_t{1} << 40};
    return numbers[below(std::size(numbers))];
  }
  std::string dim() { return std::string(1, "nkpqrscg"[below(8)]); }
  template <class T>
  void edit(std::vector<T>& list, T one) {
    const std::size_t at = below(list.size() + 1);
    const auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
    if (list.empty() || at == list.size() || below(3) == 0) return static_cast<void>(list.insert(place, one));
    if (below(3) == 0) return static_cast<void>(list.erase(place));
    below(2) == 0 ? std::swap(list[at], list[below(list.size())]) : static_cast<void>(list[at] = one);
  }
  void edit(Extent& extent) {
    below(2) == 0 && !extent.dims.empty() ? extent.count = number() : (extent.dims = {dim()}, extent.count = number());
  }
  void edit(std::vector<Extent>& list) {
    list.empty() || below(3) == 0 ? edit(list, Extent{{dim()}, number()}) : edit(list[below(list.size())]);
  }
  void edit(std::vector<ScheduledLoop>& list) {
    ScheduledLoop loop{{dim()}, below(2) == 0 ? 0 : number()};
    if (!list.empty() && below(2) == 0) {
      loop = list[below(list.size())];
      if (below(2) == 0)
        loop.step = below(2) == 0 ? 0 : number();
      else if (below(3) == 0)
        loop.stride = number();
      else
        edit(loop.dims, dim());
      if (loop.dims.empty()) loop.dims = {dim()};
    }
    edit(list, loop);
  }
  void edit(std::string& panel) {
    const std::string after[] = {"", Schedule::kTask, dim()};
    panel = after[below(3)];
  }
  void edit(Schedule& s) {
    switch (below(17)) {
      case 0:
        s.lanes = 1 << below(7);
        break;
      case 1:
        s.vectors = static_cast<int>(1 + below(8));
        break;
      case 2:
        s.vector = dim();
        break;
      case 3:
        return edit(s.tile);
      case 4:
        return edit(s.unroll);
      case 5:
        return edit(s.tasks);
      case 6:
        return edit(s.outer);
      case 7:
        return edit(s.inner);
      case 8:
        s.pack_b = below(3) == 0 ? 0 : below(2) == 0 ? number() : s.block() * static_cast<std::int64_t>(1 + below(4));
        break;
      case 9:
        s.combine.empty() || below(2) == 0 ? s.combine = {dim()} : (s.combine.clear(), s.combine);
        break;
      case 10:
        return edit(s.flush);
      case 11:
        s.dot = below(3) == 0 ? "" : dim();
        s.matrix = below(3) == 0 ? s.matrix : below(2) == 0 ? 0 : 2 * number();
        break;
      case 12:
        return edit(s.panel_a);
      case 13:
        return edit(s.panel_b);
      case 14:
        s.stream = !s.stream;
        break;
      case 15:
        s.registers = below(2) == 0 ? number() : static_cast<std::int64_t>(below(300));
        break;
      default:
        return edit(s.fetch);
    }
  }
  Random& random_;
};

TEST(ScheduleFuzz, WhatParsesIsRefusedOrRight) {
  Random random(29);
  std::mt19937 bytes(29);
  int built = 0, refused = 0, damaged = 0;
  const int rounds = is_nightly() ? 5000 : 40;
  for (const std::string_view source : kGraphs) {
    for (const char* name : {"x86:avx512,tasks=7", "x86:avx2,tasks=5,l1=1k,l2=4k,l3=1k",
                             "x86:avx512bf16,tasks=5,dot2=1", "x86:amx,tasks=5", "cuda:sm_90"}) {
      const Target target = Target::parse(name);
      std::string anchor(source);
      const bool narrow = target.dot2_is_faster || target.isa == Isa::x86_amx;
      for (std::size_t at = 0; narrow && (at = anchor.find("f32[", at)) != std::string::npos; at += 5)
        anchor.replace(at, 3, "bf16");
      const ir::Graph graph = ir::parse_graph(anchor);
      const std::vector<runtime::Buffer> arguments = arguments_of(graph, random, true),
                                         want = on_graph_interpreter(graph, arguments);
      const auto [of, chosen] = planned(graph, target, [](const auto&, const auto&, const Schedule& schedule) {
                                  return schedule;
                                }).drawn.at(0);
      for (int i = 0; i < rounds; ++i) {
        const std::string text = i % 4 == 0 ? mutated(print(chosen), bytes) : print(Alter(random)(chosen));
        SCOPED_TRACE(fmt::format("{} on {}: {}", graph.name(), name, text));
        Schedule other;
        try {
          other = scheduler::parse_schedule(text);
        } catch (const ParseError&) {
          ++damaged;
          continue;
        }
        try {
          const Trial trial = planned(graph, target, [&](const auto&, const auto& contraction, const auto& otherwise) {
            return str(contraction) == str(of) ? other : otherwise;
          });
          ++(trial.legal ? built : refused);
          if (trial.legal) {
            EXPECT_EQ(difference(graph, interpreted(graph, trial.plan, arguments), want), "");
          }
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  }
  std::printf("%d built, %d refused, %d damaged\n", built, refused, damaged);
  EXPECT_GT(built, 100);
  EXPECT_GT(refused, 100);
  EXPECT_GT(damaged, 100);
}

}  // namespace
}  // namespace fusejit::testing
