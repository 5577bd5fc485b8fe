#!/usr/bin/env python3
"""Checks that no name stands for two things: a class, an enum or an inline function of one namespace is defined in one
file (C++'s one-definition rule). The linker keeps one of two and says nothing; folders that are compiled as one file
hide it as long as those files do not meet. What stands in an unnamed namespace or in a function is a file's own."""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Each is a program or a library of its own; the library is in all of them.
LIBRARY = ("ir", "scheduler", "codegen", "runtime", "frontend")
PROGRAMS = ("tools", "tests", "bench")

SILENT = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|'
                    r"^[ \t]*#(?:\\\n|.)*$", re.M)
TOKEN = re.compile(
    r"namespace\s*(?P<namespace>[\w:]*)\s*\{"
    r"|(?P<template>template\s*<>)?\s*\b(?:struct|class|union|enum(?:\s+class)?)\s+(?P<type>[\w:]+(?:<[^{};]*?>)?)\s*"
    r"(?:final\s*)?(?::[^{};()]*)?\{"
    r"|\binline\b(?P<function>[^;{}=]*?(?P<name>[\w:]+|operator\s*[^\s\w(]+)\s*(?P<arguments>\([^{};]*\))[^{};()]*)\{"
    r"|(?P<open>\{)|(?P<close>\})")


def definitions(text):
    """What a file defines in named namespaces: "a::b::Class", "a::b::function(int x)"."""
    scopes = []
    for match in TOKEN.finditer(SILENT.sub(" ", text)):
        if match["close"]:
            if scopes:
                scopes.pop()
            continue
        shared = all(kind == "namespace" and name for kind, name in scopes)
        where = "::".join(name for _, name in scopes)
        if match["namespace"] is not None:
            scopes.append(("namespace", match["namespace"]))
        elif match["type"]:
            if shared:
                yield f"{where}::{match['type']}"
            scopes.append(("class", match["type"]))
        else:
            if match["name"] and shared:
                yield f"{where}::{match['name']}{' '.join(match['arguments'].split())}"
            scopes.append(("block", ""))


def clashes(files):
    """Of (path, text): a sentence for every name that two files define."""
    where = collections.defaultdict(set)
    for path, text in files:
        for name in set(definitions(text)):
            where[name].add(path)
    for name, paths in sorted(where.items()):
        ours = sorted(paths)
        if len(ours) > 1:
            yield f"{ours[1]}: {name} is defined in {ours[0]} too"


def sources(folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="replace")


def main():
    library = list(sources(LIBRARY))
    wrong = set()
    for program in PROGRAMS:
        wrong.update(clashes(library + list(sources((program,)))))
    print("\n".join(sorted(wrong)) or "names: every one is defined once")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
