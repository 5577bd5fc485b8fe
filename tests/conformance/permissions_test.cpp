// What a plan may do with its arguments is a matter of one call: a plan that overwrites an argument that was given up,
// or that keeps what it packed of one that is fixed, serves no call that permits neither, nor the other way round.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "runtime/session.h"
#include "tests/conformance/compare.h"

namespace fusejit {
namespace {

using runtime::Buffer;

const char* const kConvolution = R"(graph @forward(%x: f32[1,16,6,6], %w: f32[16,16,3,3]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[1,16,6,6]
  return %0
})";
// Its weights are packed the other way round, into as many bytes.
const char* const kInputGradient = R"(graph @backward(%g: f32[1,16,6,6], %w: f32[16,16,3,3]) {
  %0 = conv2d_input_grad(%g, %w) {input_size=[6,6], padding=[1,1,1,1]} : f32[1,16,6,6]
  return %0
})";

Buffer copy_of(const Buffer& buffer) {
  Buffer copy = Buffer::allocate(buffer.type());
  std::memcpy(copy.data(), buffer.data(), static_cast<std::size_t>(buffer.bytes()));
  return copy;
}

TEST(Permissions, AnArgumentIsGivenUpForOneCall) {
  const ir::Graph graph = ir::parse_graph("graph @g(%x: f32[4096]) { %0 = add(%x, 1) : f32[4096] return %0 }");
  const std::vector<Buffer> arguments = testing::random_arguments(graph, 3);
  const std::vector<Buffer> before{copy_of(arguments[0])};
  runtime::Session session({.threads = 1});
  const bool yes[] = {true};
  std::vector<Buffer> given{copy_of(arguments[0])};
  const void* const place = given[0].data();
  const std::vector<Buffer> in_place = session.run(graph, std::exchange(given, {}), yes);
  EXPECT_EQ(in_place[0].data(), place) << "otherwise this shows nothing";
  const std::vector<Buffer> beside = session.run(graph, arguments);
  EXPECT_TRUE(testing::same_bits(arguments, before)) << "an argument was overwritten that its caller keeps";
  EXPECT_TRUE(testing::same_bits(beside, in_place));
}

TEST(Permissions, WhatIsPackedIsKeptFromTheCallOnThatFixesIt) {
  const ir::Graph graph = ir::parse_graph(kConvolution);
  const std::vector<Buffer> arguments = testing::random_arguments(graph, 3);
  runtime::Session session({.threads = 1});
  const std::vector<Buffer> want = session.run(graph, arguments);
  const std::int64_t packing = session.statistics().last_run.kernels;
  arguments[1].fix();
  EXPECT_TRUE(testing::same_bits(session.run(graph, arguments), want));
  EXPECT_TRUE(testing::same_bits(session.run(graph, arguments), want));
  EXPECT_EQ(session.statistics().last_run.kernels, packing - 1) << "weights are packed again";
  arguments[1].unfix();
  static_cast<float*>(arguments[1].data())[0] += 1;
  const std::vector<Buffer> trained = session.run(graph, arguments);
  EXPECT_FALSE(testing::same_bits(trained, want)) << "weights that were packed before they changed";
  EXPECT_EQ(session.statistics().last_run.kernels, packing);
}

TEST(Permissions, WhatIsKeptIsOfTheKernelThatPackedIt) {
  for (const bool fixed : {false, true}) {
    const ir::Graph forward = ir::parse_graph(kConvolution), backward = ir::parse_graph(kInputGradient);
    const std::vector<Buffer> arguments = testing::random_arguments(forward, 3);
    if (fixed) arguments[1].fix();
    runtime::Session session({.threads = 1}), interpreter({.engine = runtime::Engine::graph_interpreter});
    for (const ir::Graph* graph : {&forward, &backward, &forward}) {
      const std::vector<Buffer> want = interpreter.run(*graph, arguments);
      EXPECT_LE(testing::excess(session.run(*graph, arguments), want, {}), 0) << graph->name() << ", fixed: " << fixed;
    }
  }
}

TEST(Permissions, NothingIsKeptWithABufferThatMayChange) {
  const Buffer buffer = Buffer::allocate(Type(f32, {4}));
  const ir::Hash key = ir::hash_text("packed");
  buffer.keep(key, Buffer::allocate(buffer.type()));
  buffer.fix();
  EXPECT_FALSE(buffer.derived(key));
  buffer.keep(key, Buffer::allocate(buffer.type()));
  EXPECT_TRUE(buffer.derived(key));
  buffer.unfix();
  EXPECT_FALSE(buffer.derived(key));
}

}  // namespace
}  // namespace fusejit
