#!/usr/bin/env python3
"""fusejit beside other frameworks on this processor: ./dev bench cpu [--peers].

Every contender is a process that answers lines (bench/peers/README.md). Each is started once with an empty cache, for
its first step; then those that fit into memory together run in turn, round by round, first quietly and then beside a
busy loop. The FMA peak is measured in each round, peak and bandwidth before and after. Writes results.json (every
round), table.md and table.svg; with --write also docs/performance.md, between its marks, and docs/performance-cpu.svg.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from contest import heats, picture, table, workloads

ROOT = workloads.ROOT
TCMALLOC = "libtcmalloc_minimal.so.4"
PROGRAMS = ("network_contender", "layer_contender", "pattern_contender", "machine_peak", "fusejit-dump")


def processor():
    """What /proc/cpuinfo says of the first one."""
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return fields


def processor_name():
    fields = processor()
    return f"{fields.get('model name')} (family {fields.get('cpu family')}, model {fields.get('model')})"


def tcmalloc():
    """Its path, or nothing."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True, check=False).stdout
    return next((line.split("=>")[1].strip() for line in listed.splitlines() if TCMALLOC in line), "")


def available_mib():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable:"))


def probe(programs, threads):
    command = [str(programs / "machine_peak"), "--threads", str(threads)]
    environment = {**os.environ, "FUSEJIT_CACHE": "off"}
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def work_of(workload, programs):
    """GFLOP of fusejit's plan of a step (all ops, recomputed ones too), MiB that any plan moves at least, and how many
    times as many products as FMAs the processor starts at a time."""
    if workload.in_parts():
        return {}
    command = [str(programs / "fusejit-dump"), "show", workload.source(), "--dtype", workload.dtype, "--no-compile",
               "--format", "json"]
    shown = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    dot_products = workload.dtype == "bf16" and "avx512_bf16" in processor().get("flags", "").split()
    return {"gflop": sum(kernel["flop"] for kernel in shown["kernels"]) * 1e-9, "mib": shown["bound_bytes"] / 2**20,
            "products": 2 if dot_products else 1}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    keys = [w.key for w in workloads.WORKLOADS]
    parser.add_argument("--peers", action="store_true", help="measure the peers too (bench/peers/setup.sh first)")
    parser.add_argument("--workloads", default="", help=f"of {', '.join(keys)}: those with one of these in their name")
    parser.add_argument("--contenders", default="", help="regular expression of peers' names; fusejit always runs")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one contender in one round, or one step")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--memory", type=float, help="GiB that contenders may hold together (half of what is free)")
    parser.add_argument("--quick", action="store_true", help="three short rounds, nothing beside a busy loop")
    parser.add_argument("--list", action="store_true", help="workloads and contenders, and measure nothing")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / ".venv" / "bin" / "python", help="of the peers")
    parser.add_argument("--render", type=pathlib.Path, nargs="+", help="no measuring: tables of these results.json")
    parser.add_argument("--write", action="store_true", help="into docs/performance.md too")
    options = parser.parse_args()
    wanted = [w for w in options.workloads.split(",") if w]
    for word in wanted:
        if not any(word in key for key in keys):
            parser.error(f"--workloads {word}: none of {', '.join(keys)}")
    if options.rounds < 1 or options.threads < 1:
        parser.error(f"--rounds {options.rounds} --threads {options.threads}: both must be at least 1")
    options.chosen = [w for w in workloads.WORKLOADS if not wanted or any(word in w.key for word in wanted)]
    return options


def contenders_of(workload, options):
    found = workloads.own(workload, options.programs, options.threads)
    if options.peers:
        found += [c for c in workloads.peers(workload, options.python, options.threads, tcmalloc())
                  if re.search(options.contenders, c.name)]
    return found


def measure(options):
    memory = options.memory * 1024 if options.memory else available_mib() / 2
    settings = heats.Settings(options.threads, options.rounds, options.seconds, memory_mib=memory)
    if options.quick:
        settings = heats.Settings(options.threads, min(3, options.rounds), 0.2, 4, memory_mib=memory, busy=False)
    data = {"date": datetime.date.today().isoformat(), "processor": processor_name(), "threads": options.threads,
            "rounds": settings.rounds, "peak": {"before": probe(options.programs, options.threads)}, "workloads": []}
    for workload in options.chosen:
        heats.say(workload.title)
        began = time.monotonic()
        about = {"title": workload.title, "mode": workload.mode, "batch": workload.batch,
                 **work_of(workload, options.programs)}
        result = heats.contest(workload, contenders_of(workload, options), settings,
                               workloads.reference(options.programs, options.threads))
        about["seconds"] = round(time.monotonic() - began)
        heats.say(f"  {about['seconds']} s")
        data["workloads"].append({**about, **result})
        # What was measured so far is kept, should the run end early.
        data["peak"]["after"] = probe(options.programs, options.threads)
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "results.json").write_text(json.dumps(data, indent=1) + "\n")
    return data


def joined(files):
    """Results of several runs as those of one: later ones take the place of earlier ones, workload by workload."""
    runs = [json.loads(file.read_text()) for file in files]
    by_key = {w["key"]: w for run in runs for w in run["workloads"]}
    order = [w.key for w in workloads.WORKLOADS]
    peaks = [peak for run in runs for peak in run["peak"].values()]
    return {**runs[-1], "workloads": sorted(by_key.values(), key=lambda w: order.index(w["key"])),
            "peak": {"before": peaks[0], "after": peaks[-1]}}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exception: contenders that are stopped would stay
    options = arguments()
    if options.list:
        for workload in options.chosen:
            print(f"{workload.key}: {workload.title}")
            for contender in contenders_of(workload, options):
                print(f"    {contender.name}" + (f": {contender.problem}" if contender.problem else ""))
        return 0
    missing = [name for name in PROGRAMS if not (options.programs / name).exists()]
    if missing and not options.render:
        print(f"cpu.py: no {', '.join(missing)} in {options.programs}; ./dev bench cpu builds them", file=sys.stderr)
        return 2
    data = joined(options.render) if options.render else measure(options)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "table.md").write_text(table.markdown(data, "table.svg"))
    (options.output / "table.svg").write_text(picture.svg(data))
    if options.write:
        document = ROOT / "docs" / "performance.md"
        document.write_text(table.rewritten(document.read_text(), table.markdown(data, "performance-cpu.svg")))
        (ROOT / "docs" / "performance-cpu.svg").write_text(picture.svg(data))
    print(table.markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
