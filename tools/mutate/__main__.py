#!/usr/bin/env python3
"""Tests of the tests: small wrong edits of the sources, each of which some test must see.

  python3 tools/mutate --check          is the list still true of the sources? (ctest runs this)
  python3 tools/mutate --list           the edits
  python3 tools/mutate [--only ID...]   builds all edits at once, runs the tests under each, reports the survivors
  python3 tools/mutate --table          writes the table of docs/testing.md from the last runs

Works in build/mutate. Exit status 1: an edit survives and the list does not say why that is harmless. docs/testing.md
says more.
"""

import argparse
import json
import os
import pathlib
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import entries  # noqa: E402
import report  # noqa: E402
import runs  # noqa: E402
import schemata  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def say(line):
    print(line, flush=True)


def run(mutants, chosen, jobs, keep_build):
    work = ROOT / "build/mutate"
    copy, logs = work / "src", work / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    schemata.write_copy(ROOT, copy, mutants)
    tests = sorted({test for m in chosen for test in m.tests})
    base = work / "base.json"
    seconds = json.loads(base.read_text()) if keep_build and base.is_file() else {}
    error = "" if keep_build else runs.build(copy, {t.split(" ")[0] for t in tests}, jobs, logs / "build.txt")
    if not error:
        say(f"built after {time.monotonic() - start:.0f} s; without an edit:")
        error = runs.run_base(copy, [t for t in tests if t not in seconds], jobs, seconds, say)
    base.write_text(json.dumps(seconds, indent=1) + "\n")
    if error:
        say(error)
        return 2
    outcomes = []
    for m, outcome in runs.run_mutants(copy, chosen, seconds, jobs, logs):
        outcomes.append((m, outcome))
        report.save(work / "outcomes.json", outcomes[-1:])
        note = f" by {outcome.test}" if outcome.killed else f" ({m.harmless or 'no test sees it'})"
        say(f"{m.id:40} {outcome.how:12} {outcome.seconds:6.1f} s{note}")
    lost = [m for m, o in outcomes if not o.killed and not m.harmless]
    killed = sum(o.killed for _, o in outcomes)
    for m, o in outcomes:
        if o.killed and m.harmless:
            say(f"{m.id} is called harmless and was seen by {o.test}: strike the sentence")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    say(f"mutate: {killed} of {len(outcomes)} killed, {len(lost)} survive without a reason, "
        f"{(time.monotonic() - start) / 60:.1f} minutes, {(used.ru_utime + used.ru_stime) / 60:.1f} of processors")
    return 1 if lost else 0


def main():
    parser = argparse.ArgumentParser(prog="tools/mutate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="ID", default=[], help="of the list, or the start of some")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep-build", action="store_true", help="the copy is built and has passed")
    given = parser.parse_args()
    problems = entries.check(ROOT)
    mutants, _ = entries.load(ROOT)
    if problems or given.check:
        say("\n".join(problems + [f"mutate: {len(mutants)} edits, {len(problems)} problems"]))
        return 1 if problems else 0
    if given.list:
        for m in mutants:
            say(f"{m.number:10} {m.id:40} {m.file}: {m.mistake}")
        return 0
    if given.table:
        outcomes = json.loads((ROOT / "build/mutate/outcomes.json").read_text())
        report.write_between_markers(ROOT / "docs/testing.md", report.table(mutants, outcomes))
        return 0
    chosen = [m for m in mutants if not given.only or any(m.id.startswith(start) for start in given.only)]
    if not chosen:
        say(f"no edit is called {' or '.join(given.only)}")
        return 2
    return run(mutants, chosen, given.jobs, given.keep_build)


if __name__ == "__main__":
    sys.exit(main())
