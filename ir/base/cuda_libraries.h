// Where `./dev setup --cuda` puts NVIDIA's libraries on machines without a toolkit.
#pragma once

#include <string>
#include <vector>

namespace fusejit::ir {

// The names to try for a library, in order: `name` as the loader finds it, then as a file in each of
// ${XDG_CACHE_HOME:-~/.cache}/fusejit/cuda/nvidia/*/lib that has it.
std::vector<std::string> cuda_library_names(const std::string& name);

}  // namespace fusejit::ir
