#!/usr/bin/env python3
"""tools/check_layers.py must refuse what it is there to refuse."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import check_layers  # noqa: E402

REFUSED = [
    ("ir/x.cpp", '#include "runtime/session.h"'),
    ("ir/x.cpp", '#include "codegen/compiled_kernel.h"'),
    ("codegen/x.cpp", '#include "scheduler/plan.h"'),
    ("scheduler/x.cpp", '#include "codegen/compiled_kernel.h"'),
    ("runtime/x.cpp", "#include <llvm/IR/Module.h>"),
    ("codegen/x.cpp", '#include "llvm/IR/Module.h"'),
    ("codegen/x86/x.cpp", "#include <nvrtc.h>"),
    ("codegen/cuda/x.cpp", "#include <cuda.h>"),
    ("runtime/cuda/x.cpp", "#include <cudnn.h>"),
    ("frontend/x.cpp", '#include "runtime/session.h"'),
    ("runtime/session.cpp", '#include "runtime/cuda/backend.h"'),
    ("runtime/planning.cpp", "if (options.target.isa == Isa::cuda) return;"),
    ("runtime/session_state.h", "auto* cuda = dynamic_cast<CudaBackend*>(&backend);"),
    ("examples/x.cpp", '#include "ir/graph.h"'),
    ("ir/x.cpp", '#include "no/such/file.h"'),
    ("ir/include/fusejit/x.h", '#include "ir/graph.h"'),
    ("ir/include/fusejit/x.h", "#include <fmt/format.h>"),
    ("runtime/x.cpp", "switch (op) {\n  case ir::Op::add: return true;\n}"),
    ("runtime/x.cpp", "return op == Op::add || op == Op::mul || op == Op::sub;"),
    ("frontend/onnx/model.cpp", "#include <frontend/onnx/wire/onnx.pb.h>"),
    ("frontend/io/x.cpp", "#include <google/protobuf/arena.h>"),
    ("tests/x.cpp", '#include "ir/graph.h"\nauto text = fmt::format("{}", 1);'),
]
ACCEPTED = [
    ("ir/x.cpp", '#include "ir/graph.h"\n#include <vector>\n#include <fmt/format.h>'),
    ("codegen/x86/x.cpp", "#include <llvm/IR/Module.h>"),
    ("frontend/onnx/wire/x.cpp", "#include <frontend/onnx/wire/onnx.pb.h>"),
    ("codegen/x.cpp", '#include "fusejit/dtype.h"'),
    ("frontend/evaluation/engine.h", '#include "runtime/session.h"'),
    ("runtime/backends.cpp", '#include "runtime/cuda/backend.h"\nif (target.isa == Isa::cuda) return;'),
    ("bench/x.cpp", '#include "tests/support/mutate.h"'),
    ("runtime/x.cpp", '#include "codegen/compiled_kernel.h"\n#include "ir/graph.h"'),
    ("examples/x.cpp", "#include <fusejit/dtype.h>\n#include <iostream>"),
    ("ir/include/fusejit/x.h", '#include "fusejit/dtype.h"\n#include <vector>'),
    ("runtime/x.cpp", "return op == Op::add || op == Op::mul;"),
    ("tests/x.cpp", '#include <fmt/format.h>\nauto text = fmt::format("{}", 1);'),
    ("scheduler/x.cpp", '#include "ir/base/check.h"\nauto text = fmt::format("{}", 1);'),
]


def main():
    wrong = [f"accepted: {case}" for case in REFUSED if not list(check_layers.check_file(*case))]
    wrong += [f"refused: {case}" for case in ACCEPTED if list(check_layers.check_file(*case))]
    print("\n".join(wrong) or f"{len(REFUSED) + len(ACCEPTED)} cases right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
