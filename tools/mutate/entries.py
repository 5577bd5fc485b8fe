"""The list of wrong edits: read from list/*.toml, and checked against the sources as they are today.

An entry is a table [[mutant]]:
  id       a slug, the name in reports
  file     the source that is edited
  kind     "expression": `from` is a whole expression and becomes a choice between `to` and itself;
           "statement": `from` is one or more whole statements, `to` those in their place (may be empty);
           "text": `from` is text of the CUDA prelude, which is replaced where the prelude is handed out
  from, to the right text and the wrong one. `from` occurs exactly once in the file, or, where `within` is given, exactly
           once in that text, which occurs exactly once in the file
  tests    what should see it, in order: "program filter" (a test program and a filter of GoogleTest), or a name of
           tests.toml, which stands for such a line
  mistake  what a programmer would have got wrong
  harmless (only where nothing can see the edit) the sentence why that is right
"""

import dataclasses
import pathlib
import re
import tomllib
import zlib

KINDS = ("expression", "statement", "text")
FIELDS = {"id", "file", "kind", "from", "to", "within", "tests", "mistake", "harmless"}
REQUIRED = FIELDS - {"within", "harmless"}
PRELUDE = ("codegen/cuda/prelude.cuh", "codegen/cuda/prelude_reduce.cuh")
LIST = "tools/mutate/list"


@dataclasses.dataclass(frozen=True)
class Mutant:
    number: int  # what FUSEJIT_MUTANT says: of the id, so that a change of the list rebuilds the files it changes
    id: str
    file: str
    kind: str
    right: str
    wrong: str
    within: str
    tests: tuple  # of "program filter"
    mistake: str
    harmless: str

    def span(self, text):
        """First and last place of the right text in its file, or None if it is not there exactly once."""
        around, start = self.within or self.right, 0
        if text.count(around) != 1:
            return None
        start = text.index(around)
        if self.within:
            if around.count(self.right) != 1:
                return None
            start += around.index(self.right)
        return start, start + len(self.right)


def load(root):
    """All entries, and what is wrong with the list's own form."""
    folder = pathlib.Path(root) / LIST
    names = tomllib.loads((folder / "tests.toml").read_text(encoding="utf-8"))["tests"]
    mutants, problems = [], []
    for path in sorted(folder.glob("*.toml")):
        if path.name == "tests.toml":
            continue
        for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", []):
            name = f"{path.name}: {entry.get('id', '?')}"
            if not REQUIRED <= entry.keys() <= FIELDS:
                wrong = sorted((REQUIRED - entry.keys()) | (entry.keys() - FIELDS))
                problems.append(f"{name}: missing or unknown: {', '.join(wrong)}")
                continue
            unknown = [test for test in entry["tests"] if " " not in test and test not in names]
            problems += [f"{name}: tests.toml has no {test}" for test in unknown]
            tests = tuple(names.get(test, test) for test in entry["tests"] if test not in unknown)
            number = zlib.crc32(entry["id"].encode()) & 0x7fffffff
            mutants.append(Mutant(number, entry["id"], entry["file"], entry["kind"], entry["from"],
                                  entry["to"], entry.get("within", ""), tests, entry["mistake"],
                                  entry.get("harmless", "")))
    return mutants, problems


def test_names(root, program):
    """Every "Suite.Name" of a test program's sources (of parametrised tests without what stands around it), or None if
    there is no such program."""
    folder = pathlib.Path(root) / "tests" / program.replace("unit_", "unit/", 1)
    if not folder.is_dir():
        return None
    macro = re.compile(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)")
    sources = [*folder.glob("*.cpp"), *folder.glob("*/*_test.cpp")]
    return {".".join(m.groups()) for path in sources for m in macro.finditer(path.read_text("utf-8"))}


def check_tests(root, mutants):
    known = {}
    for mutant in mutants:
        for test in mutant.tests:
            program, _, patterns = test.partition(" ")
            if program not in known:
                known[program] = test_names(root, program)
            if known[program] is None:
                yield f"{mutant.id}: there is no test program {program}"
                continue
            for pattern in patterns.partition("-")[0].split(":"):
                # Instantiations write Prefix/Suite.Name/Parameter.
                core = pattern.split("/")
                core = next((part for part in core if "." in part), pattern)
                expression = re.compile(".*".join(map(re.escape, core.split("*"))) + "$")
                if not any(expression.match(name) for name in known[program]):
                    yield f"{mutant.id}: {program} has no test {pattern}"


def is_whole(expression):
    """Its brackets close, and every question has its two answers."""
    text = re.sub(r"'.'|\"[^\"]*\"", "", expression).replace("::", "")
    depth = 0
    for c in text:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(c, 0)
        if depth < 0:
            return False
    begins_as_one = not re.match(r"\s*(<|>|=|\*|/|%|\+|\?|:|,|&&|\|)", text)
    return depth == 0 and begins_as_one and text.count("?") <= text.count(":")


def check(root):
    """Sentences about everything that keeps the list from being used."""
    root = pathlib.Path(root)
    mutants, problems = load(root)
    ids = [m.id for m in mutants]
    problems += [f"{id}: is there twice" for id in sorted({id for id in ids if ids.count(id) > 1})]
    problems += ["two ids have one number: change one"] * (len({m.number for m in mutants}) < len(set(ids)))
    spans = {}
    for m in mutants:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", m.id):
            problems.append(f"{m.id}: an id is a slug")
        if m.kind not in KINDS or (m.kind == "text") != (m.file in PRELUDE):
            problems.append(f"{m.id}: kind {m.kind} does not fit {m.file}")
        if m.kind == "expression" and re.match(r"\s*(if|for|while|return)\b|.*;\s*$|\s*\{", m.right, re.S):
            problems.append(f"{m.id}: not an expression: {m.right}")
        for text in [m.right, m.wrong] if m.kind == "expression" else []:
            if not is_whole(text):
                problems.append(f"{m.id}: part of an expression: {text}")
        if m.right == m.wrong or not m.tests:
            problems.append(f"{m.id}: changes nothing, or nothing should see it")
        if not (root / m.file).is_file():
            problems.append(f"{m.id}: there is no {m.file}")
            continue
        span = m.span((root / m.file).read_text(encoding="utf-8"))
        if span is None:
            problems.append(f"{m.id}: its text is not exactly once in {m.file}: give the entry the text of today, or "
                            f"take it off the list\n{m.within or m.right}")
            continue
        for other, theirs in spans.setdefault(m.file, []):
            if span != theirs and span[0] < theirs[1] and theirs[0] < span[1]:
                problems.append(f"{m.id}: overlaps {other}")
            if span == theirs and next(o for o in mutants if o.id == other).kind != m.kind:
                problems.append(f"{m.id}: edits the text of {other} as another kind")
        spans[m.file].append((m.id, span))
    return problems + list(check_tests(root, mutants))
