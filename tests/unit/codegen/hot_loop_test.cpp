// The hot loops of the register tiles keep their accumulators in registers: no stack access in the assembly, no scalar
// remainder. Those of every convolution of a training step of ResNet-50 are looked at, in f32 and bf16.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "frontend/models/named.h"
#include "ir/graph.h"
#include "ir/kernel/tile_nest.h"
#include "scheduler/make_plan.h"
#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

struct Loop {
  std::vector<std::string> lines;
  int count(const std::string& word) const {
    int n = 0;
    for (const std::string& line : lines) n += line.find(word) != std::string::npos;
    return n;
  }
  // Products of the vectors of a tile, "vfmadd231ps" or "vdpbf16ps", or of single floats where `of` is "ss".
  int products(const std::string& of) const {
    int n = 0;
    for (const std::string& line : lines) {
      const bool multiplies = line.starts_with("\tvfmadd") || line.starts_with("\tvdpbf16");
      n += multiplies && line.find(of + "\t") != std::string::npos;
    }
    return n;
  }
};

std::string without_comment(const std::string& line) { return line.substr(0, line.find('#')); }

// Blocks of lines between labels and jumps, and which ones follow each.
struct Flow {
  std::vector<std::vector<std::string>> blocks;
  std::vector<std::vector<std::size_t>> next;
};
Flow flow_of(const std::string& assembly) {
  Flow flow;
  std::map<std::string, std::size_t> labels;
  std::vector<std::string> jumps;  // of each block: where to, or nothing
  std::vector<bool> falls;         // whether the next block follows
  bool ended = true;               // by a jump: the next line begins a block
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line);) {
    line = without_comment(line);
    const std::size_t colon = line.find(':'), target = line.find("\t.LBB");
    const bool label = line.rfind(".LBB", 0) == 0 && colon != std::string::npos;
    if (ended || label) flow.blocks.emplace_back(), jumps.emplace_back(), falls.push_back(true);
    if (label) labels[line.substr(0, colon)] = flow.blocks.size() - 1;
    flow.blocks.back().push_back(line);
    const bool returns = line.rfind("\tret", 0) == 0,
               jumps_to = line.rfind("\tj", 0) == 0 && target != std::string::npos;
    ended = returns || jumps_to;
    if (ended) falls.back() = !returns && line.rfind("\tjmp", 0) != 0;
    if (!jumps_to) continue;
    jumps.back() = line.substr(target + 1);
    jumps.back().erase(jumps.back().find_last_not_of(" \t") + 1);
  }
  flow.next.resize(flow.blocks.size());
  for (std::size_t i = 0; i < flow.blocks.size(); ++i) {
    if (falls[i] && i + 1 < flow.blocks.size()) flow.next[i].push_back(i + 1);
    if (const auto to = labels.find(jumps[i]); to != labels.end()) flow.next[i].push_back(to->second);
  }
  // Directives behind a jump lead nowhere: functions begin with a name.
  std::set<std::size_t> reached;
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < flow.blocks.size(); ++i) {
    const auto named = [](const std::string& line) {
      return line.find(':') != std::string::npos && std::isalpha(line[0]);
    };
    if (std::any_of(flow.blocks[i].begin(), flow.blocks[i].end(), named)) left.push_back(i);
  }
  while (!left.empty()) {
    const std::size_t at = left.back();
    left.pop_back();
    if (reached.insert(at).second) left.insert(left.end(), flow.next[at].begin(), flow.next[at].end());
  }
  for (std::size_t i = 0; i < flow.blocks.size(); ++i)
    if (reached.count(i) == 0) flow.next[i].clear();
  return flow;
}

// Of these blocks, those that come back to themselves, each set together: the loops that are in no other.
std::vector<std::set<std::size_t>> outermost_loops(const Flow& flow, const std::set<std::size_t>& among) {
  std::map<std::size_t, std::set<std::size_t>> reached;
  for (const std::size_t start : among) {
    std::vector<std::size_t> left{start};
    while (!left.empty()) {
      const std::size_t at = left.back();
      left.pop_back();
      for (const std::size_t to : flow.next[at])
        if (among.count(to) > 0 && reached[start].insert(to).second) left.push_back(to);
    }
  }
  std::vector<std::set<std::size_t>> loops;
  std::set<std::size_t> taken;
  for (const std::size_t start : among) {
    if (taken.count(start) > 0 || reached[start].count(start) == 0) continue;
    std::set<std::size_t>& loop = loops.emplace_back();
    for (const std::size_t to : reached[start])
      if (reached[to].count(start) > 0) loop.insert(to), taken.insert(to);
  }
  return loops;
}

// What a loop has without the block that it is entered by: the loops inside of it.
void collect_innermost(const Flow& flow, const std::set<std::size_t>& loop, std::vector<Loop>& found) {
  std::set<std::size_t> inside = loop;
  for (std::size_t from = 0; from < flow.next.size(); ++from)
    for (const std::size_t to : flow.next[from])
      if (loop.count(from) == 0) inside.erase(to);
  const std::vector<std::set<std::size_t>> inner = outermost_loops(flow, inside);
  for (const auto& one : inner) collect_innermost(flow, one, found);
  if (!inner.empty()) return;
  Loop& innermost = found.emplace_back();
  for (const std::size_t block : loop)
    innermost.lines.insert(innermost.lines.end(), flow.blocks[block].begin(), flow.blocks[block].end());
}

// Loops with none inside, wherever their blocks stand in the text.
std::vector<Loop> innermost_loops(const std::string& assembly) {
  const Flow flow = flow_of(assembly);
  std::set<std::size_t> all;
  for (std::size_t i = 0; i < flow.blocks.size(); ++i) all.insert(i);
  std::vector<Loop> found;
  for (const auto& loop : outermost_loops(flow, all)) collect_innermost(flow, loop, found);
  return found;
}

struct Expected {
  const char* file;
  std::size_t loops;  // with that many FMAs
  int fma;
  int broadcasts;
};

class HotLoop : public ::testing::TestWithParam<Expected> {};

TEST_P(HotLoop, StaysInRegisters) {
  const Expected& expected = GetParam();
  const ir::Kernel kernel = ir::parse_kernel(kernel_text(expected.file));
  std::size_t found = 0;
  for (const Loop& loop : innermost_loops(codegen::x86::assembly(kernel, Target{.isa = Isa::x86_avx512}))) {
    if (loop.count("\tvfmadd") != expected.fma) continue;
    ++found;
    EXPECT_EQ(loop.count("(%rsp"), 0) << "a spill in the hot loop";
    EXPECT_EQ(loop.count("vbroadcastss"), expected.broadcasts);
    EXPECT_EQ(loop.count("%ymm"), 0) << "a vector narrower than 512 bits";
  }
  EXPECT_EQ(found, expected.loops);
}

// (f): 12 copies by %q and %s, of which the first and last drop one pixel: 13 pixels x 2 vectors x 4 channels.
INSTANTIATE_TEST_SUITE_P(Tiles, HotLoop,
                         ::testing::Values(Expected{"f_conv3x3_bn.kir", 10, 112, 56},
                                           Expected{"f_conv3x3_bn.kir", 2, 104, 52},
                                           Expected{"g_conv3x3_wgrad.kir", 1, 16, 8},
                                           Expected{"h_winograd.kir", 1, 112, 56}));

// The tiles of few channels as the scheduler makes them: 8 pixels x 2 vectors x 3 channels of a tap, or 1. Larger
// tiles, or taps unrolled in them, spill.
TEST(HotLoops, OfFewChannelsStayInRegisters) {
  struct Few {
    const char* graph;
    int fma;
  };
  for (const Few& few : {Few{"graph @stem(%x: f32[1,3,64,64]:nhwc, %w: f32[64,3,7,7]) { %0 = conv2d(%x, %w) "
                             "{stride=[2,2], padding=[3,3,3,3]} : f32[1,64,32,32]:nhwc return %0 }",
                             48},
                         Few{"graph @first(%x: f32[1,1,28,28], %w: f32[32,1,3,3]) { %0 = conv2d(%x, %w) "
                             "{padding=[1,1,1,1]} : f32[1,32,28,28] return %0 }",
                             14}}) {
    const Target target{.isa = Isa::x86_avx512};
    const scheduler::Plan plan = scheduler::make_plan(ir::parse_graph(few.graph), {target, scheduler::Rules::all, {}});
    int found = 0;
    for (const auto& step : plan.steps) {
      for (const Loop& loop : innermost_loops(codegen::x86::assembly(*step.kernel, target))) {
        if (loop.count("\tvfmadd") != few.fma) continue;
        ++found;
        EXPECT_EQ(loop.count("(%rsp"), 0) << "a spill in the hot loop";
      }
    }
    EXPECT_EQ(found, 1) << few.graph;
  }
}

// Lanes that are whole vectors apart, walked along them: vectors are read, and turned, where a gather would touch as
// many lines for each element of them.
TEST(HotLoops, SquaresAreTurnedInRegisters) {
  const char* const text = R"(kernel @k(%x: f32[32,{}] read, %y: f32[16,32] write) on x86:avx512 {{
  phase {{ for %t in 0..2 threads {{ for %l in 0..16 vector {{ for %j in 0..16 unroll {{
    %0 = load %x[%t*16 + %l, %j] : f32  store %y[%j, %t*16 + %l], %0 }} }} }} }} }})";
  const Target target{.isa = Isa::x86_avx512};
  const auto gathers = [&](int width) {
    const ir::Kernel kernel = ir::parse_kernel(fmt::format(fmt::runtime(text), width));
    return codegen::x86::assembly(kernel, target).find("vgather") != std::string::npos;
  };
  EXPECT_FALSE(gathers(48));
  EXPECT_TRUE(gathers(50)) << "a vector may reach beyond the last row";
}

// Lanes a few elements apart, walked along: the run of each is read, and shuffled.
TEST(HotLoops, RunsAreShuffledInRegisters) {
  const char* const text = R"(kernel @k(%x: f32[4,16,{0}] read, %y: f32[4,{0},16] write) on x86:avx512 {{
  phase {{ for %t in 0..4 threads {{ for %j in 0..{0} unroll {{ for %l in 0..16 vector {{
    %0 = load %x[%t, %l, %j] : f32  store %y[%t, %j, %l], %0 }} }} }} }} }})";
  const Target target{.isa = Isa::x86_avx512};
  const auto gathers = [&](int apart) {
    const ir::Kernel kernel = ir::parse_kernel(fmt::format(fmt::runtime(text), apart));
    return codegen::x86::assembly(kernel, target).find("vgather") != std::string::npos;
  };
  for (const int apart : {3, 4, 9}) EXPECT_FALSE(gathers(apart)) << apart;
  EXPECT_TRUE(gathers(10)) << "so many shuffles are no better";
}

// The channels of a few pixels, lanes of which are two of them: the pixels are read, and shuffled.
TEST(HotLoops, WindowsAreShuffledInRegisters) {
  for (const char* x : {"bf16[4,8,3] read", "bf16[4,3,8] read"}) {
    const bool planes = std::string(x).find("3,8") != std::string::npos;
    const ir::Kernel kernel = ir::parse_kernel(
        fmt::format("kernel @k(%x: {}, %y: bf16[4,16] write) on x86:avx512 {{ phase {{ for %t in 0..4 threads {{ "
                    "for %l in 0..16 vector {{ %0 = load %x[%t, {}] : bf16  store %y[%t, %l], %0 }} }} }} }}",
                    x, planes ? "(%l % 2)*2, %l / 2" : "%l / 2, (%l % 2)*2"));
    EXPECT_EQ(codegen::x86::assembly(kernel, Target{.isa = Isa::x86_avx512}).find("vpinsrw"), std::string::npos) << x;
  }
}

// What an innermost loop would read again in every turn stays in registers: as many as there are, of memory that
// nothing writes, and where the loop runs at all.
TEST(HotLoops, KeepWhatStaysTheSame) {
  const auto loads = [](int vectors, const char* high, const char* kind) {
    const Target target = Target::parse("x86:avx512");
    const ir::Kernel kernel = ir::parse_kernel(fmt::format(
        "kernel @k(%n: i32[] read, %x: f32[64,{0}] read align 64, %m: f32[{0}] {2} align 64, %y: f32[64,{0}] write "
        "align 64) on x86:avx512 {{ phase {{ for %t in 0..16 threads {{ for %i in 0..{1} {{ for %j in 0..{3} unroll {{ "
        "for %l in 0..16 vector {{ %0 = load %x[%i, %j*16 + %l] : f32  %1 = load %m[%j*16 + %l] : f32  %2 = mul(%0, "
        "%1) "
        ": f32  store %y[%i, %j*16 + %l], %2 }} }} }} }} }} }}",
        vectors * 16, high, kind, vectors));
    int found = 0;
    for (const Loop& loop : innermost_loops(codegen::x86::assembly(kernel, target)))
      found += static_cast<int>(std::count_if(loop.lines.begin(), loop.lines.end(), [](const std::string& line) {
        return line.find('(') != std::string::npos && line.find_last_not_of(" \t") != line.rfind(')');
      }));
    return found;
  };
  EXPECT_EQ(loads(4, "64", "read"), 4) << "only what differs from turn to turn";
  EXPECT_EQ(loads(4, "%t*4", "read"), 8) << "there may be no turn";
  EXPECT_EQ(loads(4, "64", "update"), 8) << "it may be written";
  EXPECT_EQ(loads(32, "64", "read"), 40) << "registers hold 24";
}

// Weights as PyTorch keeps them and as NHWC does, of one tap and of nine, are packed by whole vectors; 24 channels are
// no whole squares.
TEST(HotLoops, PackingTurnsSquares) {
  constexpr const char* kElementByElement[] = {"vgather", "vscatter", "vinsertps", "vextract"};
  const auto gathers = [&](int channels, int taps, const char* layout) {
    const ir::Graph graph =
        ir::parse_graph(fmt::format("graph @g(%x: f32[2,{0},14,14]:nhwc, %w: f32[64,{0},{1},{1}]{2}) {{\n"
                                    "  %0 = conv2d(%x, %w) : f32[2,64,{3},{3}]:nhwc\n  return %0\n}}\n",
                                    channels, taps, layout, 15 - taps));
    const Target target = Target::parse("x86:avx512");
    const scheduler::Plan plan = scheduler::make_plan(graph, {target, scheduler::Rules::all, {}});
    EXPECT_EQ(plan.steps.front().kernel->name, "pack_conv2d");
    const std::string assembly = codegen::x86::assembly(*plan.steps.front().kernel, target);
    return std::any_of(std::begin(kElementByElement), std::end(kElementByElement),
                       [&](const char* word) { return assembly.find(word) != std::string::npos; });
  };
  for (const int taps : {1, 3}) {
    for (const char* layout : {"", ":nhwc"}) EXPECT_FALSE(gathers(64, taps, layout)) << taps << layout;
    EXPECT_TRUE(gathers(24, taps, "")) << taps;
  }
}

// Weights of an input gradient, whose outputs are channels, and of Winograd's points.
TEST(HotLoops, PackingShufflesTaps) {
  const auto gathers = [](const char* op, const char* target_text) {
    const ir::Graph graph =
        ir::parse_graph(fmt::format("graph @g(%x: f32[8,128,28,28]:nhwc, %w: f32[128,128,3,3]) {{\n"
                                    "  %0 = {}padding=[1,1,1,1]}} : f32[8,128,28,28]:nhwc\n  return %0\n}}\n",
                                    op));
    const Target target = Target::parse(target_text);
    const scheduler::Plan plan = scheduler::make_plan(graph, {target, scheduler::Rules::all, {}});
    EXPECT_EQ(plan.steps.front().kernel->name.substr(0, 4), "pack");
    return codegen::x86::assembly(*plan.steps.front().kernel, target).find("vgather") != std::string::npos;
  };
  for (const char* target : {"x86:avx512", "x86:avx512,winograd=1"}) {
    EXPECT_FALSE(gathers("conv2d(%x, %w) {", target)) << target;
    EXPECT_FALSE(gathers("conv2d_input_grad(%x, %w) {input_size=[28,28], ", target)) << target;
  }
}

struct Step {
  const char* target;
  DType dtype;
  std::size_t kernels;  // different ones with a contraction, at least
  const char* source = "resnet50@16x3x224x224:train";
};

class HotLoopsOfResNet50 : public ::testing::TestWithParam<Step> {};

// Of a matrix unit: two tiles of rows by two of columns, of what there is.
void expect_products_of_tiles(const scheduler::Schedule& schedule, const std::string& assembly,
                              const std::string& name) {
  std::int64_t most = 0;
  for (const Loop& loop : innermost_loops(assembly)) {
    const std::int64_t products = loop.count("tdpbf16ps");
    most = std::max(most, products);
    if (products == 0) continue;
    EXPECT_EQ(loop.count("(%rsp"), 0) << name << ": a spill in a loop of " << products << " products";
  }
  EXPECT_GE(most, std::min<std::int64_t>(2, ir::tiles_of_rows(schedule.tile[0].count)) *
                      std::min<std::int64_t>(2, schedule.vectors))
      << name << ": no loop has a whole block of tiles";
}

TEST_P(HotLoopsOfResNet50, StayInRegisters) {
  const models::ModelGraph model = models::model_graph(GetParam().source, GetParam().dtype);
  const Target target = Target::parse(GetParam().target);
  const scheduler::Plan plan =
      scheduler::make_plan(model.graph, {target, scheduler::Rules::all, {model.donated.begin(), model.donated.end()}});
  std::set<std::string> seen;
  for (const scheduler::PlanStep& step : plan.steps) {
    const bool convolves = !step.schedules.empty() && step.name.find("linear") == std::string::npos &&
                           step.schedules[0].kind == scheduler::Work::contraction;
    const std::string assembly = convolves && seen.insert(ir::kernel_key_text(*step.kernel)).second
                                     ? codegen::x86::assembly(*step.kernel, target)
                                     : "";
    if (assembly.empty()) continue;
    // Copies of a tile at the edges of an image have fewer products than the tile; epilogues have few.
    std::int64_t most = 0;
    for (const Loop& loop : innermost_loops(assembly)) {
      most = std::max<std::int64_t>(most, loop.products("ps"));
      if (loop.products("ps") < 8) continue;
      EXPECT_EQ(loop.count("(%rsp"), 0) << step.name << ": a spill in a loop of " << loop.products("ps") << " products";
      EXPECT_EQ(loop.products("ss"), 0) << step.name << ": single products beside those of vectors";
    }
    const scheduler::Schedule& schedule = step.schedules[0].schedule;
    if (schedule.matrix > 0) {
      expect_products_of_tiles(schedule, assembly, step.name);
    } else {
      EXPECT_GE(most, schedule.accumulators()) << step.name << ": no loop has a whole tile";
    }
  }
  EXPECT_GE(seen.size(), GetParam().kernels);
}

INSTANTIATE_TEST_SUITE_P(
    Targets, HotLoopsOfResNet50,
    ::testing::Values(Step{"x86:avx512,fma=2", DType::f32, 60}, Step{"x86:avx512,fma=2,winograd=1", DType::f32, 60},
                      Step{"x86:avx2,fma=2", DType::f32, 60}, Step{"x86:avx512bf16,fma=2,dot2=1", DType::bf16, 60},
                      Step{"x86:avx512bf16,fma=2,dot2=1", DType::bf16, 20, "resnet50@16x3x224x224"},
                      Step{"x86:avx512bf16,fma=2,dot2=1", DType::f32, 20, "resnet50@16x3x224x224"},
                      Step{"x86:amx,fma=2,l2=2m", DType::bf16, 60}));

}  // namespace
}  // namespace fusejit::test
