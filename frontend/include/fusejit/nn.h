// The layers; names, meaning and initialisation (uniform within 1/sqrt(fan_in), from the default generator, unless a
// layer says otherwise) are PyTorch's. Parameters are f32 until Module::to. Input of another shape or dtype is a
// UserError, and so are sizes below one when a layer is made, and batch norm by the statistics of a batch that has one
// value a channel.
//
//   fj::nn::Sequential net(fj::nn::Conv2d(1, 8, 3, {.padding = "same"}), fj::nn::ReLU(), fj::nn::Flatten(),
//                          fj::nn::Linear(8 * 4 * 4, 10));
//   fj::Tensor logits = net(fj::ones({2, 1, 4, 4}));  // [2,10]
#pragma once

#include "fusejit/nn/activation.h"
#include "fusejit/nn/container.h"
#include "fusejit/nn/convolution.h"
#include "fusejit/nn/init.h"
#include "fusejit/nn/linear.h"
#include "fusejit/nn/normalization.h"
#include "fusejit/nn/shape.h"
