"""How a contender in Python speaks with bench/cpu.py; bench/peers/README.md describes the lines."""

import json
import pathlib
import sys
import time


def resident_mib(field):
    """`VmRSS` is what the process holds now, `VmHWM` the most it held."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def options(parser):
    """What every contender is told about the workload, beside what `parser` has already."""
    parser.add_argument("--net", default="resnet50", help="resnet50, resnet18, mobilenet_v2, convnet, layers or patterns")
    parser.add_argument("--mode", choices=["train", "serve", "layers", "patterns"], default="train")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def serve(name, step, held_before):
    """Answers each line `run N PART` until there are no more. `step(part)` does one whole step and gives its loss or
    None; whatever it prepares in its first call counts as the first step's. `held_before`: MiB before anything was
    made."""
    answer = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is no answer

    def say(line):
        print(json.dumps(line), file=answer, flush=True)

    say({"ready": name})
    for line in sys.stdin:
        _, count, *part = line.split(maxsplit=2)
        part = part[0].strip() if part else ""
        milliseconds, loss = [], None
        try:
            for _ in range(int(count)):
                begin = time.perf_counter()
                loss = step(part)
                milliseconds.append((time.perf_counter() - begin) * 1e3)
        except Exception as error:  # whatever a version of a peer cannot do
            say({"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"})
            continue
        say({"ms": milliseconds, "peak_mib": resident_mib("VmHWM") - held_before, "loss": loss})
