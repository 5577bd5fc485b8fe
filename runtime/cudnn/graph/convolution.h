// From a ConvolutionCall to cuDNN's operation graph: one operation for the convolution, one per point-wise step and
// sum.
#pragma once

#include "runtime/cudnn/graph/graph_builder.h"

namespace fusejit::runtime::cudnn {

// Throws UserError for a call that cannot be meant, DeviceError where cuDNN refuses to describe it.
OperationGraph build_graph(const std::shared_ptr<const Library>& library, const ConvolutionCall& call);

}  // namespace fusejit::runtime::cudnn
