// The built-in models as graphs, by name, so that tools can look at them without running them:
//   convnet@256:train          the digits network, loss, gradients and Adadelta's update at batch 256
//   convnet_save_input@256:train   with layers that keep only their input
//   resnet18@16x3x224x224:train    cross-entropy, gradients and SGD with momentum
//   resnet34, resnet50, mobilenet_v2, vgg16, vgg16_bn, densenet121, squeezenet1_0, squeezenet1_1, unet   likewise
//   resnet50@1x3x224x224           inference; so with the others
//   resnet50@16x3x224x224:train:autocast=bf16   recorded inside an Autocast (fusejit/autocast.h); so with the others
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusejit/module.h"
#include "fusejit/optim.h"
#include "ir/graph.h"

namespace fusejit::models {

struct NamedModel {
  std::string_view name;
  std::string_view example;  // a whole source text
  std::string_view meaning;
  std::shared_ptr<nn::Module> (*make)();
};
const std::vector<NamedModel>& named_models();
// UserError, with the names that there are, for another one.
const NamedModel& model_named(std::string_view name);

// True if the text names a built-in model, whatever follows the '@': then it is no file name.
bool is_model_source(std::string_view source);

// A network with what a step of it takes.
struct NamedNetwork {
  std::string name;
  bool train = false;
  std::optional<DType> autocast;
  std::shared_ptr<nn::Module> net;
  std::shared_ptr<optim::Optimizer> optimizer;
  Type input;                // images
  Shape target;              // of labels, i64: one for each image, or for each of its pixels
  std::int64_t classes = 0;  // targets are below it
  Tensor (*loss)(const Tensor& y, const Tensor& target) = nullptr;
};
// Images, parameters and the optimiser's state are of `dtype`. UserError, one sentence, for an unknown name or a shape
// that the model cannot take.
NamedNetwork named_network(std::string_view source, DType dtype = DType::f32);

struct ModelGraph {
  ir::Graph graph;            // parameters carry the model's names
  std::vector<char> donated;  // per parameter: a training step writes its new value over it
};
// One step of named_network(), or its inference.
ModelGraph model_graph(std::string_view source, DType dtype = DType::f32);

}  // namespace fusejit::models
