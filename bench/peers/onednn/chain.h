// A network in training as a chain of oneDNN primitives, written by hand as its examples do: every primitive chooses
// its formats, what differs is reordered, batch norms have their ReLU fused, and gradients share memory as soon as it
// is free.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <vector>

namespace onednn {

using dnnl::memory;
using Dims = memory::dims;
using Type = memory::data_type;
using Tag = memory::format_tag;

// Normal numbers around `mean`, whatever the format and the type.
void fill(const memory& target, float mean, float deviation, dnnl::stream& stream);

// A gradient, with the hold on its buffer: when the last one goes, a later gradient may have it.
struct Gradient {
  memory data;
  std::shared_ptr<void> hold;
};

struct Value {
  memory data;
  std::vector<Gradient> gradients = {};  // which add up
};
using ValueRef = std::shared_ptr<Value>;

class Chain {
 public:
  Chain(Type type, float rate) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), type_(type), rate_(rate) {}

  ValueRef input(const Dims& dims);  // [N,C,H,W], normal numbers
  ValueRef conv(const ValueRef& x, int outputs, int kernel, int stride, bool with_input_gradient = true);
  ValueRef batch_norm(const ValueRef& x, bool relu);
  ValueRef add_relu(const ValueRef& a, const ValueRef& b);
  ValueRef max_pool(const ValueRef& x, int kernel, int stride, int padding) {
    return pool(x, dnnl::algorithm::pooling_max, kernel, stride, padding);
  }
  ValueRef average_pool(const ValueRef& x) {  // over the whole image
    const auto side = static_cast<int>(x->data.get_desc().get_dims()[2]);
    return pool(x, dnnl::algorithm::pooling_avg_exclude_padding, side, 1, 0);
  }
  ValueRef linear(const ValueRef& x, int outputs);
  // Cross-entropy with the labels 0, 1, 2, …, then the backward pass and SGD with momentum: the chain is whole.
  void finish(const ValueRef& logits);
  // One training step; gives the loss.
  double step();
  // What a step moves if each primitive reads its operands and writes its results once, and a batch norm too, which
  // reads them twice in truth: a count, no measurement. What primitives keep to themselves (scratchpads) is not in it.
  std::size_t moved_bytes() const;

 private:
  struct Call {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
  };
  memory::desc any(const Dims& dims) const { return {dims, type_, Tag::any}; }
  // The same value in this format.
  memory as(const memory& value, const memory::desc& wanted, std::vector<Call>& calls);
  // calls += "into = scale_a * into + scale_b * b".
  void add(const memory& into, float scale_a, float scale_b, const memory& b, std::vector<Call>& calls);
  Gradient gradient_buffer(const memory::desc& desc);
  Gradient gradient_of(Value& value);
  memory parameter(const memory::desc& desc, float mean, float deviation);
  void update(const memory& value, const memory& gradient);
  ValueRef pool(const ValueRef& x, dnnl::algorithm algorithm, int kernel, int stride, int padding);
  double loss_and_gradient();
  void run(const std::vector<Call>& calls);

  dnnl::engine engine_;
  dnnl::stream stream_;
  Type type_;
  float rate_;
  std::vector<Call> forward_, backward_, update_;
  std::vector<std::function<void()>> later_;  // what adds the backward calls, in the order of the forward pass
  std::vector<memory> buffers_;
  std::map<std::size_t, std::vector<void*>> free_;  // by bytes
  memory scores_, logits_gradient_;                 // log-probabilities, and the loss's gradient: f32 [N,classes]
};

}  // namespace onednn
