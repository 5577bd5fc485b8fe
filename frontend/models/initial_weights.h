// Initial weights as torchvision's models draw them: not those of PyTorch's layers, and not the same in every model.
#pragma once

#include <cstdint>

#include "fusejit/module.h"

namespace fusejit::models {

// What a kernel's variance is 2 over (He et al. 2015, "Delving Deep into Rectifiers", eq. 10 and 14).
enum class Fan : std::uint8_t {
  in,  // input channels of a group times taps
  out  // output channels, of all groups, times taps
};

struct InitialWeights {
  Fan fan = Fan::out;        // of convolutions' kernels, which are normal with mean 0
  double matrices = 0;       // standard deviation of linear layers' weights, also normal; 0: as the layer drew them
  bool zero_biases = false;  // of convolutions and linear layers; else as the layer drew them
};
// Draws the parameters of a network anew, from the default generator, in their order. Batch norm's stay 1 and 0.
void draw_initial_weights(const nn::Module& net, const InitialWeights& weights);

}  // namespace fusejit::models
