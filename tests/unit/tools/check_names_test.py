#!/usr/bin/env python3
"""tools/check_names.py must find what two files define, and nothing else."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import check_names  # noqa: E402

# Two files, and the name that both define, or None.
CASES = [
    ("namespace a { struct Part { int x; }; }", "namespace a {\nclass Part final : Base {\n};\n}", "a::Part"),
    ("namespace a::b { enum class Kind { x }; }", "namespace a { namespace b { enum Kind { y }; } }", "a::b::Kind"),
    ("namespace a { inline int f(int x) { return x; } }", "namespace a { inline int f(int  x) { return -x; } }", "a::f(int x)"),
    ("namespace a { struct Part; }", "namespace a { struct Part { int x; }; }", None),
    ("namespace a { struct Part {}; }", "namespace b { struct Part {}; }", None),
    ("namespace a { struct Part {}; }", "namespace a { namespace { struct Part {}; } }", None),
    ("namespace a { struct Part {}; }", "namespace a { void f() { struct Part {}; } }", None),
    ("namespace a { struct Part {}; }", "namespace a { class Other { struct Part {}; }; }", None),
    ("namespace a { struct Out { struct In; }; }", "namespace a { struct Out::In { int x; }; }", None),
    ("namespace a { inline int f(int x) { return x; } }", "namespace a { inline int f(double x) { return 1; } }", None),
    ("namespace a { struct Part {}; }", 'namespace a { const char* s = "struct Part {"; // struct Part {\n}', None),
    ('namespace a { auto t = R"(namespace { )"; struct Part {}; }', "namespace a { struct Part {}; }", "a::Part"),
]


def main():
    wrong = []
    for first, second, name in CASES:
        found = list(check_names.clashes([("first.h", first), ("second.h", second)]))
        expected = [f"second.h: {name} is defined in first.h too"] if name else []
        if found != expected:
            wrong.append(f"{first} | {second}: {found}")
    print("\n".join(wrong) or f"{len(CASES)} cases right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
