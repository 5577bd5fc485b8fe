// Schedules against tables that PyTorch recorded; state, what they start from, refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "frontend/io/npz.h"
#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace fusejit {
namespace {

using optim::LRScheduler;
using optim::Optimizer;

// Two groups, at 0.1 and 0.02.
template <class Kind, class Options>
Optimizer two_groups(Options options) {
  options.lr = 0.1;
  return Kind(
      {{.parameters = {nn::Parameter("a", zeros({1}))}}, {.parameters = {nn::Parameter("b", zeros({1}))}, .lr = 0.02}},
      options);
}
Optimizer sgd() { return two_groups<optim::SGD>(optim::SgdOptions{.momentum = 0.9}); }
Optimizer adam() { return two_groups<optim::Adam>(optim::AdamOptions{}); }
Optimizer adadelta() { return two_groups<optim::Adadelta>(optim::AdadeltaOptions{}); }

struct Case {
  const char* name;
  Optimizer (*optimizer)();
  std::function<LRScheduler(const Optimizer&)> make;
};

const Case kCases[] = {
    {"lambda", sgd,
     [](const Optimizer& o) {
       return optim::LambdaLR(o, [](std::int64_t t) { return 1.0 / (1.0 + static_cast<double>(t)); });
     }},
    {"step", sgd, [](const Optimizer& o) { return optim::StepLR(o, 3, 0.7); }},
    {"multi_step", sgd,
     [](const Optimizer& o) {
       return optim::MultiStepLR(o, {8, 2, 5, 5}, 0.3);
     }},
    {"exponential", sgd, [](const Optimizer& o) { return optim::ExponentialLR(o, 0.9); }},
    {"cosine", sgd, [](const Optimizer& o) { return optim::CosineAnnealingLR(o, 5); }},
    {"cosine_eta_min", sgd, [](const Optimizer& o) { return optim::CosineAnnealingLR(o, 8, 0.01); }},
    {"linear", sgd, [](const Optimizer& o) { return optim::LinearLR(o); }},
    {"linear_down", sgd,
     [](const Optimizer& o) { return optim::LinearLR(o, {.start_factor = 1, .end_factor = 0.1, .total_iters = 7}); }},
    {"one_cycle", sgd,
     [](const Optimizer& o) {
       return optim::OneCycleLR(o, {0.5, 0.2}, 20);
     }},
    {"one_cycle_adam", adam, [](const Optimizer& o) { return optim::OneCycleLR(o, 0.3, 17, {.pct_start = 0.45}); }},
    {"one_cycle_linear", adadelta,
     [](const Optimizer& o) {
       return optim::OneCycleLR(
           o, 0.3, 15,
           {.anneal_strategy = "linear", .cycle_momentum = false, .div_factor = 10, .final_div_factor = 100});
     }},
    {"one_cycle_three_phase", sgd,
     [](const Optimizer& o) {
       return optim::OneCycleLR(o, 0.3, 21,
                                {.pct_start = 0.4, .base_momentum = 0.8, .max_momentum = 0.9, .three_phase = true});
     }},
    {"sequential", sgd,
     [](const Optimizer& o) {
       return optim::SequentialLR(o,
                                  {optim::LinearLR(o, {.start_factor = 0.25, .total_iters = 4}),
                                   optim::CosineAnnealingLR(o, 6, 0.001), optim::ExponentialLR(o, 0.5)},
                                  {4, 10});
     }},
    {"chained", sgd,
     [](const Optimizer& o) {
       return optim::ChainedScheduler(
           {optim::LinearLR(o, {.start_factor = 0.5, .total_iters = 4}), optim::ExponentialLR(o, 0.9)});
     }},
    {"chained_three", sgd,
     [](const Optimizer& o) {
       return optim::ChainedScheduler(
           {optim::StepLR(o, 5, 0.5), optim::MultiStepLR(o, {3, 7}, 0.1), optim::CosineAnnealingLR(o, 10)});
     }},
};

// The arrays of a file: rows and values.
using Tables = std::map<std::string, std::pair<std::int64_t, std::vector<double>>>;

Tables tables_of(const char* file) {
  Tables tables;
  const std::string path = std::string(FUSEJIT_SOURCE_DIR) + "/tests/reference/" + file;
  for (const io::NamedArray& a : io::read_npz(path, [](std::string_view name) { return name != "torch_version"; }))
    tables[a.name] = {a.shape[0], from_host(a.bytes.data(), a.shape, a.dtype).to_vector<double>()};
  return tables;
}

// <case>.lr and <case>.momentum, row t after t calls of step(), a column a group.
Tables recorded() { return tables_of("schedules.npz"); }

// PyTorch multiplies its last rate by a ratio, call after call: its own error, over some twenty calls.
void expect_rate(double got, double want, const std::string& where) {
  EXPECT_NEAR(got, want, 1e-13 * std::abs(want) + 1e-16) << where;
}

TEST(Schedules, AreThoseOfPyTorch) {
  const auto tables = recorded();
  std::size_t compared = 0;
  for (const Case& c : kCases) {
    const Optimizer opt = c.optimizer();
    LRScheduler schedule = c.make(opt);
    const auto& [rows, lrs] = tables.at(std::string(c.name) + ".lr");
    const auto momenta = tables.find(std::string(c.name) + ".momentum");
    compared += momenta == tables.end() ? 1 : 2;
    for (std::int64_t t = 0; t < rows; ++t) {
      if (t > 0) schedule.step();
      for (std::size_t g = 0; g < 2; ++g) {
        const std::string where = std::string(c.name) + ", step " + std::to_string(t) + ", group " + std::to_string(g);
        const std::size_t at = static_cast<std::size_t>(t) * 2 + g;
        expect_rate(opt.lr(g), lrs[at], where);
        expect_rate(schedule.get_last_lr()[g], lrs[at], where);
        if (momenta != tables.end()) expect_rate(opt.momentum(g), momenta->second.second[at], where + ", momentum");
      }
    }
    EXPECT_EQ(schedule.last_epoch(), rows - 1);
  }
  EXPECT_EQ(compared, tables.size()) << "a recorded table is compared with nothing";
}

// Halfway, into fresh objects that begin elsewhere.
TEST(Schedules, StateRoundTrips) {
  for (const Case& c : kCases) {
    const Optimizer opt = c.optimizer(), again = c.optimizer();
    LRScheduler schedule = c.make(opt);
    for (int t = 0; t < 6; ++t) schedule.step();
    Optimizer(again).set_lr(0.9);
    LRScheduler resumed = c.make(again);
    resumed.load_state_dict(schedule.state_dict());
    Optimizer(again).load_state_dict(opt.state_dict());
    for (int t = 6; t < 10; ++t) {
      for (std::size_t g = 0; g < 2; ++g) {
        EXPECT_EQ(again.lr(g), opt.lr(g)) << c.name << ", step " << t;
        if (opt.state_dict().contains("momentum")) {
          EXPECT_EQ(again.momentum(g), opt.momentum(g)) << c.name;
        }
      }
      schedule.step(), resumed.step();
    }
  }
}

TEST(Schedules, OutliveTheirOptimisersHandle) {
  const auto make = [](Optimizer opt) { return optim::StepLR(opt, 1, 0.5); };
  const Optimizer opt = sgd();
  LRScheduler schedule = make(opt), same = schedule;
  schedule.step(), same.step();
  EXPECT_EQ(opt.lr(), 0.025);
  EXPECT_EQ(schedule.last_epoch(), 2);
  LRScheduler alone = make(sgd());
  alone.step();
  EXPECT_EQ(alone.get_last_lr(), (std::vector<double>{0.05, 0.01}));
}

// The second schedule of a sequence begins from the rate before the first; one that is made after set_lr() from that.
TEST(Schedules, StartFromTheRateBeforeTheFirstOne) {
  Optimizer opt = sgd();
  const optim::LinearLR first(opt, {.start_factor = 0.5});
  EXPECT_EQ(opt.lr(), 0.05);
  const optim::ExponentialLR second(opt, 0.5);
  EXPECT_EQ(opt.lr(), 0.1);
  opt.set_lr(0.4);
  optim::ExponentialLR third(opt, 0.5);
  third.step();
  EXPECT_EQ(opt.lr(0), 0.2);
  EXPECT_EQ(opt.lr(1), 0.2);
}

TEST(Schedules, RefuseNonsense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Optimizer opt = sgd(), other = sgd(), without = two_groups<optim::SGD>(optim::SgdOptions{});
  const optim::StepLR of_other(other, 1);
  const struct {
    const char* what;
    std::function<void()> make;
    const char* sentence;
  } cases[] = {
      {"step_size", [&] { optim::StepLR(opt, 0); }, "StepLR: step_size is 0, it must be at least 1"},
      {"gamma", [&] { optim::ExponentialLR(opt, nan); },
       "ExponentialLR: the gamma is nan, it must be finite and at least 0"},
      {"T_max", [&] { optim::CosineAnnealingLR(opt, -3); }, "CosineAnnealingLR: T_max is -3, it must be at least 1"},
      {"start_factor", [&] { optim::LinearLR(opt, {.start_factor = 0}); },
       "LinearLR: start_factor is 0, it must be above 0, at most 1"},
      {"no function", [&] { optim::LambdaLR(opt, nullptr); }, "LambdaLR: there is no function"},
      {"a negative rate", [&] { optim::LambdaLR(opt, [](std::int64_t) { return -1.0; }); },
       "LambdaLR: step 0: the learning rate is -0.1, it must be finite and at least 0"},
      {"rates", [&] { optim::OneCycleLR(opt, std::vector<double>{0.1}, 10); },
       "OneCycleLR: 1 rates are given for 2 parameter groups"},
      {"anneal", [&] { optim::OneCycleLR(opt, 0.1, 10, {.anneal_strategy = "exp"}); },
       "OneCycleLR: anneal_strategy is 'exp', it must be 'cos' or 'linear'"},
      {"no momentum", [&] { optim::OneCycleLR(without, 0.1, 10); },
       "OneCycleLR: SGD: there is no momentum to cycle: give it one, or set cycle_momentum = false"},
      {"no schedules", [&] { optim::ChainedScheduler({}); }, "ChainedScheduler: there are no schedules"},
      {"another's",
       [&] {
         optim::SequentialLR(opt, {optim::StepLR(opt, 1), of_other}, {3});
       },
       "SequentialLR: schedule 1 (StepLR) is one of another optimiser"},
      {"milestones", [&] { optim::SequentialLR(opt, {optim::StepLR(opt, 1)}, {3}); },
       "SequentialLR: 1 milestones are given for 1 schedules"},
      {"falling milestones",
       [&] {
         optim::SequentialLR(opt, {optim::StepLR(opt, 1), optim::StepLR(opt, 1), optim::StepLR(opt, 1)}, {3, 3});
       },
       "SequentialLR: milestone 1 is 3, they must rise"},
  };
  for (const auto& c : cases) {
    try {
      c.make();
      ADD_FAILURE() << c.what << " is accepted";
    } catch (const UserError& error) {
      EXPECT_STREQ(error.what(), c.sentence);
    }
  }
  EXPECT_EQ(opt.lr(), 0.1);
}

// Whose last step comes after the last update.
TEST(Schedules, OneCycleEndsWhereItShould) {
  for (const char* strategy : {"cos", "linear"}) {
    const Optimizer opt = sgd();
    optim::OneCycleLR schedule(opt, 0.5, 10, {.anneal_strategy = strategy});
    for (int t = 0; t < 9; ++t) schedule.step();
    EXPECT_NEAR(opt.lr(), 0.5 / 25 / 1e4, 1e-15) << strategy;
    schedule.step();
    EXPECT_NEAR(opt.lr(), 0.5 / 25 / 1e4, 1e-15) << strategy;
    EXPECT_THROW(schedule.step(), UserError);
  }
  // Phases of no length: up at once, or never down.
  for (const double pct_start : {0.0, 0.1, 1.0}) {
    const Optimizer opt = sgd();
    optim::OneCycleLR schedule(opt, 0.5, 10, {.pct_start = pct_start});
    for (int t = 0; t < 10; ++t) {
      EXPECT_TRUE(opt.lr() > 0 && opt.lr() <= 0.5) << pct_start << ", step " << t << ": " << opt.lr();
      schedule.step();
    }
  }
}

TEST(Schedules, ARefusedStepChangesNothing) {
  const Optimizer opt = sgd();
  optim::OneCycleLR schedule(opt, 0.5, 3);
  for (int t = 0; t < 3; ++t) schedule.step();
  const double lr = opt.lr(), momentum = opt.momentum();
  EXPECT_THROW(schedule.step(), UserError);
  EXPECT_EQ(opt.lr(), lr);
  EXPECT_EQ(opt.momentum(), momentum);
  EXPECT_EQ(schedule.last_epoch(), 3);
  EXPECT_THROW(schedule.load_state_dict({{"last_epoch", ones({}, i64)}}), UserError);
  EXPECT_THROW(schedule.load_state_dict({{"last_epoch", full({}, -1, i64)}, {"base_lrs", ones({2}, f64)}}), UserError);
  EXPECT_EQ(schedule.last_epoch(), 3);
}

struct PlateauCase {
  const char* name;
  optim::ReduceLROnPlateauOptions options;
};
// As recording/optimisers.py.
const PlateauCase kPlateaus[] = {
    {"defaults", {}},
    {"patience", {.factor = 0.5, .patience = 2}},
    {"cooldown", {.factor = 0.5, .patience = 1, .cooldown = 3}},
    {"relative", {.factor = 0.3, .patience = 1, .threshold = 0.1}},
    {"absolute", {.factor = 0.3, .patience = 1, .threshold = 0.15, .threshold_mode = "abs"}},
    {"max", {.mode = "max", .factor = 0.7, .patience = 0, .threshold = 0.1}},
    {"max_absolute", {.mode = "max", .factor = 0.7, .patience = 0, .threshold = 0.1, .threshold_mode = "abs"}},
    {"min_lr", {.factor = 0.1, .patience = 0, .min_lr = 0.005}},
    {"eps", {.factor = 0.5, .patience = 0, .eps = 0.006}},
    {"below_zero", {.factor = 0.5, .patience = 0}},
    {"not_a_number", {.factor = 0.5, .patience = 0}},
};

TEST(Plateaus, AreThoseOfPyTorch) {
  const Tables tables = tables_of("plateaus.npz");
  EXPECT_EQ(tables.size(), 2 * std::size(kPlateaus)) << "a recorded table is compared with nothing";
  for (const PlateauCase& c : kPlateaus) {
    const Optimizer opt = sgd();
    optim::ReduceLROnPlateau plateau(opt, c.options);
    const std::vector<double>& metrics = tables.at(std::string(c.name) + ".metric").second;
    const std::vector<double>& lrs = tables.at(std::string(c.name) + ".lr").second;
    for (std::size_t t = 0; t < metrics.size(); ++t) {
      plateau.step(metrics[t]);
      for (std::size_t g = 0; g < 2; ++g) {
        EXPECT_EQ(opt.lr(g), lrs[2 * t + g]) << c.name << ", call " << t << ", group " << g;
        EXPECT_EQ(plateau.get_last_lr()[g], opt.lr(g));
      }
    }
    EXPECT_EQ(plateau.last_epoch(), static_cast<std::int64_t>(metrics.size()));
  }
}

// Wherever it is cut, through a file.
TEST(Plateaus, GoOnFromACheckpoint) {
  const testing::TemporaryFolder folder;
  const std::vector<double> metrics = tables_of("plateaus.npz").at("cooldown.metric").second;
  const optim::ReduceLROnPlateauOptions options{.factor = 0.5, .patience = 1, .cooldown = 3};
  for (std::size_t cut = 0; cut < metrics.size(); ++cut) {
    const Optimizer opt = sgd(), again = sgd();
    optim::ReduceLROnPlateau plateau(opt, options), resumed(again, options);
    for (std::size_t t = 0; t < cut; ++t) plateau.step(metrics[t]);
    Checkpoint().add("opt", opt).add("plateau", plateau).save(folder / "run.npz");
    Checkpoint().add("opt", again).add("plateau", resumed).load(folder / "run.npz");
    EXPECT_EQ(resumed.last_epoch(), static_cast<std::int64_t>(cut));
    for (std::size_t t = cut; t < metrics.size(); ++t) {
      EXPECT_EQ(again.lr(1), opt.lr(1)) << "cut at " << cut << ", call " << t;
      plateau.step(metrics[t]), resumed.step(metrics[t]);
    }
  }
}

TEST(Plateaus, RefuseNonsense) {
  using Options = optim::ReduceLROnPlateauOptions;
  const struct {
    Options options;
    const char* sentence;
  } cases[] = {
      {{.mode = "least"}, "ReduceLROnPlateau: mode is 'least', it must be 'min' or 'max'"},
      {{.threshold_mode = "share"}, "ReduceLROnPlateau: threshold_mode is 'share', it must be 'rel' or 'abs'"},
      {{.factor = 1}, "ReduceLROnPlateau: the factor is 1, it must be finite"},
      {{.patience = -1}, "ReduceLROnPlateau: patience is -1, it must not be negative"},
      {{.threshold = -1}, "ReduceLROnPlateau: the threshold is -1, it must be finite and at least 0"},
      {{.cooldown = -2}, "ReduceLROnPlateau: cooldown is -2, it must not be negative"},
  };
  for (const auto& c : cases) {
    const std::string error = testing::error_of<UserError>([&] { optim::ReduceLROnPlateau(sgd(), c.options); });
    EXPECT_TRUE(error.starts_with(c.sentence)) << error;
  }
  optim::ReduceLROnPlateau plateau(sgd(), {.patience = 0});
  plateau.step(1);
  StateDict state = plateau.state_dict();
  state["num_bad_epochs"] = full({}, -1, i64);
  state["best"] = full({}, 0, f64);
  EXPECT_THROW(plateau.load_state_dict(state), UserError);
  EXPECT_EQ(plateau.state_dict().at("best").item<double>(), 1);
}

}  // namespace
}  // namespace fusejit
