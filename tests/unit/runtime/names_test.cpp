// Names of layers are outside of every key: what was kept for one network serves another, which has its own names for
// it. Errors say the layer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>

#include "runtime/cpu/executor.h"
#include "runtime/cpu/kernel_cache.h"
#include "runtime/disk/disk_cache.h"
#include "runtime/disk/plan_store.h"
#include "runtime/session.h"
#include "scheduler/names/steps.h"
#include "tests/support/cache_folder.h"
#include "tests/support/error_of.h"

namespace fusejit::runtime {
namespace {

using testing::error_of;

// A convolution with batch norm and relu and its weights' gradient, in layers of these names.
ir::Graph network(const std::string& conv, const std::string& norm) {
  const ir::Value x = ir::parameter({DType::f32, {2, 8, 6, 6}, Layout::standard}, "x"),
                  w = ir::parameter({DType::f32, {8, 8, 3, 3}, Layout::standard}, "w");
  ir::Value y;
  {
    const ir::OriginScope layer(ir::Origin{ir::kept_name(conv)});
    y = ir::build(ir::Op::conv2d, {x, w});
  }
  const ir::OriginScope layer(ir::Origin{ir::kept_name(norm)});
  y = ir::build(ir::Op::relu, {ir::build(ir::Op::batch_norm_train, {y, 1, 0})});
  return ir::capture("g", {x, w}, {y});
}

std::vector<std::string> names(const scheduler::Plan& plan) {
  std::vector<std::string> found;
  for (const scheduler::PlanStep& step : plan.steps) found.push_back(step.name);
  return found;
}

const Target kNamesTarget = Target::parse("x86:avx2");

TEST(Names, AreInNoKeyOfAPlan) {
  const ir::Graph a = network("a.conv1", "a.bn1"), b = network("b.first", "b.second");
  EXPECT_EQ(ir::hash(a), ir::hash(b));
  const disk::PlanWish wish{kNamesTarget, scheduler::Rules::all, {}, {}, {}, ""};
  EXPECT_EQ(disk::plan_key(a, wish).hash(), disk::plan_key(b, wish).hash());
  const scheduler::Plan one = scheduler::make_plan(a, {kNamesTarget, scheduler::Rules::all, {}}),
                        other = scheduler::make_plan(b, {kNamesTarget, scheduler::Rules::all, {}});
  EXPECT_NE(names(one), names(other));
  for (std::size_t s = 0; s < one.steps.size(); ++s)
    EXPECT_EQ(ir::print(*one.steps[s].kernel), ir::print(*other.steps[s].kernel)) << "equal layers share a kernel";
}

TEST(Names, OfALoadedPlanAreThoseOfTheGraphAtHand) {
  const test::CacheFolder folder;
  const auto disk = std::make_shared<disk::DiskCache>(disk::DiskCacheOptions{.folder = folder.path("plans")});
  const disk::PlanStore store(disk, false);
  const scheduler::PlanOptions wanted{kNamesTarget, scheduler::Rules::all, {}};
  const ir::Graph a = network("a.conv1", "a.bn1"), b = network("b.first", "b.second");
  const disk::PlanStore::Planned made = store.schedule(a, wanted);
  ASSERT_FALSE(made.was_kept);
  EXPECT_EQ(names(made.plan), (std::vector<std::string>{"a_conv1_pack", "a_conv1_bn", "a_bn1_relu"}));
  store.put(a, wanted, made.plan);
  const disk::PlanStore::Planned loaded = store.schedule(b, wanted);
  ASSERT_TRUE(loaded.was_kept);
  EXPECT_EQ(names(loaded.plan), names(scheduler::make_plan(b, wanted)));
  EXPECT_EQ(names(loaded.plan)[1], "b_first_conv2d_bn");
}

TEST(Names, AreSaidWhereAKernelCannotBeMade) {
  const ir::Graph graph = network("a.conv1", "a.bn1");
  scheduler::PlanOptions wanted{kNamesTarget, scheduler::Rules::all, {}};
  wanted.fall_back = false;
  wanted.inspect = [](const ir::Kernel& kernel) {
    if (kernel.name == "bn_relu") throw InternalError("refused");
  };
  const std::string refused = error_of<Error>([&] { scheduler::make_plan(graph, wanted); });
  EXPECT_TRUE(refused.starts_with("no kernel for a_bn1_relu (%")) << refused;
  EXPECT_TRUE(refused.ends_with(" maximum): refused")) << refused;

  const scheduler::Plan plan = scheduler::make_plan(graph, {kNamesTarget, scheduler::Rules::all, {}});
  KernelCache kernels;
  const auto get = [&](const std::vector<std::string>& steps) {
    return error_of<Error>(
        [&] { kernels.get({plan.steps.back().kernel}, kNamesTarget, 1, KernelCache::Missing::refuse, steps); });
  };
  EXPECT_TRUE(get({"a_bn1_relu"}).starts_with("a_bn1_relu: frozen: kernel @bn_relu would have to be compiled"))
      << get({"a_bn1_relu"});
  EXPECT_TRUE(get({}).starts_with("frozen: kernel @bn_relu")) << "whoever asks for a kernel alone";
}

// A compiler that takes long, or hangs, is said once, while it still does.
TEST(Names, AreSaidOfALongCompilation) {
  const Target host = Target::host();
  if (host.isa == Isa::any) GTEST_SKIP() << "no code is generated for this machine";
  const scheduler::Plan plan = scheduler::make_plan(network("a.conv1", "a.bn1"), {host, scheduler::Rules::all, {}});
  std::vector<std::shared_ptr<const ir::Kernel>> wanted;
  std::vector<std::string> steps;
  for (const scheduler::PlanStep& step : plan.steps) wanted.push_back(step.kernel), steps.push_back(step.name);
  std::vector<std::string> said;
  KernelCache::Patience patience;
  patience.say = [&](const std::string& sentence) { said.push_back(sentence); };
  KernelCache().get(wanted, host, 2, KernelCache::Missing::compile, steps, &patience);
  EXPECT_TRUE(said.empty()) << said[0];
  patience.until = std::chrono::seconds(0);
  for (int attempt = 0; said.empty() && attempt < 100; ++attempt) {  // nothing is missing if this thread has to wait
    KernelCache kernels;
    kernels.get(wanted, host, 2, KernelCache::Missing::compile, steps, &patience);
    const std::size_t once = said.size();
    kernels.get(wanted, host, 2, KernelCache::Missing::compile, steps, &patience);
    EXPECT_EQ(said.size(), once) << "they are there now";
  }
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(std::regex_match(said[0], std::regex("[1-9] of its kernels are still being compiled after 0 s, the first "
                                                   "is a_(conv1_pack|conv1_bn|bn1_relu)")))
      << said[0];
}

// A plan without its kernels, and nothing may be compiled.
TEST(Names, AreSaidByASession) {
  const test::CacheFolder folder;
  SessionOptions options;
  options.target = Target::host();
  options.disk = std::make_shared<disk::DiskCache>(disk::DiskCacheOptions{.folder = folder.path("plans")});
  const ir::Graph a = network("a.conv1", "a.bn1"), b = network("b.first", "b.second");
  const disk::PlanStore store(options.disk, false);
  store.put(a, {options.target, scheduler::Rules::all, {}},
            scheduler::make_plan(a, {options.target, scheduler::Rules::all, {}}));
  options.frozen = true;
  Session session(options);
  const std::string refused = error_of<Error>([&] { session.prepare(b, {}, {}); });
  EXPECT_TRUE(refused.starts_with("b_first_conv2d_pack: frozen: kernel @pack_conv2d would have to")) << refused;
}

// What a kernel does wrong while it runs.
TEST(Names, AreSaidWhereAKernelFails) {
  const ir::Graph graph = network("a.conv1", "a.bn1");
  const auto plan =
      std::make_shared<scheduler::Plan>(scheduler::make_plan(graph, {kNamesTarget, scheduler::Rules::all, {}}));
  scheduler::PlanStep& step = plan->steps.back();
  std::string text = ir::print(*step.kernel);
  const std::size_t shape = text.find("f32[") + 4;
  text.replace(shape, text.find(']') - shape, "1");  // what it reads is one element long
  step.kernel = std::make_shared<const ir::Kernel>(ir::parse_kernel(text));
  const std::vector<Buffer> arguments{Buffer::allocate({DType::f32, {2, 8, 6, 6}, Layout::standard}),
                                      Buffer::allocate({DType::f32, {8, 8, 3, 3}, Layout::standard})};
  Workers workers(1);
  CpuExecutor executor(plan, {}, workers);
  const std::string failed = error_of<Error>([&] { executor.run(graph, arguments); });
  EXPECT_TRUE(failed.starts_with("a_bn1_relu: V3: ")) << failed;
}

}  // namespace
}  // namespace fusejit::runtime
