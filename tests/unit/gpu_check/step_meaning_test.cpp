// What a plan's library steps say that they compute, as graphs, is what the calls of cuDNN that they are read as
// compute (in f64, tests/gpu_check/cudnn_reference.cpp): which value is which tensor of the call, and what happens to
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "frontend/models/named.h"
#include "ir/interp.h"
#include "ir/kernel/interp/interp.h"
#include "ir/passes/grad.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"
#include "tests/gpu_check/cudnn_run.h"

namespace fusejit::gpu_check {
namespace {

using cudnn::ConvolutionCall;
using cudnn::Mask;
using cudnn::Role;
using cudnn::StepCall;
using cudnn::Sums;

scheduler::Plan plan_of(const ir::Graph& graph, const char* target = "cuda:sm_90,cudnn=2") {
  return scheduler::make_plan(graph, {Target::parse(target), scheduler::Rules::all, {}, cudnn::supports_step});
}

std::vector<double> values_of(const ir::Array& array) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < array.type.elements(); ++i) values.push_back(array.at(i).as_double());
  return values;
}

ir::Array made_up(const Type& type, std::mt19937_64& random) {
  ir::Array array(type);
  for (std::int64_t i = 0; i < type.elements(); ++i) {
    const double value = static_cast<double>(random() % 2048) / 1024 - 1;
    array.set(i,
              type.dtype == DType::boolean ? ir::Scalar::of(value > 0) : ir::cast(ir::Scalar::of(value), type.dtype));
  }
  return array;
}

// The graph rounds where its values are of 16 bits; sums are of what was rounded.
void expect_close(const std::vector<double>& got, const std::vector<double>& want, const ConvolutionCall& call,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << call.str() << what;
  double largest = 0, off = 0;
  for (std::size_t k = 0; k < want.size(); ++k) {
    largest = std::max(largest, std::abs(want[k])), off = std::max(off, std::abs(want[k] - got[k]));
  }
  const double tolerance = call.dtype == DType::f32 ? 1e-5 : call.dtype == DType::f16 ? 4e-3 : 3e-2;
  EXPECT_LE(off, tolerance * largest) << call.str() << what;
}

// As a plan keeps it: a mask as bits.
Type in_memory(Type type) {
  if (type.dtype == DType::boolean) type.dtype = DType::b1;
  return type;
}
std::vector<std::byte> bytes_of(const ir::Array& array) {
  return array.type.shape.rank() == 4 ? to_bytes(in_memory(array.type), values_of(array)) : array.bytes;
}

std::vector<std::vector<double>> kernel_results(const scheduler::PlanStep& step,
                                                const std::vector<ir::Array>& arguments) {
  const ir::Graph& graph = step.library->graph;
  std::vector<std::vector<std::byte>> memory;
  for (const ir::Array& array : arguments) memory.push_back(bytes_of(array));
  for (const ir::Value& result : graph.results()) memory.emplace_back(static_cast<std::size_t>(result.type().bytes()));
  std::vector<void*> buffers;
  for (const int value : step.values) {
    const auto at = std::find(step.library->values.begin(), step.library->values.end(), value);
    buffers.push_back(memory[static_cast<std::size_t>(at - step.library->values.begin())].data());
  }
  ir::interpret(*step.kernel, buffers, {});
  std::vector<std::vector<double>> results;
  for (std::size_t i = 0; i < graph.results().size(); ++i) {
    const Type& type = graph.results()[i].type();
    const std::vector<std::byte>& bytes = memory[arguments.size() + i];
    std::vector<double>& values = results.emplace_back();
    if (type.shape.rank() == 4) {
      values = from_bytes(type, bytes);
    } else {
      for (std::int64_t k = 0; k < type.elements(); ++k)
        values.push_back(ir::load_element(bytes.data(), type.dtype, k).as_double());
    }
  }
  return results;
}

void expect_meant(const scheduler::PlanStep& planned, std::uint64_t seed) {
  const ir::Graph& graph = planned.library->graph;
  const StepCall step = cudnn::step_call(graph);
  std::mt19937_64 random(seed);
  std::vector<ir::Array> arguments;
  Tensors tensors;
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    arguments.push_back(made_up(graph.parameters()[i].type(), random));
    tensors[step.roles[i]] = values_of(arguments.back());
  }
  const std::vector<ir::Array> got = ir::interpret(graph, arguments);
  const Tensors want = meant(step.call, tensors);
  const std::vector<std::vector<double>> by_kernel = kernel_results(planned, arguments);
  ASSERT_EQ(got.size(), want.size()) << step.call.str();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Role role = step.roles[graph.parameters().size() + i];
    const std::vector<double> by_graph = values_of(got[i]);
    expect_close(by_graph, want.at(role), step.call, fmt::format("\n{}", name(role)));
    expect_close(by_kernel[i], by_graph, step.call, fmt::format("\n{} of the kernel", name(role)));
  }
}

// A residual block of three layers, in training: join, relu6 and plain relu, batch norm and bias.
ir::Graph block(const char* dtype, const char* activation) {
  const std::string image = fmt::format("{}[2,8,6,6]:nhwc", dtype), wide = fmt::format("{}[2,16,6,6]:nhwc", dtype);
  return ir::differentiate(
      ir::parse_graph(fmt::format(
          R"(graph @block(%x: {1}, %w0: {2}[16,16,1,1], %w1: {2}[8,16,1,1], %w2: {2}[8,8,3,3], %b2: {2}[8],
                          %w3: {2}[16,8,1,1], %s0: f32[16], %t0: f32[16], %s1: f32[8], %t1: f32[8], %s3: f32[16],
                          %t3: f32[16]) {{
  %c0 = conv2d(%x, %w0) : {1}
  %n0 = batch_norm_train(%c0, %s0, %t0) : {1}
  %r0 = relu(%n0) : {1}
  %c1 = conv2d(%r0, %w1) : {0}
  %n1 = batch_norm_train(%c1, %s1, %t1) : {0}
  %r1 = {3}(%n1) : {0}
  %c2 = conv2d(%r1, %w2) {{padding=[1,1,1,1]}} : {0}
  %a2 = bias_add(%c2, %b2) : {0}
  %r2 = relu(%a2) : {0}
  %c3 = conv2d(%r2, %w3) : {1}
  %n3 = batch_norm_train(%c3, %s3, %t3) : {1}
  %j = add(%n3, %r0) : {1}
  %r = relu(%j) : {1}
  return %r
}})",
          image, wide, dtype, activation)),
      {"x", "w0", "w1", "w2", "b2", "w3", "s0", "t0", "s1", "t1", "s3", "t3"});
}

TEST(StepMeaning, OfEveryCallIsThatOfItsGraph) {
  std::set<std::string> seen;  // steps around the convolution
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    for (const char* activation : {"relu", "relu6"}) {
      const scheduler::Plan plan = plan_of(block(dtype, activation));
      for (const scheduler::PlanStep& step : plan.steps) {
        if (!step.library) continue;
        const ConvolutionCall call = cudnn::step_call(step.library->graph).call;
        if (call.direction == cudnn::Direction::input_gradient)
          seen.insert(fmt::format("{}{}{}", call.side ? "side " : "",
                                  call.mask == Mask::bits     ? "bits "
                                  : call.mask == Mask::output ? "output "
                                                              : "",
                                  call.sums == Sums::gradient ? "sums"
                                  : call.sums == Sums::bias   ? "bias"
                                                              : ""));
        expect_meant(step, seen.size());
      }
    }
  }
  // The join's input comes from outside; then the first relu with what the join adds, the narrow one, that with a bias.
  EXPECT_EQ(seen, (std::set<std::string>{"", "side bits sums", "bits sums", "output bias"}));
}

TEST(StepMeaning, OfStatisticsBesideAConvolution) {
  const scheduler::Plan plan = plan_of(block("f16", "relu"), "cuda:sm_90,cudnn=1,fastnorm=1");
  int with_statistics = 0;
  for (const scheduler::PlanStep& step : plan.steps) {
    if (!step.library) continue;
    with_statistics += cudnn::step_call(step.library->graph).call.sums == Sums::statistics;
    expect_meant(step, 3);
  }
  EXPECT_EQ(with_statistics, 3) << "of four convolutions those that are normalised";
}

TEST(StepMeaning, OfNetworksToo) {
  struct Case {
    const char* model;
    DType dtype;
    int with_sums;
  };
  for (const auto& [model, dtype, least] :
       {Case{"resnet18@2x3x32x32:train", DType::f32, 11}, {"mobilenet_v2@2x3x32x32:train", DType::bf16, 33}}) {
    int with_sums = 0;
    std::set<std::string> seen;
    const scheduler::Plan plan = plan_of(models::model_graph(model, dtype).graph);
    for (const scheduler::PlanStep& step : plan.steps) {
      if (!step.library) continue;
      const ConvolutionCall call = cudnn::step_call(step.library->graph).call;
      with_sums += call.sums != Sums::none;
      if (call.x.elements() > 8200 || call.w.elements() > 37000 || !seen.insert(call.str()).second) continue;
      expect_meant(step, seen.size());
    }
    EXPECT_GE(with_sums, least) << model;
    EXPECT_GE(seen.size(), 3u) << model;
  }
}

}  // namespace
}  // namespace fusejit::gpu_check
