// Machine code of kernels for x86 in the cache on disk.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/x86/compile.h"
#include "runtime/disk/entry.h"

namespace fusejit::runtime::disk {

// Parts: kernel, its canonical text without its name; isa, what a processor needs to run it; compiler, the sources of
// the generator; llvm. What a target says beside its isa has been turned into the text.
CacheKey kernel_key(std::string kernel_key_text, Isa isa);

std::vector<Section> kernel_sections(const codegen::x86::ObjectCode& code);
// Nothing if the sections do not say what is needed. `name` is what profilers and errors call it.
std::optional<codegen::x86::ObjectCode> object_in(const Entry& entry, const std::string& name);

}  // namespace fusejit::runtime::disk
