#include "tests/gpu_check/model.h"

#include <cmath>
#include <random>

namespace fusejit::gpu_check {
namespace {

// Bounds of a uniform distribution.
struct Range {
  double low = 0, high = 0;
};

Range range_of(const std::string& name, const Type& type) {
  const auto ends_with = [&](const char* end) { return name.ends_with(end); };
  if (name == "x") return {-1.7, 1.7};
  if (ends_with("running_var")) return {1, 1};
  if (name.starts_with("number")) return {1e-3, 1e-3};
  if (!ends_with("weight")) return {0, 0};
  if (type.shape.rank() == 1) return {1, 1};  // of a norm
  const double fan_in = static_cast<double>(type.elements()) / static_cast<double>(type.shape[0]);
  return {-1 / std::sqrt(fan_in), 1 / std::sqrt(fan_in)};
}

}  // namespace

std::vector<Buffer> fresh_arguments(const ir::Graph& graph, std::uint64_t seed) {
  std::minstd_rand random(static_cast<std::uint32_t>(seed));  // fast: images are many
  std::vector<Buffer> arguments;
  for (const ir::Value& parameter : graph.parameters()) {
    const Type& type = parameter.type();
    Buffer buffer = Buffer::allocate(type);
    const Range range = range_of(parameter->name, type);
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      const double u = static_cast<double>(random()) / static_cast<double>(std::minstd_rand::max());
      const double value =
          is_float(type.dtype) ? range.low + (range.high - range.low) * u : static_cast<double>(random() % 10);
      if (type.dtype == DType::f32) {
        static_cast<float*>(buffer.data())[i] = static_cast<float>(value);
      } else {
        ir::store_element(buffer.data(), type.dtype, i, ir::cast(ir::Scalar::of(value), type.dtype));
      }
    }
    arguments.push_back(std::move(buffer));
  }
  return arguments;
}

ModelStep::ModelStep(Machine& machine, const std::string& model, const PlanWish& wish, DType dtype)
    : machine_(machine) {
  const models::ModelGraph made = models::model_graph(model, dtype);
  PlanWish with_donations = wish;
  with_donations.donated.assign(made.donated.begin(), made.donated.end());
  planned_ = machine.plan(made.graph, with_donations);
  arguments_ = machine.upload(fresh_arguments(made.graph, 1));
}

const Buffer& ModelStep::run() {
  results_ = machine_.run(planned_, arguments_);
  const scheduler::Plan& plan = *planned_.plan;
  for (std::size_t r = 0; r < results_.size(); ++r) {
    const scheduler::PlanValue& value = plan.values[static_cast<std::size_t>(plan.results[r])];
    if (value.storage == scheduler::Storage::donated) arguments_[static_cast<std::size_t>(value.index)] = results_[r];
  }
  return results_[0];
}

double ModelStep::loss() {
  const Buffer loss = machine_.device().download(results_[0]);
  return ir::load_element(loss.data(), loss.type().dtype, 0).as_double();
}

}  // namespace fusejit::gpu_check
