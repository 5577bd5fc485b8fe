// Every kernel that the plans of the built-in models hold, through ptxas: no spills, few registers, 16-byte accesses.
// By day one kernel for each form (the ops it does) of a few plans; FUSEJIT_NIGHTLY=1 asks for all of them: every
// model, f32, bf16 and f16, with and without cuDNN, on four architectures. Beside them what no built-in model has:
// random networks in training (tests/random), mostly in f64; a few by day, at night 250 on three architectures.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string_view>
#include <thread>

#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "frontend/models/named.h"
#include "ir/kernel/kernel.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"
#include "tests/random/generate/network.h"
#include "tests/support/nightly.h"

namespace fusejit::test {
namespace {

using codegen::cuda::CudaSource;

struct ResourcesCase {
  std::string model;
  DType dtype;
  std::string target;
};

std::string describe(const ResourcesCase& c) { return fmt::format("{} {} {}", c.model, name(c.dtype), c.target); }
void PrintTo(const ResourcesCase& c, std::ostream* out) { *out << describe(c); }

std::vector<ResourcesCase> cases() {
  if (!testing::is_nightly()) {
    return {{"convnet@250:train", DType::f32, "cuda:sm_80"},
            {"convnet@16:train", DType::bf16, "cuda:sm_120,cudnn=1"},
            {"convnet@250:train", DType::bf16, "cuda:sm_100"},
            {"resnet50@16x3x224x224:train", DType::f32, "cuda:sm_90,cudnn=1"}};
  }
  std::vector<ResourcesCase> all;
  for (const char* model :
       {"convnet@250:train", "convnet_save_input@250:train", "convnet@1", "resnet50@16x3x224x224:train",
        "resnet50@64x3x224x224:train", "resnet50@1x3x224x224", "resnet50@3x3x97x97:train",
        "mobilenet_v2@16x3x224x224:train", "vgg16@16x3x224x224:train", "densenet121@16x3x224x224:train"}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const int sm : {80, 90, 100, 120}) {
        for (const char* library : {"", ",cudnn=1"})
          all.push_back({model, dtype, fmt::format("cuda:sm_{}{}", sm, library)});
      }
    }
  }
  return all;
}

using Kernels = std::vector<std::shared_ptr<const ir::Kernel>>;

// Kernels of the plan, each once; those that only stand in for a call of cuDNN are the other plan's.
Kernels kernels_of(const ir::Graph& graph, const std::vector<bool>& donated, const std::string& target) {
  const scheduler::Plan plan = scheduler::make_plan(
      graph, {Target::parse(target), scheduler::Rules::all, donated, runtime::cudnn::supports_step});
  Kernels kernels;
  std::set<std::string> known;
  for (const scheduler::PlanStep& step : plan.steps) {
    if (!step.library && known.insert(ir::kernel_key_text(*step.kernel)).second) kernels.push_back(step.kernel);
  }
  return kernels;
}
Kernels kernels_of(const ResourcesCase& c) {
  const models::ModelGraph model = models::model_graph(c.model, c.dtype);
  return kernels_of(model.graph, {model.donated.begin(), model.donated.end()}, c.target);
}

// All arrays of some size can be moved by whole accesses of 16 bytes. Packing transposes: an access for every element.
// So does what brings the gradient of a stem's blocks back to its 9,408 weights (passes/few_channels), from 131,072.
bool all_wide(const ir::Kernel& kernel) {
  if (kernel.name.starts_with("pack_")) return false;
  bool any = false;
  for (const ir::Memory& m : kernel.memories) {
    if (m.kind == ir::MemKind::register_local || m.kind == ir::MemKind::scratch_local || m.elements() <= 1 << 17)
      continue;
    if (m.dims.back() * bits(m.dtype) % 128 != 0) return false;
    any = true;
  }
  return any;
}

bool moves_sixteen_bytes(std::string_view ptx) {
  for (const char* access : {"global.v4.f32", "global.nc.v4.f32", "global.v4.u32", "global.nc.v4.u32", "global.v4.b32",
                             "global.nc.v4.b32", "global.v2.f64", "global.nc.v2.f64", "global.v2.u64",
                             "global.nc.v2.u64", "global.v2.b64", "global.nc.v2.b64"}) {
    if (ptx.find(access) != std::string_view::npos) return true;
  }
  return false;
}

struct Found {
  std::size_t entries = 0, wide = 0;
  std::vector<std::string> complaints;
};

struct Limits {
  int registers = 128;
  bool wide = true;  // accesses are looked at too
};

void check_program(const Kernels& kernels, std::size_t first, std::size_t count, int capability, const Limits& limits,
                   Found& found) {
  std::vector<CudaSource> sources;
  for (std::size_t k = first; k < first + count; ++k)
    sources.push_back(codegen::cuda::emit(*kernels[k], fmt::format("k{}", k)));
  const std::string program = codegen::cuda::program(sources);
  for (const codegen::cuda::Resources& r : codegen::cuda::compile(program, capability).entries) {
    ++found.entries;
    if (r.spill_bytes == 0 && r.stack_bytes == 0 && r.registers <= limits.registers) continue;
    const auto k = static_cast<std::size_t>(std::stoi(r.entry.substr(r.entry.find("_k") + 2)));
    found.complaints.push_back(fmt::format("{} of {}: {} registers, {} bytes spilled, {} of stack", r.entry,
                                           kernels[k]->name, r.registers, r.spill_bytes, r.stack_bytes));
  }
  if (!limits.wide || (capability != 90 && capability != 100))
    return;  // the front end writes the same accesses for the others
  const std::string ptx = codegen::cuda::compile_to_ptx(program, capability);
  for (std::size_t k = first; k < first + count; ++k) {
    if (!all_wide(*kernels[k])) continue;
    ++found.wide;
    // The first launch is the one that moves arrays.
    const std::string& entry = sources[k - first].launches[0].entry;
    const std::size_t begin = ptx.find(fmt::format(".entry {}(", entry)), end = ptx.find("\n.visible", begin);
    const std::string_view body = std::string_view(ptx).substr(begin, end == std::string::npos ? end : end - begin);
    if (!moves_sixteen_bytes(body))
      found.complaints.push_back(fmt::format("{} of {}: no access of 16 bytes", entry, kernels[k]->name));
  }
}

// All kernels, some at a time in each thread.
Found check_kernels(const Kernels& kernels, int capability, const Limits& limits) {
  constexpr std::size_t kTogether = 8;
  std::atomic<std::size_t> next = 0;
  std::vector<Found> found(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (Found& mine : found) {
    threads.emplace_back([&] {
      for (std::size_t first; (first = next.fetch_add(kTogether)) < kernels.size();) {
        try {
          check_program(kernels, first, std::min(kTogether, kernels.size() - first), capability, limits, mine);
        } catch (const std::exception& error) {
          mine.complaints.emplace_back(error.what());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Found all;
  for (const Found& f : found) {
    all.entries += f.entries, all.wide += f.wide;
    all.complaints.insert(all.complaints.end(), f.complaints.begin(), f.complaints.end());
  }
  return all;
}

class CudaResources : public ::testing::TestWithParam<ResourcesCase> {};

TEST_P(CudaResources, KernelsOfThePlanFit) {
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  const auto kernels = kernels_of(GetParam());
  const int capability = Target::parse(GetParam().target).compute_capability;
  const Found found = check_kernels(kernels, capability, {});
  for (const std::string& complaint : found.complaints) ADD_FAILURE() << complaint;
  EXPECT_GE(found.entries, kernels.size());
  if (capability == 90) {
    EXPECT_GT(found.wide, 0u);
  }
}
INSTANTIATE_TEST_SUITE_P(Plans, CudaResources, ::testing::ValuesIn(cases()), [](const auto& info) {
  std::string text = describe(info.param);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return text;
});

void expect_no_spills(const Kernels& kernels, int capability, const std::string& what) {
  const Found found = check_kernels(kernels, capability, {.registers = 255, .wide = false});
  EXPECT_GE(found.entries, kernels.size());
  for (const std::string& complaint : found.complaints)
    ADD_FAILURE() << what << " on sm_" << capability << ": " << complaint;
}

// No shape spills. f64 takes two registers a value, so its tiles may have more than 128.
TEST(RandomCudaResources, NothingSpills) {
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  constexpr int kCapabilities[] = {80, 90, 100};
  const auto check = [](std::uint64_t seed, int capability) {
    const fusejit::testing::Network network = fusejit::testing::random_network(seed);
    const fusejit::testing::TrainingGraph step = fusejit::testing::training_graph(network);
    expect_no_spills(kernels_of(step.graph, step.donated, fmt::format("cuda:sm_{}", capability)), capability,
                     fmt::format("seed {}, {}", seed, network.str()));
  };
  check(2, 100), check(73, 100);  // a tile in f64, a linear layer in f32
  check(293, 90);                 // a long loop of a linear layer, whose rounds divide
  for (std::uint64_t seed = 1; testing::is_nightly() && seed <= 250; ++seed)
    for (const int capability : kCapabilities) check(seed, capability);
}

// Shapes that have spilled: the gradient of a gelu behind a linear layer in f64, and 4x4 windows of stride 2.
TEST(KnownCudaResources, NothingThatHasSpilledDoes) {
  if (!codegen::cuda::nvrtc().available) GTEST_SKIP() << "NVRTC: " << codegen::cuda::nvrtc().why_not;
  const struct {
    int capability;
    const char* graph;
  } cases[] = {{90, R"(graph @gelu_grad(%dy: f64[8,32,32,64], %w: f64[256,64], %h: f64[8,32,32,256]) {
  %0 = linear(%dy, %w) : f64[8,32,32,256]
  %1 = mul(%h, 0.7071067811865476) : f64[8,32,32,256]
  %2 = erf(%1) : f64[8,32,32,256]
  %3 = add(%2, 1) : f64[8,32,32,256]
  %4 = mul(%3, 0.5) : f64[8,32,32,256]
  %5 = mul(%h, %h) : f64[8,32,32,256]
  %6 = mul(%5, -0.5) : f64[8,32,32,256]
  %7 = exp(%6) : f64[8,32,32,256]
  %8 = mul(%7, 0.3989422804014327) : f64[8,32,32,256]
  %9 = mul(%8, %h) : f64[8,32,32,256]
  %10 = add(%4, %9) : f64[8,32,32,256]
  %11 = mul(%0, %10) : f64[8,32,32,256]
  return %11
})"},
               {100, R"(graph @strided(%x: f32[8,64,32,32]:nhwc, %w: f32[128,64,4,4]:nhwc, %b: f32[128]) {
  %0 = conv2d(%x, %w) {stride=[2,2], padding=[1,1,1,1]} : f32[8,128,16,16]:nhwc
  %1 = bias_add(%0, %b) : f32[8,128,16,16]:nhwc
  %2 = mean(%1) {dim=[0,2,3]} : f32[128]
  %3 = var(%1) {dim=[0,2,3]} : f32[128]
  return %1, %2, %3
})"}};
  for (const auto& c : cases)
    expect_no_spills(kernels_of(ir::parse_graph(c.graph), {}, fmt::format("cuda:sm_{}", c.capability)), c.capability,
                     c.graph);
}

}  // namespace
}  // namespace fusejit::test
