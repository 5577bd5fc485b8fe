// Descriptor: one backend descriptor of cuDNN, owned. Set attributes, finalise once, then read only. A failure is a
// DeviceError with cuDNN's own reason.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/cudnn/library/library.h"

namespace fusejit::runtime::cudnn {

class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(std::shared_ptr<const Library> library, DescriptorType type);
  Descriptor(Descriptor&& other) noexcept { swap(other); }
  Descriptor& operator=(Descriptor&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Descriptor();

  RawDescriptor raw() const { return raw_; }
  explicit operator bool() const { return raw_ != nullptr; }

  // Elements must be of the C type that belongs to `type`.
  void set_raw(Attribute attribute, AttributeType type, std::int64_t count, const void* elements);
  void set(Attribute attribute, AttributeType type, int enumerator) { set_raw(attribute, type, 1, &enumerator); }
  void set(Attribute attribute, std::int64_t value) { set_raw(attribute, CUDNN_TYPE_INT64, 1, &value); }
  void set(Attribute attribute, float value) { set_raw(attribute, CUDNN_TYPE_FLOAT, 1, &value); }
  void set(Attribute attribute, double value) { set_raw(attribute, CUDNN_TYPE_DOUBLE, 1, &value); }
  void set(Attribute attribute, bool value) { set_raw(attribute, CUDNN_TYPE_BOOLEAN, 1, &value); }
  void set(Attribute attribute, std::span<const std::int64_t> values) {
    set_raw(attribute, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(Attribute attribute, std::string_view text) {
    set_raw(attribute, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()), text.data());
  }
  // The other descriptor must be finalised and live as long as this one.
  void set(Attribute attribute, const Descriptor& other) {
    set_raw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.raw_);
  }
  void finalize();

  std::int64_t get_int64(Attribute attribute) const;
  std::vector<int> get_enumerators(Attribute attribute, AttributeType type, std::int64_t capacity) const;
  std::string get_text(Attribute attribute) const;
  // Fills `descriptors`, which exist already, and returns how many cuDNN offers.
  std::int64_t get_descriptors(Attribute attribute, std::span<Descriptor> descriptors) const;

 private:
  void swap(Descriptor& other) noexcept {
    library_.swap(other.library_);
    std::swap(raw_, other.raw_);
  }
  std::shared_ptr<const Library> library_;
  RawDescriptor raw_ = nullptr;
};

}  // namespace fusejit::runtime::cudnn
