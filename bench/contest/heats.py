"""The measuring: each contender once with an empty cache, then all that fit into memory together, in turn.

What does not fit together runs in heats. The first contender that runs is in every one of them, so that a time can be
given in units of its time of the same round: such ratios may be compared across heats.
"""

import contextlib
import dataclasses
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from contest.contender import Failed, Running


PEAK_RUNS = 8  # three milliseconds each


@dataclasses.dataclass(frozen=True)
class Settings:
    threads: int = 2
    rounds: int = 7
    seconds: float = 1.5         # a round of one contender takes about so long, or one step
    warm_up_seconds: float = 20  # at most, until two runs differ by less than 5 %
    memory_mib: float = 8192     # of all contenders of a heat together
    patience: float = 900        # for one answer
    busy: bool = True            # measure again beside a program that keeps one processor busy


def say(text):
    print(text, file=sys.stderr, flush=True)


def processors(threads):
    return set(sorted(os.sched_getaffinity(0))[:threads])


@contextlib.contextmanager
def busy_loop(threads):
    """On the contenders' processors, of which it takes one."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(process.pid, processors(threads))
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def busy_seconds():
    """Processor seconds that the whole machine has worked."""
    fields = [int(v) for v in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def first_step(contender, cache, settings):
    running = Running(contender, cache, settings.patience, processors(settings.threads))
    try:
        said = running.run(1)
        return {"version": running.version, "cold_ms": said["ms"][0], "peak_mib": said["peak_mib"]}
    finally:
        running.end()


def packed(names, peaks, memory):
    """Heats of names: the first name in all of them, the others in order, as many as fit."""
    first, *others = names
    heats, free = [[first]], memory - peaks[first]
    for name in others:
        if peaks[name] > free and len(heats[-1]) > 1:
            heats.append([first])
            free = memory - peaks[first]
        heats[-1].append(name)
        free -= peaks[name]
    return heats


def warmed(running, part, settings):
    """Runs until it is steady, and says how many steps make a round."""
    began, before = time.monotonic(), None
    while True:
        count = 1 if before is None else max(1, min(50, math.ceil(0.3 * settings.seconds * 1e3 / before)))
        now = statistics.median(running.run(count, part)["ms"])
        steady = before is not None and abs(now / before - 1) < 0.05
        if steady or time.monotonic() - began > settings.warm_up_seconds:
            return max(1, min(500, math.ceil(settings.seconds * 1e3 / max(now, 1e-3))))
        before = now


def take_rounds(field, counts, part, condition, settings, entries, peak=None):
    """One record: by round, each contender's median, and the FMA peak of that round. One that fails is out of it, and
    its entry says why."""
    record = {"part": part, "condition": condition, "rounds": [], "peak_gflops": []}
    everyone = lambda: [*field.values(), peak] if peak else field.values()
    own = lambda: sum(running.processor_seconds() for running in everyone())
    began, worked, ours = time.monotonic(), busy_seconds(), own()
    for r in range(settings.rounds):
        names, taken = list(field), {}
        for name in names[r % len(names):] + names[:r % len(names)] if names else []:
            try:
                said = field[name].run(counts[name], part)
            except Failed as why:
                entries[name]["problem"] = str(why)
                field.pop(name).end()
                continue
            taken[name] = statistics.median(said["ms"])
            entries[name]["peak_mib"] = said["peak_mib"]
            entries[name]["loss"] = said.get("loss")
        record["rounds"].append(taken)
        if peak:
            # The third of eight: neither what another program disturbed nor one lucky run is the machine's peak.
            record["peak_gflops"].append(1e3 / sorted(peak.run(PEAK_RUNS)["ms"])[PEAK_RUNS // 4])
    elapsed = time.monotonic() - began
    others = busy_seconds() - worked - (own() - ours) - (elapsed if condition == "busy" else 0)
    record["others_used_cores"] = round(max(0.0, others) / elapsed, 3) if elapsed > 0 else 0
    return record


def started(reference, settings):
    """The process that tells the FMA peak; None without one, or on a processor that it cannot tell it of."""
    try:
        return Running(reference, "", settings.patience, processors(settings.threads)) if reference else None
    except Failed as why:
        say(f"  {reference.name}: {why}; shares are of the probes before and after")
        return None


def run_heat(workload, contenders, caches, settings, entries, reference=None):
    field, records, peak = {}, [], None
    try:
        peak = started(reference, settings)
        for c in contenders:
            try:
                field[c.name] = Running(c, caches[c.name], settings.patience, processors(settings.threads))
                entries[c.name]["version"] = field[c.name].version
                if not workload.in_parts():
                    entries[c.name].setdefault("warm_ms", field[c.name].run(1)["ms"][0])
            except Failed as why:
                entries[c.name]["problem"] = str(why)
                if c.name in field:
                    field.pop(c.name).end()
        for part in workload.parts():
            if part:
                say(f"  {part}")
            counts = {}
            for name in list(field):
                try:
                    counts[name] = warmed(field[name], part, settings)
                except Failed as why:
                    entries[name]["problem"] = str(why)
                    field.pop(name).end()
            records.append(take_rounds(field, counts, part, "quiet", settings, entries, peak))
            if settings.busy and not workload.in_parts():
                with busy_loop(settings.threads):
                    records.append(take_rounds(field, counts, part, "busy", settings, entries))
    finally:
        for running in field.values():
            running.end()
        if peak:
            peak.end()
    return records


def contest(workload, contenders, settings, reference=None):
    """{"contenders": name -> entry, "records": [...]}: everything that was measured of one workload. `reference` is
    asked in every quiet round what a GFLOP takes at the FMA peak: clocks move by some percent within minutes."""
    if workload.in_parts():  # many parts, each a few milliseconds
        settings = dataclasses.replace(settings, seconds=settings.seconds / 10, warm_up_seconds=2)
    entries = {c.name: {"peer": c.peer} for c in contenders}
    root = pathlib.Path(tempfile.mkdtemp(prefix="fusejit-bench-"))
    caches = {c.name: root / str(i) for i, c in enumerate(contenders)}
    try:
        for c in contenders:
            caches[c.name].mkdir()
            if workload.in_parts():
                entries[c.name]["peak_mib"] = 1024  # a layer at a time; replaced by what is measured
                continue
            try:
                entries[c.name].update(first_step(c, caches[c.name], settings))
                say(f"  {c.name}: first step {entries[c.name]['cold_ms'] / 1e3:.2f} s")
            except Failed as why:
                entries[c.name]["problem"] = str(why)
                say(f"  {c.name}: {why}")
        running = [c for c in contenders if "problem" not in entries[c.name]]
        records = []
        if running:
            peaks = {c.name: entries[c.name]["peak_mib"] for c in running}
            for names in packed([c.name for c in running], peaks, settings.memory_mib):
                say(f"  together: {', '.join(names)}")
                records += run_heat(workload, [c for c in running if c.name in names], caches, settings, entries,
                                    reference)
        return {"key": workload.key, "contenders": entries, "records": records}
    finally:
        shutil.rmtree(root, ignore_errors=True)
