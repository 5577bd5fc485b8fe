#include "runtime/cudnn/support/probe.h"

#include <dlfcn.h>

#include <algorithm>

namespace fusejit::runtime::cudnn {
namespace {

// The generic engine without tensor cores, which knows every activation of the old interface.
constexpr std::int64_t kSlowEngine = 0;
constexpr int kFirstFew = 4;

}  // namespace

Probe probe(const std::shared_ptr<const Library>& library, const Descriptor& device, const ConvolutionCall& call,
            const Numerics& numerics, bool compile) {
  PlanOptions options{.numerics = numerics, .precompiled = true, .runtime_compiled = false, .plans = kFirstFew};
  Probe result;
  PlanResult precompiled = find_plans(library, device, call, options);
  const bool has_steps = call.bias || call.activation != Activation::none;
  const bool slow = !precompiled.plans.empty() && has_steps &&
                    std::all_of(precompiled.plans.begin(), precompiled.plans.end(),
                                [](const Plan& plan) { return plan.engine.index == kSlowEngine; });
  if (!precompiled.plans.empty() && !slow) {
    result.cell = 'P';
    return result;
  }
  options.plans = 1;
  if (!compile) {
    result.cell = slow ? 'P' : '?';
    return result;
  }
  options.precompiled = false;
  options.runtime_compiled = true;
  PlanResult compiled = find_plans(library, device, call, options);
  if (!compiled.plans.empty()) {
    result.cell = slow ? 'S' : 'R';
  } else if (slow) {
    result.cell = 'P';
  } else {
    result.refused = std::move(precompiled);
    std::move(compiled.refusals.begin(), compiled.refusals.end(), std::back_inserter(result.refused.refusals));
  }
  return result;
}

bool load_driver_for_planning(const std::string& substitute) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    // The stub of a toolkit refuses even to count devices, which cuDNN takes for a broken driver.
    int count = 0;
    const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
    const auto initialise = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
    if (initialise && count_devices) initialise(0);
    return count_devices && count_devices(&count) == 0;
  }
  return dlopen(substitute.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr;
}

}  // namespace fusejit::runtime::cudnn
