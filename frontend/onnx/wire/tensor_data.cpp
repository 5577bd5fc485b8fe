#include "frontend/onnx/wire/tensor_data.h"

#include <frontend/onnx/wire/onnx.pb.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "frontend/onnx/data_types.h"
#include "frontend/state.h"
#include "ir/base/check.h"
#include "ir/base/number.h"

namespace fusejit::onnx::wire {
namespace {

namespace fs = std::filesystem;

// The path of a file beside the model. Neither dots nor links lead out of the model's folder.
fs::path path_beside(const std::string& model, const std::string& location, const std::string& name) {
  const fs::path given(location);
  const bool leaves =
      given.empty() || given.is_absolute() || std::find(given.begin(), given.end(), "..") != given.end();
  FJ_CHECK(!leaves, "{}: {} is in the file '{}', which is not in the model's folder", model, name, location);
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(fs::absolute(fs::path(model), error).parent_path(), error);
  const fs::path path = fs::weakly_canonical(folder / given, error);
  const auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  FJ_CHECK(!error && in_folder == folder.end(),
           "{}: {} is in the file '{}', which a link puts outside the model's folder", model, name, location);
  return path;
}

std::uint64_t whole_number(const Entry& entry, const std::string& model, const std::string& name) {
  const std::optional<std::uint64_t> number = ir::read_decimal_integer(entry.value());
  FJ_CHECK(number, "{}: the {} of {} in its file is no number", model, entry.key(), name);
  return *number;
}

runtime::Buffer read_external(const TensorValue& value, const std::string& model, const std::string& name,
                              const Type& type) {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  for (const Entry& entry : value.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = whole_number(entry, model, name);
    if (entry.key() == "length") length = whole_number(entry, model, name);
  }
  const fs::path path = path_beside(model, location, name);
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  const std::uint64_t size = is_file ? fs::file_size(path, error) : 0;
  std::ifstream in(path, std::ios::binary);
  if (!is_file || error || !in)
    throw FileError(fmt::format("{}: {} is in the file {}, which cannot be read", model, name, path.string()));
  const auto bytes = static_cast<std::uint64_t>(type.bytes());
  FJ_CHECK(!length || *length == bytes, "{}: {} is {}, {} bytes, its file has {} for it", model, name, type.str(),
           bytes, *length);
  FJ_CHECK(offset <= size && bytes <= size - offset, "{}: {} is {}, {} bytes, but {} ends after {}", model, name,
           type.str(), bytes, path.string(), size);
  const runtime::Buffer buffer = runtime::Buffer::allocate(type);
  in.seekg(static_cast<std::streamoff>(offset));
  if (bytes > 0 && !in.read(static_cast<char*>(buffer.data()), static_cast<std::streamsize>(bytes)))
    throw FileError(fmt::format("{}: cannot be read", path.string()));
  return buffer;
}

// Elements that stand one by one, each as a T in a list of wider numbers.
template <class T, class List>
void put(const List& list, std::byte* to) {
  for (const auto element : list) {
    const T narrow = static_cast<T>(element);
    std::memcpy(to, &narrow, sizeof(T));
    to += sizeof(T);
  }
}

int listed_elements(const TensorValue& value, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return value.float_data_size();
    case DType::f64:
      return value.double_data_size();
    case DType::i64:
      return value.int64_data_size();
    default:
      return value.int32_data_size();
  }
}

void put_listed(const TensorValue& value, DType dtype, std::byte* to) {
  if (dtype == f32) return put<float>(value.float_data(), to);
  if (dtype == f64) return put<double>(value.double_data(), to);
  if (dtype == i64) return put<std::int64_t>(value.int64_data(), to);
  if (dtype == i32) return put<std::int32_t>(value.int32_data(), to);
  if (bytes(dtype) == 1) return put<std::uint8_t>(value.int32_data(), to);
  put<std::uint16_t>(value.int32_data(), to);  // of f16 and bf16 their bits
}

}  // namespace

Decoded decode(TensorValue& value, const std::string& model, const std::string& name) {
  const std::optional<DType> dtype = dtype_of(value.data_type());
  if (!dtype) return {{}, fmt::format("its dtype is {}, which no tensor has", data_type_name(value.data_type()))};
  FJ_CHECK(value.dims_size() <= kMaxRank, "{}: {} has rank {}, the limit is {}", model, name, value.dims_size(),
           kMaxRank);
  Type type{*dtype, {}, Layout::standard};
  try {
    type.shape = Shape(std::span<const std::int64_t>(value.dims().data(), static_cast<std::size_t>(value.dims_size())));
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}: {}", model, name, error.what()));
  }
  runtime::Buffer buffer;
  if (value.data_location() == 1) {
    buffer = read_external(value, model, name, type);
  } else if (value.has_raw_data()) {
    const std::string& raw = value.raw_data();
    FJ_CHECK(static_cast<std::int64_t>(raw.size()) == type.bytes(), "{}: {} is {}, {} bytes, the file has {} for it",
             model, name, type.str(), type.bytes(), raw.size());
    buffer = runtime::Buffer::allocate(type);
    if (!raw.empty()) std::memcpy(buffer.data(), raw.data(), raw.size());
  } else {
    const int listed = listed_elements(value, *dtype);
    FJ_CHECK(listed == type.elements(), "{}: {} is {}, the file has {} numbers for it", model, name, type.str(),
             listed);
    buffer = runtime::Buffer::allocate(type);
    put_listed(value, *dtype, static_cast<std::byte*>(buffer.data()));
  }
  if (*dtype == boolean) {
    auto* bytes = static_cast<std::uint8_t*>(buffer.data());
    std::transform(bytes, bytes + type.elements(), bytes, [](std::uint8_t b) { return b != 0 ? 1 : 0; });
  }
  value.Clear();
  return {fusejit::tensor_of(std::move(buffer)), ""};
}

}  // namespace fusejit::onnx::wire
