// Serves ResNet-50: weights from a file, batch-norm folded, one image in, probabilities out.
//
//     serve [WEIGHTS.npz [SIDE]]      without weights, or "": random ones, which say nothing about images
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fusejit/fusejit.h"

namespace {

std::int64_t side_of(const std::string& text) {
  std::int64_t side = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, side);
  if (error != std::errc() || stop != end || side < 1 || side > 4096)
    throw std::invalid_argument("SIDE is '" + text + "', it must be a whole number of pixels from 1 to 4096");
  return side;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string weights = argc > 1 ? argv[1] : "";
  const std::int64_t side = argc > 2 ? side_of(argv[2]) : 224;
  const std::vector<float> pixels(static_cast<std::size_t>(3 * side * side), 0.5f);  // the image, channels first
  const float* image = pixels.data();
  // README, from here
  namespace fj = fusejit;

  auto net = fj::models::resnet50();
  if (!weights.empty()) net.load(weights);
  auto serve = net.eval().freeze();              // batch-norm folded, weights packed; safe from many threads
  serve.compile({fj::f32, {1, 3, side, side}});  // optional: compile time and errors here
  fj::Tensor x = fj::borrow(image, {1, 3, side, side});
  std::vector<float> p = fj::softmax(serve(x), 1).to_vector<float>();  // a new shape plans once
  // README, to here
  const auto best = std::max_element(p.begin(), p.end());
  std::cout << "class " << best - p.begin() << " of " << p.size() << ", probability " << *best << '\n';
  if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "serve: " << error.what() << '\n';
  return 1;
}
