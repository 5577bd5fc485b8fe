"""One copy of the tree that holds every wrong edit, each switched on by the environment variable FUSEJIT_MUTANT.

So the whole list costs one build, and every file without an edit comes from the compiler cache.
"""

import os
import pathlib
import subprocess

from entries import PRELUDE

HEADER = """// Written by tools/mutate: which wrong edit of this copy is in force.
#pragma once

#include <cstdlib>

inline int fj_mutant_in_force() {
  static const int number = [] {
    const char* text = std::getenv("FUSEJIT_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return number;
}
#define FJ_MUTANT(n) (fj_mutant_in_force() == (n))
"""
HEADER_NAME = "fj_mutant.h"
PRELUDE_SOURCE = "codegen/cuda/prelude.cpp.in"
PRELUDE_TEXT = 'return R"prelude(@FUSEJIT_PRELUDE@)prelude";'


def switched(kind, right, choices):
    """`right`, or one of the wrong texts; `choices` are (number, wrong text)."""
    if kind == "expression":
        return "(" + "".join(f"FJ_MUTANT({n}) ? ({wrong}) : " for n, wrong in choices) + f"({right}))"
    return "{ " + "".join(f"if (FJ_MUTANT({n})) {{ {wrong} }} else " for n, wrong in choices) + f"{{ {right} }} }}"


def edited(text, mutants):
    """A C++ source with the edits of `mutants`, all of this file."""
    places = {}
    for m in mutants:
        places.setdefault(m.span(text), []).append(m)
    for (start, end), here in sorted(places.items(), reverse=True):
        choices = [(m.number, m.wrong) for m in here]
        text = text[:start] + switched(here[0].kind, here[0].right, choices) + text[end:]
    return f'#include "{HEADER_NAME}"\n#line 1\n{text}'


def edited_prelude(source, mutants):
    """The file that hands the CUDA prelude out, with edits of the prelude made as it does."""
    lines = []
    for m in mutants:
        right = m.within or m.right
        wrong = m.within.replace(m.right, m.wrong) if m.within else m.wrong
        lines.append(f'    put({m.number}, R"fj({right})fj", R"fj({wrong})fj");\n')
    body = ("static const std::string chosen = [] {\n"
            '    std::string text = R"prelude(@FUSEJIT_PRELUDE@)prelude";\n'
            "    const auto put = [&](int number, std::string_view right, std::string_view wrong) {\n"
            "      if (FJ_MUTANT(number)) text.replace(text.find(right), right.size(), wrong);\n"
            "    };\n" + "".join(lines) + "    return text;\n  }();\n  return chosen;")
    assert source.count(PRELUDE_TEXT) == 1, f"{PRELUDE_SOURCE} has another form"
    return f'#include <string>\n#include "{HEADER_NAME}"\n' + source.replace(PRELUDE_TEXT, body)


def sources_of(root):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            check=True, capture_output=True).stdout
    return [name for name in os.fsdecode(listed).split("\0") if name and (root / name).is_file()]


def write_if_changed(path, data, mode=None):
    """Leaves a file's time alone where its bytes are the same, so that nothing is built anew."""
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if mode is not None:
        path.chmod(mode)


def write_copy(root, to, mutants):
    root, to = pathlib.Path(root), pathlib.Path(to)
    by_file = {}
    for m in mutants:
        by_file.setdefault(m.file, []).append(m)
    of_prelude = [m for file in PRELUDE for m in by_file.get(file, [])]
    kept = {HEADER_NAME}
    write_if_changed(to / HEADER_NAME, HEADER.encode())
    for name in sources_of(root):
        data = (root / name).read_bytes()
        if name == PRELUDE_SOURCE and of_prelude:
            data = edited_prelude(data.decode(), of_prelude).encode()
        elif name in by_file and name not in PRELUDE:
            data = edited(data.decode(), by_file[name]).encode()
        write_if_changed(to / name, data, (root / name).stat().st_mode & 0o777)
        kept.add(name)
    for path in to.rglob("*"):
        name = path.relative_to(to).as_posix()
        if path.is_file() and not name.startswith("build/") and name not in kept:
            path.unlink()
