#include "runtime/cudnn/graph/graph_builder.h"

#include "ir/base/check.h"

namespace fusejit::runtime::cudnn {
namespace {

constexpr std::int64_t kAlignment = 16;

DataType data_type(DType dtype) {
  if (dtype == DType::f16) return CUDNN_DATA_HALF;
  if (dtype == DType::bf16) return CUDNN_DATA_BFLOAT16;
  if (dtype == DType::b1) return CUDNN_DATA_BOOLEAN;
  FJ_ASSERT(dtype == DType::f32, "cudnn: no data type for {}", name(dtype));
  return CUDNN_DATA_FLOAT;
}

struct Attributes {
  DescriptorType type;
  Attribute convolution, x, w, y, alpha, beta;
};
constexpr std::array<Attributes, 3> kAttributes = {{
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
}};

}  // namespace

GraphBuilder::Part GraphBuilder::tensor(Role role, const Shape& shape, DType dtype) {
  const auto [at, is_new] = of_role_.try_emplace(role);
  if (is_new) {
    at->second = tensor(static_cast<std::int64_t>(role), shape, dtype, false);
    result_.tensors.push_back({role, Type{dtype, shape, layout_}});
  }
  return at->second;
}

GraphBuilder::Part GraphBuilder::tensor(std::int64_t id, const Shape& shape, DType dtype, bool is_virtual) {
  Descriptor& tensor = add(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::array<std::int64_t, 4> strides = strides_of(shape, layout_);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(dtype));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.dims());
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  tensor.finalize();
  return last();
}

void GraphBuilder::finish_operation(Descriptor& operation) {
  operation.finalize();
  operations_.push_back(last());
}

void GraphBuilder::convolution(const ConvolutionCall& call, Part x, Part w, Part y) {
  Descriptor& conv = add(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const std::array<std::int64_t, 2> before{call.padding[0], call.padding[1]};
  const std::array<std::int64_t, 2> after{call.padding[2], call.padding[3]};
  conv.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  conv.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  conv.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  conv.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, before);
  conv.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, after);
  conv.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, call.stride);
  conv.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, call.dilation);
  conv.finalize();
  const Part convolution = last();
  const Attributes& names = kAttributes[static_cast<std::size_t>(call.direction)];
  Descriptor& operation = add(names.type);
  operation.set(names.convolution, result_.parts[convolution]);
  operation.set(names.x, result_.parts[x]);
  operation.set(names.w, result_.parts[w]);
  operation.set(names.y, result_.parts[y]);
  operation.set(names.alpha, 1.0f);
  operation.set(names.beta, 0.0f);
  finish_operation(operation);
}

void GraphBuilder::pointwise(PointwiseMode mode, Part a, std::optional<Part> b, Part out, const Clip& clip) {
  Descriptor& kind = add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  if (clip.upper) kind.set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, *clip.upper);
  if (clip.slope) kind.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, *clip.slope);
  kind.finalize();
  const Part pointwise = last();
  const bool backward = mode == CUDNN_POINTWISE_RELU_BWD;
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, result_.parts[pointwise]);
  if (backward) {
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, result_.parts[a]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, result_.parts[*b]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, result_.parts[out]);
  } else {
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, result_.parts[a]);
    if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, result_.parts[*b]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result_.parts[out]);
  }
  finish_operation(operation);
}

void GraphBuilder::sum(Part value, Part out) {
  Descriptor& kind = add(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, CUDNN_REDUCE_TENSOR_ADD);
  // Without this the sums are made by atomics, and no note says so.
  kind.set(CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC, true);
  kind.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  kind.finalize();
  const Part reduction = last();
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, result_.parts[reduction]);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, result_.parts[value]);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result_.parts[out]);
  finish_operation(operation);
}

void GraphBuilder::statistics(Part value, Part sum, Part sum_of_squares) {
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, result_.parts[value]);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, result_.parts[sum]);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, result_.parts[sum_of_squares]);
  finish_operation(operation);
}

void GraphBuilder::batch_norm_weights(const BatchNormWeights& parts) {
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  const std::pair<Attribute, Part> attributes[] = {
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, parts.dz},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, parts.pre_norm},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, parts.mean},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, parts.inverse_std},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, parts.gamma},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, parts.dbeta},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, parts.dgamma},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, parts.coefficient_dy},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, parts.coefficient_x},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, parts.coefficient_one},
  };
  for (const auto& [attribute, part] : attributes) operation.set(attribute, result_.parts[part]);
  finish_operation(operation);
}

OperationGraph GraphBuilder::finish() && {
  std::vector<RawDescriptor> operations;
  for (const Part operation : operations_) operations.push_back(result_.parts[operation].raw());
  result_.graph = Descriptor(library_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  result_.graph.set_raw(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        static_cast<std::int64_t>(operations.size()), operations.data());
  result_.graph.finalize();
  return std::move(result_);
}

}  // namespace fusejit::runtime::cudnn
