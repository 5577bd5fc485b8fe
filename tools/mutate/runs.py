"""Builds the copy and runs tests in it: without an edit, where all must pass, and with one, where one must not."""

import concurrent.futures
import dataclasses
import os
import re
import resource
import signal
import subprocess
import time

LEAST_SECONDS, SLOWER = 60, 8  # of a test under an edit before it counts as hanging; the machine may be busy
MOST_BYTES = 16 << 30          # of memory: an edit may ask for any
REFUSED = re.compile(r"\b[VP]\d{1,2}: ")


@dataclasses.dataclass
class Outcome:
    """How a mutant ended: by whom it was seen, and as what."""
    how: str = "survived"  # or: refused, wrong result, crashed, hung
    test: str = ""         # "program Suite.Name"
    seconds: float = 0

    @property
    def killed(self):
        return self.how != "survived"


def build(copy, programs, jobs, log):
    """Configures and builds the test programs of the copy. Answers with an error, or ""."""
    steps = [["cmake", "--preset", "release", "-DFUSEJIT_BENCH=OFF"],
             ["cmake", "--build", "--preset", "release", "-j", str(jobs), "--target", *sorted(programs)]]
    for step in steps:
        with open(log, "ab") as out:
            if subprocess.run(step, cwd=copy, stdout=out, stderr=subprocess.STDOUT).returncode != 0:
                return f"{' '.join(step)} failed: see {log}"
    return ""


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def run_test(copy, test, number, timeout):
    """(exit status or None if it hung, output) of one "program filter"."""
    program, _, patterns = test.partition(" ")
    environment = {**os.environ, "FUSEJIT_STRICT": "1", "FUSEJIT_MUTANT": str(number)}
    process = subprocess.Popen([copy / "build/release/tests" / program, f"--gtest_filter={patterns}",
                                "--gtest_fail_fast", "--gtest_brief=1"], cwd=copy, env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limit,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output.decode(errors="replace")


def classify(status, output):
    if status is None:
        return "hung"
    if REFUSED.search(output):
        return "refused"
    return "crashed" if status < 0 else "wrong result"


def failed_test(program, output):
    found = re.search(r"\[  FAILED  \] ([\w/.]+)", output) or re.search(r"\[ RUN      \] ([\w/.]+)", output)
    return f"{program} {found.group(1)}" if found else program


def in_parallel(jobs, tasks):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(task) for task in tasks]):
            yield done.result()


def run_base(copy, tests, jobs, seconds, say):
    """Puts down the seconds of each test without an edit; answers with what the first that fails says, or ""."""
    def one(test):
        start = time.monotonic()
        status, output = run_test(copy, test, 0, 3600)
        ran = re.search(r"(\d+) tests? from|\[  PASSED  \] (\d+) test", output)
        count = int(next((g for g in ran.groups() if g), 0)) if ran else 0
        return test, status, output, time.monotonic() - start, count

    for test, status, output, took, count in in_parallel(jobs, [lambda t=t: one(t) for t in tests]):
        if status != 0 or count == 0:
            return f"without an edit, {test} has status {status} and {count} tests:\n{output[-4000:]}"
        seconds[test] = took
        say(f"{took:7.1f} s  {count:4d} tests  {test}")
    return ""


def run_mutant(copy, mutant, seconds, logs):
    outcome = Outcome()
    start = time.monotonic()
    with open(logs / f"{mutant.id}.log", "w", encoding="utf-8") as log:
        for test in mutant.tests:
            status, output = run_test(copy, test, mutant.number, LEAST_SECONDS + SLOWER * seconds[test])
            log.write(f"== {test}: {status}\n{output}\n")
            if status != 0:
                outcome.how, outcome.test = classify(status, output), failed_test(test.split(" ")[0], output)
                break
    outcome.seconds = time.monotonic() - start
    return mutant, outcome


def run_mutants(copy, mutants, seconds, jobs, logs):
    yield from in_parallel(jobs, [lambda m=m: run_mutant(copy, m, seconds, logs) for m in mutants])
