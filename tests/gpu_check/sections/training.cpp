// The digits network: one step against the kernel interpreter, and the curve of many on images of the machine or made
// up.
#include "tools/train_convnet/training.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "frontend/models/named.h"
#include "fusejit/fusejit.h"
#include "runtime/session.h"
#include "tests/gpu_check/model.h"
#include "tests/gpu_check/sections.h"
#include "tests/support/step_arguments.h"

namespace fusejit::gpu_check {
namespace {

// One step on positive numbers, where states of the optimiser are sound too.
void check_step(Machine& machine, Report& report, CudnnMode cudnn) {
  const models::ModelGraph model = models::model_graph("convnet@2:train");
  const std::vector<Buffer> arguments = test::drawn_arguments(model.graph, 11);
  runtime::Session interpreter(
      {.target = machine.target(cudnn), .engine = runtime::Engine::kernel_interpreter, .threads = 1});
  const std::vector<Buffer> want = interpreter.run(model.graph, arguments);
  const Planned planned = machine.plan(model.graph, {.cudnn = cudnn});
  const std::vector<Buffer> got = machine.download(machine.run(planned, machine.upload(arguments)));
  const std::string how =
      cudnn == CudnnMode::off ? "without cuDNN" : fmt::format("with cudnn={}", static_cast<int>(cudnn));
  // Without cuDNN only exp and log may differ; with it, sums are in another order, and much cancels in gradients
  // through batch norms of two images.
  const double tolerance = cudnn == CudnnMode::off ? 1e-5 : 2e-4;
  double worst = 0;
  for (std::size_t r = 0; r < want.size(); ++r) {
    const double difference = test::largest_difference(got[r], want[r]);
    worst = std::max(worst, difference);
    if (difference <= tolerance) continue;
    report.check(fmt::format("step {}: result {} {}", how, r, want[r].type().str()),
                 fmt::format("off by {:.3g} of its largest element, allowed is {:.1g}", difference, tolerance));
  }
  const double loss = test::largest_difference(got[0], want[0]);
  report.check(fmt::format("step {}: the loss", how), loss <= 1e-5 ? "" : fmt::format("off by {:.3g}", loss));
  const runtime::cuda::ExecutorStatistics ran = planned.executor->statistics();
  report.say(
      fmt::format("step of the digits network {}: {} kernels and {} library calls; {} results, the worst off by "
                  "{:.1e} of its largest element",
                  how, ran.kernel_launches, ran.library_calls, want.size(), worst));
}

// Ten patterns, each image one of them moved a little and with noise: enough to learn, and not by heart.
std::shared_ptr<data::ImageSet> made_up_images(std::int64_t count, std::uint64_t seed) {
  std::mt19937 patterns(5), random(static_cast<std::uint32_t>(seed));
  std::vector<std::vector<int>> strokes(10);
  for (std::vector<int>& stroke : strokes) {
    for (int i = 0; i < 12; ++i) stroke.push_back(static_cast<int>(patterns() % (18 * 18)));
  }
  auto set = std::make_shared<data::ImageSet>();
  set->count = count, set->height = set->width = 28;
  for (std::int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(random() % 10), down = static_cast<int>(random() % 6),
              right = static_cast<int>(random() % 6);
    std::vector<std::uint8_t> pixels(28 * 28);
    for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random() % 96);
    for (const int at : strokes[static_cast<std::size_t>(label)]) {
      for (int k = 0; k < 9; ++k) {
        pixels[static_cast<std::size_t>((at / 18 + down + k / 3) * 28 + at % 18 + right + k % 3)] = 230;
      }
    }
    set->labels.push_back(static_cast<std::uint8_t>(label));
    set->pixels.insert(set->pixels.end(), pixels.begin(), pixels.end());
  }
  return set;
}

// Two epochs as a user's program trains them, on the public interface.
void check_curve(Machine& machine, Report& report) {
  std::shared_ptr<data::ImageSet> train, test;
  std::string of = "made-up images";
  std::string folder = machine.options().data.string();
  if (folder.empty() && std::filesystem::exists(data::kFashionMnist)) folder = data::kFashionMnist;
  if (!folder.empty() && !machine.toy()) {
    train = std::make_shared<data::ImageSet>(data::load_images(folder, data::Split::train));
    test = std::make_shared<data::ImageSet>(data::load_images(folder, data::Split::test));
    of = folder;
  } else {
    train = made_up_images(machine.toy() ? 8 : 20000, 1);
    test = made_up_images(machine.toy() ? 4 : 2000, 2);
  }
  tools::Job job;
  if (machine.toy()) {
    job.batch = 4, job.engine = "graph_interpreter", job.epochs = 1;
  } else {
    job.device = "cuda:0";
  }
  manual_seed(job.seed);
  nn::Sequential net = models::convnet();
  const tools::TrainingResult trained = tools::train(net, job, train, test, false);
  for (std::size_t e = 0; e < trained.epochs.size(); ++e) {
    const tools::EpochResult& epoch = trained.epochs[e];
    report.row({{"epoch", e + 1},
                {"images", of},
                {"last loss", epoch.loss},
                {"test accuracy", epoch.accuracy},
                {"images/s", epoch.images_per_second},
                {"s", epoch.seconds}});
  }
  std::string curve;
  for (std::size_t i = 0; i < trained.losses.size(); i += std::max<std::size_t>(1, trained.losses.size() / 20)) {
    curve += fmt::format(" {:.3f}", trained.losses[i]);
  }
  report.say("loss:" + curve);
  const double accuracy = trained.epochs.back().accuracy;
  report.check("the network learns",
               machine.toy() || accuracy > 0.8 ? "" : fmt::format("its accuracy is {:.3f}", accuracy));
}

}  // namespace

void check_training(Machine& machine, Report& report) {
  check_step(machine, report, CudnnMode::off);
  for (const CudnnMode cudnn : {CudnnMode::precompiled, CudnnMode::compiled}) {
    if (machine.options().cudnn) check_step(machine, report, cudnn);
  }
  try {
    check_curve(machine, report);
  } catch (const Error& error) {
    report.check("training by the public interface", error.what());
  }
}

}  // namespace fusejit::gpu_check
