#include "tools/train_convnet/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "fusejit/progress.h"
#include "tools/output.h"

namespace fusejit::tools {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::int64_t limited(std::int64_t count, const Job& job) { return job.limit > 0 ? std::min(count, job.limit) : count; }

void use_session(const Job& job, const std::string& rules) {
  set_options(
      {.engine = job.engine, .target = job.target, .rules = rules, .threads = job.threads, .device = job.device});
}

data::BatchOptions batch_options(const Job& job, bool shuffle) {
  return {.batch = job.batch, .shuffle = shuffle, .mean = job.mean, .deviation = job.deviation};
}

// Predicted labels of the test images, in order.
std::vector<std::int64_t> predict(nn::Sequential& net, const data::Batches& batches, std::int64_t count) {
  const NoGrad off;
  std::vector<std::int64_t> predicted;
  for (std::int64_t b = 0; b < batches.size() && static_cast<std::int64_t>(predicted.size()) < count; ++b) {
    const std::vector<std::int64_t> some = argmax(net(batches.get(b).images), 1).to_vector<std::int64_t>();
    predicted.insert(predicted.end(), some.begin(), some.end());
  }
  return predicted;
}

double accuracy_of(const std::vector<std::int64_t>& predicted, const data::ImageSet& set) {
  std::int64_t right = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) right += predicted[i] == set.labels[i];
  return predicted.empty() ? 0 : static_cast<double>(right) / static_cast<double>(predicted.size());
}

}  // namespace

TrainingResult train(nn::Sequential& net, const Job& job, std::shared_ptr<const data::ImageSet> train_set,
                     std::shared_ptr<const data::ImageSet> test_set, const std::atomic<bool>& stop) {
  use_session(job, job.rules);
  net.to(job.device);
  optim::Adadelta opt(net.parameters(), {.lr = 1.0});
  optim::StepLR schedule(opt, 1, 0.7);
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) { return nll_loss(net(x), y); });
  const std::int64_t images = limited(train_set->count, job), tests = limited(test_set->count, job);
  const data::Batches test = data::batches(test_set, batch_options(job, false));
  TrainingResult result;
  for (int epoch = 1; epoch <= job.epochs && !stop; ++epoch) {
    net.train();
    EpochResult now;
    data::Progress progress(fmt::format("epoch {}/{}", epoch, job.epochs), images);
    const auto start = std::chrono::steady_clock::now();
    const data::Batches batches = data::batches(train_set, batch_options(job, true));
    std::int64_t done = 0;
    for (std::int64_t b = 0; b < batches.size() && done < images && !stop; ++b) {
      const auto [x, y] = batches.get(b);
      now.loss = step(x, y).item<double>();
      result.losses.push_back(now.loss);
      progress.show(done += x.size(0), now.loss);
    }
    progress.finish();
    now.seconds = seconds_since(start);
    now.images_per_second = now.seconds > 0 ? static_cast<double>(done) / now.seconds : 0;
    schedule.step();
    net.eval();
    result.predicted = predict(net, test, stop ? std::min<std::int64_t>(tests, 1000) : tests);
    now.accuracy = accuracy_of(result.predicted, *test_set);
    say("epoch {}/{}: loss {:.4f}, test accuracy {:.2f} % of {} images, {:.0f} images/s, {:.1f} s\n", epoch, job.epochs,
        now.loss, 100 * now.accuracy, result.predicted.size(), now.images_per_second, now.seconds);
    std::fflush(stdout);
    result.epochs.push_back(now);
  }
  say("{}\n", stats().str());
  result.stopped = stop;
  return result;
}

const std::vector<Mode>& modes() {
  static const std::vector<Mode> kModes = {
      {"unfused", "unfused", "none", models::ConvnetForm::ordinary},
      {"fused", "fused", "all", models::ConvnetForm::ordinary},
      {"fused + save-only-input", "save_input", "all", models::ConvnetForm::save_input},
  };
  return kModes;
}

ModeResult measure(const Mode& mode, const Job& job, std::shared_ptr<const data::ImageSet> train_set,
                   const std::atomic<bool>& stop) {
  use_session(job, mode.rules);
  manual_seed(job.seed);
  nn::Sequential net = models::convnet(mode.form);
  optim::Adadelta opt(net.parameters(), {.lr = 1.0});
  auto step = train_step(net, opt, [&](const Tensor& x, const Tensor& y) { return nll_loss(net(x), y); });
  const data::Batches batches = data::batches(train_set, batch_options(job, true));
  step(batches.get(0).images, batches.get(0).labels);  // plans, compiles, touches the memory
  const Device device(job.device);
  memory::reset_peak(device);
  ModeResult result;
  double seconds = 0;
  for (int i = 1; i <= job.measured_steps && !stop; ++i) {
    const auto [x, y] = batches.get(i % batches.size());
    const auto start = std::chrono::steady_clock::now();
    result.loss = step(x, y).item<double>();
    seconds += seconds_since(start);
  }
  const double per_step = seconds / std::max(1, job.measured_steps);
  result.ms_per_step = 1e3 * per_step;
  result.images_per_s = per_step > 0 ? static_cast<double>(job.batch) / per_step : 0;
  const Statistics s = stats();
  result.peak_bytes = memory::peak(device);
  result.end_of_forward_bytes = s.last_plan.end_of_forward_bytes;
  result.ledger_bytes = s.last_plan.ledger_bytes;
  result.kernels = s.last_plan.kernels;
  result.compile_ms = s.compile_milliseconds;
  result.plan_cache_hits = s.plan_cache_hits;
  return result;
}

}  // namespace fusejit::tools
