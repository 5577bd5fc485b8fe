// The .npy member format: a header that describes one array, then its bytes. Used by npz.cpp.
#pragma once

#include "frontend/io/npz.h"

namespace fusejit::io {

// Magic, version, padded header: everything in front of the elements.
std::string npy_header(const NamedArray& array);

// Hands over the next bytes of a file.
using ReadBytes = std::function<void(std::span<std::byte> to)>;

// What a header says, of whatever dtype.
struct NpyHeader {
  std::string description;  // of the dtype: "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::uint64_t start = 0;  // of the elements, from the beginning of the file
};
// Of a file of `total` bytes.
NpyHeader read_npy_header(const ReadBytes& read, std::uint64_t total, const std::string& source);

// An array of `total` bytes as a file, name and source as for parse_npy. The elements are read, and memory taken for
// them, only if the header fits `total` and `wanted` (if there is one) says yes; else there are none in the result.
NamedArray read_npy(const ReadBytes& read, std::uint64_t total, const std::string& name, const std::string& source,
                    const WantedArray& wanted);

}  // namespace fusejit::io
