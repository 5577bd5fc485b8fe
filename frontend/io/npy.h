// The .npy member format: a header that describes one array, then its bytes. Used by npz.cpp.
#pragma once

#include "frontend/io/npz.h"

namespace fusejit::io {

// Magic, version, padded header: everything in front of the elements.
std::string npy_header(const NamedArray& array);

}  // namespace fusejit::io
