// Datasets of arrays: .npy files of bytes, and rows of tensors.
#include <algorithm>
#include <cstring>

#include "frontend/io/files.h"
#include "frontend/io/npy.h"
#include "frontend/record.h"
#include "fusejit/data/dataset.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

struct Elements {
  std::string description;  // "|u1"
  Shape shape;
  std::vector<std::byte> bytes;
};

// An array in C order whose dtype is one of `descriptions`; the digit at the end of each is an element's size.
Elements read_elements(const std::string& path, const std::vector<std::string>& descriptions) {
  Elements elements;
  elements.bytes = io::read_file(path);
  std::size_t at = 0;
  const auto next = [&](std::span<std::byte> to) {
    std::copy_n(elements.bytes.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
    at += to.size();
  };
  const io::NpyHeader header = io::read_npy_header(next, elements.bytes.size(), path);
  elements.description = header.description;
  FJ_CHECK(std::find(descriptions.begin(), descriptions.end(), header.description) != descriptions.end(),
           "{}: its dtype is '{}', {} is expected", path, header.description, fmt::join(descriptions, " or "));
  FJ_CHECK(!header.fortran_order, "{}: is in Fortran order, C order is expected", path);
  try {
    elements.shape = Shape(std::span<const std::int64_t>(header.shape));
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", path, error.what()));
  }
  elements.bytes.erase(elements.bytes.begin(), elements.bytes.begin() + static_cast<std::ptrdiff_t>(header.start));
  const std::int64_t expected = elements.shape.elements() * (header.description.back() - '0');
  FJ_CHECK(static_cast<std::int64_t>(elements.bytes.size()) == expected, "{}: holds {} bytes of elements, {}{} has {}",
           path, elements.bytes.size(), header.description, elements.shape.str(), expected);
  return elements;
}

}  // namespace

NumpyImages::NumpyImages(const std::string& images_path, const std::string& labels_path) {
  const Elements images = read_elements(images_path, {"|u1"});
  const int rank = images.shape.rank();
  FJ_CHECK(rank == 3 || rank == 4, "{}: has shape {}, [N,H,W] or [N,H,W,C] is expected", images_path,
           images.shape.str());
  height_ = images.shape[1], width_ = images.shape[2], channels_ = rank == 4 ? images.shape[3] : 1;
  FJ_CHECK(height_ >= 1 && width_ >= 1 && channels_ >= 1 && channels_ <= 4 && width_ <= kMostPixels / height_,
           "{}: has shape {}, there must be pixels and 1 to 4 channels", images_path, images.shape.str());
  const Elements labels = read_elements(labels_path, {"|u1", "<i4", "<i8"});
  FJ_CHECK(labels.shape == Shape{images.shape[0]}, "{}: has shape {}, {} holds {} images", labels_path,
           labels.shape.str(), images_path, images.shape[0]);
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(images.bytes.data());
  pixels_.assign(pixels, pixels + images.bytes.size());
  const auto label_bytes = static_cast<std::size_t>(labels.description.back() - '0');
  for (std::size_t i = 0; i < labels.bytes.size(); i += label_bytes) {
    std::int64_t label = 0;
    std::int32_t narrow = 0;
    const std::byte* from = &labels.bytes[i];
    if (label_bytes == 8) std::memcpy(&label, from, sizeof label);
    if (label_bytes == 4) std::memcpy(&narrow, from, sizeof narrow), label = narrow;
    if (label_bytes == 1) label = static_cast<std::int64_t>(*from);
    labels_.push_back(label);
  }
}

Example NumpyImages::get(std::int64_t index) const {
  FJ_CHECK(index >= 0 && index < size(), "there is no image {} ({} images)", index, size());
  const std::int64_t bytes = height_ * width_ * channels_;
  const auto first = pixels_.begin() + index * bytes;
  return {Image{height_, width_, channels_, {first, first + bytes}}, labels_[static_cast<std::size_t>(index)]};
}

TensorDataset::Rows TensorDataset::rows_of(const Tensor& tensor) {
  FJ_CHECK(tensor.defined() && tensor.rank() >= 1, "TensorDataset: a tensor has no rows (x: {})", text(tensor));
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(tensor.bytes()));
  tensor.copy_to(bytes->data());
  return {{tensor.dtype(), tensor.shape(), Layout::standard}, std::move(bytes)};
}

Tensor TensorDataset::row(const Rows& rows, std::int64_t index) {
  const Shape shape(rows.type.shape.dims().subspan(1));
  const std::int64_t bytes = fusejit::bytes(rows.type.dtype, shape.elements());
  return borrow(rows.bytes->data() + index * bytes, shape, rows.type.dtype, [kept = rows.bytes] {});
}

TensorDataset::TensorDataset(const Tensor& x, const Tensor& y) : x_(rows_of(x)), y_(rows_of(y)) {
  FJ_CHECK(x.size(0) == y.size(0), "TensorDataset: x has {} rows, y has {} (x: {}, y: {})", x.size(0), y.size(0),
           x.type().str(), y.type().str());
}

Example TensorDataset::get(std::int64_t index) const {
  FJ_CHECK(index >= 0 && index < size(), "there is no row {} ({} rows)", index, size());
  return {row(x_, index), row(y_, index)};
}

}  // namespace fusejit::data
