// Datasets under the names of torch.utils.data and torchvision.datasets: what has a size and examples by number.
//
// A dataset of one's own derives from Dataset; it is asked by several threads at once.
//
//   struct Squares : fj::data::Dataset {
//     std::int64_t size() const override { return 100; }
//     fj::data::Example get(std::int64_t i) const override {
//       return {fj::data::Image{8, 8, 1, std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(i))}, i % 10};
//     }
//   };
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "fusejit/data/image.h"
#include "fusejit/tensor.h"

namespace fusejit::data {

// An image or an array, and its label or another array: (x, y) of a training step.
struct Example {
  std::variant<Image, Tensor> x;
  std::variant<std::int64_t, Tensor> y;
};

// Examples by number. Several threads ask it at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  // 0 <= index < size().
  virtual Example get(std::int64_t index) const = 0;
  // What errors call the example; a file's name where there is one.
  virtual std::string name(std::int64_t index) const { return "example " + std::to_string(index); }
};

// The part that a published set calls so.
enum class Split : std::uint8_t { train, test };

// Images in a folder for each class: root/dog/a.png, root/cat/deep/b.jpg. Classes are numbered in the order of their
// names (bytes), images by class, then name. FileError for a root without folders, a folder that cannot be listed, and
// a class without images.
class ImageFolder : public Dataset {
 public:
  explicit ImageFolder(const std::string& root, ImageReadMode mode = ImageReadMode::rgb);
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  Example get(std::int64_t index) const override;
  std::string name(std::int64_t index) const override;  // its path
  const std::vector<std::string>& classes() const { return classes_; }
  // Files among the classes that do not end in .png, .jpg or .jpeg, in any case, and so are no images.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  struct File {
    std::string path;
    std::int64_t label;
  };
  const File& file(std::int64_t index) const;
  ImageReadMode mode_;
  std::vector<std::string> classes_, skipped_;
  std::vector<File> files_;
};

// Records of images whose planes follow each other, with labels in front; the binary version of CIFAR.
class CifarImages : public Dataset {
 public:
  std::int64_t size() const override { return static_cast<std::int64_t>(records_.size()) / record_bytes(); }
  Example get(std::int64_t index) const override;

 protected:
  CifarImages(const std::vector<std::string>& paths, std::int64_t labels, std::int64_t classes);

 private:
  std::int64_t record_bytes() const;
  std::int64_t labels_;  // bytes in front of an image; the last is used
  std::vector<std::uint8_t> records_;
};
// root/data_batch_1.bin to _5.bin, or root/test_batch.bin, of cifar-10-binary.tar.gz. FileError if one is not there,
// UserError if one is no whole number of records or has a label that is none.
class CIFAR10 : public CifarImages {
 public:
  CIFAR10(const std::string& root, Split split);
};
// root/train.bin or root/test.bin of cifar-100-binary.tar.gz, with the fine labels.
class CIFAR100 : public CifarImages {
 public:
  CIFAR100(const std::string& root, Split split);
};

struct ImageSet;
// IDX files as load_images() reads them: MNIST, Fashion-MNIST and others of their form.
class MNIST : public Dataset {
 public:
  MNIST(const std::string& root, Split split);
  explicit MNIST(std::shared_ptr<const ImageSet> images);
  std::int64_t size() const override;
  Example get(std::int64_t index) const override;

 private:
  std::shared_ptr<const ImageSet> images_;
};

// Two .npy files: bytes (|u1) [N,H,W] or [N,H,W,C], and one label each, [N], of |u1, <i4 or <i8. Arrays of other dtypes
// are tensors: TensorDataset(load_array(x), load_array(y)). Errors as load_array's, and UserError for other shapes.
class NumpyImages : public Dataset {
 public:
  NumpyImages(const std::string& images_path, const std::string& labels_path);
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Example get(std::int64_t index) const override;

 private:
  std::int64_t height_, width_, channels_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::int64_t> labels_;
};

// Rows of x [N,...] and y [N,...], copied when it is made. UserError if they have no or different N.
class TensorDataset : public Dataset {
 public:
  TensorDataset(const Tensor& x, const Tensor& y);
  std::int64_t size() const override { return x_.type.shape[0]; }
  Example get(std::int64_t index) const override;

 private:
  struct Rows {
    Type type;
    std::shared_ptr<std::vector<std::byte>> bytes;
  };
  static Rows rows_of(const Tensor& tensor);
  static Tensor row(const Rows& rows, std::int64_t index);
  Rows x_, y_;
};

// Those of the numbers. UserError for one that is none of the dataset's.
class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices);
  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  Example get(std::int64_t index) const override { return dataset_->get(at(index)); }
  std::string name(std::int64_t index) const override { return dataset_->name(at(index)); }

 private:
  std::int64_t at(std::int64_t index) const;
  std::shared_ptr<const Dataset> dataset_;
  std::vector<std::int64_t> indices_;
};
// Subsets of these lengths, which sum to the dataset's size, drawn by the seed.
std::vector<Subset> random_split(std::shared_ptr<const Dataset> dataset, const std::vector<std::int64_t>& lengths,
                                 std::uint64_t seed);

}  // namespace fusejit::data
