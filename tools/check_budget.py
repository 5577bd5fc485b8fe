#!/usr/bin/env python3
"""Checks the lengths of files and folders: more than 300 lines are named; more than 500, or more than 25 sources beside
each other in a folder, are an error. Split by idea, not by size."""

import collections
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOFT, HARD, COLUMNS, BESIDE = 300, 500, 120, 25
FOLDERS = ("ir", "scheduler", "codegen", "runtime", "frontend", "tools", "tests", "examples", "bench")
SUFFIXES = (".h", ".cpp", ".cuh", ".py")


def main():
    long_files, too_long, wide = [], [], []
    beside = collections.Counter()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            name = path.relative_to(ROOT).as_posix()
            beside[path.relative_to(ROOT).parent.as_posix()] += 1
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            if len(lines) > HARD:
                too_long.append(f"{name}: {len(lines)} lines, the limit is {HARD}")
            elif len(lines) > SOFT:
                long_files.append(f"{name}: {len(lines)} lines, more than {SOFT}: is it still one idea?")
            wide += [f"{name}:{i}: {len(line)} columns, the limit is {COLUMNS}"
                     for i, line in enumerate(lines, 1) if len(line) > COLUMNS and "R\"" not in line]
    too_long += [f"{folder}: {count} sources beside each other, the limit is {BESIDE}"
                 for folder, count in beside.items() if count > BESIDE]
    # Wide lines are the formatter's to mend; they are counted here so that they are seen without it.
    print("\n".join(long_files + too_long + [f"budget: {len(long_files)} files over {SOFT} lines, {len(too_long)} over "
                                            f"{HARD}, {len(wide)} lines over {COLUMNS} columns"]))
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
