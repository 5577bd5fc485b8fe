// Worked kernels of the kernel-IR page as files, for the tests of this folder.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::testing {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::filesystem::path kernel_folder() { return std::filesystem::path(FUSEJIT_SOURCE_DIR) / "tests" / "kernels"; }

// The .kir files, in order of their names.
inline std::vector<std::string> kernel_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kernel_folder()))
    if (entry.path().extension() == ".kir") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline ir::Kernel worked_kernel(const std::string& file) { return ir::parse_kernel(read_text(kernel_folder() / file)); }

}  // namespace fusejit::testing
