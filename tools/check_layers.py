#!/usr/bin/env python3
"""Checks the order of the folders: who may include what (ARCHITECTURE.md, "Include order").

  ir <- scheduler <- codegen (which sees ir only) <- runtime <- frontend <- tools, examples, bench <- tests

Beside the order: headers of LLVM, CUDA, NVRTC, cuDNN and protocol buffers stay in their rooms, public headers include
only public and standard ones, examples are written as a user writes them, facts about ops are fields of their rows,
not switches, and who formats includes what formats, which precompiled headers hide.
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A folder and the folders that it may include. `tests` and those beside it are no library.
MAY_INCLUDE = {
    "ir": {"ir"},
    "scheduler": {"ir", "scheduler"},
    "codegen": {"ir", "codegen"},
    "runtime": {"ir", "scheduler", "codegen", "runtime"},
    "frontend": {"ir", "scheduler", "codegen", "runtime", "frontend"},
    "tools": {"ir", "scheduler", "codegen", "runtime", "frontend", "tools"},
    "bench": {"ir", "scheduler", "codegen", "runtime", "frontend", "bench"},  # and tests/support, below
    "examples": {"examples"},
    "tests": {"ir", "scheduler", "codegen", "runtime", "frontend", "tools", "examples", "tests"},
}
PUBLIC = {"ir": "ir/include", "frontend": "frontend/include"}
ROOTS = (".", *PUBLIC.values())

# Headers that a folder uses in one place only.
DOORS = {("frontend", "runtime/session.h"): "frontend/evaluation/"}

# Third-party headers that live in one room. Tests may look into what a generator made.
ROOMS = [
    (re.compile(r"llvm(-c)?/"), ("codegen/x86/", "tests/unit/codegen/")),
    (re.compile(r"nvrtc"), ("codegen/cuda/",)),
    (re.compile(r"(cuda\w*|driver_types)\.h"), ("runtime/cuda/",)),
    (re.compile(r"cudnn"), ("runtime/cudnn/",)),
    (re.compile(r"google/protobuf/|.*\.pb\.h$"), ("frontend/onnx/wire/",)),
]

# Who runs plans is behind runtime/backend.h: what plans, keeps and starts them asks nobody what it is.
BACKENDS = re.compile(r"runtime/(cpu|cuda|cudnn)/")
ASKS_NOBODY = re.compile(r"runtime/(session|planning|pieces|executor|backend\.)")
ASKING = re.compile(r"\bIsa::|dynamic_cast<\s*(const )?\w*Backend")

# The files that may switch over Op, each translating every op into one other language.
SWITCH_ALLOWED = {
    "scheduler/lower/expression/expression.cpp",
    "scheduler/lower/expression/view.cpp",
    "codegen/x86/emit/scalar_op.cpp",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CASE_OF_OP = re.compile(r"\bcase\s+(?:\w+::)*Op::\w+")
CHAIN_OF_OPS = re.compile(r"(?:==\s*(?:\w+::)*Op::\w+\s*\|\|[^;|?]*){2,}==\s*(?:\w+::)*Op::\w+")


def public_owner(header):
    """The folder whose public header `fusejit/...` this is."""
    for folder, path in PUBLIC.items():
        if (ROOT / path / header).exists():
            return folder
    return None


def check_include(path, quote, header):
    """Yields what is wrong with one #include of `path`."""
    folder = path.split("/")[0]
    is_public = any(path.startswith(public + "/") for public in PUBLIC.values())
    for pattern, rooms in ROOMS:
        if pattern.match(header) and not path.startswith(rooms):
            yield f"<{header}> belongs into {' or '.join(rooms)} only"
    if header.startswith("fusejit/"):
        owner = public_owner(header)
        if owner is None:
            yield f"no public header {header}"
        elif folder != "examples" and owner not in MAY_INCLUDE[folder]:
            yield f"{folder} may not include {header}, which is of {owner}"
        return
    owner = header.split("/")[0]
    if not path.startswith(DOORS.get((folder, header), path)):
        yield f"{folder} includes {header} in {DOORS[folder, header]} only"
    if ASKS_NOBODY.match(path) and BACKENDS.match(header):
        yield f"{path} may not include {header}, which is behind runtime/backend.h"
    if quote == '"' and not (ROOT / header).exists() and not (ROOT / path).parent.joinpath(header).exists():
        yield f'"{header}" is no file of the project'
    elif folder == "bench" and header.startswith("tests/support/"):
        return  # what a test measures against, a benchmark may as well
    elif quote == '"' and (is_public or owner not in MAY_INCLUDE[folder]):
        yield f"{'a public header' if is_public else folder} may not include {header}"
    elif quote == "<" and is_public and ("/" in header or header.endswith(".h")):
        yield f"a public header may not include <{header}>: only fusejit/ and standard headers"


@functools.cache
def reaches_fmt(path):
    """A header of the project includes fmt's, by whatever way."""
    return path.is_file() and includes_fmt(path.read_text(encoding="utf-8", errors="replace"))


def includes_fmt(text):
    for line in text.splitlines():
        match = INCLUDE.match(line)
        if match and match.group(1) == "<" and match.group(2).startswith(("fmt/", "spdlog/")):
            return True
        if match and match.group(1) == '"' and any(reaches_fmt(ROOT / base / match.group(2)) for base in ROOTS):
            return True
    return False


def check_file(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            for sentence in check_include(path, *match.groups()):
                yield f"{path}:{number}: {sentence}"
        if CASE_OF_OP.search(line) and not path.startswith("tests/") and path not in SWITCH_ALLOWED:
            yield f"{path}:{number}: a switch over Op: a fact about an op is a field of its row"
        if ASKS_NOBODY.match(path) and ASKING.search(line):
            yield f"{path}:{number}: what differs between backends is an answer of runtime/backend.h"
    if "fmt::" in text and not includes_fmt(text):
        number = text.count("\n", 0, text.index("fmt::")) + 1
        yield f"{path}:{number}: no header of fmt is included: there may be no precompiled one"
    if not path.startswith("tests/"):
        for match in CHAIN_OF_OPS.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{number}: a list of ops in a condition: a fact about an op is a field of its row"


def main():
    problems = []
    files = 0
    for folder in MAY_INCLUDE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                files += 1
                name = path.relative_to(ROOT).as_posix()
                problems += check_file(name, path.read_text(encoding="utf-8", errors="replace"))
    print("\n".join(problems + [f"layers: {files} files, {len(problems)} problems"]))
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
