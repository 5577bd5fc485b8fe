// The built-in models as graphs, by name, so that tools can look at them without running them:
//   convnet@256:train          the digits network, loss, gradients and Adadelta's update at batch 256
//   convnet_save_input@256:train   with layers that keep only their input
//   resnet18@16x3x224x224:train    cross-entropy, gradients and SGD with momentum
//   resnet50@16x3x224x224:train    likewise
//   mobilenet_v2@4x3x224x224:train  likewise
//   resnet50@1x3x224x224           inference; so with the others
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace fusejit::models {

struct NamedModel {
  std::string_view name;
  std::string_view example;  // a whole source text
  std::string_view meaning;
};
const std::vector<NamedModel>& named_models();

// True if the text names a built-in model, whatever follows the '@': then it is no file name.
bool is_model_source(std::string_view source);

struct ModelGraph {
  ir::Graph graph;            // parameters carry the model's names
  std::vector<char> donated;  // per parameter: a training step writes its new value over it
};
// Images, parameters and the optimiser's state are of `dtype`. UserError, one sentence, for an unknown name or a shape
// that the model cannot take.
ModelGraph model_graph(std::string_view source, DType dtype = DType::f32);

}  // namespace fusejit::models
