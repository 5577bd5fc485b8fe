"""From raw rounds to figures: medians, ratios of times of the same round, parts of the machine's peak."""

import dataclasses
import statistics


def quantile(values, q):
    ordered = sorted(values)
    return ordered[round((len(ordered) - 1) * q)]


@dataclasses.dataclass(frozen=True)
class Row:
    """A contender in one workload, or in one part of it. None: not measured."""

    name: str
    peer: bool
    version: str = ""
    problem: str = ""
    ms: float | None = None
    low: float | None = None      # of nine rounds in ten
    high: float | None = None
    ratio: float | None = None    # time in units of the best peer's
    of_peak: float | None = None  # 1: arithmetic at the FMA peak
    peak_mib: float | None = None
    cold_ms: float | None = None
    warm_ms: float | None = None
    busy_ms: float | None = None
    busy_ratio: float | None = None


def rounds_of(result, part="", condition="quiet"):
    return [r for record in result["records"] if (record["part"], record["condition"]) == (part, condition)
            for r in record["rounds"]]


def times(result, name, part="", condition="quiet"):
    return [r[name] for r in rounds_of(result, part, condition) if name in r]


def relative(result, part="", condition="quiet"):
    """By name: time in units of the contender that is in every heat, the median over rounds that both ran in."""
    rounds = rounds_of(result, part, condition)
    reference = next((name for name in result["contenders"] if any(name in r for r in rounds)), None)
    ratios = {}
    for name in result["contenders"]:
        both = [r[name] / r[reference] for r in rounds if name in r and reference in r]
        if both:
            ratios[name] = statistics.median(both)
    return ratios


def ratios_to_best_peer(result, part="", condition="quiet"):
    """By name: time in units of that of the fastest peer. Empty if no peer ran."""
    units = relative(result, part, condition)
    of_peers = [units[name] for name, entry in result["contenders"].items() if entry["peer"] and name in units]
    return {name: unit / min(of_peers) for name, unit in units.items()} if of_peers else {}


def best_peer(result, part="", condition="quiet"):
    ratios = ratios_to_best_peer(result, part, condition)
    named = [name for name in ratios if result["contenders"][name]["peer"]]
    return min(named, key=ratios.get) if named else None


def peak_gflops(result):
    """FMA peak of all rounds, their median; None where it was not measured in turn."""
    peaks = [peak for record in result["records"] for peak in record.get("peak_gflops", [])]
    return statistics.median(peaks) if peaks else None


def of_peak(result, name, gflop, probed_gflops, part=""):
    """GFLOP of a step at the peak, in units of what the step takes: the median of rounds, each with the peak of its own
    (`probed_gflops` where rounds have none). None if nothing is known."""
    shares = []
    for record in result["records"]:
        if (record["part"], record["condition"]) != (part, "quiet"):
            continue
        peaks = record.get("peak_gflops") or [probed_gflops] * len(record["rounds"])
        shares += [gflop / r[name] * 1e3 / peak for r, peak in zip(record["rounds"], peaks)
                   if name in r and gflop and peak]
    return statistics.median(shares) if shares else None


def rows(result, gflop=None, probed_gflops=None, part=""):
    """All contenders in the order they were named, those that failed too."""
    quiet, busy = ratios_to_best_peer(result, part), ratios_to_best_peer(result, part, "busy")
    found = []
    for name, entry in result["contenders"].items():
        row = Row(name, entry["peer"], entry.get("version", ""), entry.get("problem", ""),
                  cold_ms=entry.get("cold_ms"), warm_ms=entry.get("warm_ms"))
        taken, beside = times(result, name, part), times(result, name, part, "busy")
        if taken:
            ms = statistics.median(taken)
            row = dataclasses.replace(
                row, ms=ms, low=quantile(taken, 0.05), high=quantile(taken, 0.95), ratio=quiet.get(name),
                of_peak=of_peak(result, name, gflop, probed_gflops, part),
                peak_mib=entry.get("peak_mib"))
        if beside:
            row = dataclasses.replace(row, busy_ms=statistics.median(beside), busy_ratio=busy.get(name))
        found.append(row)
    return found


def floor_ms(gflop, mib, peak, products=1):
    """What arithmetic takes at the FMA peak, or with so many times as many products at a time, and what bytes take at
    the speed of a copy."""
    return (gflop / peak["gflops"] / products * 1e3 if gflop and peak["gflops"] else None,
            mib * 2**20 / peak["gigabytes_per_second"] * 1e-6 if mib and peak["gigabytes_per_second"] else None)


def machine(data, result):
    """What the machine was seen to do: arithmetic in the rounds of this workload, else, like bytes, the better of the
    probes before and after."""
    best = {key: max(peak[key] for peak in data["peak"].values()) for key in ("gflops", "gigabytes_per_second")}
    return {**best, "gflops": peak_gflops(result) or best["gflops"]}


def layer_sums(result, layers, batch, direction, probed_gflops=None):
    """By name: (milliseconds, part of the peak) of one pass of all convolutions, each as often as it is in the network;
    only of contenders that ran all of them."""
    sums = {}
    for name in result["contenders"]:
        ms = at_peak = 0.0
        for layer in layers:
            taken = times(result, name, layer.part(direction, batch))
            if not taken:
                if direction == "dx" and layer.channels == 3:
                    continue
                break
            took = layer.count * statistics.median(taken)
            ms += took
            share = of_peak(result, name, layer.gflop(batch), probed_gflops, layer.part(direction, batch))
            at_peak = None if share is None or at_peak is None else at_peak + share * took
        else:
            sums[name] = (ms, at_peak / ms if at_peak and ms else None)
    return sums
