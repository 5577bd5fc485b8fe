// Every anchor of three well-known networks has a plan, forward and backward, on every described device.
#include "tests/unit/cudnn/networks.h"

#include "tests/unit/cudnn/with_cudnn.h"

namespace fusejit::runtime::cudnn {
namespace {

std::vector<ConvolutionCall> training_calls() {
  std::vector<ConvolutionCall> calls;
  for (const std::vector<Anchor>& network : {resnet50(), mobilenet_v2(), vgg16()}) {
    for (const Anchor& anchor : network) {
      ConvolutionCall call = call_of(anchor, 32);
      for (const Direction d : {Direction::forward, Direction::input_gradient, Direction::weight_gradient}) {
        call.direction = d;
        if (d != Direction::input_gradient || !anchor.first) calls.push_back(call);
      }
    }
  }
  return calls;
}

TEST(Networks, AnchorsAreThoseOfThePapers) {
  EXPECT_EQ(resnet50().size(), 24u);
  EXPECT_EQ(vgg16().size(), 12u);
  // The last layers say that the walk through the network kept sizes and widths right.
  EXPECT_EQ(resnet50()[21], (Anchor{2048, 7, 512, 1, 1, 1}));
  const std::vector<Anchor> mobilenet = mobilenet_v2();
  EXPECT_EQ(mobilenet[mobilenet.size() - 3], (Anchor{960, 7, 320, 1, 1, 1}));
  for (const ConvolutionCall& call : training_calls()) EXPECT_NO_THROW(call.check()) << call.str();
}

using NetworksOnCudnn = WithCudnn;

TEST_F(NetworksOnCudnn, EveryAnchorHasAPlan) {
  // 1 in 23 by default; 23 has no factor in common with the counts of devices, dtypes, layouts and directions.
  const std::size_t stride = testing::is_nightly() ? 1 : 23;
  std::size_t number = 0, planned = 0;
  for (const DeviceDescription& description : described_devices()) {
    for (ConvolutionCall call : training_calls()) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (const Layout layout : {Layout::nhwc, Layout::standard}) {
          if (number++ % stride) continue;
          call.dtype = dtype;
          call.layout = layout;
          const PlanResult found = find_plans(library_, device(std::string(description.name)), call);
          ASSERT_FALSE(found.plans.empty()) << description.name << ": " << call.str() << ": " << found.why_not();
          EXPECT_EQ(forbidden(found.plans[0].engine.numerical_notes, dtype, {}), nullptr);
          EXPECT_GE(found.plans[0].workspace_bytes, 0);
          EXPECT_TRUE(supports(call, description.compute_capability).ok) << call.str();
          ++planned;
        }
      }
    }
  }
  EXPECT_GE(planned, number / stride);
  RecordProperty("planned", static_cast<int>(planned));
}

}  // namespace
}  // namespace fusejit::runtime::cudnn
