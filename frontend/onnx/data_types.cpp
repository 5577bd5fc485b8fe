#include "frontend/onnx/data_types.h"

#include <fmt/format.h>

#include <iterator>

namespace fusejit::onnx {
namespace {

struct DataType {
  const char* name;
  std::optional<DType> dtype;
};
// By number.
const DataType kDataTypes[] = {
    {"undefined", {}},      {"float", f32},     {"uint8", u8},        {"int8", i8},           {"uint16", {}},
    {"int16", i16},         {"int32", i32},     {"int64", i64},       {"string", {}},         {"bool", boolean},
    {"float16", f16},       {"double", f64},    {"uint32", {}},       {"uint64", {}},         {"complex64", {}},
    {"complex128", {}},     {"bfloat16", bf16}, {"float8e4m3fn", {}}, {"float8e4m3fnuz", {}}, {"float8e5m2", {}},
    {"float8e5m2fnuz", {}}, {"uint4", {}},      {"int4", {}},         {"float4e2m1", {}},
};

bool is_known(std::int64_t data_type) {
  return data_type >= 0 && data_type < static_cast<std::int64_t>(std::size(kDataTypes));
}

}  // namespace

std::optional<DType> dtype_of(std::int64_t data_type) {
  return is_known(data_type) ? kDataTypes[data_type].dtype : std::nullopt;
}

std::string data_type_name(std::int64_t data_type) {
  return is_known(data_type) ? kDataTypes[data_type].name : fmt::format("of type {}", data_type);
}

}  // namespace fusejit::onnx
