// A compiler for FakeDriver: reads the kernels back out of a generated program, where they stand as comments, and
// teaches them to the driver, so that whatever a backend compiles can be launched.
#pragma once

#include "runtime/cuda/kernels.h"
#include "tests/support/fake_device/fake_kernels.h"

namespace fusejit::test {

// The kernels of a generated program: from "// kernel @name(...) {" to "// }", without the slashes.
std::vector<std::string> kernel_texts(std::string_view program);

// `fake` outlives what is compiled. Throws DeviceError for a program with a kernel that does not read back as itself.
// With `rewrite`, launches compute what that makes of a kernel's text: for tests that must notice.
runtime::cuda::CompileProgram fake_compiler(FakeDriver& fake,
                                            std::function<std::string(std::string)> rewrite = nullptr);

}  // namespace fusejit::test
