#include "frontend/models/named.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "frontend/context.h"
#include "frontend/evaluation/trace.h"
#include "frontend/nn/shapes_only.h"
#include "frontend/step.h"
#include "fusejit/autocast.h"
#include "fusejit/grad.h"
#include "fusejit/models.h"
#include "ir/base/check.h"

namespace fusejit::models {
namespace {

struct Source {
  std::string name;
  std::vector<std::int64_t> numbers;  // after '@', between 'x'
  bool train = false;
  std::optional<DType> autocast;
};

Source parse_source(std::string_view text) {
  const std::string whole(text);
  Source source;
  for (std::size_t colon; (colon = text.rfind(':')) != std::string_view::npos; text = text.substr(0, colon)) {
    const std::string_view word = text.substr(colon + 1);
    if (word == "train") {
      source.train = true;
    } else {
      FJ_CHECK(word == "autocast=bf16" || word == "autocast=f16",
               "model '{}': after ':' only 'train', 'autocast=bf16' and 'autocast=f16' are known", whole);
      source.autocast = word.ends_with("bf16") ? bf16 : f16;
    }
  }
  const std::size_t at = text.find('@');
  source.name = text.substr(0, at);
  const char* next = at == std::string_view::npos ? nullptr : text.data() + at + 1;
  const char* const end = text.data() + text.size();
  while (next) {
    std::int64_t number = 0;
    const auto [after, error] = std::from_chars(next, end, number);
    FJ_CHECK(error == std::errc() && number >= 1 && (after == end || *after == 'x'),
             "model '{}': the shape after '@' must be numbers like 16x3x224x224", whole);
    source.numbers.push_back(number);
    next = after == end ? nullptr : after + 1;
  }
  FJ_CHECK(!source.numbers.empty(), "model '{}': a shape is missing, such as {}@16", whole, source.name);
  return source;
}

// "0.weight" -> "layer0_weight": a name of the text form.
std::string text_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name[0] >= '0' && name[0] <= '9' ? "layer" + name : name;
}

using Names = std::unordered_map<const ir::Node*, std::string>;

// Names of everything that the network and its optimiser hold.
Names names_of(const nn::Module& net, const optim::Optimizer* optimizer) {
  Names names;
  for (const auto& [name, value] : net.named_values()) names[value_of(value.value()).get()] = text_name(name);
  if (!optimizer) return names;
  const auto parameters = net.named_parameters();
  for (const auto& [key, value] : optimizer->state_dict()) {
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos) continue;  // the number of steps
    const auto& [name, parameter] = parameters[static_cast<std::size_t>(std::stoll(key.substr(0, dot)))];
    names[value_of(value).get()] = text_name(name) + "_" + key.substr(dot + 1);
  }
  return names;
}

ModelGraph captured(const std::string& name, const std::vector<Tensor>& results, Names names,
                    const std::vector<Tensor>& replaced) {
  Trace trace;
  const std::lock_guard lock(context().graph_mutex);
  for (const Tensor& tensor : results) trace.add_result(tensor.state()->value);
  ModelGraph model;
  int numbers = 0;
  for (const int argument : trace.arguments()) {
    const ir::Node* node = trace.entries()[static_cast<std::size_t>(argument)].node;
    if (!names.contains(node)) names[node] = "number" + std::to_string(numbers++);
    model.donated.push_back(
        std::any_of(replaced.begin(), replaced.end(), [&](const Tensor& t) { return t.state()->value.get() == node; }));
  }
  model.graph = trace.graph(name, names);
  return model;
}

Tensor stand_in(const Type& type, const std::string& name, Names& names) {
  const Tensor tensor = nn::without_value(type);
  names[value_of(tensor).get()] = name;
  return tensor;
}

ModelGraph graph_of(const NamedNetwork& model) {
  nn::Module& net = *model.net;
  Names names = names_of(net, model.train ? model.optimizer.get() : nullptr);
  const Tensor x = stand_in(model.input, "x", names);
  if (!model.train) {
    net.eval();
    const Autocast cast(model.autocast.value_or(f32));
    const NoGrad off;
    return captured(model.name, {net(x)}, std::move(names), {});
  }
  const Tensor target = stand_in({i64, model.target, Layout::standard}, "target", names);
  Recording recording;
  recording.seed = 1;
  recording.name = model.name;
  const RecordingScope scope(recording);
  const RecordedStep step = record_step(recording, *model.optimizer, {.autocast = model.autocast},
                                        [&] { return std::vector{model.loss(net(x), target)}; });
  std::vector<Tensor> replaced;
  for (const Donation& donation : step.donations) replaced.push_back(donation.value);
  return captured(model.name + "_step", step.wanted, std::move(names), replaced);
}

constexpr std::int64_t kClasses = 1000, kPixelClasses = 21;

// Images of three channels, of which each, or each pixel, belongs to a class; cross-entropy, SGD with momentum.
NamedNetwork classifier(const Source& source, std::string_view text, const std::shared_ptr<nn::Module>& net,
                        DType dtype) {
  const std::vector<std::int64_t>& n = source.numbers;
  FJ_CHECK(n.size() == 4 && n[1] == 3, "model '{}': {} takes Nx3xHxW, such as 16x3x224x224", text, source.name);
  const bool of_pixels = source.name == "unet";
  return {source.name,
          source.train,
          source.autocast,
          net,
          std::make_shared<optim::SGD>(net->parameters(), optim::SgdOptions{.lr = 0.1, .momentum = 0.9}),
          {dtype, Shape(std::span<const std::int64_t>(n)), Layout::standard},
          of_pixels ? Shape{n[0], n[2], n[3]} : Shape{n[0]},
          of_pixels ? kPixelClasses : kClasses,
          [](const Tensor& y, const Tensor& t) { return cross_entropy(y, t); }};
}

// Digits; Adadelta.
NamedNetwork digits(const Source& source, std::string_view text, const std::shared_ptr<nn::Module>& net, DType dtype) {
  const std::vector<std::int64_t>& n = source.numbers;
  const bool is_image = n.size() == 4 && n[1] == 1 && n[2] == 28 && n[3] == 28;
  FJ_CHECK(n.size() == 1 || is_image, "model '{}': {} takes a batch, such as @256, or Nx1x28x28", text, source.name);
  return {source.name,
          source.train,
          source.autocast,
          net,
          std::make_shared<optim::Adadelta>(net->parameters()),
          {dtype, {n[0], 1, 28, 28}, Layout::standard},
          {n[0]},
          10,
          [](const Tensor& y, const Tensor& t) { return nll_loss(y, t); }};
}

}  // namespace

const std::vector<NamedModel>& named_models() {
  static const auto& kModels = *new const std::vector<NamedModel>{
      {"convnet", "convnet@256:train", "convolution + batch-norm digits network, Adadelta",
       [] { return convnet().share(); }},
      {"convnet_save_input", "convnet_save_input@256:train", "the same; its layers keep only their input",
       [] { return convnet(ConvnetForm::save_input).share(); }},
      {"resnet18", "resnet18@16x3x224x224:train", "ResNet-18, SGD with momentum", [] { return resnet18().share(); }},
      {"resnet34", "resnet34@16x3x224x224:train", "ResNet-34, SGD with momentum", [] { return resnet34().share(); }},
      {"resnet50", "resnet50@16x3x224x224:train", "ResNet-50, SGD with momentum", [] { return resnet50().share(); }},
      {"mobilenet_v2", "mobilenet_v2@4x3x224x224:train", "MobileNet-v2, SGD with momentum",
       [] { return mobilenet_v2().share(); }},
      {"vgg16", "vgg16@4x3x224x224:train", "VGG-16, SGD with momentum", [] { return vgg16().share(); }},
      {"vgg16_bn", "vgg16_bn@4x3x224x224:train", "VGG-16 with batch-norm, SGD with momentum",
       [] { return vgg16_bn().share(); }},
      {"densenet121", "densenet121@4x3x224x224:train", "DenseNet-121, SGD with momentum",
       [] { return densenet121().share(); }},
      {"squeezenet1_0", "squeezenet1_0@4x3x224x224:train", "SqueezeNet 1.0, SGD with momentum",
       [] { return squeezenet1_0().share(); }},
      {"squeezenet1_1", "squeezenet1_1@4x3x224x224:train", "SqueezeNet 1.1, SGD with momentum",
       [] { return squeezenet1_1().share(); }},
      {"unet", "unet@2x3x128x128:train", "U-Net, 21 classes of pixels, SGD with momentum",
       [] { return unet().share(); }},
  };
  return kModels;
}

const NamedModel& model_named(std::string_view name) {
  std::string names;
  for (const NamedModel& model : named_models()) {
    if (model.name == name) return model;
    names += (names.empty() ? "" : ", ") + std::string(model.name);
  }
  throw UserError(fmt::format("model '{}' is not known ({})", name, names));
}

bool is_model_source(std::string_view source) {
  const std::string_view name = source.substr(0, source.find('@'));
  return source.find('@') != std::string_view::npos &&
         std::any_of(named_models().begin(), named_models().end(), [&](const NamedModel& m) { return m.name == name; });
}

NamedNetwork named_network(std::string_view text, DType dtype) {
  const Source source = parse_source(text);
  const std::shared_ptr<nn::Module> net = model_named(source.name).make();
  net->to(dtype);
  return source.name.starts_with("convnet") ? digits(source, text, net, dtype) : classifier(source, text, net, dtype);
}

ModelGraph model_graph(std::string_view source, DType dtype) {
  const nn::ShapesOnly only;
  return graph_of(named_network(source, dtype));
}

}  // namespace fusejit::models
