// Every edge between two kernels of a plan has its sentence. In strict mode every plan of every test is held to it;
// here are the built-in models, and that a missing sentence is found.
#include "scheduler/report/explained.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/models/named.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

std::string first_unexplained(const Plan& plan) {
  const std::vector<Edge> edges = unexplained_edges(plan);
  if (edges.empty()) return "";
  const auto& [producer, consumer, value, bytes] = edges[0];
  const auto said = [&](int s) {
    return fmt::format("{}", fmt::join(plan.steps[static_cast<std::size_t>(s)].ops, ", "));
  };
  return fmt::format("{} of {} edges; ({}) -> ({}) by {}", edges.size(), edges_of(plan).size(), said(producer),
                     said(consumer), plan.values[static_cast<std::size_t>(value)].label);
}

TEST(Explained, EveryEdgeOfTheBuiltInModels) {
  for (const char* model :
       {"convnet@32:train", "convnet@1", "convnet_save_input@32:train", "resnet18@2x3x64x64:train",
        "resnet18@1x3x64x64", "resnet50@2x3x64x64:train", "resnet50@1x3x64x64", "mobilenet_v2@2x3x64x64:train",
        "mobilenet_v2@1x3x64x64", "vgg16@2x3x64x64:train", "densenet121@2x3x64x64:train"}) {
    for (const char* target : {"x86:avx512", "cuda:sm_90", "cuda:sm_90,cudnn=2"}) {
      const models::ModelGraph m = models::model_graph(model);
      const Plan plan = make_plan(
          m.graph,
          {Target::parse(target), Rules::all, {m.donated.begin(), m.donated.end()}, runtime::cudnn::supports_step});
      EXPECT_EQ(first_unexplained(plan), "") << model << " on " << target;
      EXPECT_GE(edges_of(plan).size(), plan.steps.size() / 3) << model << " on " << target;
    }
  }
}

// A step as people train it: each of its large tensors that a kernel leaves to another has one sentence, and its bytes.
TEST(Explained, EveryFullSizeEdgeOfResNet50) {
  const models::ModelGraph m = models::model_graph("resnet50@16x3x224x224:train");
  for (const char* target : {"x86:avx512", "cuda:sm_90"}) {
    const Plan plan = make_plan(m.graph, {Target::parse(target), Rules::all, {m.donated.begin(), m.donated.end()}});
    EXPECT_EQ(first_unexplained(plan), "") << target;
    constexpr std::int64_t kFullSize =
        std::int64_t{4} * 16 * 512 * 7 * 7;  // of the smallest image between convolutions
    const std::vector<Edge> edges = edges_of(plan);
    EXPECT_GE(std::count_if(edges.begin(), edges.end(), [](const Edge& e) { return e.bytes >= kFullSize; }), 200);
    int large = 0;
    for (const Refusal& refusal : plan.refusals) {
      if (refusal.bytes < kFullSize) continue;
      ++large;
      EXPECT_FALSE(refusal.producer.empty() || refusal.consumer.empty()) << refusal.sentence;
      EXPECT_GT(refusal.sentence.size(), 20u) << refusal.producer << " -> " << refusal.consumer;
      EXPECT_EQ(refusal.sentence.find('\n'), std::string::npos) << refusal.sentence;
      EXPECT_EQ(refusal.sentence.find(". "), std::string::npos) << "one sentence: " << refusal.sentence;
    }
    EXPECT_GE(large, 200) << target;
  }
}

// A convolution's weights are laid out, its result is added to another's and read in a sum over all of it.
constexpr const char* kGraph = R"(graph @g(%x: f32[2,8,12,12], %v: f32[16,8,3,3], %w: f32[16,8,3,3]) {
  %0 = conv2d(%x, %v) : f32[2,16,10,10]
  %1 = conv2d(%x, %w) : f32[2,16,10,10]
  %2 = add(%0, %1) : f32[2,16,10,10]
  %3 = sum(%2) {dim=[0,2,3], keepdim=true} : f32[1,16,1,1]
  %4 = div(%2, %3) : f32[2,16,10,10]
  return %4
})";

TEST(Explained, AnEdgeWithoutARefusalIsFound) {
  Plan plan = make_plan(ir::parse_graph(kGraph), {Target::parse("x86:avx2"), Rules::all, {}});
  ASSERT_EQ(plan.steps.size(), 5u);      // two that pack, two convolutions, the quotient
  EXPECT_EQ(edges_of(plan).size(), 5u);  // each convolution reads weights, a quotient both, a sum the other's image
  EXPECT_TRUE(unexplained_edges(plan).empty()) << first_unexplained(plan);
  const std::vector<Refusal> all = std::exchange(plan.refusals, {});
  EXPECT_EQ(unexplained_edges(plan).size(), 5u);
  EXPECT_THROW(expect_explained(plan), InternalError);
  for (std::size_t without = 0; without < all.size(); ++without) {
    plan.refusals = all;
    plan.refusals.erase(plan.refusals.begin() + static_cast<std::ptrdiff_t>(without));
    const auto edges = unexplained_edges(plan);
    EXPECT_LE(edges.size(), 1u) << "without " << all[without].sentence;
  }
}

TEST(Explained, SaysWhichKernelWasChosenAndWhatTheOtherIs) {
  const Plan plan = make_plan(ir::parse_graph(kGraph), {Target::parse("x86:avx2"), Rules::all, {}});
  std::vector<std::string> sentences;
  for (const Refusal& refusal : plan.refusals)
    sentences.push_back(fmt::format("{} {} -> {} {}: {}", name(refusal.code), refusal.producer, refusal.consumer,
                                    refusal.bytes, refusal.sentence));
  const std::vector<std::string> expected = {
      "other_kernel %0 conv2d -> %3 sum 12800: %3 sum over f32[2,16,10,10]:nhwc runs with %1 conv2d; that and %0 "
      "conv2d "
      "are two anchors, and ops are fused around one",
      "reduction_barrier %1 conv2d -> %4 div 12800: %4 div f32[2,16,10,10] needs the finished reduction over all of "
      "f32[2,16,10,10]:nhwc",
      "reduction_barrier %3 sum -> %4 div 64: %4 div f32[2,16,10,10] needs the finished reduction over all of "
      "f32[2,16,10,10]:nhwc",
      "cycle %0 conv2d -> %4 div 12800: %4 div also needs a value that depends on the kernel",
      "packed %v packed -> %0 conv2d 9216: %0 conv2d reads its weights f32[16,8,3,3] many times, so a kernel before it "
      "lays them out anew",
      "packed %w packed -> %1 conv2d 9216: %1 conv2d reads its weights f32[16,8,3,3] many times, so a kernel before it "
      "lays them out anew"};
  EXPECT_EQ(fmt::format("{}", fmt::join(sentences, "\n")), fmt::format("{}", fmt::join(expected, "\n")));
}

}  // namespace
}  // namespace fusejit::scheduler
