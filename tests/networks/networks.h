// The networks whose training PyTorch recorded (tests/reference/recording/networks.py), each at the size it was
// recorded at. The built-in models are those of the library, without dropout; the others are made of the public API
// here. Names of parameters are torchvision's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusejit/fusejit.h"

namespace fusejit::test {

struct Network {
  std::string name;
  std::shared_ptr<nn::Module> (*make)();
  Shape image, target;
  Tensor (*loss)(const Tensor& y, const Tensor& target);
  const char* recorded_as = nullptr;  // under another name than its own
};

inline constexpr std::int64_t kClasses = 10;

const std::vector<Network>& networks();
const Network& network_named(const std::string& name);

}  // namespace fusejit::test
