// What PyTorch recorded of whole networks (tests/reference/networks/*.npz), and how far tensors are from it. Initial
// values, images and labels come from integer arithmetic, as in tests/reference/recording/inputs.py.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/networks/networks.h"

namespace fusejit::test {

// An array of a recorded file, such as "resnet18_curve.npz".
std::vector<double> recorded_array(const std::string& file, const std::string& name);
// f32 values in [low, high), of a sequence that `label` picks.
std::vector<float> uniform_of(const std::string& label, std::int64_t count, double low, double high);
// f32; every parameter and running statistic of a network by its name.
Tensor initial_value(const std::string& name, const Shape& shape);
void set_initial_values(nn::Module& net);
Tensor image_of(const Network& network, DType dtype);
Tensor target_of(const Network& network);

// A row of a recorded table.
struct Description {
  double largest, norm, along;  // along: the product with a fixed vector
  std::array<double, 6> samples;
};
Description described(const std::string& name, const std::vector<double>& values);

struct Difference {
  // Over tensors, relative to each one's norm or largest value; `whole`: norm and product alone, without samples.
  double worst = 0, whole = 0, median = 0;
  int beyond = 0;    // tensors that are off by more than asked for
  std::string what;  // the worst ones, a line each
};

class Recorded {
 public:
  explicit Recorded(const Network& network);
  std::int64_t names_hash() const;
  const std::vector<double>& losses(const std::string& optimiser) const;
  // How far f32 may be off table `name`: the worst tensor as a whole, and the median of all with their samples; of a
  // loss, that before the step and that after it.
  std::array<double, 2> f32_tolerance(const std::string& name) const;
  // table: "gradients", "running", "sgd.values", "adam.values"; `tensors` must have its names.
  // A tensor that is zero but for rounding, such as the gradient of a batch norm's bias in front of another batch norm,
  // is measured by `floor` times the largest value of the table.
  Difference difference(const std::string& table, const std::map<std::string, Tensor>& tensors, double allowed,
                        double floor) const;

 private:
  std::map<std::string, std::vector<double>> arrays_;
  std::string name_;
};

// As recorded: so that a network with other names or shapes is told at once.
std::int64_t names_hash(const nn::Module& net);

}  // namespace fusejit::test
