// A run that is saved and goes on in fresh objects is the run that never stopped, to the bit.
#include <filesystem>

#include "tests/api/training/loops.h"
#include "tests/support/cache_folder.h"

namespace fusejit::testing {
namespace {

struct Way {
  const char* name;
  std::function<optim::Optimizer(const nn::Module&)> optimizer;
  std::function<optim::LRScheduler(const optim::Optimizer&)> schedule;
};

const Way kWays[] = {
    {"SGD, one cycle of rates and momenta",
     [](const nn::Module& net) {
       return optim::SGD(net.parameters(), {.lr = 0.05, .momentum = 0.9, .dampening = 0.1});
     },
     [](const optim::Optimizer& opt) { return optim::OneCycleLR(opt, 0.1, 12); }},
    {"AdamW with amsgrad, warm-up and cosine",
     [](const nn::Module& net) { return optim::AdamW(net.parameters(), {.lr = 0.01, .amsgrad = true}); },
     [](const optim::Optimizer& opt) {
       return optim::SequentialLR(opt, {optim::LinearLR(opt), optim::CosineAnnealingLR(opt, 7)}, {5});
     }},
    {"LAMB, steps",
     [](const nn::Module& net) { return optim::LAMB(net.parameters(), {.lr = 0.02, .weight_decay = 0.1}); },
     [](const optim::Optimizer& opt) { return optim::StepLR(opt, 3, 0.5); }},
    {"RMSprop, centered",
     [](const nn::Module& net) {
       return optim::RMSprop(net.parameters(), {.lr = 0.002, .momentum = 0.5, .centered = true});
     },
     [](const optim::Optimizer& opt) { return optim::ExponentialLR(opt, 0.9); }},
};

struct DropoutNet : nn::ModuleOf<DropoutNet> {
  nn::Sequential body = add("body", nn::Sequential(nn::Conv2d(1, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::Flatten(),
                                                   nn::Dropout(0.5), nn::Linear(64, 3)));
  Tensor forward(const Tensor& x) override { return body(x); }
};

// All that a run has, made of nothing but its way.
struct TrainingRun {
  explicit TrainingRun(const Way& way) : opt(way.optimizer(net)), schedule(way.schedule(opt)) {
    file.add("net", net).add("opt", opt).add("schedule", schedule).add("ema", ema).add("step", step);
  }
  DropoutNet net;
  optim::Optimizer opt;
  optim::LRScheduler schedule;
  optim::AveragedModel ema{net, {.decay = 0.8}};
  Step<Tensor(Tensor, Tensor)> step =
      train_step(net, opt, [net = net](const Tensor& x, const Tensor& y) mutable { return cross_entropy(net(x), y); });
  Checkpoint file;
  std::vector<float> losses;

  // Batches come from the default generator, as masks of dropout do.
  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      losses.push_back(step(rand({8, 1, 6, 6}), classes(i)).item<float>());
      ema.update_parameters();
      schedule.step();
      ++file.numbers["steps"];
    }
  }
  // Every bit of it.
  std::map<std::string, std::vector<std::byte>> bits() const {
    std::map<std::string, std::vector<std::byte>> bits;
    const std::pair<const char*, StateDict> parts[] = {{"net", net.state_dict()},
                                                       {"opt", opt.state_dict()},
                                                       {"schedule", schedule.state_dict()},
                                                       {"ema", ema.state_dict()}};
    for (const auto& [part, state] : parts) {
      for (const auto& [name, value] : state) {
        std::vector<std::byte>& of = bits[std::string(part) + "." + name];
        of.resize(static_cast<std::size_t>(value.bytes()));
        value.copy_to(of.data());
      }
    }
    return bits;
  }
};

class Checkpoints : public Loop {
 protected:
  test::CacheFolder folder_;
  std::string path_ = folder_.path("run.npz");
};

TEST_F(Checkpoints, GoOnToTheBit) {
  for (const Way& way : kWays) {
    restart();
    TrainingRun whole(way);
    whole.train(12);
    const RngState end = get_rng_state();

    restart();
    {
      TrainingRun first(way);
      first.train(6);
      first.file.save(path_);
      EXPECT_TRUE(std::equal(first.losses.begin(), first.losses.end(), whole.losses.begin())) << way.name;
    }
    manual_seed(77);  // another start, which the file must replace as a whole
    TrainingRun second(way);
    second.opt.set_lr(0.7);
    second.file.load(path_);
    EXPECT_EQ(second.file.numbers.at("steps"), 6);
    EXPECT_EQ(second.step.count(), 6);
    EXPECT_EQ(second.opt.steps(), 6);
    EXPECT_EQ(second.schedule.last_epoch(), 6);
    EXPECT_EQ(second.ema.n_averaged(), 6);
    second.train(6);
    EXPECT_EQ(second.losses, std::vector<float>(whole.losses.begin() + 6, whole.losses.end())) << way.name;
    const auto want = whole.bits(), got = second.bits();
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, bits] : want) EXPECT_TRUE(got.at(name) == bits) << way.name << ": " << name;
    EXPECT_EQ(get_rng_state().seed, end.seed);
    EXPECT_EQ(get_rng_state().drawn, end.drawn);
    EXPECT_EQ(second.file.numbers, whole.file.numbers);
  }
}

// In bf16, and for what a checkpoint of before leaves in its place.
TEST_F(Checkpoints, KeepEveryDtypeAndReplaceTheFileBefore) {
  nn::Linear net(3, 2);
  net.to(bf16);
  optim::Adam opt(net.parameters(), {.lr = 0.1});
  Checkpoint run;
  run.add("net", net).add("opt", opt);
  run.save(path_);
  opt.step(sum(square(net(ones({4, 3}, bf16)))).to(f32));
  run.save(path_);
  const std::vector<float> saved = net.state_dict().at("weight").to_vector<float>();
  opt.step(sum(square(net(ones({4, 3}, bf16)))).to(f32));
  run.load(path_);
  EXPECT_EQ(net.state_dict().at("weight").to_vector<float>(), saved);
  EXPECT_EQ(opt.steps(), 1);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path(""))) files += entry.is_regular_file();
  EXPECT_EQ(files, 1) << "nothing is left beside it";
  EXPECT_THROW(run.save(folder_.path("no/such/folder.npz")), FileError);
  EXPECT_THROW(run.load(folder_.path("none.npz")), FileError);
}

std::string complaint(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST_F(Checkpoints, NameWhatDoesNotFit) {
  nn::Sequential deep(nn::Linear(2, 2), nn::Linear(2, 2), nn::Linear(2, 2));
  Checkpoint saved;
  saved.add("net", deep).numbers["epoch"] = 3;
  saved.save(path_);

  nn::Linear net(2, 3);
  optim::SGD opt(net.parameters());
  Checkpoint run;
  run.add("net", net).add("opt", opt).numbers["batch"] = 1;
  const auto before = values_of(net);
  EXPECT_EQ(complaint([&] { run.load(path_); }),
            path_ +
                ": of the run's 8 values 5 are missing ('net.bias', 'net.weight', 'numbers.batch', 'opt.lr', "
                "'opt.steps'), 6 are unknown ('net.0.bias', 'net.0.weight', 'net.1.bias', 'net.1.weight', "
                "'net.2.bias' and 1 more)");
  EXPECT_EQ(values_of(net), before);
  EXPECT_FALSE(run.numbers.contains("epoch"));

  nn::Sequential wide(nn::Linear(2, 2), nn::Linear(2, 2), nn::Linear(2, 5));
  Checkpoint misshapen;
  misshapen.add("net", wide);
  EXPECT_EQ(complaint([&] { misshapen.load(path_); }),
            path_ +
                ": of the run's 9 values 2 are misshapen ('net.2.bias' is f32[2] and should be f32[5], "
                "'net.2.weight' is f32[2,2] and should be f32[5,2])");
}

// Something with a state of its own, that refuses what it is given.
struct Stubborn {
  StateDict state_dict() const { return {{"mood", ones({})}}; }
  void load_state_dict(const StateDict& values) const {
    if (values.at("mood").item<float>() != 1) throw UserError("not today");
  }
};

TEST_F(Checkpoints, AreLoadedAsAWholeOrNotAtAll) {
  nn::Linear net(2, 2), other(2, 2);
  Checkpoint run;
  run.add("net", net).add("mind", Stubborn()).add("other", other);
  run.save(path_);
  StateDict values = load(path_);
  values["mind.mood"] = zeros({});
  for (const char* name : {"net.weight", "other.weight"}) values[name] = full({2, 2}, 7);
  save(values, path_);
  const auto before = values_of(net);
  const RngState generator = get_rng_state();
  EXPECT_EQ(complaint([&] { run.load(path_); }), path_ + ": 'mind': not today");
  EXPECT_EQ(values_of(net), before);
  EXPECT_EQ(get_rng_state().drawn, generator.drawn);
}

TEST_F(Checkpoints, RefuseNamesThatClash) {
  const nn::Linear net(2, 2);
  Checkpoint run;
  run.add("net", net);
  EXPECT_EQ(complaint([&] { run.add("net", net); }), "the checkpoint has a part called 'net' already");
  EXPECT_EQ(complaint([&] { run.add("generator", net); }), "the checkpoint has a part called 'generator' already");
  EXPECT_EQ(complaint([&] { run.add("a.b", net); }), "a part of a checkpoint must have a name without dots ('a.b')");
  EXPECT_EQ(complaint([&] { run.add("", net); }), "a part of a checkpoint must have a name without dots ('')");
}

TEST_F(Checkpoints, TheGeneratorGoesOn) {
  manual_seed(9);
  rand({3}).eval();
  const RngState here = get_rng_state();
  const std::vector<float> next = rand({3}).to_vector<float>();
  manual_seed(1);
  set_rng_state(here);
  EXPECT_EQ(rand({3}).to_vector<float>(), next);
}

}  // namespace
}  // namespace fusejit::testing
