// What is made on a machine without a GPU and taken to one: cubins of every embedded kernel and cuDNN plans, each for
// several architectures.
#pragma once

#include <filesystem>

namespace fusejit::gpu_check {

// Fills the folder, with a manifest.json that says what is in it. What this machine cannot make (no NVRTC, no cuDNN) is
// said in the manifest and on stdout. Throws FileError.
void carry(const std::filesystem::path& folder);

}  // namespace fusejit::gpu_check
