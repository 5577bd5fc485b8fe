// The .npy member format: a header that describes one array, then its bytes. Used by npz.cpp.
#pragma once

#include "frontend/io/npz.h"

namespace fusejit::io {

// Magic, version, padded header: everything in front of the elements.
std::string npy_header(const NamedArray& array);

// Hands over the next bytes of a file.
using ReadBytes = std::function<void(std::span<std::byte> to)>;

// An array of `total` bytes as a file, name and source as for parse_npy. The elements are read, and memory taken for
// them, only if the header fits `total` and `wanted` (if there is one) says yes; else there are none in the result.
NamedArray read_npy(const ReadBytes& read, std::uint64_t total, const std::string& name, const std::string& source,
                    const WantedArray& wanted);

}  // namespace fusejit::io
