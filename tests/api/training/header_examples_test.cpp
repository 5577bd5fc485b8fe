// The examples in the headers on training, run as they stand there; api/header_examples_test.cpp holds the two
// together.
#include <gtest/gtest.h>

#include <filesystem>

#include "fusejit/fusejit.h"
#include "tests/support/cache_folder.h"

namespace {

namespace fj = fusejit;

TEST(HeaderExamplesOfTraining, OptimizerOfOnesOwn) {
  struct SignDescent : fj::optim::Rule {
    std::string name() const override { return "SignDescent"; }
    std::vector<double> numbers(const Settings& group, std::int64_t) const override { return {group.lr}; }
    void apply(Update& u, const std::vector<fj::Tensor>& n) const override {
      u.value = u.value - fj::sign(u.gradient) * n[0];
    }
  };
  const fj::nn::Linear net(2, 1);
  const float before = net.state_dict().at("bias").item<float>();
  fj::optim::Optimizer signs(std::make_shared<SignDescent>(), {{.parameters = net.parameters()}}, {.lr = 0.1});
  signs.update({fj::ones({1, 2}), fj::ones({1})});
  EXPECT_FLOAT_EQ(net.state_dict().at("bias").item<float>(), before - 0.1f);
}

TEST(HeaderExamplesOfTraining, GradScaler) {
  fj::nn::Linear net(4, 1);
  fj::optim::SGD opt(net.parameters());
  auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::mse_loss(net(x), y); },
                             {.autocast = fj::f16, .scaler = fj::GradScaler()});
  EXPECT_GT(step(fj::ones({2, 4}), fj::full({2, 1}, 9)).item<float>(), 0);
}

TEST(HeaderExamplesOfTraining, GradScalerInALoopOfOnesOwn) {
  fj::nn::Linear net(4, 1);
  fj::optim::SGD opt(net.parameters());
  fj::GradScaler scaler;
  const auto parameters = net.parameters();
  const std::vector<fj::Tensor> values(parameters.begin(), parameters.end());
  const fj::Tensor loss = fj::mse_loss(net(fj::ones({2, 4})), fj::zeros({2, 1}));
  std::vector<fj::Tensor> gradients = fj::grad(scaler.scale(loss), values);
  scaler.unscale(gradients);
  fj::optim::clip_grad_norm(gradients, 1);
  scaler.step(opt, gradients);
  scaler.update();
  EXPECT_EQ(opt.steps(), 1);
}

TEST(HeaderExamplesOfTraining, Schedules) {
  fj::nn::Linear net(3, 1);
  const fj::Tensor x = fj::ones({4, 3}), y = fj::zeros({4, 1});
  fj::optim::AdamW opt(net.parameters(), {.lr = 0.1});
  fj::optim::LinearLR warm_up(opt, {.start_factor = 0.25, .total_iters = 3});
  fj::optim::SequentialLR schedule(opt, {warm_up, fj::optim::CosineAnnealingLR(opt, 7)}, {3});
  EXPECT_EQ(opt.lr(), 0.1 * 0.25);
  for (int epoch = 0; epoch < 10; ++epoch) {
    opt.step(fj::mse_loss(net(x), y));
    schedule.step();  // after each epoch, or each update, as it is meant
  }
  EXPECT_NEAR(opt.lr(), 0, 1e-15);
}

TEST(HeaderExamplesOfTraining, Plateau) {
  fj::optim::SGD opt(fj::nn::Linear(3, 1).parameters(), {.lr = 0.1});
  fj::optim::ReduceLROnPlateau plateau(opt, {.factor = 0.5, .patience = 1});
  for (double loss : {1.0, 0.8, 0.8, 0.8}) plateau.step(loss);
  EXPECT_EQ(plateau.get_last_lr(), (std::vector<double>{0.05}));
}

TEST(HeaderExamplesOfTraining, AveragedModel) {
  const fusejit::test::CacheFolder folder;
  const std::string path = folder.path("ema.npz");
  fj::nn::Linear net(3, 1);
  fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
  const fj::Tensor x = fj::ones({4, 3}), y = fj::zeros({4, 1});
  fj::optim::AveragedModel ema(net, {.decay = 0.9});
  for (int i = 0; i < 3; ++i) {
    opt.step(fj::mse_loss(net(x), y));
    ema.update_parameters();
  }
  fj::Tensor averaged = ema(x);
  ema.save(path);
  EXPECT_EQ(averaged.shape(), (fj::Shape{4, 1}));
  EXPECT_EQ(fj::load(path).at("n_averaged").item<int>(), 3);
}

TEST(HeaderExamplesOfTraining, Checkpoint) {
  const fusejit::test::CacheFolder folder;
  const std::string path = folder.path("run.npz");
  fj::nn::Linear net(3, 1);
  fj::optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  fj::optim::StepLR schedule(opt, 1, 0.5);
  fj::optim::AveragedModel ema(net, {.decay = 0.9});
  const fj::Tensor x = fj::ones({4, 3}), y = fj::zeros({4, 1});
  fj::Checkpoint run;
  run.add("net", net).add("opt", opt).add("schedule", schedule).add("ema", ema);
  if (std::filesystem::exists(path)) run.load(path);
  for (std::int64_t& epoch = run.numbers["epoch"]; epoch < 3;) {
    opt.step(fj::mse_loss(net(x), y));
    ema.update_parameters();
    schedule.step();
    ++epoch;
    run.save(path);
  }
  EXPECT_EQ(fj::load(path).at("numbers.epoch").item<int>(), 3);
}

TEST(HeaderExamplesOfTraining, TrainStepAsAMember) {
  struct Trainer {
    fj::nn::Linear net{2, 1};
    fj::optim::Adam opt{net.parameters()};
    fj::Step<fj::Tensor(fj::Tensor, fj::Tensor)> step =
        fj::train_step(net, opt, [net = net](fj::Tensor x, fj::Tensor y) mutable { return fj::mse_loss(net(x), y); });
  };
  Trainer trainer;
  trainer.step(fj::ones({4, 2}), fj::zeros({4, 1}));
  EXPECT_EQ(trainer.step.count(), 1);
}

}  // namespace
