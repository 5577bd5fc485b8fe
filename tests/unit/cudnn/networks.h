// The anchors of ResNet-50, MobileNet-v2 and VGG-16 at 224x224, each once: what cuDNN must have a plan for.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/cudnn/call.h"

namespace fusejit::runtime::cudnn {

struct Anchor {
  std::int64_t in, size, out, kernel, stride, groups;
  bool first = false;  // reads the image: no input gradient
  friend bool operator==(const Anchor&, const Anchor&) = default;
};

inline void add_once(std::vector<Anchor>& anchors, const Anchor& anchor) {
  if (!std::count(anchors.begin(), anchors.end(), anchor)) anchors.push_back(anchor);
}

// Fully connected layers are 1x1 convolutions of a 1x1 image.
inline Anchor linear(std::int64_t in, std::int64_t out) { return {in, 1, out, 1, 1, 1}; }

inline std::vector<Anchor> resnet50() {
  std::vector<Anchor> anchors = {{3, 224, 64, 7, 2, 1, true}};
  std::int64_t in = 64, size = 56;
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = 64 << stage, blocks = (std::int64_t[]){3, 4, 6, 3}[stage];
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      add_once(anchors, {in, size, width, 1, 1, 1});
      add_once(anchors, {width, size, width, 3, stride, 1});
      if (block == 0) add_once(anchors, {in, size, 4 * width, 1, stride, 1});
      size /= stride;
      add_once(anchors, {width, size, 4 * width, 1, 1, 1});
      in = 4 * width;
    }
  }
  anchors.push_back(linear(2048, 1000));
  return anchors;
}

inline std::vector<Anchor> mobilenet_v2() {
  struct Stage {
    std::int64_t expansion, out, blocks, stride;
  };
  std::vector<Anchor> anchors = {{3, 224, 32, 3, 2, 1, true}};
  std::int64_t in = 32, size = 112;
  for (const Stage& stage : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                             Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}}) {
    for (int block = 0; block < stage.blocks; ++block) {
      const std::int64_t stride = block == 0 ? stage.stride : 1, width = in * stage.expansion;
      if (stage.expansion > 1) add_once(anchors, {in, size, width, 1, 1, 1});
      add_once(anchors, {width, size, width, 3, stride, width});
      size /= stride;
      add_once(anchors, {width, size, stage.out, 1, 1, 1});
      in = stage.out;
    }
  }
  anchors.push_back({320, 7, 1280, 1, 1, 1});
  anchors.push_back(linear(1280, 1000));
  return anchors;
}

inline std::vector<Anchor> vgg16() {
  std::vector<Anchor> anchors = {{3, 224, 64, 3, 1, 1, true}};
  std::int64_t in = 64, size = 224;
  for (const auto& [width, convolutions] : {std::pair{64, 1}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}) {
    for (int i = 0; i < convolutions; ++i) {
      add_once(anchors, {in, size, width, 3, 1, 1});
      in = width;
    }
    size /= 2;
  }
  for (const Anchor& anchor : {linear(512 * 7 * 7, 4096), linear(4096, 4096), linear(4096, 1000)}) {
    anchors.push_back(anchor);
  }
  return anchors;
}

inline ConvolutionCall call_of(const Anchor& anchor, std::int64_t batch) {
  ConvolutionCall call;
  const std::int64_t padding = anchor.kernel / 2;
  call.x = Shape{batch, anchor.in, anchor.size, anchor.size};
  call.w = Shape{anchor.out, anchor.in / anchor.groups, anchor.kernel, anchor.kernel};
  call.stride = {anchor.stride, anchor.stride};
  call.padding = {padding, padding, padding, padding};
  call.groups = anchor.groups;
  return call;
}

}  // namespace fusejit::runtime::cudnn
