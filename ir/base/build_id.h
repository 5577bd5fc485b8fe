// The GNU build id of a library in this process: its bytes in short, where a version string says too little.
#pragma once

#include <string>

namespace fusejit::ir {

// Of the library or program that `address` (of a function or an object) lies in: hex digits, or "" if it has none.
std::string build_id_at(const void* address);

}  // namespace fusejit::ir
