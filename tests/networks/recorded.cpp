#include "tests/networks/recorded.h"

#include <algorithm>
#include <cmath>

#include "frontend/io/npz.h"
#include "ir/base/check.h"

namespace fusejit::test {
namespace {

std::uint32_t crc32(const std::string& text) {
  std::uint32_t crc = ~0u;
  for (const unsigned char c : text) {
    crc ^= c;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

// Word `i` of the SplitMix64 sequence that `seed` begins.
std::uint64_t hashed(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<double> recorded_array(const std::string& file, const std::string& name) {
  const auto arrays = io::read_npz(std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/" + file,
                                   [&](std::string_view n) { return n == name; });
  FJ_CHECK(arrays.size() == 1, "{}: there is no array '{}'", file, name);
  return from_host(arrays[0].bytes.data(), arrays[0].shape, arrays[0].dtype).to_vector<double>();
}

std::vector<float> uniform_of(const std::string& label, std::int64_t count, double low, double high) {
  const std::uint64_t seed = crc32(label);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double fraction = static_cast<double>(hashed(seed, i) >> 40) * 0x1p-24;
    values[i] = static_cast<float>(low + (high - low) * fraction);
  }
  return values;
}

Tensor initial_value(const std::string& name, const Shape& shape) {
  double low = -0.2, high = 0.2;
  if (shape.rank() == 1 || name.ends_with("layer_scale")) {
    if (name.ends_with("weight") || name.ends_with("running_var") || name.ends_with("layer_scale"))
      low = 0.5, high = 1.5;
  } else {
    high = std::sqrt(6.0 / static_cast<double>(shape.elements() / shape[0]));
    low = -high;
  }
  return from_host(uniform_of(name, shape.elements(), low, high), shape);
}

void set_initial_values(nn::Module& net) {
  StateDict state = net.state_dict();
  for (auto& [name, value] : state) value = initial_value(name, value.shape());
  net.load_state_dict(state);
}

Tensor image_of(const Network& network, DType dtype) {
  return from_host(uniform_of("x", network.image.elements(), -2, 2), network.image).to(dtype).eval();
}

Tensor target_of(const Network& network) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(network.target.elements()));
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<std::int64_t>((hashed(crc32("target"), i) >> 33) % kClasses);
  return from_host(labels, network.target).eval();
}

Description described(const std::string& name, const std::vector<double>& values) {
  Description row{};
  const std::vector<float> direction = uniform_of("direction " + name, static_cast<std::int64_t>(values.size()), -1, 1);
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    row.largest = std::max(row.largest, std::abs(values[i]));
    squares += values[i] * values[i];
    row.along += values[i] * direction[i];
  }
  row.norm = std::sqrt(squares);
  for (std::size_t s = 0; s < row.samples.size(); ++s)
    row.samples[s] = values[(hashed(crc32("samples " + name), s) >> 33) % values.size()];
  return row;
}

Recorded::Recorded(const Network& network) : name_(network.name) {
  const std::string file = network.recorded_as ? network.recorded_as : network.name;
  for (const io::NamedArray& array :
       io::read_npz(std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/networks/" + file + ".npz")) {
    arrays_[array.name] = from_host(array.bytes.data(), array.shape, array.dtype).to_vector<double>();
  }
}

std::int64_t Recorded::names_hash() const { return static_cast<std::int64_t>(arrays_.at("names_hash")[0]); }
const std::vector<double>& Recorded::losses(const std::string& optimiser) const {
  return arrays_.at(optimiser + ".loss");
}
std::array<double, 2> Recorded::f32_tolerance(const std::string& name) const {
  const std::vector<double>& two = arrays_.at("f32_tolerance." + name);
  return {two.at(0), two.at(1)};
}

Difference Recorded::difference(const std::string& table, const std::map<std::string, Tensor>& tensors, double allowed,
                                double floor) const {
  constexpr std::size_t kColumns = 9;
  const std::vector<double>& meant = arrays_.at(table);
  Difference result;
  if (meant.size() != kColumns * tensors.size()) {
    result.worst = result.whole = result.median = INFINITY;
    result.what = name_ + " " + table + ": " + std::to_string(tensors.size()) + " tensors, recorded are " +
                  std::to_string(meant.size() / kColumns);
    return result;
  }
  double least = 0;
  for (std::size_t row = 0; row < tensors.size(); ++row) least = std::max(least, floor * meant[row * kColumns]);
  std::vector<std::pair<double, std::string>> errors;
  std::size_t row = 0;
  for (const auto& [name, tensor] : tensors) {
    const double* want = &meant[row++ * kColumns];
    const Description got = described(name, tensor.to_vector<double>());
    const double largest = std::max(want[0], least);
    const double norm = std::max(want[1], least * std::sqrt(static_cast<double>(tensor.elements())));
    double error = 0;
    const auto compare = [&](double g, double w, double scale) {
      const double off = std::abs(g - w) / scale;
      error = std::isnan(off) ? INFINITY : std::max(error, off);
    };
    compare(got.norm, want[1], norm), compare(got.along, want[2], norm);
    result.whole = std::max(result.whole, error);
    compare(got.largest, want[0], largest);
    for (std::size_t s = 0; s < got.samples.size(); ++s) compare(got.samples[s], want[3 + s], largest);
    errors.emplace_back(error, name + " " + tensor.type().str());
    result.beyond += !(error <= allowed);
  }
  std::sort(errors.begin(), errors.end(), std::greater<>());
  if (errors.empty()) return result;
  result.worst = errors[0].first, result.median = errors[errors.size() / 2].first;
  for (std::size_t i = 0; i < errors.size() && i < 5; ++i) {
    char text[40];
    std::snprintf(text, sizeof text, "\n  %.2e  ", errors[i].first);
    result.what += text + errors[i].second;
  }
  return result;
}

std::int64_t names_hash(const nn::Module& net) {
  std::string lines;
  for (const auto& [name, value] : net.state_dict()) lines += name + value.shape().str() + "\n";
  return crc32(lines);
}

}  // namespace fusejit::test
