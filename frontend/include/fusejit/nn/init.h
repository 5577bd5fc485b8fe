// nn::init: new values of parameters, from the default generator (random.h). Names, formulas and defaults are
// PyTorch's. Each sets the parameter in place, in its dtype and on its device.
//
//   fj::nn::Conv2d conv(3, 8, 3);
//   fj::nn::init::kaiming_normal_(conv.weight(), {.mode = "fan_out", .nonlinearity = "relu"});
//
// A weight [out,in,...] has fan_in = in*(product of the rest) and fan_out = out*(product of the rest); what needs a fan
// is a UserError for a parameter of fewer than two axes, and so are an unknown word and a bound or deviation that is
// not finite or out of its range.
#pragma once

#include <string>

#include "fusejit/module.h"

namespace fusejit::nn::init {

void uniform_(const Parameter& parameter, double a = 0, double b = 1);      // in [a, b)
void normal_(const Parameter& parameter, double mean = 0, double std = 1);  // of that mean and deviation
// Normal, but drawn within [a, b].
void trunc_normal_(const Parameter& parameter, double mean = 0, double std = 1, double a = -2, double b = 2);
void constant_(const Parameter& parameter, double value);
void zeros_(const Parameter& parameter);
void ones_(const Parameter& parameter);

// Within gain*sqrt(6/(fan_in + fan_out)); with the deviation gain*sqrt(2/(fan_in + fan_out)). Glorot and Bengio 2010.
void xavier_uniform_(const Parameter& parameter, double gain = 1);
void xavier_normal_(const Parameter& parameter, double gain = 1);

struct KaimingOptions {
  double a = 0;                             // slope below 0, for leaky_relu
  std::string mode = "fan_in";              // or "fan_out"
  std::string nonlinearity = "leaky_relu";  // of calculate_gain
};
// Within gain*sqrt(3/fan); with the deviation gain/sqrt(fan). He et al. 2015.
void kaiming_uniform_(const Parameter& parameter, const KaimingOptions& options = {});
void kaiming_normal_(const Parameter& parameter, const KaimingOptions& options = {});

// gain times a matrix [first extent, product of the rest] whose rows are orthonormal, or its columns, if there are
// fewer. Saxe, McClelland and Ganguli 2013.
void orthogonal_(const Parameter& parameter, double gain = 1);

// What keeps the deviation of a layer's values behind a nonlinearity: 1 for "linear", "conv2d", "conv_transpose2d" and
// "sigmoid", 5/3 for "tanh", sqrt(2) for "relu", sqrt(2/(1 + a^2)) for "leaky_relu", 3/4 for "selu".
double calculate_gain(const std::string& nonlinearity, double a = 0.01);

}  // namespace fusejit::nn::init
