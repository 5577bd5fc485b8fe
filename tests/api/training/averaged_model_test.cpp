// Averages of weights: against PyTorch's AveragedModel, in use, as a module, and what they cost a training loop.
#include "frontend/io/npz.h"
#include "tests/api/training/loops.h"

namespace fusejit::testing {
namespace {

using optim::AveragedModel;
using optim::AveragedModelOptions;

class Averages : public Loop {};

TEST_F(Averages, AreThoseOfPyTorch) {
  std::map<std::string, Tensor> arrays;
  const std::string path = std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/averaged_model.npz";
  for (const io::NamedArray& a : io::read_npz(path, [](std::string_view name) { return name != "torch_version"; }))
    arrays[a.name] = from_host(a.bytes.data(), a.shape, a.dtype);
  const auto row = [](const Tensor& t, int i) { return squeeze(slice(t, 0, i, i + 1), {0}).eval(); };
  const std::pair<const char*, AveragedModelOptions> forms[] = {
      {"ema", {.decay = 0.9}},
      {"ema_buffers", {.decay = 0.75, .use_buffers = true}},
      {"swa", {}},
      {"swa_buffers", {.use_buffers = true}},
  };
  const char* const names[] = {"weight", "bias", "running_mean", "running_var"};
  for (const auto& [form, options] : forms) {
    nn::BatchNorm2d norm(3);
    AveragedModel average(norm, options);
    for (int i = 0; i < 10; ++i) {
      StateDict now;
      for (const char* name : names) now[name] = row(arrays.at(std::string("value.") + name), i);
      norm.load_state_dict(now);
      average.update_parameters();
      const StateDict got = average.state_dict();
      for (const char* name : names) {
        const std::vector<double> values = got.at(std::string("module.") + name).to_vector<double>();
        const std::vector<double> want = row(arrays.at(std::string(form) + "." + name), i).to_vector<double>();
        for (std::size_t e = 0; e < want.size(); ++e)
          ASSERT_NEAR(values[e], want[e], 1e-6 * std::abs(want[e])) << form << " " << name << ", update " << i;
      }
      EXPECT_EQ(got.at("n_averaged").item<std::int64_t>(), i + 1);
    }
  }
}

// Called, it is the module with the averages as its values, in evaluation mode; the module itself is as it was.
TEST_F(Averages, AreEvaluatedInPlaceOfTheModulesValues) {
  Net net;
  optim::Adam opt(net.parameters(), {.lr = 0.1});
  AveragedModel ema(net, {.decay = 0.5});
  for (int i = 0; i < 4; ++i) {
    opt.step(loss_of(net, i));
    ema.update_parameters();
  }
  Net same;
  StateDict averages;
  for (const auto& [name, value] : ema.state_dict())
    if (name != "n_averaged") averages[name.substr(7)] = value;
  same.load_state_dict(averages);
  same.eval();
  const auto before = values_of(net);
  const std::vector<float> expected = same(images(9)).to_vector<float>();
  EXPECT_EQ(ema(images(9)).to_vector<float>(), expected);
  EXPECT_NE(net.eval()(images(9)).to_vector<float>(), expected);
  net.train();
  EXPECT_EQ(ema(images(9)).to_vector<float>(), expected) << "whatever the module's mode";
  EXPECT_TRUE(net.is_training());
  EXPECT_EQ(values_of(net), before);
  const std::vector<float> frozen = ema.freeze()(images(9)).to_vector<float>();
  for (std::size_t e = 0; e < expected.size(); ++e) EXPECT_NEAR(frozen[e], expected[e], 1e-5);
}

// A teacher within the step of its student: its own values, no gradients to them.
TEST_F(Averages, TeachWithinATrainStep) {
  Net net;
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  AveragedModel teacher(net, {.decay = 0.9});
  auto step = train_step(net, opt, [&](const Tensor& x) { return mse_loss(net(x), teacher(x)); });
  std::vector<float> losses;
  std::int64_t traces = 0;
  for (int i = 0; i < 5; ++i) {
    losses.push_back(step(images(0)).item<float>());
    teacher.update_parameters();
    if (i == 2) traces = stats().traces;  // until its first average, its values are the student's
  }
  EXPECT_EQ(stats().traces, traces) << "nothing new after the third step";
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_EQ(teacher.n_averaged(), 5);
}

// With the update in the loop: one plan a round, from the third on the same, and old values are overwritten. The mean
// of all values so far weighs the new ones differently in each round.
TEST_F(Averages, JoinTheNextStepsPlan) {
  for (const AveragedModelOptions& options : {AveragedModelOptions{.decay = 0.99}, AveragedModelOptions{}}) {
    restart();
    nn::Sequential net(nn::Flatten(), nn::Linear(36, 8), nn::ReLU(), nn::Linear(8, 3));
    optim::AdamW opt(net.parameters());
    AveragedModel average(net, options);
    int i = 0;
    auto step = train_step(net, opt, [&] { return cross_entropy(net(images(i)), classes(i)); });
    std::vector<std::string> lines;
    set_log([&lines](std::string_view line) { lines.emplace_back(line); });
    std::int64_t evaluations = 0, traces = 0;
    for (; i < 8; ++i) {
      if (i == 3) evaluations = stats().evaluations, traces = stats().traces, lines.clear();
      step();
      average.update_parameters();
    }
    set_log({});
    EXPECT_EQ(stats().evaluations - evaluations, 5);
    EXPECT_EQ(stats().traces, traces);
    EXPECT_TRUE(lines.empty()) << lines[0];
  }
}

TEST_F(Averages, AreSavedAndLoaded) {
  Net net;
  AveragedModel first(net, {.decay = 0.5}), second(net, {.decay = 0.5});
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  for (int i = 0; i < 3; ++i) {
    opt.step(loss_of(net, i));
    first.update_parameters();
  }
  EXPECT_EQ(second.n_averaged(), 0);
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.n_averaged(), 3) << "the count is the state's";
  opt.step(loss_of(net, 3));
  first.update_parameters(), second.update_parameters();
  EXPECT_EQ(values_of(first), values_of(second));
}

// A thousandth of a change is below the last bit of bf16.
TEST_F(Averages, MayHaveMoreBitsThanTheirModule) {
  nn::Linear net(1, 1);
  net.to(bf16);
  net.load_state_dict({{"weight", ones({1, 1}, bf16)}, {"bias", zeros({1}, bf16)}});
  AveragedModel average(net, {.decay = 0.999}), coarse(net, {.decay = 0.999});
  average.to(f32);
  average.update_parameters(), coarse.update_parameters();
  net.load_state_dict({{"weight", full({1, 1}, 2, bf16)}, {"bias", zeros({1}, bf16)}});
  average.update_parameters(), coarse.update_parameters();
  EXPECT_FLOAT_EQ(average.state_dict().at("module.weight").item<float>(), 1.001f);
  EXPECT_EQ(coarse.state_dict().at("module.weight").item<float>(), 1);
  EXPECT_EQ(average(ones({1, 1})).dtype(), f32);
}

TEST_F(Averages, RefuseADecayOutOfItsRange) {
  const nn::Linear net(2, 1);
  EXPECT_THROW(AveragedModel(net, {.decay = 1.5}), UserError);
  EXPECT_THROW(AveragedModel(net, {.decay = std::nan("")}), UserError);
}

}  // namespace
}  // namespace fusejit::testing
