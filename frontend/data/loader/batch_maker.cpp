#include "frontend/data/loader/batch_maker.h"

#include <exception>
#include <new>
#include <vector>

#include "ir/base/check.h"

namespace fusejit::data {
namespace {

// The x or the y of all examples, one behind the other. The first says what they are.
class Column {
 public:
  Column(std::size_t count, Layout layout) : count_(count), layout_(layout) {}

  void put(std::size_t place, const Image& image, const Compose& transform) {
    const bool is_whole = image.height >= 1 && image.width >= 1 && image.channels >= 1 &&
                          image.width <= kMostPixels / image.height && image.channels <= kMostPixels;
    FJ_CHECK(is_whole && image.pixels.size() == static_cast<std::size_t>(image.height * image.width * image.channels),
             "the image has {} x {} pixels with {} channels and {} bytes", image.height, image.width, image.channels,
             image.pixels.size());
    const Shape shape{image.channels, image.height, image.width};
    if (transform.keeps_bytes())
      return write(static_cast<std::uint8_t*>(row(place, {u8, shape, layout_})), image,
                   [](std::size_t, std::uint8_t byte) { return byte; });
    auto* to = static_cast<float*>(row(place, {f32, shape, layout_}));
    if (values_.empty()) values_ = transform.values_of_bytes(image.channels);
    write(to, image, [&](std::size_t channel, std::uint8_t byte) { return values_[channel * 256 + byte]; });
  }
  void put(std::size_t place, const Tensor& tensor) {
    FJ_CHECK(tensor.defined(), "a tensor is empty");
    FJ_CHECK(tensor.rank() < kMaxRank, "a batch of {} would have more than {} axes", tensor.type().str(), kMaxRank);
    tensor.copy_to(row(place, {tensor.dtype(), tensor.shape(), Layout::standard}));
  }
  void put(std::size_t place, std::int64_t label) { *static_cast<std::int64_t*>(row(place, {i64, {}})) = label; }

  runtime::Buffer buffer() const { return buffer_; }

 private:
  // The elements `of(channel, byte)` of an image, in the batch's layout.
  template <class T, class Of>
  void write(T* to, const Image& image, const Of& of) const {
    const auto channels = static_cast<std::size_t>(image.channels);
    const std::size_t area = image.pixels.size() / channels;
    const bool is_apart = layout_ == Layout::standard;
    for (std::size_t c = 0; c < channels; ++c) {
      const std::uint8_t* from = &image.pixels[c];
      T* plane = to + (is_apart ? c * area : c);
      const std::size_t step = is_apart ? 1 : channels;
      for (std::size_t i = 0; i < area; ++i) plane[i * step] = of(c, from[i * channels]);
    }
  }
  // Where an example of this type goes.
  void* row(std::size_t place, const Type& type) {
    if (!buffer_) {
      one_ = type;
      std::vector<std::int64_t> dims = {static_cast<std::int64_t>(count_)};
      dims.insert(dims.end(), type.shape.begin(), type.shape.end());
      buffer_ = runtime::Buffer::allocate({type.dtype, Shape(std::span<const std::int64_t>(dims)), type.layout});
    }
    FJ_CHECK(type == one_, "is {} in a batch that began with {}: all examples of a batch have one dtype and shape",
             type.str(), one_.str());
    return static_cast<std::byte*>(buffer_.data()) + static_cast<std::int64_t>(place) * one_.bytes();
  }

  std::size_t count_;
  Layout layout_;
  Type one_;
  runtime::Buffer buffer_;
  std::vector<float> values_;  // of bytes of images
};

// What is being caught, with the example's name in front.
[[noreturn]] void throw_named(const std::string& name) {
  const auto named = [&](const std::exception& error) {
    const std::string sentence = error.what();
    return sentence.starts_with(name + ":") ? sentence : fmt::format("{}: {}", name, sentence);
  };
  try {
    throw;
  } catch (const UserError& error) {
    throw UserError(named(error));
  } catch (const FileError& error) {
    throw FileError(named(error));
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(named(error));
  } catch (const DeviceError& error) {
    throw DeviceError(named(error));
  } catch (const InternalError& error) {
    throw InternalError(named(error));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    std::throw_with_nested(UserError(named(error)));
  }
}

}  // namespace

HostBatch BatchMaker::make(std::span<const std::int64_t> indices, const std::atomic<bool>& stop) const {
  Column x(indices.size(), layout_), y(indices.size(), Layout::standard);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (stop) return {};
    try {
      Example example = dataset_->get(indices[i]);
      if (auto* image = std::get_if<Image>(&example.x)) {
        Draws draws(seed_, epoch_, indices[i]);
        x.put(i, transform_(std::move(*image), draws), transform_);
      } else {
        x.put(i, std::get<Tensor>(example.x));
      }
      std::visit([&](const auto& value) { y.put(i, value); }, example.y);
    } catch (...) {
      throw_named(dataset_->name(indices[i]));
    }
  }
  return {x.buffer(), y.buffer()};
}

}  // namespace fusejit::data
