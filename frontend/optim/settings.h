// Optimisers' settings: what is checked of each, and an optimiser's shared part.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fusejit/optim.h"

namespace fusejit::optim {

inline constexpr double kBelowOne = 0.9999999999;  // the largest decay rate of a mean that still takes something in

// UserError unless it is finite and between the two.
void check_setting(const std::string& optimizer, const char* what, double value, double low, double high);
void check_setting(const std::string& optimizer, const char* what, double value);  // at least 0

struct Optimizer::State {
  struct Group {
    Rule::Settings settings;
    std::optional<double> initial_lr;  // what schedules start from: the rate when the first of them was made
    std::size_t first = 0, last = 0;   // of parameters
  };
  std::shared_ptr<const Rule> rule;
  std::string name;
  std::vector<Group> groups;
  std::vector<nn::Parameter> parameters;
  std::vector<std::string> state_names;
  std::vector<std::vector<nn::Parameter>> state;  // of each parameter
  std::int64_t steps = 0;

  const Group& group(std::size_t number) const;
  void check_gradients(const std::vector<Tensor>& gradients) const;
  void compute_last_update(const std::vector<Tensor>& gradients) const;
  void update_group(const Group& group, const std::vector<Tensor>& gradients, const Tensor& unless);
};

}  // namespace fusejit::optim
