// nn::init: bounds, moments, gains and orthogonality; each value is a function of the seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;
namespace init = nn::init;

class Init : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({.engine = "graph_interpreter"});
    manual_seed(2);
  }
  void TearDown() override { set_options({}); }
};

nn::Parameter weight(const Shape& shape) { return nn::Parameter("weight", zeros(shape)); }

struct Moments {
  double low = INFINITY, high = -INFINITY, mean = 0, deviation = 0;
};
Moments moments(const Tensor& t) {
  const std::vector<double> values = t.to_vector<double>();
  Moments m;
  for (const double v : values) m.low = std::min(m.low, v), m.high = std::max(m.high, v), m.mean += v;
  m.mean /= static_cast<double>(values.size());
  for (const double v : values) m.deviation += (v - m.mean) * (v - m.mean);
  m.deviation = std::sqrt(m.deviation / static_cast<double>(values.size()));
  return m;
}

// 20,000 values: a mean is off by less than five deviations of it, 5/sqrt(20000) = 0.036 of theirs; a deviation by less
// than half of that.
constexpr double kMean = 0.036, kDeviation = 0.025;
const Shape kShape{50, 20, 4, 5};  // fan_in 400, fan_out 1000

TEST_F(Init, DrawsWhatItsNameSays) {
  const double uniform = 1 / std::sqrt(3.0);  // the deviation within [-1, 1)
  const struct {
    const char* name;
    std::function<void(const nn::Parameter&)> fill;
    double mean, deviation, low, high;
  } cases[] = {
      {"uniform_", [](auto& p) { init::uniform_(p, -1, 3); }, 1, 2 * uniform, -1, 3},
      {"normal_", [](auto& p) { init::normal_(p, 2, 0.5); }, 2, 0.5, -1, 5},
      {"xavier_uniform_", [](auto& p) { init::xavier_uniform_(p, 2); }, 0, 2 * std::sqrt(6. / 1400) * uniform,
       -2 * std::sqrt(6. / 1400), 2 * std::sqrt(6. / 1400)},
      {"xavier_normal_", [](auto& p) { init::xavier_normal_(p); }, 0, std::sqrt(2. / 1400), -1, 1},
      {"kaiming_uniform_", [](auto& p) { init::kaiming_uniform_(p); }, 0, std::sqrt(6. / 400) * uniform,
       -std::sqrt(6. / 400), std::sqrt(6. / 400)},
      {"kaiming_uniform_, a", [](auto& p) { init::kaiming_uniform_(p, {.a = std::sqrt(5.0)}); }, 0, uniform / 20,
       -1 / 20., 1 / 20.},
      {"kaiming_normal_", [](auto& p) { init::kaiming_normal_(p, {.mode = "fan_out", .nonlinearity = "relu"}); }, 0,
       std::sqrt(2. / 1000), -1, 1},
      {"kaiming_normal_, tanh", [](auto& p) { init::kaiming_normal_(p, {.nonlinearity = "tanh"}); }, 0, 5. / 3 / 20, -1,
       1},
      // A normal of deviation 1 within [-1, 2]: mean (phi(1) - phi(2))/Z, Z = Phi(2) - Phi(-1).
      {"trunc_normal_", [](auto& p) { init::trunc_normal_(p, 1, 2, -1, 5); }, 1 + 2 * 0.2296, 2 * 0.7210, -1, 5},
  };
  for (const auto& c : cases) {
    const nn::Parameter p = weight(kShape);
    c.fill(p);
    const Moments m = moments(p);
    EXPECT_NEAR(m.mean, c.mean, kMean * c.deviation) << c.name;
    EXPECT_NEAR(m.deviation, c.deviation, kDeviation * c.deviation) << c.name;
    EXPECT_GE(m.low, static_cast<float>(c.low)) << c.name;
    EXPECT_LE(m.high, static_cast<float>(c.high)) << c.name;
    EXPECT_TRUE(p.value().needs_grad()) << c.name;
    const std::vector<float> first = p.value().to_vector<float>();
    manual_seed(9);
    c.fill(p);
    EXPECT_NE(p.value().to_vector<float>(), first) << c.name;
    const std::vector<float> second = p.value().to_vector<float>();
    manual_seed(9);
    c.fill(p);
    EXPECT_EQ(p.value().to_vector<float>(), second) << c.name << ": the seed decides";
  }
}

// Each value is where the distribution function reaches a uniform number: the one that uniform_ draws.
TEST_F(Init, TruncatedNormalHasItsDistribution) {
  const nn::Parameter p = weight({10000});
  const auto phi = [](double x) { return 0.5 * (1 + std::erf(x / std::sqrt(2.0))); };
  for (const auto& [low, high] : {std::pair(-2.0, 2.0), std::pair(-0.5, 7.0), std::pair(2.0, 3.0)}) {
    manual_seed(6);
    init::uniform_(p, phi(low), phi(high));
    const std::vector<double> shares = p.value().to_vector<double>();
    manual_seed(6);
    init::trunc_normal_(p, 0, 1, low, high);
    const std::vector<double> values = p.value().to_vector<double>();
    // Shares and values are f32, and the inverse is as good as that.
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(phi(values[i]), shares[i], 5e-7) << values[i];
  }
  init::trunc_normal_(p, 0, 1, 30, 31);  // nothing of the distribution is there
  const Moments far = moments(p);
  EXPECT_GE(far.low, 30);
  EXPECT_LE(far.high, 31);
}

TEST_F(Init, OrthogonalMatrices) {
  for (const Shape& shape : {Shape{6, 4, 3, 2}, Shape{30, 8}, Shape{5, 5}, Shape{1, 7}}) {
    const nn::Parameter p = weight(shape);
    init::orthogonal_(p, 2);
    const std::int64_t rows = shape[0], columns = shape.elements() / rows;
    Tensor m = p.value().reshape({rows, columns});
    if (rows > columns) m = transpose(m, 0, 1);
    const std::vector<float> products = matmul(m, transpose(m, 0, 1)).to_vector<float>();
    const auto n = static_cast<std::size_t>(std::min(rows, columns));
    ASSERT_EQ(products.size(), n * n);
    for (std::size_t i = 0; i < n * n; ++i)
      EXPECT_NEAR(products[i], i % (n + 1) == 0 ? 4 : 0, 2e-6) << shape.str() << " " << i;
  }
}

TEST_F(Init, Constants) {
  const nn::Linear layer(2, 3);
  init::constant_(layer.weight(), 0.25);
  EXPECT_EQ(layer.state_dict().at("weight").to_vector<float>(), std::vector<float>(6, 0.25f));
  init::ones_(layer.weight());
  EXPECT_EQ(layer.weight().value().to_vector<float>(), std::vector<float>(6, 1));
  init::zeros_(layer.weight());
  EXPECT_EQ(layer.weight().value().to_vector<float>(), std::vector<float>(6, 0));
}

TEST_F(Init, KeepsTheDtype) {
  for (const DType dtype : {f16, bf16, f64}) {
    nn::Linear layer(30, 20);
    layer.to(dtype);
    init::xavier_normal_(layer.weight());
    EXPECT_EQ(layer.weight().value().dtype(), dtype);
    EXPECT_NEAR(moments(layer.weight()).deviation, std::sqrt(2. / 50), 0.02);
  }
}

TEST_F(Init, Gains) {
  EXPECT_EQ(init::calculate_gain("linear"), 1);
  EXPECT_EQ(init::calculate_gain("conv_transpose2d"), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain("tanh"), 5. / 3);
  EXPECT_DOUBLE_EQ(init::calculate_gain("relu"), std::sqrt(2.));
  EXPECT_DOUBLE_EQ(init::calculate_gain("leaky_relu"), std::sqrt(2 / (1 + 1e-4)));
  EXPECT_DOUBLE_EQ(init::calculate_gain("leaky_relu", 2), std::sqrt(0.4));
  EXPECT_EQ(init::calculate_gain("selu"), 0.75);
}

TEST_F(Init, RefusesWithOneSentence) {
  const nn::Parameter bias("bias", zeros({3})), matrix = weight({2, 3});
  const struct {
    std::function<void()> action;
    std::string sentence;
  } cases[] = {
      {[&] { init::xavier_uniform_(bias); }, "xavier_uniform_: parameter 'bias' is f32[3], it must have two axes"},
      {[&] { init::kaiming_normal_(bias); }, "kaiming_normal_: parameter 'bias' is f32[3]"},
      {[&] { init::orthogonal_(bias); }, "orthogonal_: parameter 'bias' is f32[3]"},
      {[&] { init::kaiming_uniform_(matrix, {.mode = "fan"}); }, "mode 'fan' is not known (fan_in, fan_out)"},
      {[&] { init::kaiming_uniform_(matrix, {.nonlinearity = "gelu"}); }, "nonlinearity 'gelu' is not known"},
      {[&] { init::uniform_(bias, 1, 0); }, "from 1 to 0 is empty"},
      {[&] { init::normal_(bias, 0, -1); }, "must not be negative"},
      {[&] { init::normal_(bias, NAN); }, "not finite"},
      {[&] { init::trunc_normal_(bias, 0, 0); }, "must be above 0"},
  };
  for (const auto& c : cases) {
    const std::string error = error_of(c.action);
    EXPECT_NE(error.find(c.sentence), std::string::npos) << error;
  }
  EXPECT_EQ(bias.value().to_vector<float>(), (std::vector<float>{0, 0, 0})) << "nothing has changed";
}

}  // namespace
}  // namespace fusejit
