// Values of no elements on a device: a launch of no blocks is an error there, and memory of no bytes has no address.
// Ops on them are interpreted, and their results lie on the device all the same.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/cuda/backend.h"
#include "runtime/session.h"
#include "tests/support/fake_device/fake_caller.h"
#include "tests/support/fake_device/fake_compiler.h"
#include "tests/support/step_arguments.h"

namespace fusejit::runtime {
namespace {

TEST(CudaEmpty, GraphsOfEmptyValuesRun) {
  const char* const graphs[] = {
      "graph @g(%x: f32[0,3]) { %0 = neg(%x) : f32[0,3] return %0 }",
      "graph @g(%x: f32[4,0]) { %0 = sum(%x) {dim=[1]} : f32[4] %1 = add(%0, 1) : f32[4] return %1 }",
      "graph @g(%x: f32[0,5]) { %0 = sum(%x) {dim=[0]} : f32[5] return %0 }",
      "graph @g(%x: f32[0]) { %0 = sum(%x) {dim=[0]} : f32[] return %0 }",
      "graph @g(%x: f32[3,0], %y: f32[0,4]) { %0 = matmul(%x, %y) : f32[3,4] return %0 }",
      "graph @g(%x: f32[0,3], %y: f32[3,4]) { %0 = matmul(%x, %y) : f32[0,4] return %0 }",
      "graph @g(%x: f32[0,8,6,6]:nhwc, %w: f32[8,8,3,3]:nhwc) { %0 = conv2d(%x, %w) : f32[0,8,4,4]:nhwc %1 = relu(%0) "
      ": f32[0,8,4,4]:nhwc return %1 }",
      "graph @g(%x: f32[2,0], %y: f32[2,3]) { %0 = concat(%x, %y) {dim=1} : f32[2,3] return %0 }",
      "graph @g(%x: f32[0,3], %y: f32[2,3]) { %0 = neg(%x) : f32[0,3] %1 = neg(%y) : f32[2,3] return %0, %1 }",
      "graph @g(%x: f32[0,3]) { return %x }",
  };
  for (const char* text : graphs) {
    SCOPED_TRACE(text);
    const ir::Graph graph = ir::parse_graph(text);
    const std::vector<Buffer> arguments = test::drawn_arguments(graph, 3);
    Session reference({.engine = Engine::graph_interpreter, .threads = 1});
    const std::vector<Buffer> want = reference.run(graph, arguments);
    test::FakeDriver fake;
    {
      const auto device = cuda::CudaDevice::open(fake.table(), 0);
      CudaBackendOptions options;
      options.numerics.tf32 = true;  // f32 convolutions are calls, too
      options.compile = test::fake_compiler(fake);
      options.caller = std::make_shared<test::FakeCaller>(device, options.compile);
      Session session({.target = Target::parse("cuda:sm_90,cudnn=1"),
                       .threads = 1,
                       .results_on_device = true,
                       .backend = std::make_shared<CudaBackend>(device, options)});
      for (int run = 0; run < 3; ++run) {
        std::vector<Buffer> got = session.run(graph, arguments);
        ASSERT_EQ(got.size(), want.size());
        for (Buffer& result : got) {
          EXPECT_EQ(result.device(), Device("cuda:0"));
          result = result.on_host();
        }
        for (std::size_t r = 0; r < got.size(); ++r) {
          EXPECT_EQ(got[r].type(), want[r].type());
          EXPECT_EQ(std::memcmp(got[r].data(), want[r].data(), static_cast<std::size_t>(want[r].bytes())), 0);
        }
      }
    }
    EXPECT_EQ(fake.problems(), std::vector<std::string>());
    EXPECT_EQ(fake.leaks(), std::vector<std::string>());
  }
}

}  // namespace
}  // namespace fusejit::runtime
