// Arrays in files: .npy (one array) and .npz (a zip of named .npy members), as ops.md §13 says.
//
// Reading accepts versions 1-3, C and Fortran order, little-endian dtypes, stored and deflated members; never pickles.
// Damage of any kind is a UserError with one sentence that begins with the source's name; a file that cannot be opened,
// read or written is a FileError. Output is C order, stored, readable by numpy.load, written whole or not at all.
//
// bf16 travels as its bits in <u2 arrays whose name ends in ".bf16": here dtype says bf16 and the name keeps the
// ending; `stored_name` and `plain_name` put it on and take it off.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/named_array.h"

namespace fusejit::io {

// `source` stands in front of every message: the file's name.
std::vector<NamedArray> parse_npz(std::span<const std::byte> file, const std::string& source,
                                  const WantedName& wanted = {}, const WantedArray& elements = {});
NamedArray parse_npy(std::span<const std::byte> file, const std::string& name, const std::string& source);

std::vector<NamedArray> read_npz(const std::string& path, const WantedName& wanted = {},
                                 const WantedArray& elements = {});
// Names, dtypes and shapes alone: no elements are read.
std::vector<NamedArray> describe_npz(const std::string& path);
// The array's name is empty.
NamedArray read_npy(const std::string& path);

// UserError for a name twice, a name that no zip can hold, or bytes that do not fit the shape.
void write_npz(const std::string& path, std::span<const NamedArray> arrays);
void write_npy(const std::string& path, const NamedArray& array);

// "x" <-> "x.bf16" for bf16; every other dtype keeps the name.
std::string stored_name(std::string_view name, DType dtype);
std::string plain_name(std::string_view name, DType dtype);

}  // namespace fusejit::io
