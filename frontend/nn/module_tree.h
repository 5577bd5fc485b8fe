// What handles on one module share.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "frontend/nn/family.h"
#include "fusejit/module.h"

namespace fusejit::nn {

inline constexpr int kDeepest = 100;  // modules within modules; keeps walks from exhausting the stack

struct Module::Tree {
  std::atomic<bool> training = true;     // read by whoever records, on any thread
  std::atomic<bool> recomputes = false;  // the same
  std::vector<std::pair<std::string, Parameter>> values;
  std::vector<std::pair<std::string, std::shared_ptr<Tree>>> children;
  const std::shared_ptr<Family> family = std::make_shared<Family>();
  std::mutex step_mutex;
  std::atomic<const char*> last_place = nullptr;  // where it stood when it was last called
  std::string kind;                               // its class, known once it is a child
};

// The name of its class, without namespaces: "Conv2d".
std::string kind_of(const Module& module);

}  // namespace fusejit::nn
