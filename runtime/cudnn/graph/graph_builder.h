// GraphBuilder: adds tensors and operations to an operation graph of cuDNN. Tensors and operations are named by their
// place in `parts`; a tensor of a role exists once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/cudnn/call.h"
#include "runtime/cudnn/library/descriptor.h"

namespace fusejit::runtime::cudnn {

// A tensor that `execute` is given the address of.
struct TensorUse {
  Role role;
  Type type;
};

// A finalised operation graph, the descriptors that it refers to, and its tensors in memory.
struct OperationGraph {
  std::vector<Descriptor> parts;
  std::vector<TensorUse> tensors;
  Descriptor graph;
};

class GraphBuilder {
 public:
  using Part = std::size_t;
  GraphBuilder(std::shared_ptr<const Library> library, Layout layout) : library_(std::move(library)), layout_(layout) {}

  Part tensor(Role role, const Shape& shape, DType dtype);
  // One of the call's vectors, [1,channels,1,1].
  Part vector(Role role, std::int64_t channels, DType dtype) { return tensor(role, Shape{1, channels, 1, 1}, dtype); }
  // A value that is never stored.
  Part value(const Shape& shape, DType dtype) { return tensor(next_value_++, shape, dtype, true); }

  // The convolution itself, between the parts of its three tensors.
  void convolution(const ConvolutionCall& call, Part x, Part w, Part y);
  // out = mode(a, b), or mode(a). For RELU_BWD a is the gradient and b what is compared with 0.
  struct Clip {
    std::optional<double> upper{};
    std::optional<double> slope{};
  };
  void pointwise(PointwiseMode mode, Part a, std::optional<Part> b, Part out, const Clip& clip);
  void pointwise(PointwiseMode mode, Part a, std::optional<Part> b, Part out) { pointwise(mode, a, b, out, Clip{}); }
  // Σ over N, H and W.
  void sum(Part value, Part out);
  void statistics(Part value, Part sum, Part sum_of_squares);
  struct BatchNormWeights {
    Part dz, pre_norm, mean, inverse_std, gamma;                         // read
    Part dbeta, dgamma, coefficient_dy, coefficient_x, coefficient_one;  // written
  };
  void batch_norm_weights(const BatchNormWeights& parts);

  OperationGraph finish() &&;

 private:
  Part tensor(std::int64_t id, const Shape& shape, DType dtype, bool is_virtual);
  Descriptor& add(DescriptorType type) { return result_.parts.emplace_back(library_, type); }
  Part last() const { return result_.parts.size() - 1; }
  void finish_operation(Descriptor& operation);

  std::shared_ptr<const Library> library_;
  Layout layout_;
  OperationGraph result_;
  std::map<Role, Part> of_role_;
  std::vector<Part> operations_;
  std::int64_t next_value_ = 100;  // ids below are those of roles
};

}  // namespace fusejit::runtime::cudnn
