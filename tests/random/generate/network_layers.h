// Layers, which the blocks of random networks are made of.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fusejit/tensor.h"
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
  // Channels as a whole, as nn::Dropout2d.
  ir::Value dropout2d(const ir::Value& v);
  // What the front end records for `f` of these operands. Its host numbers are parameters with the number in their
  // name, as they are arguments of a trace; lists that it makes on the host are constants.
  using Recorded = std::function<Tensor(const std::vector<Tensor>& operands)>;
  ir::Value recorded(const std::vector<ir::Value>& operands, const Recorded& f);

  ir::Value convolution(const ir::Value& v, std::int64_t outputs, const Block& b, bool padded = true);
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
  ir::Value without_leaves(const ir::Value& v, std::map<const ir::Node*, ir::Value>& done);
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

// The number in the name of a parameter that `Layers::recorded` made, or nothing.
std::optional<double> number_in_name(const std::string& name);

// A block of the kinds that are made of composed functions (network_composed.cpp).
ir::Value composed_block(Layers& layers, const ir::Value& x, const Block& b);
// And of those that take the image apart and put it together again (network_pieces.cpp).
ir::Value pieces_block(Layers& layers, const ir::Value& x, const Block& b);
// y as large as `size`, by interpolate() or pixel_shuffle().
ir::Value composed_up(Layers& layers, const ir::Value& y, const Block& b, const std::vector<std::int64_t>& size);

}  // namespace fusejit::testing
