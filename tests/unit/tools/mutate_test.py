#!/usr/bin/env python3
"""tools/mutate must notice a stale list, and switch each edit as its kind says."""

import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/mutate"))
import entries  # noqa: E402
import report  # noqa: E402
import runs  # noqa: E402
import schemata  # noqa: E402

SOURCE = "int f(int a) {\n  if (a > 1) return a + 2;\n  g(a);\n  return a + 2;\n}\n"
ENTRY = {"id": "one", "file": "ir/x.cpp", "kind": "expression", "from": "a > 1", "to": "a >= 1",
         "tests": ["unit_ir Suite.*"], "mistake": "off by one"}


def tree(listed, names="", source=SOURCE):
    """A repository with one source, one test and a list."""
    root = pathlib.Path(tempfile.mkdtemp())
    for folder in ("ir", "tests/unit/ir", entries.LIST):
        (root / folder).mkdir(parents=True)
    (root / "ir/x.cpp").write_text(source)
    (root / "tests/unit/ir/x_test.cpp").write_text("TEST_P(Suite, SaysSo) {}\n")
    (root / entries.LIST / "tests.toml").write_text("[tests]\n" + names)
    text = "".join("[[mutant]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in entry.items()) for entry in listed)
    (root / entries.LIST / "list.toml").write_text(text)
    return root


# Changes of ENTRY and what the check says of them; "" is no complaint.
CHECKED = [
    ({}, ""),
    ({"from": "a > 2"}, "not exactly once"),
    ({"from": "a + 2"}, "not exactly once"),
    ({"from": "a + 2", "within": "  return a + 2;\n}"}, ""),
    ({"from": "a + 3", "within": "  return a + 2;\n}"}, "not exactly once"),
    ({"file": "ir/y.cpp"}, "there is no ir/y.cpp"),
    ({"kind": "text"}, "does not fit"),
    ({"to": "a > 1"}, "changes nothing"),
    ({"tests": []}, "nothing should see it"),
    ({"tests": ["unit_it Suite.*"]}, "no test program unit_it"),
    ({"tests": ["unit_ir Suite.SaysNothing"]}, "no test Suite.SaysNothing"),
    ({"tests": ["unit_ir Any/Suite.SaysSo/case*:*Suite*"]}, ""),
    ({"tests": ["suite"]}, "tests.toml has no suite"),
    ({"id": "One"}, "slug"),
    ({"remark": "x"}, "unknown: remark"),
]


def check_list():
    for change, expected in CHECKED:
        said = entries.check(tree([{**ENTRY, **change}]))
        fits = any(expected in line for line in said) if expected else not said
        if not fits:
            yield f"{change}: {said}"
    said = entries.check(tree([ENTRY, ENTRY]))
    if not any("twice" in line for line in said):
        yield f"an id that is there twice: {said}"
    overlapping = {**ENTRY, "id": "two", "from": "if (a > 1)", "to": "if (a)"}
    said = entries.check(tree([ENTRY, overlapping]))
    if not any("overlaps one" in line for line in said):
        yield f"edits that overlap: {said}"
    if entries.check(tree([{**ENTRY, "tests": ["suite"]}], "suite = 'unit_ir Suite.*'\n")):
        yield "a name of tests.toml is refused"


def check_copy():
    listed = [ENTRY, {**ENTRY, "id": "two", "to": "a > 0"},
              {**ENTRY, "id": "three", "kind": "statement", "from": "g(a);", "to": ""}]
    mutants, _ = entries.load(tree(listed))
    one, two, three = (m.number for m in mutants)
    text = schemata.edited(SOURCE, mutants)
    for expected in (f"if ((FJ_MUTANT({one}) ? (a >= 1) : FJ_MUTANT({two}) ? (a > 0) : (a > 1))) return",
                     f"{{ if (FJ_MUTANT({three})) {{  }} else {{ g(a); }} }}", '#include "fj_mutant.h"'):
        if expected not in text:
            yield f"{expected!r} is not in\n{text}"
    prelude = schemata.edited_prelude("x " + schemata.PRELUDE_TEXT + " y", mutants[:1])
    if f'put({one}, R"fj(a > 1)fj", R"fj(a >= 1)fj")' not in prelude:
        yield prelude


def check_outcomes():
    for status, output, expected in [(None, "", "hung"), (-11, "", "crashed"), (1, "off by 3", "wrong result"),
                                     (1, "kernel @k: 4:7: V3: %i is not proven", "refused"),
                                     (1, "plan @p: P2: a and b overlap", "refused")]:
        if runs.classify(status, output) != expected:
            yield f"{output!r} with {status} is {runs.classify(status, output)}, not {expected}"
    mutants, _ = entries.load(tree([ENTRY, {**ENTRY, "id": "two"}, {**ENTRY, "id": "three"}]))
    table = report.table(mutants, {"one": {"how": "refused"}, "two": {"how": "survived"}})
    for expected in ("| all | 2 | 1 |", "1 of 2 are killed, 50.0 %", "- `two`", "Not run yet: `three`."):
        if expected not in table:
            yield f"{expected!r} is not in\n{table}"


def main():
    wrong = [line for check in (check_list, check_copy, check_outcomes) for line in check()]
    print("\n".join(wrong) or f"{len(CHECKED)} lists, a copy and a table are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
