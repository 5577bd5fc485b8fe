// The binary version of https://www.cs.toronto.edu/~kriz/cifar.html: labels of a byte each, then 1024 bytes of red, of
// green and of blue, row by row.
#include "frontend/io/files.h"
#include "fusejit/data/dataset.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

constexpr std::int64_t kSide = 32, kArea = kSide * kSide, kChannels = 3;

std::vector<std::string> cifar10_files(const std::string& root, Split split) {
  if (split == Split::test) return {root + "/test_batch.bin"};
  std::vector<std::string> paths;
  for (int part = 1; part <= 5; ++part) paths.push_back(fmt::format("{}/data_batch_{}.bin", root, part));
  return paths;
}

}  // namespace

std::int64_t CifarImages::record_bytes() const { return labels_ + kChannels * kArea; }

CifarImages::CifarImages(const std::vector<std::string>& paths, std::int64_t labels, std::int64_t classes)
    : labels_(labels) {
  for (const std::string& path : paths) {
    const std::vector<std::byte> file = io::read_file(path);
    const auto record = static_cast<std::size_t>(record_bytes());
    FJ_CHECK(!file.empty() && file.size() % record == 0, "{}: has {} bytes, which are no whole images of {}", path,
             file.size(), record);
    for (std::size_t i = 0; i < file.size(); i += record) {
      const auto label = static_cast<std::int64_t>(file[i + static_cast<std::size_t>(labels - 1)]);
      FJ_CHECK(label < classes, "{}: the label of image {} is {}, labels are 0 to {}", path, i / record, label,
               classes - 1);
    }
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
    records_.insert(records_.end(), bytes, bytes + file.size());
  }
}

Example CifarImages::get(std::int64_t index) const {
  FJ_CHECK(index >= 0 && index < size(), "there is no image {} ({} images)", index, size());
  const std::uint8_t* record = &records_[static_cast<std::size_t>(index * record_bytes())];
  Image image{kSide, kSide, kChannels, std::vector<std::uint8_t>(static_cast<std::size_t>(kChannels * kArea))};
  for (std::int64_t c = 0; c < kChannels; ++c) {
    for (std::int64_t i = 0; i < kArea; ++i)
      image.pixels[static_cast<std::size_t>(i * kChannels + c)] = record[labels_ + c * kArea + i];
  }
  return {std::move(image), std::int64_t{record[labels_ - 1]}};
}

CIFAR10::CIFAR10(const std::string& root, Split split) : CifarImages(cifar10_files(root, split), 1, 10) {}

CIFAR100::CIFAR100(const std::string& root, Split split)
    : CifarImages({root + (split == Split::train ? "/train.bin" : "/test.bin")}, 2, 100) {}

}  // namespace fusejit::data
