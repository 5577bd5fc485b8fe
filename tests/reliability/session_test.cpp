// A session on a cache that is damaged, that lies, or whose files fail: its results are right, and the cache is good
// again afterwards.
#include "runtime/session.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "codegen/x86/compile.h"
#include "runtime/disk/disk_cache.h"
#include "runtime/disk/entries/kernel_entry.h"
#include "runtime/disk/explain.h"
#include "tests/reliability/worker.h"
#include "tests/support/faulty_files/faulty_files.h"
#include "tests/support/nightly.h"

namespace fusejit::runtime {
namespace {

using fusejit::testing::bytes_of;
using fusejit::testing::damaged_entries;
using fusejit::testing::Fault;
using fusejit::testing::FaultyFiles;
using fusejit::testing::files_below;
using fusejit::testing::TemporaryFolder;
using fusejit::testing::write_bytes;

// Two kernels: a map, and a sum that reads it.
ir::Graph graph(int size = 7) {
  return ir::parse_graph(fmt::format(R"(graph @g(%x: f32[{0},40]) {{
  %0 = mul(%x, 0.5) : f32[{0},40]
  %1 = relu(%0) : f32[{0},40]
  %2 = sum(%1) {{dim=[0], keepdim=true}} : f32[1,40]
  %3 = add(%1, %2) : f32[{0},40]
  return %3
}})",
                                     size));
}

struct Ran {
  std::string bytes;
  SessionStatistics statistics;
  std::vector<std::string> log;
};

Ran run_on(const std::shared_ptr<disk::DiskCache>& cache, const ir::Graph& graph = runtime::graph(),
           const char* target = "x86:v2") {
  Ran ran;
  SessionOptions options;
  options.target = Target::parse(target), options.threads = 1, options.disk = cache;
  Session session(options);
  const Buffer x = Buffer::allocate(graph.parameters()[0].type());
  for (int i = 0; i < x.type().elements(); ++i) static_cast<float*>(x.data())[i] = static_cast<float>(i % 23 - 9);
  const Buffer result = session.run(graph, std::vector<Buffer>{x})[0];
  ran.bytes.assign(static_cast<const char*>(result.data()), static_cast<std::size_t>(result.bytes()));
  ran.statistics = session.statistics();
  return ran;
}
Ran run_in(const std::string& folder, const ir::Graph& graph = runtime::graph(), const char* target = "x86:v2") {
  std::vector<std::string> log;
  const auto cache = std::make_shared<disk::DiskCache>(
      disk::DiskCacheOptions{.folder = folder, .log = [&](const std::string& line) { log.push_back(line); }});
  Ran ran = run_on(cache, graph, target);
  ran.log = log;
  return ran;
}
const std::string& right() {
  static const std::string bytes = run_on(nullptr).bytes;
  return bytes;
}

TEST(SessionOnDisk, ComputesTheSameColdAndWarm) {
  TemporaryFolder folder;
  const Ran cold = run_in(folder.path()), warm = run_in(folder.path());
  EXPECT_EQ(cold.bytes, right());
  EXPECT_EQ(warm.bytes, right());
  EXPECT_EQ(warm.statistics.plans_loaded, 1);
  EXPECT_EQ(warm.statistics.kernels_compiled, 0);
  EXPECT_EQ(warm.statistics.kernels_loaded, cold.statistics.kernels_compiled);
}

TEST(SessionOnDisk, DamagedEntriesAreMadeAgain) {
  TemporaryFolder folder;
  std::mt19937 random(8);
  run_in(folder.path());
  const std::vector<std::string> entries = files_below(folder.path(), ".entry");
  int damages = 0;
  for (int round = 0; round < (testing::is_nightly() ? 7000 : 150); ++round) {
    for (const std::string& path : entries) {
      std::string bytes = bytes_of(path);
      switch (round % 4) {
        case 0:
          bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
          break;
        case 1:
          bytes.resize(random() % bytes.size());
          break;
        case 2:
          bytes.append(1 + random() % 5000, '\0');
          break;
        default:
          bytes.replace(random() % bytes.size(), 64, 64, '\0');
      }
      if (bytes == bytes_of(path)) continue;
      write_bytes(path, bytes), ++damages;
    }
    const Ran ran = run_in(folder.path());
    ASSERT_EQ(ran.bytes, right()) << round;
    ASSERT_EQ(ran.log.size(), 1u);
    ASSERT_EQ(damaged_entries(folder.path()), 0);
  }
  const Ran good = run_in(folder.path());
  EXPECT_EQ(good.statistics.plans_loaded, 1);
  EXPECT_EQ(good.statistics.kernels_compiled, 0);
  std::printf("%d damaged entries of a plan and its kernels\n", damages);
}

// Entries that are whole, and of no use: no program of ours wrote them so, but one of another build may have.
TEST(SessionOnDisk, WholeEntriesOfNoUseAreMadeAgain) {
  const std::vector<std::string> contents = {"",
                                             "x",
                                             std::string(5000, '\0'),
                                             "\x7f"
                                             "ELF" +
                                                 std::string(100, '\1'),
                                             "plan @g(target=x86:v2) {}",
                                             "3 4 five",
                                             "-1 -1 -1"};
  TemporaryFolder folder;
  run_in(folder.path());
  for (const char* section : {"plan", "object", "facts"}) {
    for (const std::string& content : contents) {
      for (const std::string& path : files_below(folder.path(), ".entry")) {
        auto entry = disk::decode(bytes_of(path)).value();
        for (disk::Section& one : entry.sections) {
          if (one.name == section) one.bytes = content;
        }
        write_bytes(path, encode(entry.key, entry.sections));
      }
      EXPECT_EQ(run_in(folder.path()).bytes, right()) << section << " is " << content.substr(0, 30);
      const Ran good = run_in(folder.path());
      EXPECT_EQ(good.statistics.plans_loaded, 1) << section << " is " << content.substr(0, 30);
      EXPECT_EQ(good.statistics.kernels_compiled, 0) << section << " is " << content.substr(0, 30);
    }
  }
}

TEST(SessionOnDisk, AnyCallOfTheSystemMayFail) {
  const std::pair<const char*, Fault> faults[] = {{"EIO", {Fault::refused, EIO}},
                                                  {"EINTR", {Fault::refused, EINTR}},
                                                  {"ESTALE, but done", {Fault::lost_reply, ESTALE}},
                                                  {"a part", {Fault::partial, 0}}};
  int runs = 0;
  for (const auto& [name, fault] : faults) {
    for (const bool is_warm : {false, true}) {
      bool was_hit = true;
      for (int at = 0; was_hit; ++at, ++runs) {
        TemporaryFolder folder;
        if (is_warm) run_in(folder.path());
        {
          const FaultyFiles faulty(folder.path(), at, fault);
          const Ran ran = run_in(folder.path());
          was_hit = !faulty.hit().empty();
          ASSERT_EQ(ran.bytes, right()) << name << " at call " << at << ", " << faulty.hit();
          ASSERT_LE(ran.log.size(), 1u);
        }
        ASSERT_EQ(damaged_entries(folder.path()), 0) << name << " at call " << at;
      }
    }
  }
  std::printf("%d runs with a fault each\n", runs);
}

// Machine code is loaded where the processor has what it was made for, and nowhere else.
TEST(Portability, CodeForAnotherProcessorIsNeverLoaded) {
  TemporaryFolder folder;
  const auto cache = std::make_shared<disk::DiskCache>(disk::DiskCacheOptions{.folder = folder.path()});
  run_on(cache, graph(), "x86:v2");
  for (const std::string& path : files_below(folder.path(), ".entry")) {
    const auto entry = disk::decode(bytes_of(path)).value();
    if (entry.key.kind() != "kernel") continue;
    auto code = disk::object_in(entry, "k");
    ASSERT_TRUE(code);
    EXPECT_EQ(code->isa, Isa::x86_v2);
    EXPECT_TRUE(codegen::x86::load(*code));
    // What no x86 processor can run stands for what this one cannot.
    code->isa = Isa::cuda;
    EXPECT_THROW(codegen::x86::load(*code), DeviceError);
    // A processor that has not been thought of yet.
    std::vector<disk::KeyPart> parts = entry.key.parts();
    for (disk::KeyPart& part : parts) {
      if (part.name == "isa") part.text = "avx1024";
    }
    EXPECT_FALSE(disk::object_in({disk::CacheKey("kernel", parts), entry.sections}, "k"));
  }
}

TEST(Portability, EachInstructionSetHasItsOwnEntries) {
  TemporaryFolder folder;
  for (const char* target : {"x86:v2", "x86:avx2", "x86:avx512", "x86:avx512bf16"}) {
    if (!codegen::x86::host_supports(Target::parse(target).isa)) continue;
    const Ran first = run_in(folder.path(), graph(), target);
    EXPECT_EQ(first.statistics.kernels_loaded, 0) << target;
    EXPECT_EQ(first.statistics.plans_loaded, 0) << target;
    EXPECT_EQ(run_in(folder.path(), graph(), target).statistics.kernels_compiled, 0) << target;
  }
}

TEST(Portability, AMissOfAKernelIsNamed) {
  TemporaryFolder folder;
  disk::DiskCache cache({.folder = folder.path()});
  const disk::CacheKey key = disk::kernel_key("kernel @k", Isa::x86_v2);
  cache.put(key, {});
  using Names = std::vector<std::string>;
  EXPECT_EQ(explain(cache, key).differing, Names());
  EXPECT_EQ(explain(cache, disk::kernel_key("kernel @k", Isa::x86_avx2)).differing, Names{"isa"});
  EXPECT_FALSE(explain(cache, disk::kernel_key("kernel @l", Isa::x86_v2)).nearest);
  for (const char* name : {"isa", "compiler", "llvm"}) {
    std::vector<disk::KeyPart> parts = key.parts();
    for (disk::KeyPart& part : parts) part.text += part.name == name ? " of tomorrow" : "";
    EXPECT_EQ(explain(cache, disk::CacheKey("kernel", parts)).differing, Names{name});
    EXPECT_FALSE(cache.find(disk::CacheKey("kernel", parts)));
  }
}

// What only tunes, such as the size of a cache, makes another plan; kernels that come out the same are shared.
TEST(Portability, ConstantsThatOnlyTuneMakeAnotherPlanNotAnError) {
  TemporaryFolder folder;
  run_in(folder.path(), graph(), "x86:v2");
  const Ran tuned = run_in(folder.path(), graph(), "x86:v2,l3=8m");
  EXPECT_EQ(tuned.bytes, right());
  EXPECT_EQ(tuned.statistics.plans_loaded, 0);
  EXPECT_EQ(tuned.statistics.kernels_compiled, 0);
}

}  // namespace
}  // namespace fusejit::runtime
