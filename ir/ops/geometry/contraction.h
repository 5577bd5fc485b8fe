// The anchors as contractions, for their rows.
#pragma once

#include <vector>

#include "ir/contraction.h"

namespace fusejit::ir {

std::vector<Contraction> contraction_of_conv2d(const Node& node);
std::vector<Contraction> contraction_of_conv2d_input_grad(const Node& node);
std::vector<Contraction> contraction_of_conv2d_weight_grad(const Node& node);
std::vector<Contraction> contraction_of_matmul(const Node& node);
std::vector<Contraction> contraction_of_linear(const Node& node);

}  // namespace fusejit::ir
