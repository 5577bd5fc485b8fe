// The examples in the public headers on files, data and memory of others; header_examples_test.cpp holds them together.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fusejit/dlpack.h"
#include "tests/api/header_examples.h"
#include "tests/support/cache_folder.h"
#include "tests/support/onnx_file.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::test {
namespace {

namespace fj = fusejit;

struct Squares : fj::data::Dataset {
  std::int64_t size() const override { return 100; }
  fj::data::Example get(std::int64_t i) const override {
    return {fj::data::Image{8, 8, 1, std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(i))}, i % 10};
  }
};

TEST_F(HeaderExamples, Io) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("header_examples_" + std::to_string(::getpid()) + ".npz")).string();
  fj::save({{"x", fj::tensor<float>({1, 2})}}, path);
  fj::Tensor x = fj::load(path).at("x");
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2}));
  std::filesystem::remove(path);
}

TEST_F(HeaderExamples, Metadata) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("header_examples_" + std::to_string(::getpid()) + ".safetensors"))
          .string();
  fj::save({{"x", fj::ones({2})}}, path, {{"format", "pt"}});  // as PyTorch's readers of .safetensors ask
  std::cout << fj::load_metadata(path).at("format");
  EXPECT_EQ(printed_.str(), "pt");
  EXPECT_EQ(fj::load(path).at("x").to_vector<float>(), (std::vector<float>{1, 1}));
  std::filesystem::remove(path);
}

TEST_F(HeaderExamples, Host) {
  {
    std::vector<float> pitched = {1, 2, 0, 3, 4, 0};  // rows of 2, each in 3
    fj::Tensor rows = fj::from_host(pitched, {2, 2}, {3, 1});
    EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  }
  float columns[] = {1, 4, 2, 5, 3, 6};
  fj::Tensor x = fj::borrow(columns, {2, 3}, {1, 2});  // 1 2 3, 4 5 6
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  for (float v : x.span<float>()) std::cout << v << ' ';
  fj::HostView<float> view = fj::host_view<float>(fj::ones({2, 3}) * 2);
  std::cout << view(1, 2) << ' ' << view.strides()[0];  // 2 3
  EXPECT_EQ(printed_.str(), "1 2 3 4 5 6 2 3");
}

TEST_F(HeaderExamples, Dlpack) {
  fj::Tensor x = fj::from_dlpack(fj::to_dlpack(fj::ones({2, 3})));
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(6, 1));
}

TEST_F(HeaderExamples, Image) {
  const std::string path = FUSEJIT_SOURCE_DIR "/tests/reference/images/gray.jpg";
  fj::data::Image photo = fj::data::read_image(path, fj::data::ImageReadMode::rgb);
  fj::data::Image half = fj::data::resize(photo, photo.height / 2, photo.width / 2);
  EXPECT_EQ(half.pixels.size(), 9u * 11 * 3);
}

TEST_F(HeaderExamples, Transforms) {
  const fj::data::Image image = fj::data::read_image(FUSEJIT_SOURCE_DIR "/tests/reference/images/photo.png");
  const std::uint64_t seed = 1;
  const std::int64_t epoch = 2, index = 3;
  fj::data::Compose augment({fj::data::RandomResizedCrop(224), fj::data::RandomHorizontalFlip(), fj::data::ToTensor(),
                             fj::data::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})});
  fj::data::Draws draws(seed, epoch, index);
  fj::data::Image ready = augment(image, draws);
  EXPECT_EQ(ready.pixels.size(), 224u * 224 * 3);
}

TEST_F(HeaderExamples, NormalizeOfBytes) {
  fj::data::Normalize normalize({0.5}, {0.25});
  fj::Tensor x = normalize(fj::tensor<std::uint8_t>({0, 255}).reshape({1, 1, 1, 2}));  // f32: -2, 2
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{-2, 2}));
}

TEST_F(HeaderExamples, DatasetOfOnesOwn) {
  fj::data::DataLoader loader(std::make_shared<Squares>(), {.batch_size = 30});
  const fj::data::Batch batch = *loader.begin();
  EXPECT_EQ(batch.images.shape(), (fj::Shape{30, 1, 8, 8}));
  EXPECT_EQ(batch.labels.to_vector<std::int64_t>()[29], 9);
}

TEST_F(HeaderExamples, DataLoader) {
  const fusejit::test::CacheFolder folder;
  const std::string directory = folder.path("");
  std::ofstream(directory + "/train-images-idx3-ubyte", std::ios::binary)
      << std::string("\0\0\x08\x03\0\0\0\x64\0\0\0\x1c\0\0\0\x1c", 16) << std::string(100 * 28 * 28, 'x');
  std::ofstream(directory + "/train-labels-idx1-ubyte", std::ios::binary)
      << std::string("\0\0\x08\x01\0\0\0\x64", 8) << std::string(100, '\3');
  std::int64_t images = 0;
  auto digits = std::make_shared<fj::data::MNIST>(directory, fj::data::Split::train);
  fj::data::DataLoader loader(digits, {.batch_size = 64, .shuffle = true, .num_workers = 2, .seed = 1});
  for (auto [x, y] : loader) images += x.size(0);  // f32 [64,1,28,28] and i64 [64]
  EXPECT_EQ(images, 100);
}

TEST_F(HeaderExamples, Progress) {
  const std::int64_t images = 1000;
  const double loss = 0.5;
  ::testing::internal::CaptureStdout();
  fj::data::Progress progress("epoch 1/3", images);
  for (std::int64_t done = 100; done <= images; done += 100) progress.show(done, loss);
  progress.finish();  // epoch 1/3 100 %   2556 images/s  loss 0.3683  0 s left
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10) << text;
  EXPECT_NE(text.find("epoch 1/3  10 %  "), std::string::npos) << text;
  EXPECT_NE(text.find("  loss 0.5000  0 s left\n"), std::string::npos) << text;
}

TEST_F(HeaderExamples, Onnx) {
  namespace file = fusejit::testing::onnx_file;
  const fusejit::testing::TemporaryFolder folder;
  const std::string path = folder / "model.onnx";
  const std::string graph = file::node("Flatten", {"x"}, {"f"}) + file::node("Gemm", {"f", "0.weight"}, {"y"}) +
                            file::initializer("0.weight", {16, 1}, file::kFloat, std::string(16 * 4, '\0')) +
                            file::port(11, "x", {-1, 1, 4, 4}) + file::port(12, "y", {-1, 1});
  fusejit::testing::write_bytes(path, file::model(graph));
  try {
    fj::onnx::load(path);
  } catch (const fj::UnsupportedError& error) {
    GTEST_SKIP() << error.what();
  }
  fj::onnx::Model net = fj::onnx::load(path);
  fj::Tensor y = net(fj::ones({2, 1, 4, 4}));                       // of one input and one result
  std::vector<fj::Tensor> all = net.run({fj::ones({8, 1, 4, 4})});  // of any; another batch plans anew
  fj::Frozen serve = net.freeze();
  fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
  std::cout << net.state_dict().contains("0.weight") << ' ' << all[0].shape()[0];
  EXPECT_EQ(printed_.str(), "1 8");
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(2));
  EXPECT_EQ(serve(fj::ones({1, 1, 4, 4})).item<float>(), 0);
}

}  // namespace
}  // namespace fusejit::test
