// Trains ResNet-18 on CIFAR-10 in mixed precision, with augmentation, a schedule, and a checkpoint after each epoch
// from which the next call goes on to the bit.
//
//     cifar10 DIRECTORY [EPOCHS [CHECKPOINT]]      the *.bin of cifar-10-binary.tar.gz; 10 epochs; cifar10.npz
#include <charconv>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "fusejit/fusejit.h"

namespace {

namespace fj = fusejit;

// What CIFAR-10's pixels are on average, and how far they stray.
const fj::data::Normalize kNormalize({0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616});

fj::data::DataLoader loader(const std::string& directory, bool train) {
  auto images = std::make_shared<fj::data::CIFAR10>(directory, train ? fj::data::Split::train : fj::data::Split::test);
  fj::data::DataLoaderOptions options{.batch_size = 128, .shuffle = train, .num_workers = 1, .seed = 1};
  if (train) {
    options.transform = fj::data::Compose(
        {fj::data::RandomCrop(32, {.padding = 4}), fj::data::RandomHorizontalFlip(), fj::data::ToTensor(), kNormalize});
  } else {
    options.transform = fj::data::Compose({fj::data::ToTensor(), kNormalize});
  }
  return fj::data::DataLoader(images, options);
}

// The share of images whose class is found.
double accuracy(fj::models::ResNet& net, fj::data::DataLoader& images) {
  net.eval();
  const fj::NoGrad off;
  std::int64_t right = 0, all = 0;
  for (auto [x, y] : images) {
    right += fj::sum(fj::argmax(net(x), 1) == y).item<std::int64_t>();
    all += y.size(0);
  }
  net.train();
  return static_cast<double>(right) / static_cast<double>(all);
}

// A network, what trains it for so many steps, and all of it as a checkpoint.
struct Training {
  Training(fj::models::ResNet network, std::int64_t steps, std::optional<fj::DType> narrow = fj::bf16)
      : last(steps), autocast(narrow), net(network) {
    run.add("net", net).add("opt", opt).add("schedule", schedule);
    run.numbers["epoch"] = 0;
  }
  std::int64_t last;
  std::optional<fj::DType> autocast;
  fj::models::ResNet net;
  fj::optim::SGD opt{net.parameters(), {.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4}};
  fj::optim::CosineAnnealingLR schedule{opt, last};
  fj::Step<fj::Tensor(fj::Tensor, fj::Tensor)> step =
      fj::train_step(net, opt,
                     [net = net](const fj::Tensor& x, const fj::Tensor& y) {
                       return fj::cross_entropy(net(x), y, {.label_smoothing = 0.1});
                     },
                     {.autocast = autocast});
  fj::Checkpoint run;
};

int epochs_of(const std::string& text) {
  int epochs = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), epochs);
  if (error != std::errc() || stop != text.data() + text.size() || epochs < 1)
    throw std::invalid_argument("EPOCHS is '" + text + "', it must be a whole number above 0");
  return epochs;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::invalid_argument("usage: cifar10 DIRECTORY [EPOCHS [CHECKPOINT]]");
  const int epochs = argc > 2 ? epochs_of(argv[2]) : 10;
  const std::string path = argc > 3 ? argv[3] : "cifar10.npz";
  fj::data::DataLoader train = loader(argv[1], true), test = loader(argv[1], false);

  fj::manual_seed(1);
  Training training(fj::models::resnet18(10), epochs * train.size());
  if (std::filesystem::exists(path)) training.run.load(path);
  for (std::int64_t& epoch = training.run.numbers["epoch"]; epoch < epochs;) {
    train.set_epoch(epoch);
    fj::data::Progress progress("epoch " + std::to_string(epoch + 1) + "/" + std::to_string(epochs),
                                128 * train.size());
    std::int64_t done = 0;
    for (auto [x, y] : train) {
      const fj::Tensor loss = training.step(x, y);
      training.schedule.step();
      progress.show(done += 128, loss.item<float>());
    }
    progress.finish();
    ++epoch;
    training.run.save(path);
    std::cout << "accuracy on test images " << accuracy(training.net, test) << ", saved " << path << '\n';
  }
  if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "cifar10: " << error.what() << '\n';
  return 1;
}
