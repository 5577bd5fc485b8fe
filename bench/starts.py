#!/usr/bin/env python3
"""How long a first step waits, cold and warm, and what a warm-up takes with one worker and with more.

  bench/starts.py [--source resnet50@16x3x224x224:train] [--rounds 5] [--programs build/release/bin]

Each round has an empty cache of its own: a cold start, warm starts of new processes, then warm-ups into empty caches,
in turn. Medians, lowest and highest; all times in milliseconds.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time


def bench(program, source, folder, steps):
    environment = {**os.environ, "FUSEJIT_CACHE": "on", "FUSEJIT_CACHE_DIR": folder}
    command = [program, "bench", source, "--json", "--steps", str(steps)]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def warmup(program, source, folder, workers):
    environment = {**os.environ, "FUSEJIT_CACHE": "on", "FUSEJIT_CACHE_DIR": folder}
    command = [program, "warmup", source, "-j", str(workers)]
    start = time.monotonic()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return 1e3 * (time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", default="resnet50@16x3x224x224:train")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--programs", default=pathlib.Path(__file__).resolve().parent.parent / "build/release/bin")
    options = parser.parse_args()
    program = str(pathlib.Path(options.programs) / "fusejit")
    rows = {}

    def note(name, value):
        rows.setdefault(name, []).append(value)

    for _ in range(options.rounds):
        root = tempfile.mkdtemp()
        try:
            # A virtual machine may take pages back that nobody used for a while, and asking for them again costs
            # seconds: a run that is not counted has just had the memory of the next one.
            bench(program, options.source, f"{root}/b", 1)
            cold = bench(program, options.source, f"{root}/a", options.steps)
            warm = bench(program, options.source, f"{root}/a", options.steps)
            assert warm["kernels_compiled"] == 0 and warm["plans"] == warm["plans_loaded"], warm
            kernels = warm["kernels_loaded"]
            note("steady step", warm["median_ms"])
            note("cold: plan and kernels", cold["compile_ms"])
            note("cold: first step", cold["first_step_ms"])
            note("warm: plan and kernels", warm["compile_ms"])
            note("warm: a kernel", warm["compile_ms"] / kernels)
            note("warm: first step", warm["first_step_ms"])
            for workers in (1, options.workers):
                note(f"warm-up, {workers} workers", warmup(program, options.source, f"{root}/w{workers}", workers))
        finally:
            shutil.rmtree(root)
    print(f"{options.source}, {kernels} kernels, {options.rounds} rounds")
    print(f"{'':<28}{'median':>10}{'lowest':>10}{'highest':>10}")
    for name, values in rows.items():
        print(f"{name:<28}{statistics.median(values):>10.2f}{min(values):>10.2f}{max(values):>10.2f}")


if __name__ == "__main__":
    main()
