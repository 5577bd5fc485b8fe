// Datasets: folders of images, CIFAR's records, IDX, NumPy arrays and tensors, and parts of others.
#include "fusejit/data/dataset.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "fusejit/data.h"
#include "fusejit/runtime.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::data {
namespace {

namespace fs = std::filesystem;
using fusejit::testing::bytes_of;
using fusejit::testing::error_of;
using fusejit::testing::TemporaryFolder;
using fusejit::testing::write_bytes;

const std::string kImages = FUSEJIT_SOURCE_DIR "/tests/reference/images/";

class Datasets : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  void put(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    write_bytes(path(name), bytes);
  }
  TemporaryFolder folder_;
};

std::int64_t label_of(const Dataset& dataset, std::int64_t index) {
  return std::get<std::int64_t>(dataset.get(index).y);
}
Image image_of(const Dataset& dataset, std::int64_t index) { return std::get<Image>(dataset.get(index).x); }

TEST_F(Datasets, ImageFolderNumbersClassesAndImagesByName) {
  const std::string png = bytes_of(kImages + "gray.png"), jpeg = bytes_of(kImages + "photo.jpg");
  for (const char* name : {"eel", "bat", "ape", "fox"}) put(name + std::string("/a.png"), png);
  put("dog/b.PNG", png);
  put("dog/a.jpeg", jpeg);
  put("dog/old/0.jpg", jpeg);
  put("cat/z.png", png);
  put("cat/notes.txt", "no image");
  put("cat/.hidden", "");
  put("readme.md", "beside the classes");
  const ImageFolder folder(folder_.path());
  EXPECT_EQ(folder.classes(), (std::vector<std::string>{"ape", "bat", "cat", "dog", "eel", "fox"}));
  std::vector<std::string> names;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < folder.size(); ++i) {
    names.push_back(folder.name(i));
    labels.push_back(label_of(folder, i));
    EXPECT_EQ(image_of(folder, i).channels, 3);
  }
  EXPECT_EQ(labels, (std::vector<std::int64_t>{0, 1, 2, 3, 3, 3, 4, 5}));
  EXPECT_EQ(names,
            (std::vector<std::string>{path("ape/a.png"), path("bat/a.png"), path("cat/z.png"), path("dog/a.jpeg"),
                                      path("dog/b.PNG"), path("dog/old/0.jpg"), path("eel/a.png"), path("fox/a.png")}));
  EXPECT_EQ(error_of([&] { folder.get(8); }), "there is no image 8 (8 images)");
  EXPECT_EQ(folder.skipped(), (std::vector<std::string>{path("cat/.hidden"), path("cat/notes.txt")}));
  EXPECT_EQ(image_of(ImageFolder(folder_.path(), ImageReadMode::gray), 1).channels, 1);
}

TEST_F(Datasets, ImageFolderNamesWhatCannotBeRead) {
  EXPECT_THROW(ImageFolder(path("none")), FileError);
  EXPECT_EQ(error_of<FileError>([&] { ImageFolder(folder_.path()); }),
            folder_.path() + ": has no folders, one a class is expected");
  put("cat/a.png", "no image");
  fs::create_symlink(path("nowhere"), path("cat/b.png"));
  const ImageFolder folder(folder_.path());
  EXPECT_EQ(error_of([&] { folder.get(0); }), path("cat/a.png") + ": is neither a PNG nor a JPEG file");
  EXPECT_EQ(error_of<FileError>([&] { folder.get(1); }),
            path("cat/b.png") + ": cannot be opened: No such file or directory");
  put("dog/a.gif", "GIF89a");
  EXPECT_EQ(error_of<FileError>([&] { ImageFolder(folder_.path()); }),
            path("dog") + ": has no image (.png, .jpg, .jpeg)");
}

TEST_F(Datasets, ImageFolderFollowsNoLinksToFoldersInClasses) {
  put("cat/a.png", bytes_of(kImages + "gray.png"));
  fs::create_directory_symlink(folder_.path(), path("cat/all"));
  const ImageFolder folder(folder_.path());
  EXPECT_EQ(folder.size(), 1);
  EXPECT_EQ(folder.skipped(), std::vector<std::string>{path("cat/all")});
}

// A record whose red, green and blue planes count from different numbers.
std::string record(const std::string& labels) {
  std::string bytes = labels;
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < 1024; ++i) bytes.push_back(static_cast<char>(i % 32 + 32 * c));
  return bytes;
}

TEST_F(Datasets, CifarRecordsAreImages) {
  for (int part = 1; part <= 5; ++part)
    put("data_batch_" + std::to_string(part) + ".bin", record({static_cast<char>(part)}));
  put("test_batch.bin", record("\x09") + record(std::string(1, '\0')));
  const CIFAR10 train(folder_.path(), Split::train), test(folder_.path(), Split::test);
  EXPECT_EQ(train.size(), 5);
  EXPECT_EQ(label_of(train, 2), 3);
  EXPECT_EQ(test.size(), 2);
  const Image image = image_of(test, 1);
  EXPECT_EQ(image.height * image.width * image.channels, 32 * 32 * 3);
  EXPECT_EQ((std::vector<int>{image.pixels[0], image.pixels[1], image.pixels[2], image.pixels[3 * 33],
                              image.pixels[3 * 31 + 2]}),
            (std::vector<int>{0, 32, 64, 1, 95}));
  EXPECT_THROW(test.get(2), UserError);
  put("train.bin", record("\x05\x63"));
  EXPECT_EQ(label_of(CIFAR100(folder_.path(), Split::train), 0), 99);
  EXPECT_EQ(error_of<FileError>([&] { CIFAR100(folder_.path(), Split::test); }),
            path("test.bin") + ": cannot be opened: No such file or directory");
  put("test.bin", record("\x05\x64"));
  EXPECT_EQ(error_of([&] { CIFAR100(folder_.path(), Split::test); }),
            path("test.bin") + ": the label of image 0 is 100, labels are 0 to 99");
  put("test.bin", record("\x05"));
  EXPECT_EQ(error_of([&] { CIFAR100(folder_.path(), Split::test); }),
            path("test.bin") + ": has 3073 bytes, which are no whole images of 3074");
  put("test_batch.bin", "");
  EXPECT_THROW(CIFAR10(folder_.path(), Split::test), UserError);
}

TEST_F(Datasets, MnistIsAnImageSet) {
  const MNIST digits(std::make_shared<const ImageSet>(ImageSet{2, 1, 2, {1, 2, 3, 4}, {7, 8}}));
  EXPECT_EQ(digits.size(), 2);
  EXPECT_EQ(image_of(digits, 1).pixels, (std::vector<std::uint8_t>{3, 4}));
  EXPECT_EQ(label_of(digits, 1), 8);
  EXPECT_THROW(digits.get(-1), UserError);
  EXPECT_EQ(error_of([] {
              MNIST(std::make_shared<const ImageSet>(ImageSet{2, 1, 2, {1, 2, 3}, {7, 8}}));
            }),
            "MNIST: 2 images of 1 x 2 have 3 pixels and 2 labels");
  EXPECT_THROW(MNIST(path("none"), Split::train), FileError);
}

std::string npy(const std::string& dtype, const std::string& shape, const std::string& elements, bool fortran = false) {
  const std::string header =
      "{'descr': '" + dtype + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + elements;
}

TEST_F(Datasets, NumpyFilesOfBytesAreImages) {
  put("x.npy", npy("|u1", "(2, 1, 2, 3)", "abcdefghijkl"));
  put("gray.npy", npy("|u1", "(2, 3, 2)", "abcdefghijkl"));
  put("u1.npy", npy("|u1", "(2,)", "\x05\xff"));
  put("i4.npy", npy("<i4", "(2,)", std::string("\x05\0\0\0\xff\xff\xff\xff", 8)));
  put("i8.npy", npy("<i8", "(2,)", std::string("\x05\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16)));
  for (const auto& [name, last] : {std::pair{"u1", 255}, {"i4", -1}, {"i8", -1}}) {
    const NumpyImages images(path("x.npy"), path(std::string(name) + ".npy"));
    EXPECT_EQ(images.size(), 2);
    EXPECT_EQ(label_of(images, 0), 5) << name;
    EXPECT_EQ(label_of(images, 1), last) << name;
    EXPECT_EQ(image_of(images, 1).pixels, (std::vector<std::uint8_t>{'g', 'h', 'i', 'j', 'k', 'l'}));
    EXPECT_EQ(image_of(images, 1).channels, 3);
  }
  EXPECT_EQ(image_of(NumpyImages(path("gray.npy"), path("u1.npy")), 0).height, 3);
  const struct {
    std::string images, labels, sentence;
  } cases[] = {
      {npy("<f4", "(1, 1, 1)", "1234"), npy("|u1", "(1,)", "1"), "x.npy: its dtype is '<f4', |u1 is expected"},
      {npy("|u1", "(1, 1, 1)", "1", true), npy("|u1", "(1,)", "1"), "x.npy: is in Fortran order"},
      {npy("|u1", "(1, 1)", "1"), npy("|u1", "(1,)", "1"), "x.npy: has shape [1,1], [N,H,W] or [N,H,W,C] is expected"},
      {npy("|u1", "(1, 1, 0)", ""), npy("|u1", "(1,)", "1"), "there must be pixels"},
      {npy("|u1", "(1, 1, 1, 5)", "12345"), npy("|u1", "(1,)", "1"), "1 to 4 channels"},
      {npy("|u1", "(1, 1, 2)", "1"), npy("|u1", "(1,)", "1"), "x.npy: holds 1 bytes of elements, |u1[1,1,2] has 2"},
      {npy("|u1", "(1, 1, 1)", "1"), npy("<f4", "(1,)", "1234"),
       "y.npy: its dtype is '<f4', |u1 or <i4 or <i8 is expected"},
      {npy("|u1", "(1, 1, 1)", "1"), npy("|u1", "(2,)", "12"), "y.npy: has shape [2]"},
      {npy("|u1", "(99999999999, 99999999999, 9)", "1"), npy("|u1", "(1,)", "1"), "x.npy: "},
      {"PK", npy("|u1", "(1,)", "1"), "x.npy: is not a .npy array"},
  };
  for (const auto& c : cases) {
    put("x.npy", c.images);
    put("y.npy", c.labels);
    const std::string error = error_of([&] { NumpyImages(path("x.npy"), path("y.npy")); });
    EXPECT_NE(error.find(c.sentence), std::string::npos) << error;
  }
}

TEST_F(Datasets, TensorDatasetHasRows) {
  const TensorDataset rows(from_host(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}), tensor<double>({7, 8, 9}));
  EXPECT_EQ(rows.size(), 3);
  const Example last = rows.get(2);
  EXPECT_EQ(std::get<Tensor>(last.x).to_vector<float>(), (std::vector<float>{5, 6}));
  EXPECT_EQ(std::get<Tensor>(last.y).item<double>(), 9);
  EXPECT_EQ(std::get<Tensor>(last.y).rank(), 0);
  EXPECT_EQ(error_of([] {
              TensorDataset(ones({3, 2}), ones({2}));
            }),
            "TensorDataset: x has 3 rows, y has 2 (x: f32[3,2], y: f32[2])");
  EXPECT_THROW(TensorDataset(ones({}), ones({})), UserError);
  EXPECT_THROW(TensorDataset(Tensor(), ones({1})), UserError);
  EXPECT_THROW(rows.get(3), UserError);
}

TEST_F(Datasets, ASplitIsAPartition) {
  const auto digits = std::make_shared<const MNIST>(
      std::make_shared<const ImageSet>(ImageSet{6, 1, 1, {10, 11, 12, 13, 14, 15}, {0, 1, 2, 3, 4, 5}}));
  const std::vector<Subset> parts = random_split(digits, {4, 2}, 3);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].size(), 4);
  std::set<std::int64_t> labels;
  for (const Subset& part : parts)
    for (std::int64_t i = 0; i < part.size(); ++i) {
      labels.insert(label_of(part, i));
      EXPECT_EQ(image_of(part, i).pixels[0], 10 + label_of(part, i));
      EXPECT_EQ(part.name(i), "example " + std::to_string(label_of(part, i)));
    }
  EXPECT_EQ(labels.size(), 6u);
  EXPECT_EQ(error_of([&] {
              random_split(digits, {4, 1}, 3);
            }),
            "random_split: the lengths [4,1] do not sum to the 6 examples");
  EXPECT_THROW(random_split(digits, {7, -1}, 3), UserError);
  EXPECT_EQ(error_of([&] { parts[1].get(2); }), "there is no example 2 (2 examples)");
  EXPECT_EQ(error_of([&] { Subset(digits, {0, 6}); }), "Subset: there is no example 6 (6 examples)");
}

}  // namespace
}  // namespace fusejit::data
