// Serves an image network from an ONNX file: what goes in and comes out, an image's class, and how long a batch takes.
//
//     serve_onnx MODEL.onnx [IMAGE.png|jpg]      without an image: noise
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fusejit/fusejit.h"

namespace {

namespace fj = fusejit;

std::string text(const fj::onnx::Port& port) {
  std::string dims;
  for (const std::int64_t extent : port.shape.value_or(std::vector<std::int64_t>{}))
    dims += (dims.empty() ? "" : ",") + (extent < 0 ? std::string("?") : std::to_string(extent));
  return port.name + ": " + std::string(fj::name(port.dtype)) + "[" + (port.shape ? dims : "...") + "]";
}

// [1,C,H,W], normalised as torchvision's networks want it; what the file leaves open is 224.
fj::Tensor input_of(const fj::onnx::Port& port, const std::string& path) {
  if (!port.shape || port.shape->size() != 4 || (*port.shape)[1] < 1)
    throw std::invalid_argument("the model takes no images [N,C,H,W] (" + text(port) + ")");
  const auto extent = [&](int axis) { return (*port.shape)[static_cast<std::size_t>(axis)]; };
  const std::int64_t height = extent(2) < 0 ? 224 : extent(2), width = extent(3) < 0 ? 224 : extent(3);
  if (path.empty()) return fj::randn({1, extent(1), height, width}).to(port.dtype);
  if (extent(1) != 3) throw std::invalid_argument("the model takes no colours (" + text(port) + ")");
  const fj::data::Image image =
      fj::data::resize(fj::data::read_image(path, fj::data::ImageReadMode::rgb), height, width);
  const fj::Tensor pixels =
      fj::from_host(std::vector<float>(image.pixels.begin(), image.pixels.end()), {height, width, 3});
  const fj::Tensor mean = fj::tensor<float>({0.485F, 0.456F, 0.406F}),
                   deviation = fj::tensor<float>({0.229F, 0.224F, 0.225F});
  return fj::unsqueeze(fj::permute((pixels / 255.0 - mean) / deviation, {2, 0, 1}), 0).to(port.dtype);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::invalid_argument("usage: serve_onnx MODEL.onnx [IMAGE]");
  fj::onnx::Model net = fj::onnx::load(argv[1]);
  for (const fj::onnx::Port& port : net.inputs()) std::cout << "takes " << text(port) << '\n';
  for (const fj::onnx::Port& port : net.results()) std::cout << "gives " << text(port) << '\n';

  const fj::Tensor x = input_of(net.inputs().at(0), argc > 2 ? argv[2] : "").eval();
  net.eval();
  const fj::Frozen serve = net.freeze();  // batch norm folded, weights packed once; safe from many threads
  const fj::Tensor y = serve(x).eval();   // plans and compiles
  const std::int64_t best = fj::argmax(fj::flatten(y), 0).item<std::int64_t>();
  std::cout << "largest result: " << best << ", " << fj::flatten(y).to_vector<float>()[static_cast<std::size_t>(best)]
            << '\n';
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) serve(x).eval();
  const std::chrono::duration<double, std::milli> ten = std::chrono::steady_clock::now() - began;
  std::cout << ten.count() / 10 << " ms a call\n";
  if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "serve_onnx: " << error.what() << '\n';
  return 1;
}
