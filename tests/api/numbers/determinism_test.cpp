// The same seed gives the same bits: from run to run and for every number of threads (design: numerics).
#include <gtest/gtest.h>

#include <cstring>

#include "fusejit/fusejit.h"

namespace fusejit {
namespace {

// All parameters after 20 steps of the S4 network with dropout, as bytes.
std::vector<float> trained(int threads, bool save_only_input) {
  set_options({.threads = threads});
  manual_seed(7);
  nn::Sequential net =
      models::convnet(save_only_input ? models::ConvnetForm::save_input : models::ConvnetForm::ordinary);
  optim::Adadelta opt(net.parameters(), {.lr = 1.0});
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) { return nll_loss(net(x), y); });
  for (int i = 0; i < 20; ++i) {
    const Tensor x = rand({8, 1, 28, 28});
    step(x, from_host(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}, {8})).eval();
  }
  std::vector<float> all;
  for (const auto& [name, tensor] : net.state_dict()) {
    const std::vector<float> values = tensor.to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Determinism, SameBitsForEveryThreadCountAndRun) {
  for (const bool save_only_input : {false, true}) {
    const std::vector<float> one = trained(1, save_only_input);
    ASSERT_FALSE(one.empty());
    for (const int threads : {1, 2, 3, 8})
      EXPECT_TRUE(same_bits(trained(threads, save_only_input), one)) << threads << " threads";
  }
  set_options({});
}

// Keeping only the convolution's input changes memory, not numbers: the recomputed convolution has the same bits.
TEST(Determinism, RecomputationChangesNoBit) {
  EXPECT_TRUE(same_bits(trained(2, true), trained(2, false)));
  set_options({});
}

}  // namespace
}  // namespace fusejit
