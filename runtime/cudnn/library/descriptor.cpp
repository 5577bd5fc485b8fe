#include "runtime/cudnn/library/descriptor.h"

#include <algorithm>

#include "ir/base/check.h"

namespace fusejit::runtime::cudnn {

Descriptor::Descriptor(std::shared_ptr<const Library> library, DescriptorType type) : library_(std::move(library)) {
  library_->check(library_->api().cudnnBackendCreateDescriptor(type, &raw_), "cudnnBackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (raw_) library_->api().cudnnBackendDestroyDescriptor(raw_);
}

void Descriptor::set_raw(Attribute attribute, AttributeType type, std::int64_t count, const void* elements) {
  const Status status = library_->api().cudnnBackendSetAttribute(raw_, attribute, type, count, elements);
  if (status != 0) library_->check(status, fmt::format("cudnnBackendSetAttribute({})", int{attribute}).c_str());
}

void Descriptor::finalize() { library_->check(library_->api().cudnnBackendFinalize(raw_), "cudnnBackendFinalize"); }

std::int64_t Descriptor::get_int64(Attribute attribute) const {
  std::int64_t value = 0, count = 0;
  library_->check(library_->api().cudnnBackendGetAttribute(raw_, attribute, CUDNN_TYPE_INT64, 1, &count, &value),
                  "cudnnBackendGetAttribute");
  return value;
}

std::vector<int> Descriptor::get_enumerators(Attribute attribute, AttributeType type, std::int64_t capacity) const {
  std::vector<int> values(static_cast<std::size_t>(capacity));
  std::int64_t count = 0;
  library_->check(library_->api().cudnnBackendGetAttribute(raw_, attribute, type, capacity, &count, values.data()),
                  "cudnnBackendGetAttribute");
  values.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, capacity)));
  return values;
}

std::string Descriptor::get_text(Attribute attribute) const {
  std::int64_t count = 0;
  library_->check(library_->api().cudnnBackendGetAttribute(raw_, attribute, CUDNN_TYPE_CHAR, 0, &count, nullptr),
                  "cudnnBackendGetAttribute");
  std::string text(static_cast<std::size_t>(count), '\0');
  library_->check(
      library_->api().cudnnBackendGetAttribute(raw_, attribute, CUDNN_TYPE_CHAR, count, &count, text.data()),
      "cudnnBackendGetAttribute");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::int64_t Descriptor::get_descriptors(Attribute attribute, std::span<Descriptor> descriptors) const {
  std::vector<RawDescriptor> raw;
  for (const Descriptor& descriptor : descriptors) raw.push_back(descriptor.raw_);
  std::int64_t count = 0;
  library_->check(library_->api().cudnnBackendGetAttribute(raw_, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                           static_cast<std::int64_t>(raw.size()), &count, raw.data()),
                  "cudnnBackendGetAttribute");
  return std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(raw.size()));
}

}  // namespace fusejit::runtime::cudnn
