// Who made an entry: part of every key, because other code makes other plans and kernels of the same graph.
#pragma once

#include <string>
#include <string_view>

namespace fusejit::runtime::disk {

// Of the sources that this library was built from, and the options of that build (cmake/identity.cmake).
std::string_view source_identity();

}  // namespace fusejit::runtime::disk
