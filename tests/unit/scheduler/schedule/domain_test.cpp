// Groups without an anchor: what their domain's text says, which schedules are chosen for it, and which rule an illegal
// one breaks.
#include "scheduler/schedule/domain.h"

#include <gtest/gtest.h>

#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

// The domain and schedule of every step, one a line each.
std::string scheduled(const char* graph, const char* target) {
  std::string text;
  for (const PlanStep& step : make_plan(ir::parse_graph(graph), {Target::parse(target), Rules::all, {}}).steps)
    for (const ScheduledWork& one : step.schedules) text += one.work + "\n" + print(one.schedule) + "\n";
  return text;
}

TEST(Domain, OfAPointwiseGroupIsItsAxesInTheOrderOfMemory) {
  const char* const flat = R"(graph @g(%x: f32[16,64,56,56]) {
  %0 = relu(%x) : f32[16,64,56,56]
  return %0
})";
  EXPECT_EQ(scheduled(flat, "x86:avx512"),
            "[nchw]; nchw 3211264\n"
            "schedule { vector nchw 16 x 1 task nchw/50176 inner nchw }\n");
  const char* const channels = R"(graph @g(%x: f32[2,70,5,20]:nhwc, %b: f32[70]) {
  %0 = bias_add(%x, %b) : f32[2,70,5,20]:nhwc
  return %0
})";
  EXPECT_EQ(scheduled(channels, "x86:avx512,tasks=4"),
            "[nhw, c]; nhw 200, c 70\n"
            "schedule { vector c 16 x 4 task nhw/50 inner nhw, c }\n");
  EXPECT_EQ(scheduled("graph @g(%x: f32[]) {\n  %0 = relu(%x) : f32[]\n  return %0\n}", "x86:avx2"),
            "[]\nschedule { }\n");
}

TEST(Domain, SaysWhatIsSummedUp) {
  const char* const moments = R"(graph @g(%x: f32[16,64,56,56]:nhwc) {
  %0 = mean(%x) {dim=[0,2,3]} : f32[64]
  %1 = var(%x) {dim=[0,2,3]} : f32[64]
  return %0, %1
})";
  EXPECT_EQ(scheduled(moments, "x86:avx2,tasks=64,l3=8m"),
            "[nhw, c]; c 64 | nhw 50176; sums welford f64\n"
            "schedule { vector c 8 x 4 task nhw/784 outer c inner nhw fetch nhw 32 }\n");
  // Of wide rows there are as many parts, and several lines of memory of each row; a state of f64 asks for long parts.
  const char* const wide = R"(graph @g(%x: f32[16,1024,14,14]:nhwc) {
  %0 = sum(%x) {dim=[0,2,3]} : f32[1024]
  return %0
})";
  EXPECT_EQ(scheduled(wide, "x86:avx512,tasks=64"),
            "[nhw, c]; c 1024 | nhw 3136; sums add f32\n"
            "schedule { vector c 16 x 8 task nhw/49 outer c inner nhw fetch nhw 4 }\n");
  const char* const wide_moments = R"(graph @g(%x: f32[16,1024,14,14]:nhwc) {
  %0 = mean(%x) {dim=[0,2,3]} : f32[1024]
  %1 = var(%x) {dim=[0,2,3]} : f32[1024]
  return %0, %1
})";
  EXPECT_EQ(scheduled(wide_moments, "x86:avx512,tasks=64"),
            "[nhw, c]; c 1024 | nhw 3136; sums welford f64\n"
            "schedule { vector c 16 x 8 task nhw/98 outer c inner nhw fetch nhw 4 }\n");
  const char* const rows = R"(graph @g(%x: f32[100,5000]) {
  %0 = sum(%x) {dim=[1]} : f32[100]
  %1 = amax(%x) {dim=[1]} : f32[100]
  return %0, %1
})";
  EXPECT_EQ(scheduled(rows, "x86:avx2,tasks=5"),
            "[i, j]; i 100 | j 5000; sums add f32, maximum f32\n"
            "schedule { vector j 8 x 4 task i/20 outer i inner j fetch j 2048 }\n");
  const char* const one_row = R"(graph @g(%x: f32[1000000]) {
  %0 = sum(%x) {dim=[0]} : f32[]
  return %0
})";
  EXPECT_EQ(scheduled(one_row, "x86:avx2,tasks=5"),
            "[i]; | i 1000000; sums add f32\n"
            "schedule { vector i 8 x 1 task i/200192 inner i flush i 256 }\n");
  const char* const places = R"(graph @g(%x: f32[4,5000]) {
  %0 = argmax(%x) {dim=1} : i64[4]
  return %0
})";
  EXPECT_EQ(scheduled(places, "x86:avx2,tasks=4"),
            "[i, j]; i 4 | j 5000; sums argmax f32\n"
            "schedule { vector j 8 x 1 unroll j 4 task i inner j fetch j 2048 }\n");
}

TEST(Domain, SaysWhatPoolingGradientsLookAt) {
  const char* const tiles = R"(graph @g(%x: f32[4,8,6,6]:nhwc, %dy: f32[4,8,3,3]:nhwc) {
  %0 = max_pool2d_grad(%x, %dy) {kernel_size=[2,2], stride=[2,2]} : f32[4,8,6,6]:nhwc
  %1 = sum(%0) {dim=[0,2,3]} : f32[8]
  return %1
})";
  EXPECT_EQ(scheduled(tiles, "x86:avx2"),
            "[n, h, w, c]; c 8 | n 4, h 6, w 6; sums add f32; windows h 2, w 2\n"
            "schedule { vector c 8 x 1 unroll h 2, w 2 outer c inner n, h, w }\n");
  const char* const overlap = R"(graph @g(%x: f32[4,64,56,56]:nhwc, %dy: f32[4,64,28,28]:nhwc) {
  %0 = max_pool2d_grad(%x, %dy) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[4,64,56,56]:nhwc
  return %0
})";
  EXPECT_EQ(scheduled(overlap, "x86:avx512,tasks=16"),
            "[n, h, w, c]; n 4, h 56, w 56, c 64; maxima h w\n"
            "schedule { vector c 16 x 4 task n, h/14 inner h, w, c panel maxima h fetch h 1 }\n");
  const char* const pool = R"(graph @g(%x: f32[4,64,56,56]:nhwc) {
  %0 = max_pool2d(%x) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[4,64,28,28]:nhwc
  return %0
})";
  EXPECT_EQ(scheduled(pool, "x86:avx512,tasks=16"),
            "[n, h, w, c]; n 4, h 28, w 28, c 64; pools h\n"
            "schedule { vector c 16 x 4 task n, h/7 inner h, w, c fetch h 1 }\n");
  EXPECT_EQ(scheduled(pool, "x86:avx512,l2=8m,tasks=16"),
            "[n, h, w, c]; n 4, h 28, w 28, c 64; pools h\n"
            "schedule { vector c 16 x 4 task n, h/7 inner h, w, c }\n")
      << "it is in L2";
}

TEST(Domain, OnADeviceIsSharedOutToThreads) {
  const char* const channels = R"(graph @g(%x: f32[2,72,5,20]:nhwc, %b: f32[72]) {
  %0 = bias_add(%x, %b) : f32[2,72,5,20]:nhwc
  return %0
})";
  EXPECT_EQ(scheduled(channels, "cuda:sm_90"),
            "[nhw, c]; nhw 200, c 72\n"
            "schedule { vector c 4 x 1 task grid.x nhw*c/256, block.x nhw*c }\n");
  const char* const columns = R"(graph @g(%x: f32[16,64,56,56]:nhwc) {
  %0 = sum(%x) {dim=[0,2,3]} : f32[64]
  return %0
})";
  EXPECT_EQ(
      scheduled(columns, "cuda:sm_90"),
      "[nhw, c]; c 64 | nhw 50176; sums add f32\n"
      "schedule { vector c 4 x 1 task grid.y nhw/128, grid.x c/64, block.x c inner block.y nhw stride 16, nhw }\n");
  const char* const row = R"(graph @g(%x: f32[3000]) {
  %0 = sum(%x) {dim=[0]} : f32[]
  return %0
})";
  EXPECT_EQ(scheduled(row, "cuda:sm_90"),
            "[i]; | i 3000; sums add f32\nschedule { vector i 4 x 1 inner block.x i stride 256, i }\n");
  const char* const few = R"(graph @g(%x: f32[300,10]) {
  %0 = sum(%x) {dim=[1]} : f32[300]
  return %0
})";
  EXPECT_EQ(scheduled(few, "cuda:sm_90"),
            "[i, j]; i 300 | j 10; sums add f32\n"
            "schedule { vector j 1 x 1 task grid.x i/256, block.x i inner j }\n");
}

// Threads of the last turn idle, and what their condition says of a pixel does not prove where its window begins.
TEST(Domain, ReadsOfWindowsAreInsideOnADevice) {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(%x: f32[1,60,18,4]:nhwc, %dy: f32[1,60,9,2]:nhwc) {
  %0 = max_pool2d_grad(%x, %dy) {kernel_size=[2,2], stride=[2,2]} : f32[1,60,18,4]:nhwc
  %1 = sum(%0) {dim=[0,2,3]} : f32[60]
  return %1
})");
  for (const PlanStep& step : make_plan(graph, {Target::parse("cuda:sm_90"), Rules::all, {}}).steps)
    EXPECT_NO_THROW(ir::verify(*step.kernel));
}

Domain domain(std::vector<DomainAxis> axes) { return {std::move(axes), {}, {}, "", "", ""}; }
const Domain kPointwise = domain({{"n", 8}, {"h", 20}, {"c", 100}});
const Domain kColumns = [] {
  Domain d = domain({{"n", 8, true}, {"h", 20, true}, {"w", 20, true}, {"c", 100}});
  d.sums = {{ir::Combiner::add, DType::f32}};
  return d;
}();
const Domain kRows = [] {
  Domain d = domain({{"n", 8, true}, {"c", 100}, {"w", 500, true}});
  d.sums = {{ir::Combiner::add, DType::f32}};
  return d;
}();

struct Illegal {
  const char *text, *sentence;
};
void expect_broken(const Domain& of, const std::vector<Illegal>& cases, const char* target = "x86:avx2") {
  for (const Illegal& c : cases) {
    const std::string broken =
        check(of, parse_schedule("schedule { " + std::string(c.text) + " }"), Target::parse(target));
    if (*c.sentence == '\0') {
      EXPECT_EQ(broken, "") << c.text;
    } else {
      EXPECT_NE(broken.find(c.sentence), std::string::npos) << c.text << ": " << broken;
    }
  }
}

TEST(DomainCheck, NamesTheRuleThatAPointwiseScheduleBreaks) {
  expect_broken(kPointwise,
                {{"vector c 8 x 4 task h/5, n inner h, c", ""},
                 {"vector c 8 x 3 task c/48 inner h, n, c", ""},
                 {"vector c 8 x 1 tile h 2 inner n, h, c", "'tile' is for the operands of an anchor"},
                 {"vector c 8 x 1 inner n, h, c combine c", "'combine' is for the operands of an anchor"},
                 {"vector c 8 x 1 inner n, h, q, c", "there is no axis 'q' in [n, h, c]; n 8, h 20, c 100"},
                 {"vector h 8 x 1 inner n, h, c", "lanes run along c, whose elements lie side by side, not along 'h'"},
                 {"inner n, h, c", "not along ''"},
                 {"vector c 6 x 1 inner n, h, c", "only powers of two"},
                 {"vector c 8 x 13 inner n, h, c", "13 vectors of 8 lanes, but c has 100 elements"},
                 {"vector c 8 x 1 unroll h 2 inner n, h, c", "h is a parallel axis"},
                 {"vector c 8 x 1 task grid.x n inner h, c", "no grid on a processor"},
                 {"vector c 8 x 1 inner n*h, c", "the loop n*h goes over several axes"},
                 {"vector c 8 x 1 inner n, n, h, c", "n is looped over twice"},
                 {"vector c 8 x 1 inner n/2, h, c", "tasks cut an axis into blocks, and not the loop n/2"},
                 {"vector c 8 x 1 task n outer h inner c", "h is not what sums are for, so its loop is an inner one"},
                 {"vector c 8 x 1 task n inner n, h, c", "nothing of n is left for the loop n"},
                 {"vector c 8 x 1 task n/2 inner h, c", "no loop goes over the 8 elements of n"},
                 {"vector c 8 x 2 task c/24 inner n, h, c", "steps of 24 are no multiple of the 16 of c in registers"},
                 {"vector c 8 x 1 task n/8 inner n, h, c", "the loop n/8 is one task"},
                 {"vector c 8 x 5 task c/80 inner n, h, c", "the loop c/80 is one task"},
                 {"vector c 8 x 1 inner c, n, h", ""},
                 {"vector c 8 x 1 inner n, h, c panel maxima h", "there are no overlapping windows"},
                 {"vector c 8 x 1 inner n, h, c flush c 32", "where lanes run along what is summed up"},
                 {"vector c 8 x 1 inner n, h, c fetch h 1", "what is summed up is fetched ahead"}});
  expect_broken(domain({}), {{"", ""}, {"vector c 8 x 1", "there is no axis 'c' in []"}});
}

TEST(DomainCheck, NamesTheRuleThatASumBreaks) {
  expect_broken(kColumns,
                {{"vector c 8 x 4 unroll h 2, w 4 task c, h/4 inner w, h, n fetch n 1", ""},
                 {"vector c 8 x 1 inner n, h, w, c", "c is what sums are for, so its loop is an outer one"},
                 {"vector c 8 x 1 outer n, c inner h, w", "n is summed up, so its loop is an inner one"},
                 {"vector c 8 x 1 unroll h 3 outer c inner n, h, w", "3 of h without a loop do not fill 20"},
                 {"vector c 8 x 4 unroll h 20 outer c inner n, h, w", "more than 64 copies"},
                 {"vector c 8 x 1 task n, h/5 outer c inner h, w", "the loops n and h/5 both cut a sum"},
                 {"vector c 8 x 1 task c/16 outer c inner n, h, w", "a task has one block of c, not 16 elements"},
                 {"vector c 8 x 4 task n/4, c inner n, h, w", "so the loop c is the outermost"},
                 {"vector c 8 x 1 outer c inner n, h, w flush c 32", "where lanes run along what is summed up"},
                 {"vector c 8 x 1 outer c inner n, h, w fetch c 32", "what is summed up is fetched ahead"}});
  expect_broken(kRows, {{"vector w 8 x 2 unroll w 4 task c/9, n outer c inner w flush w 128 fetch w 99", ""},
                        {"vector w 8 x 2 unroll n 4 outer c inner n, w", "nothing else is unrolled"},
                        {"vector w 8 x 8 unroll w 8 outer c inner n, w", "8 of w without a loop do not fill 500"},
                        {"vector w 8 x 1 task w/80 outer c inner n, w", "where nothing else is summed up"},
                        {"vector w 8 x 2 task w/80 outer c inner n, w", "each adds up one vector after the other"},
                        {"vector w 8 x 1 outer c inner w, n", "the loop n stands inside of that along lanes, w"},
                        {"vector w 8 x 2 outer c inner n, w flush w 24", "24 terms are no multiple of the 16"},
                        {"vector w 8 x 1 outer c inner n, w fetch w 24", "for several vectors at once"}});
  Domain one = domain({{"w", 500, true}});
  one.sums = kRows.sums;
  expect_broken(one, {{"vector w 8 x 1 task w/64 inner w flush w 32", ""},
                      {"vector w 8 x 1 task w inner w", "nothing of w is left for the loop w"},
                      {"vector w 8 x 1 task w", "a task of w has several vectors"},
                      {"vector w 8 x 1 task w/48 inner w flush w 32", "the loop w/48 cuts the 32 terms"}});
}

TEST(DomainCheck, FirstPlacesAreLookedForInTheOrderOfMemory) {
  Domain columns = kColumns, rows = kRows;
  columns.sums = rows.sums = {{ir::Combiner::argmax, DType::f32}};
  expect_broken(columns, {{"vector c 8 x 4 task n outer c inner h, w", ""},
                          {"vector c 8 x 4 task n outer c inner w, h", "and the loop h is not there"},
                          {"vector c 8 x 4 task h/5 outer c inner n, h, w", "so tasks cut n, not h"},
                          {"vector c 8 x 4 unroll w 2 outer c inner n, h, w", "so w is not unrolled"}});
  expect_broken(rows, {{"vector w 8 x 1 unroll w 4 outer c inner n, w", ""},
                       {"vector w 8 x 2 outer c inner n, w", "in one vector after the other"}});
}

// Rows pass with all their columns; in sums, tasks may share channels, but not the columns of a row.
TEST(DomainCheck, MaximaAreKeptWhileRowsPass) {
  Domain alone = domain({{"n", 8}, {"h", 20}, {"w", 20}, {"c", 100}}), sums = kColumns;
  for (Domain* const d : {&alone, &sums}) d->maxima_rows = "h", d->maxima_columns = "w";
  expect_broken(alone, {{"vector c 8 x 1 task n, h/8 inner h, w, c panel maxima h", ""},
                        {"vector c 8 x 1 task n, h inner w, c panel maxima h", ""},
                        {"vector c 8 x 1 task w inner n, h, c", ""},
                        {"vector c 8 x 1 task n inner h, w, c panel maxima w", "while rows pass, h, not w"},
                        {"vector c 8 x 1 task w inner n, h, c panel maxima h", "has whole rows, all of w"},
                        {"vector c 8 x 1 task c/16 inner n, h, w, c panel maxima h", "has all of c"},
                        {"vector c 8 x 1 inner h, n, w, c panel maxima h", "where the innermost loops are h, w, c"}});
  expect_broken(sums,
                {{"vector c 8 x 4 task c inner n, h, w panel maxima h", ""},
                 {"vector c 8 x 4 task h outer c inner n, w panel maxima h", ""},
                 {"vector c 8 x 4 unroll n 2 outer c inner n, h, w panel maxima h", "n passes element by element"},
                 {"vector c 8 x 4 unroll w 2 outer c inner n, h, w panel maxima h", "w passes element by element"},
                 {"vector c 8 x 4 outer c inner n, w, h panel maxima h", "where the innermost loops are h, w"}});
}

TEST(DomainCheck, RowsOfWindowsAreFetchedAhead) {
  Domain pool = domain({{"n", 8}, {"h", 20}, {"w", 20}, {"c", 100}}), tiles = kColumns, overlap = kColumns;
  pool.pooled_rows = "h";
  tiles.windows = {{{"h"}, 2}, {{"w"}, 2}};
  overlap.maxima_rows = "h", overlap.maxima_columns = "w";
  expect_broken(pool, {{"vector c 8 x 1 task n inner h, w, c fetch h 1", ""},
                       {"vector c 8 x 1 task n inner h, w, c fetch w 1", "rows of windows are fetched ahead, along h"},
                       {"vector c 8 x 1 task n inner c, h, w fetch h 1", "where c is innermost"}});
  expect_broken(tiles, {{"vector c 8 x 1 unroll h 2, w 2 outer c inner n, h, w fetch h 1", ""},
                        {"vector c 8 x 1 outer c inner n, h, w fetch w 9", ""},
                        {"vector c 8 x 1 unroll h 2, w 2 outer c inner n, h, w fetch w 1", "ahead, along h"}});
  expect_broken(overlap, {{"vector c 8 x 1 outer c inner n, h, w panel maxima h fetch h 2", ""},
                          {"vector c 8 x 1 outer c inner n, h, w panel maxima h fetch n 1", "ahead, along h"}});
}

TEST(DomainCheck, NamesTheRuleThatThreadsBreak) {
  expect_broken(
      kPointwise,
      {{"vector c 4 x 1 task grid.x n*h*c/100, block.x n*h*c", ""},
       {"vector c 4 x 1 task grid.x h*c/100, block.x h*c inner n", ""},
       {"vector c 4 x 1 task grid.x c/100, block.x c inner h, n", ""},
       {"vector c 4 x 1 unroll h 2 task grid.x n*h*c/100, block.x n*h*c", "'unroll' is for processors"},
       {"vector c 4 x 1 task grid.x n*h*c/100, block.x n*h*c store stream", "'store' is for processors"},
       {"vector c 4 x 1 task grid.x n*h*c/100, block.x n*h*c panel maxima h", "'panel' is for processors"},
       {"vector h 4 x 1 task grid.x n*h*c/100, block.x n*h*c", "lanes run along c"},
       {"vector c 32 x 1 task grid.x n*h*c/100, block.x n*h*c", "only powers of two from 1 to 16"},
       {"vector c 4 x 2 task grid.x n*h*c/100, block.x n*h*c", "a thread holds one vector"},
       {"vector c 8 x 1 task grid.x n*h*c/100, block.x n*h*c", "8 lanes do not fill 100 c"},
       {"vector c 4 x 1 task n, grid.x h*c/100, block.x h*c", "the loop n is not bound"},
       {"vector c 4 x 1 task grid.z n, grid.x h*c/100, block.x h*c", "the loop n is no part of a sum"},
       {"vector c 4 x 1 task block.x n*h*c, grid.x n*h*c/100", "outermost first"},
       {"vector c 4 x 1 task block.x n*h*c", "no loop is bound to grid.x"},
       {"vector c 4 x 1 task grid.x n*h*c/100, block.x h*c inner n", "threads take a block of n*h*c, not h*c"},
       {"vector c 4 x 1 task grid.x c*h/100, block.x c*h inner n", "what lies side by side in memory"},
       {"vector c 4 x 1 task grid.x n*h/100, block.x n*h inner c", "what lies side by side in memory"},
       {"vector c 4 x 1 task grid.x n*h*c/100", "leaves no loop for a block"},
       {"vector c 4 x 1 task grid.x c/30, block.x c inner h, n", "its threads take whole vectors"},
       {"vector c 4 x 1 task grid.x h*c/100, block.x h*c inner n/2", "and not the loop n/2"},
       {"vector c 4 x 1 task grid.x h*c/100, block.x h*c inner n*h", "the loop n*h goes over several axes"},
       {"vector c 4 x 1 task grid.x h*c/100, block.x h*c", "every axis has one loop: n, h, c"},
       {"vector c 4 x 1 task grid.x h*c/100, block.x h*c inner block.y n stride 2, n", "and not the loop n stride 2"},
       {"vector c 4 x 1 task grid.x n*h*c/1025, block.x n*h*c", "a block of 1025 threads; at most 1024"},
       {"vector c 4 x 1 task grid.x c/104, block.x c inner n, h", "a block of 26 threads for 25 vectors"},
       {"vector c 4 x 1 task grid.x n*h inner block.x c stride 8, c", ""},
       {"vector c 4 x 1 task grid.x n inner block.x h*c stride 64, h*c", ""},
       {"vector c 4 x 1 task grid.x n*h inner block.x c stride 8", "one loop goes over all that is in a row, c"},
       {"vector c 4 x 1 task grid.x n*h inner block.x c stride 6, c", "6 threads do not meet in a tree"},
       {"vector c 4 x 1 task grid.x n inner block.x c stride 8, c", "threads share all that is in a row"},
       {"vector c 4 x 1 task grid.x h inner block.x n*c stride 8, n*c", "threads share all that is in a row"},
       {"vector c 4 x 1 task grid.x n*c inner block.x h stride 8, h", "threads share all that is in a row"},
       {"vector c 4 x 1 task grid.x n*h inner block.y c stride 8, c", "threads share all that is in a row"},
       {"vector c 4 x 1 task grid.x n*h/2, block.x n*h inner block.x c stride 8, c", "and not the loop"}},
      "cuda:sm_90");
  expect_broken(
      kColumns,
      {{"vector c 4 x 1 task grid.y n*h*w/64, grid.x c/20, block.x c inner block.y n*h*w stride 8, n*h*w", ""},
       {"vector c 4 x 1 task grid.x c inner block.x n*h*w stride 8, n*h*w", ""},
       {"vector c 4 x 1 task grid.y h*w/64, grid.x c/20, block.x c inner n*h*w", "blocks of all that is summed up"},
       {"vector c 4 x 1 task grid.y n*h*w, grid.x c/20, block.x c inner n*h*w", "blocks of all that is summed up"},
       {"vector c 4 x 1 task grid.x c/20, block.x c inner n, h, w", "one loop goes over all that is summed up"},
       {"vector c 4 x 1 task grid.x c/20, block.x c inner block.y n*h stride 8, n*h*w",
        "and not the loop n*h stride 8"},
       {"vector c 4 x 1 task grid.x c/20, block.x c inner block.x n*h*w stride 8, n*h*w",
        "and not the loop n*h*w stride 8"},
       {"vector c 4 x 1 task grid.x c/20, block.x c inner block.y n*h*w stride 6, n*h*w",
        "6 threads do not meet in a tree"},
       {"vector c 4 x 1 task grid.x c/20, block.x c inner block.y n*h*w stride 64, n*h*w",
        "a block of 320 threads; at most 256"},
       {"vector c 4 x 1 task grid.x c/24, block.x c inner block.y n*h*w stride 8, n*h*w",
        "where some have nothing to do"},
       {"vector c 4 x 1 task grid.y n*h*w/60, grid.x c/20, block.x c inner block.y n*h*w stride 8, n*h*w",
        "no whole turns of 8 threads"},
       {"vector c 4 x 1 task grid.y n*h*w/3200, grid.x c/20, block.x c inner block.y n*h*w stride 8, n*h*w",
        "is one part of 3200"}},
      "cuda:sm_90");
  expect_broken(kRows,
                {{"vector w 4 x 1 task grid.y n*w/64, grid.x c inner block.x n*w stride 32, n*w", ""},
                 {"vector w 1 x 1 task grid.x c/10, block.x c inner n*w", ""},
                 {"vector w 8 x 1 task grid.x c inner n*w", "8 lanes do not fill 500 w"}},
                "cuda:sm_90");
}

}  // namespace
}  // namespace fusejit::scheduler
