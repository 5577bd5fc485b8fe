// The rules of kernel-ir.md §8, one function each. Every one may rely on those before it.
#pragma once

#include <string>

#include "ir/kernel/prove.h"
#include "ir/kernel/text/names.h"

namespace fusejit::ir {

// Throws InternalError "line:column: V3: sentence".
[[noreturn]] void broken(Position at, std::string_view rule, const std::string& sentence);

// Every statement with the loops and sides of ifs around it.
using PathVisitor = std::function<void(const Stmt& stmt, const Path& path, std::size_t phase)>;
void for_each_with_path(const Kernel& kernel, const PathVisitor& visit);

// The place that a load or store touches, or null.
const Place* touched(const Stmt& stmt);

// Values that differ between the lanes of a vector loop or the threads of a block around them, by ValueId.
std::vector<bool> varying_values(const Kernel& kernel);
bool varies(const Index& index, const Path& path, const std::vector<bool>& varying);

void verify_definitions(const Kernel& kernel);  // V8
void verify_types(const Kernel& kernel);        // V6, V9
void verify_bindings(const Kernel& kernel);     // V4
void verify_locals(const Kernel& kernel);       // V5
void verify_bounds(const Kernel& kernel);       // V3
void verify_alignment(const Kernel& kernel);    // V7
void verify_writes(const Kernel& kernel);       // V1, V2
void verify_stores(const Kernel& kernel);       // V11

}  // namespace fusejit::ir
