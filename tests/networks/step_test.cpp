// One training step of whole networks, machine code against what PyTorch computed in f64: the loss, the gradient of
// every parameter, running statistics, and parameters after a step of SGD with momentum and of Adam.
//
// By day each network once in f64, and some in f32 and without fusion; FUSEJIT_NIGHTLY=1 asks for three instruction
// sets, both ways to plan, f64 and f32, and for the CUDA text of the small ones on the shim. Each test prints its row
// of the table in docs/numerics.md.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/api/engines.h"
#include "tests/networks/recorded.h"
#include "tests/support/cuda_shim/shim_gpu.h"
#include "tests/support/nightly.h"

namespace fusejit::test {
namespace {

// f64: of a tensor's largest value.
constexpr double kBound = 1e-9;

using Two = std::array<double, 2>;  // tables: the worst tensor and the median; losses: before and after the step

// f32: four times what PyTorch's own f32 strays. Where a value of that falls on the other side of a kink of relu or
// max-pool (a gradient strays by more than 1e-3), another order of sums crosses others, and each moves gradients by
// percents.
Two f32_bound(const Recorded& recorded, const std::string& table) {
  const Two own = recorded.f32_tolerance(table);
  if (recorded.f32_tolerance("gradients")[0] <= 4e-3 || table == "running") return own;
  const Two least = table == "gradients" ? Two{0.2, 0.05} : table.ends_with("loss") ? Two{1e-4, 1} : Two{0.05, 1e-3};
  return {std::max(own[0], least[0]), std::max(own[1], least[1])};
}

// As often as the bound of sums of products, where those of 3x3 taps go through Winograd.
constexpr double kWinogradTimes = 8;

// See Recorded::difference.
constexpr double kFloor = 1e-4, kFloorF32 = 1e-2;

struct Case {
  std::string network, target, rules;
  DType dtype;
  // By day a plan less: without gradients that are results, where the update alone reads them, or without Adam.
  bool gradients, adam;
  std::string memory_limit = "none";
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Network& network : networks()) {
    const std::string& name = network.name;
    const bool small = name.starts_with("convnet");
    if (testing::is_nightly()) {
      for (const char* target : {"x86:avx512", "x86:avx2", "x86:v2"})
        for (const char* rules : {"all", "none"})
          for (const DType dtype : {f64, f32}) all.push_back({name, target, rules, dtype, true, true});
      for (const DType dtype : {f64, f32}) {
        all.push_back({name, "host", "all", dtype, true, true, "least"});
        if (small) all.push_back({name, "cuda:sm_90", "all", dtype, true, true});
      }
      continue;
    }
    all.push_back({name, "host", "all", f64, name != "densenet121" && name != "squeezenet1_1", small});
    if (small || name == "resnet18" || name == "vgg16") all.push_back({name, "host", "all", f32, true, small});
    if (name == "resnet18") all.push_back({name, "host,winograd=2", "all", f32, true, false});
    if (small || name == "resnet18") all.push_back({name, "host", "all", f64, true, false, "least"});
    if (small || name == "mobilenet_v2") all.push_back({name, "host", "none", f64, true, small});
  }
  return all;
}

std::string title(const Case& c) {
  return c.network + " " + std::string(name(c.dtype)) + " " + c.target + " rules=" + c.rules +
         (c.memory_limit == "none" ? "" : " memory_limit=" + c.memory_limit);
}
void PrintTo(const Case& c, std::ostream* out) { *out << title(c); }

std::map<std::string, Tensor> values_of(const nn::Module& net, bool running_only) {
  std::map<std::string, Tensor> values;
  for (const auto& [name, value] : net.named_values())
    if (!running_only || !value.trainable()) values[name] = value.value();
  return values;
}

class NetworkStep : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& c = GetParam();
    if (c.target.starts_with("cuda")) {
      gpu_ = std::make_unique<ShimGpu>();
      gpu_->use({.rules = scheduler::parse_rules(c.rules), .threads = 1});
      device_ = Device("cuda:0");
      return;
    }
    if (const std::string why = fusejit::testing::select_engine({"", "compiled", c.target.c_str()}); !why.empty())
      GTEST_SKIP() << why;
    set_options(
        {.engine = "compiled", .target = c.target, .rules = c.rules, .memory_limit = c.memory_limit, .threads = 2});
  }
  void TearDown() override {
    set_options({});
    if (!gpu_) return;
    EXPECT_EQ(gpu_->driver().problems(), std::vector<std::string>());
  }

  std::shared_ptr<nn::Module> fresh() const {
    std::shared_ptr<nn::Module> net = network_.make();
    set_initial_values(*net);
    net->to(GetParam().dtype);
    net->to(device_);
    return net;
  }

  Two bound_of(const std::string& table) const {
    if (GetParam().dtype == f64) return {kBound, kBound};
    const bool winograd = GetParam().target.find("winograd") != std::string::npos;
    const double times = winograd ? kWinogradTimes : 1;
    const Two of_sums = f32_bound(recorded_, table);
    return {times * of_sums[0], times * of_sums[1]};
  }

  void expect_table(const std::string& table, const std::map<std::string, Tensor>& tensors) {
    const bool wide = GetParam().dtype == f64;
    const Two bound = bound_of(table);
    const double floor = table != "gradients" ? 0 : wide ? kFloor : kFloorF32;
    const Difference off = recorded_.difference(table, tensors, bound[0], floor);
    EXPECT_LE(wide ? off.worst : off.whole, bound[0])
        << title(GetParam()) << ", " << table << ": " << off.beyond << " of " << tensors.size()
        << " tensors are wrong, the worst are" << off.what;
    EXPECT_LE(off.median, bound[1]) << title(GetParam()) << ", " << table << ": half of the tensors are off by more";
    row_ += tensors.empty() ? " |" : written(wide ? off.worst : off.whole);
  }

  // step: 0, or 1 for the loss of the updated parameters.
  void expect_loss(const Tensor& loss, const std::string& optimiser, std::size_t step) {
    const double meant = recorded_.losses(optimiser)[step];
    const double off = std::abs(loss.item<double>() - meant) / std::abs(meant);
    EXPECT_LE(off, bound_of(optimiser + ".loss")[step])
        << title(GetParam()) << ", loss " << step << " of " << optimiser;
    if (step == 1) row_ += written(off);
    loss_ = std::max(loss_, step == 0 ? off : 0);
  }

  void expect_steps(const std::string& name, optim::Optimizer& opt, nn::Module& net) {
    const Tensor x = image(), t = target();
    auto step = train_step(net, opt, [&](const Tensor& in, const Tensor& y) { return network_.loss(net(in), y); });
    expect_loss(step(x, t), name, 0);
    expect_table(name + ".values", values_of(net, false));
    expect_loss(step(x, t), name, 1);
  }

  static std::string written(double number) {
    char text[20];
    std::snprintf(text, sizeof text, " %.1e |", number);
    return text;
  }

  const Network& network_ = network_named(GetParam().network);
  const Recorded recorded_{network_};
  Tensor image() const { return image_of(network_, GetParam().dtype).to(device_); }
  Tensor target() const { return target_of(network_).to(device_); }
  std::unique_ptr<ShimGpu> gpu_;
  Device device_;
  std::string row_;
  double loss_ = 0;  // how far the one before the step is off

 private:
  fusejit::testing::Strictly strictly_;
};

TEST_P(NetworkStep, AgreesWithPyTorch) {
  const Case& c = GetParam();
  if (c.gradients) {
    const std::shared_ptr<nn::Module> net = fresh();
    ASSERT_EQ(names_hash(*net), recorded_.names_hash()) << "other names or shapes than PyTorch's";
    const Tensor loss = network_.loss((*net)(image()), target());
    const auto named = net->named_parameters();
    std::vector<Tensor> parameters, all{loss};
    for (const auto& [name, parameter] : named) parameters.push_back(parameter.value());
    const std::vector<Tensor> gradients = grad(loss, parameters);
    all.insert(all.end(), gradients.begin(), gradients.end());
    eval(all);
    expect_loss(loss, "sgd", 0);
    std::map<std::string, Tensor> by_name;
    for (std::size_t i = 0; i < named.size(); ++i) by_name[named[i].first] = gradients[i];
    expect_table("gradients", by_name);
    expect_table("running", values_of(*net, true));
  } else {
    row_ += " | |";
  }
  {
    const std::shared_ptr<nn::Module> net = fresh();
    optim::SGD opt(net->parameters(), {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4});
    expect_steps("sgd", opt, *net);
  }
  if (c.adam) {
    const std::shared_ptr<nn::Module> net = fresh();
    optim::Adam opt(net->parameters(), {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3});
    expect_steps("adam", opt, *net);
  } else {
    row_ += " | |";
  }
  EXPECT_GT(gpu_ ? gpu_->kernels() : stats().kernels_compiled, 0u) << "something else ran";
  std::printf("| %s | %s | %s | %s |%s%s\n", c.network.c_str(), std::string(name(c.dtype)).c_str(), c.target.c_str(),
              c.rules.c_str(), written(loss_).c_str(), row_.c_str());
}

INSTANTIATE_TEST_SUITE_P(Recorded, NetworkStep, ::testing::ValuesIn(cases()), [](const auto& info) {
  const Case& c = info.param;
  std::string target = c.target.substr(c.target.find(':') + 1);
  for (char& letter : target)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  return c.network + "_" + std::string(name(c.dtype)) + "_" + target + "_" + c.rules +
         (c.memory_limit == "none" ? "" : "_" + c.memory_limit);
});

}  // namespace
}  // namespace fusejit::test
