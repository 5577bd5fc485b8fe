// Built-in models, so that users, tools and benchmarks name the same ones.
#pragma once

#include <cstdint>

#include "fusejit/nn.h"

namespace fusejit::models {

enum class ConvnetForm : std::uint8_t {
  ordinary,   // convolution and batch-norm keep what they need
  save_input  // each convolution + batch-norm layer keeps only its input
};
// The digits network of the convolution + batch-norm text: [N,1,28,28] -> log-probabilities [N,10]. Its batch-norm has
// no affine part and no running statistics, divides by n - 1, and adds eps = 1e-3 outside the root.
nn::Sequential convnet(ConvnetForm form = ConvnetForm::ordinary);

// ResNet-50 as in torchvision, names included: [N,3,H,W] -> [N,classes].
class ResNet : public nn::ModuleOf<ResNet> {
 public:
  ResNet(const std::vector<int>& blocks, std::int64_t classes);
  Tensor forward(const Tensor& x) override;

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::vector<nn::Sequential> layers_;
  nn::Linear fc_;
};
ResNet resnet50(std::int64_t classes = 1000);

}  // namespace fusejit::models
