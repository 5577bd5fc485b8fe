// Memory of the host that runs out in a training step, at any allocation: the step fails as a whole, nothing is lost,
// and the next one computes what it would have computed.
#include <gtest/gtest.h>
#include <malloc.h>

#include <new>

#include "fusejit/fusejit.h"
#include "runtime/disk/entry.h"
#include "tests/reliability/worker.h"
#include "tests/support/allocations/allocations.h"
#include "tests/support/cache_folder.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {
namespace {

// A small network in training.
class Training {
 public:
  float step() { return step_(x_, y_).item<float>(); }
  std::vector<float> weights() const { return net_.parameters()[0].value().to_vector<float>(); }
  std::int64_t steps() const { return optimizer_.steps(); }

 private:
  nn::Sequential net_ = [] {
    manual_seed(5);
    return nn::Sequential(nn::Conv2d(2, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::Flatten(), nn::Linear(64, 3));
  }();
  optim::SGD optimizer_{net_.parameters(), {.lr = 0.01, .momentum = 0.9}};
  Tensor x_ = rand({2, 2, 6, 6}).eval(), y_ = from_host(std::vector<std::int64_t>{0, 2}, {2});
  std::function<Tensor(Tensor, Tensor)> f_ = [this](const Tensor& x, const Tensor& y) {
    return cross_entropy(net_(x), y);
  };
  TrainStep<std::function<Tensor(Tensor, Tensor)>> step_{net_, optimizer_, f_, {}};
};

struct Failures {
  long failed = 0;
  std::size_t left_behind = 0;  // bytes of the C library's heap
};

// Each step of `training` fails at one allocation before it succeeds, at the `stride`-th next one each time, until the
// step has no more. `right` is the same training without failures. `before`: what comes before each try.
template <class Before>
Failures fail_everywhere(Training& training, Training& right, long stride, const Before& before) {
  Failures failures;
  std::size_t in_use = 0;
  bool has_failed = true;
  for (long at = 0; has_failed; at += stride) {
    const std::vector<float> weights = training.weights();
    const std::int64_t step = training.steps();
    const std::int64_t allocated = memory::allocated();
    before();
    try {
      const Allocations failing(at);
      training.step();
      has_failed = failing.has_failed();
    } catch (const std::bad_alloc&) {
      ++failures.failed;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("out of memory"), std::string::npos) << error.what();
      ++failures.failed;
    }
    const float loss = right.step();
    if (training.steps() != step) continue;  // it could do without
    EXPECT_EQ(training.weights(), weights) << "half a step, at allocation " << at;
    EXPECT_EQ(memory::allocated(), allocated) << "at allocation " << at;
    EXPECT_EQ(training.step(), loss) << "after allocation " << at;
    const std::size_t now = ::mallinfo2().uordblks;
    if (failures.failed == 8) in_use = now;
    if (failures.failed > 8) failures.left_behind = now > in_use ? now - in_use : 0;
    if (::testing::Test::HasFailure()) break;
  }
  return failures;
}

class OutOfMemory : public ::testing::Test {
 protected:
  void TearDown() override { set_options({.cache = "off"}); }
};

// All of recording, binding and running; plan and kernels are there.
TEST_F(OutOfMemory, AtAnyAllocationOfAStep) {
  set_options({.threads = 1, .cache = "off"});
  Training training, right;
  EXPECT_EQ(training.step(), right.step());
  const Failures failures = fail_everywhere(training, right, 1, [] {});
  EXPECT_GT(failures.failed, 100);
  EXPECT_LT(failures.left_behind, 64u << 10);
  std::printf("%ld allocations failed, %zu bytes left behind\n", failures.failed, failures.left_behind);
}

// Planning as well. Kernels come from the cache on disk: the compiler works in threads of its own, where nothing fails
// here.
TEST_F(OutOfMemory, AtAnyAllocationOfPlanning) {
  const test::CacheFolder cache;
  const auto forget_plans = [&] {
    set_options({.threads = 1});
    for (const std::string& file : files_below(cache.path("cache"), ".entry")) {
      const auto entry = runtime::disk::decode(bytes_of(file));
      if (entry && entry->key.kind() == "plan") std::filesystem::remove(file);
    }
  };
  forget_plans();
  Training training, right;
  EXPECT_EQ(training.step(), right.step());
  const Failures failures = fail_everywhere(training, right, testing::is_nightly() ? 97 : 1009, forget_plans);
  EXPECT_GT(failures.failed, 20);
  EXPECT_GT(stats().plans_made, stats().plans_loaded);
  std::printf("%ld allocations failed, %zu bytes left behind\n", failures.failed, failures.left_behind);
}

}  // namespace
}  // namespace fusejit::testing
