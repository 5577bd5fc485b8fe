// Named arrays in the safetensors format: eight bytes of length, a JSON header of that length,
//   {"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}}
// and the elements, row-major and little-endian; data_offsets count from the end of the header and cover what follows
// it without holes or overlap.
//
// Whatever a file's bytes are, reading ends with its arrays or with one UserError that begins with the source's name.
// Headers have at most 100 MB, nothing is nested deeper than above, every name stands once, and the header is held
// against the file's size before memory is taken for elements.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/named_array.h"

namespace fusejit::io {

struct Safetensors {
  std::vector<NamedArray> arrays;               // in the header's order
  std::map<std::string, std::string> metadata;  // the entry __metadata__
};

// `source` stands in front of every message: the file's name.
Safetensors parse_safetensors(std::span<const std::byte> file, const std::string& source,
                              const WantedArray& wanted = {});
Safetensors read_safetensors(const std::string& path, const WantedArray& wanted = {});
// Names, dtypes, shapes and metadata alone; what follows the header is not read.
Safetensors describe_safetensors(const std::string& path);

// Wider elements first, so that all are aligned, then by name; the file's bytes depend on the arguments alone. Written
// whole or not at all. UserError for a name twice, one that is no UTF-8 or reserved, or bytes that do not fit the
// shape.
void write_safetensors(const std::string& path, std::span<const NamedArray> arrays,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace fusejit::io
