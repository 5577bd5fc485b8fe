// Trains a small network: the program of the README, whole.
//
//     train [DIRECTORY]      the images: *-ubyte files or *-ubyte.gz; otherwise those of dataset-fashion-mnist
#include <iostream>

#include "fusejit/fusejit.h"

int main(int argc, char** argv) try {
  const std::string dir = argc > 1 ? argv[1] : fusejit::data::kFashionMnist;
  // README, from here
  namespace fj = fusejit;

  fj::manual_seed(1);
  fj::nn::Sequential net(fj::nn::Conv2d(1, 32, 3), fj::nn::BatchNorm2d(32), fj::nn::ReLU(), fj::nn::MaxPool2d(2),
                         fj::nn::Flatten(), fj::nn::Linear(5408, 10));
  fj::optim::SGD opt(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::cross_entropy(net(x), y); });
  for (int epoch = 0; epoch < 3; ++epoch, opt.set_lr(opt.lr() * 0.7))
    for (auto [x, y] : fj::data::idx(dir, {.batch = 250, .shuffle = true})) {
      fj::Tensor loss = step(x, y);  // forward + backward + update: one plan, recorded each call, compiled once
      if (step.count() % 100 == 0) std::cout << loss.item<float>() << '\n';
    }
  fj::save(net.state_dict(), "net.npz");
  // README, to here
  std::cout << "net.npz\n" << fj::stats().str() << '\n';  // the second time, everything comes from disk
  if (!std::cout.flush()) throw fusejit::FileError("standard output cannot be written");
} catch (const fusejit::Error& error) {
  std::cerr << "train: " << error.what() << '\n';
  return 1;
}
