// What a value was computed from.
#pragma once

#include <memory>
#include <vector>

#include "fusejit/grad.h"
#include "ir/graph.h"

namespace fusejit {

// For each value whether `result` was computed from it, if need be by a way that no other of the values is on.
std::vector<bool> leads_to(const std::vector<Tensor>& values, const Tensor& result, bool end_at_values = false);

// custom_gradient(), of one call, with what the backward function keeps beside what is saved.
Tensor with_gradient(const Saved& made, const std::vector<Tensor>& inputs, CustomBackward backward,
                     std::shared_ptr<const std::vector<ir::Value>> kept = nullptr);

// grad(), with gradients that end at the inputs where they are to: nothing flows from one input through another.
std::vector<Tensor> grad_through(const std::vector<Tensor>& results, const std::vector<Tensor>& cotangents,
                                 const std::vector<Tensor>& inputs, bool end_at_inputs);

}  // namespace fusejit
