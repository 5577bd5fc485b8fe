#include "fusejit/models.h"

namespace fusejit::models {

nn::Sequential convnet(ConvnetForm form, double dropout) {
  nn::ConvBatchNorm2dOptions options{.eps = 1e-3,
                                     .affine = false,
                                     .track_running_stats = false,
                                     .eps_outside = true,
                                     .unbiased = true,
                                     .save_only_input = form == ConvnetForm::save_input};
  return nn::Sequential(nn::ConvBatchNorm2d(1, 32, 3, options), nn::ReLU(), nn::ConvBatchNorm2d(32, 64, 3, options),
                        nn::ReLU(), nn::MaxPool2d(2), nn::ReLU(), nn::Flatten(), nn::Linear(9216, 128),
                        nn::Dropout(dropout), nn::ReLU(), nn::Linear(128, 10), nn::LogSoftmax(1));
}

}  // namespace fusejit::models
