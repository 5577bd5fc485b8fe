// Layers, which the blocks of random networks are made of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/random/generate/network.h"

namespace fusejit::testing {

// They share one list of parameters. The ends of names say what values suit them: w, gamma, var, or anything.
class Layers {
 public:
  explicit Layers(const Network& network);

  const ir::Value& x() const { return x_; }
  const std::vector<ir::Value>& parameters() const { return parameters_; }
  const std::vector<std::pair<std::string, ir::Value>>& statistics() const { return statistics_; }
  void enter(std::string scope) { scope_ = std::move(scope), part_ = 0; }

  ir::Value add(const std::string& name, const Type& type);
  // A parameter of the block entered last.
  ir::Value fresh(const char* name, const std::vector<std::int64_t>& dims) { return fresh(name, dims, network_.dtype); }
  ir::Value fresh(const char* name, const std::vector<std::int64_t>& dims, DType dtype);
  ir::Value dropout(const ir::Value& v);

  ir::Value convolution(const ir::Value& v, std::int64_t outputs, const Block& b);
  ir::Value pointwise(const ir::Value& v, std::int64_t outputs, int stride = 1, bool bias = false, int groups = 1);
  ir::Value depthwise(const ir::Value& v, Block b);
  ir::Value transposed(const ir::Value& v, std::int64_t outputs, const Block& b, std::vector<std::int64_t> size = {});
  // Rows of any rank.
  ir::Value linear(const ir::Value& v, std::int64_t outputs, bool bias = true);

  ir::Value norm(const ir::Value& v, Norm norm);
  // Over the last dim.
  ir::Value rows_norm(const ir::Value& v);
  // [N,C,H,W] as [N,H,W,C], and back.
  static ir::Value to_rows(const ir::Value& v);
  static ir::Value to_image(const ir::Value& v);

  ir::Value activate(const ir::Value& v, Activation activation);
  // Squeeze and excitation: each channel times what the means of all say.
  ir::Value gate(const ir::Value& v, Activation activation);
  ir::Value pool(const ir::Value& v, const Block& b);

 private:
  ir::Value biased(const ir::Value& v, bool bias);
  // New running statistics, as nn::BatchNorm2d records them.
  void track(const ir::Value& v);

  const Network& network_;
  ir::Value x_, seed_;
  std::vector<ir::Value> parameters_;
  std::vector<std::pair<std::string, ir::Value>> statistics_;
  std::string scope_;
  int part_ = 0, stream_ = 0;
};

}  // namespace fusejit::testing
