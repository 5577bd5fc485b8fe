// What a user's program is called in what people read: FUSEJIT_DUMP, the recorded nodes. Names of plans:
// tests/unit/scheduler/names/naming_test.cpp.
#include <gtest/gtest.h>

#include <regex>

#include "frontend/state.h"
#include "fusejit/fusejit.h"
#include "tests/support/cache_folder.h"

namespace fj = fusejit;

namespace {

// Its layers have the names that it is given.
class Net : public fj::nn::ModuleOf<Net> {
 public:
  Net(const std::string& block, const std::string& head)
      : features_(add(block, fj::nn::Sequential(fj::nn::Conv2d(2, 8, 3), fj::nn::BatchNorm2d(8), fj::nn::ReLU()))),
        head_(add(head, fj::nn::Linear(8 * 6 * 6, 5))) {}
  fj::Tensor forward(const fj::Tensor& x) override { return head_(fj::flatten(features_(x), 1)); }

 private:
  fj::nn::Sequential features_;
  fj::nn::Linear head_;
};

// Names of the steps that one training step is planned as.
std::string planned(const std::string& block, const std::string& head) {
  fj::manual_seed(3);
  Net net(block, head);
  fj::optim::SGD opt(net.parameters(), {.lr = 0.05});
  auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::cross_entropy(net(x), y); });
  const std::vector<std::int64_t> labels(4, 2);
  ::setenv("FUSEJIT_DUMP", "plan", 1);
  ::testing::internal::CaptureStderr();
  step(fj::ones({4, 2, 8, 8}).eval(), fj::from_host(labels.data(), {4}, fj::i64)).item<float>();
  const std::string text = ::testing::internal::GetCapturedStderr();
  ::unsetenv("FUSEJIT_DUMP");
  std::string names;
  const std::regex line("\n *step [0-9]+ kernel [0-9]+ @([a-z0-9_]+)");
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) names += (*at)[1].str() + " ";
  return names;
}

bool has(const std::string& names, const std::string& name) {
  return (" " + names).find(" " + name + " ") < names.size();
}

TEST(Names, OfTheLayersOfTheNetworkAtHandAlsoWhereItsPlanIsLoaded) {
  const fusejit::test::CacheFolder cache;
  fj::set_options({});
  const std::string first = planned("body", "head");
  for (const char* name : {"body_0_conv2d_bias_add_bn", "body_0_conv2d_weight_grad_sgd", "head_linear"})
    EXPECT_TRUE(has(first, name)) << name << " of " << first;
  fj::set_options({});  // as another process would begin
  const std::string second = planned("stem", "classifier");
  EXPECT_EQ(fj::stats().plans_loaded, fj::stats().plans_made);
  EXPECT_EQ(second.find("body"), std::string::npos) << second;
  for (const char* name : {"stem_0_conv2d_bias_add_bn", "stem_0_conv2d_weight_grad_sgd", "classifier_linear"})
    EXPECT_TRUE(has(second, name)) << name << " of " << second;
  fj::set_options({.cache = "off"});
}

std::string written(const fj::Tensor& tensor) {
  const fj::ir::Value value = fj::value_of(tensor);
  return std::string(value->origin.module ? value->origin.module : "") + ":" + called_op(*value);
}

std::string own, strays;  // what Odd has recorded

// Calls what nobody has added, and is called at different places.
class Odd : public fj::nn::ModuleOf<Odd> {
 public:
  Odd() : inner_(add("inner", fj::nn::ReLU())) {}
  fj::Tensor forward(const fj::Tensor& x) override {
    const fj::Tensor y = inner_(x) * 3.0;
    own = written(y);
    fj::nn::ReLU stray;
    strays = written(stray(x));
    return inner_(y);
  }

 private:
  fj::nn::ReLU inner_;
};

TEST(Names, AreThoseOfTheModuleThatIsCalled) {
  const fj::Tensor x = fj::ones({2, 3});
  EXPECT_EQ(written(fj::relu(x)), ":relu");
  Odd odd;
  EXPECT_EQ(written(odd(x)), "inner:relu");
  EXPECT_EQ(own, ":mul");
  EXPECT_EQ(strays, ":relu");
  fj::nn::Sequential net(odd), twice(fj::nn::ReLU(), net);
  EXPECT_EQ(written(net(x)), "0.inner:relu");
  EXPECT_EQ(own, "0:mul");
  EXPECT_EQ(written(twice(x)), "1.0.inner:relu");
  EXPECT_EQ(strays, "1.0:relu");
  EXPECT_EQ(written(net(x)), "0.inner:relu") << "where it stands in what is called, not in what was";
  EXPECT_EQ(written(fj::relu(x)), ":relu") << "and nowhere after the call";
}

TEST(Names, OfOperationsThatAreRecordedAsOthersAreWhatWasCalled) {
  const fj::Tensor image = fj::ones({1, 2, 4, 4}), w = fj::ones({2, 3, 3, 3});
  EXPECT_EQ(written(fj::adaptive_avg_pool2d(image, 1)), ":adaptive_avg_pool2d");
  EXPECT_EQ(written(fj::conv_transpose2d(image, w)), ":conv_transpose2d");
  EXPECT_EQ(written(fj::linear(fj::ones({2, 3}), fj::ones({4, 3}), fj::ones({4}))), ":linear");
}

}  // namespace
