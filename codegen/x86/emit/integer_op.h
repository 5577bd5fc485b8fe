// Integer ops without an instruction of their own: nothing traps, and the edges are those of ops.md §4.
#pragma once

#include <string_view>

#include "codegen/x86/emit/convert.h"

namespace fusejit::codegen::x86 {

// "fj.floor_divide", "fj.fmod", "fj.pow" on signed integers; null if `word` is another.
llvm::Value* integer_op(Builder& b, std::string_view word, llvm::Value* x, llvm::Value* y);

}  // namespace fusejit::codegen::x86
