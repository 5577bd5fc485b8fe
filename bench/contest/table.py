"""The figures as Markdown, and where they go in docs/performance.md."""

from contest import summary
from contest.workloads import PASSES, is_in_parts, patterns, resnet50_layers

BEGIN, END = "<!-- bench cpu: written by ./dev bench cpu -->", "<!-- end of bench cpu -->"
PASS_NAMES = {"forward": "forward", "dx": "input gradient", "dw": "weight gradient"}


def number(value, digits=3):
    """So many digits that count: 1234, 123, 12.3, 1.23."""
    if value is None:
        return ""
    whole = len(str(int(abs(value))))
    return f"{value:,.{max(0, digits - whole)}f}"


def ratio(value):
    return "" if value is None else f"{value:.2f}"


def percent(value):
    return "" if value is None else f"{100 * value:.0f}"


def table(head, body, right=True):
    line = ["---", *["---:" if right else "---"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, line, *body])


def bold(text, on):
    return f"**{text}**" if on and text else text


def overview(data):
    body = []
    for w in data["workloads"]:
        if is_in_parts(w["mode"]):
            continue
        rows = {row.name: row for row in all_rows(data, w)}
        best = summary.best_peer(w)
        own = [row for row in rows.values() if not row.peer and row.ms is not None]
        fastest = min(own, key=lambda row: row.ms) if own else None
        other = own[1] if len(own) > 1 else None
        body.append([w["title"], number(own[0].ms) if own else "", number(other.ms) if other else "",
                     f"{best}: {number(rows[best].ms)}" if best else "none ran",
                     ratio(own[0].ratio) if own else "", ratio(other.ratio) if other else "",
                     percent(fastest.of_peak) if fastest else "", ratio(fastest.busy_ratio) if fastest else ""])
    head = ["a step of", "fusejit, ms", "with Winograd", "best peer, ms", "ratio", "with Winograd", "% of peak",
            "ratio beside a busy loop"]
    return table(head, body) if body else ""


def all_rows(data, w, part=""):
    return summary.rows(w, w.get("gflop"), summary.machine(data, w)["gflops"], part)


def workload_rows(data, w):
    """The heading row with the floor, then a row a contender."""
    arithmetic, bytes_ms = summary.floor_ms(w.get("gflop"), w.get("mib"), summary.machine(data, w),
                                            w.get("products", 1))
    floors = [f"{number(w.get(key))} {unit} in {number(ms)} ms" for key, unit, ms in
              (("gflop", "GFLOP", arithmetic), ("mib", "MiB", bytes_ms)) if ms is not None]
    body = [[f"**{w['title']}**" + (f"; floor: {', '.join(floors)}" if floors else "")] + [""] * 8]
    for row in all_rows(data, w):
        if row.ms is None:
            body.append([row.name, "not measured: " + (row.problem or "no round").replace("|", "/")] + [""] * 7)
            continue
        first = [number(ms / 1e3) if ms is not None else "" for ms in (row.cold_ms, row.warm_ms)]
        note = f" (then: {row.problem})".replace("|", "/") if row.problem else ""
        body.append([bold(row.name, not row.peer) + note, number(row.ms), f"{number(row.low)}–{number(row.high)}",
                     bold(ratio(row.ratio), not row.peer), percent(row.of_peak), number(row.peak_mib),
                     "; ".join(first), number(row.busy_ms), ratio(row.busy_ratio)])
    return body


def network_table(data):
    head = ["contender", "ms", "90 % of rounds", "ratio to best peer", "% of FMA peak", "memory, MiB",
            "first step, s: cold; warm", "beside a busy loop, ms", "ratio there"]
    body = [row for w in data["workloads"] if not is_in_parts(w["mode"]) for row in workload_rows(data, w)]
    return table(head, body) if body else ""


def layer_tables(data, w):
    """Sums of each pass by contender, then fusejit's figures layer by layer."""
    layers, peak = resnet50_layers(), summary.machine(data, w)["gflops"]
    sums = {p: summary.layer_sums(w, layers, w["batch"], p, peak) for p in PASSES}
    body = []
    for name, entry in w["contenders"].items():
        if not any(name in of_pass for of_pass in sums.values()):
            body.append([name, "not measured: " + entry.get("problem", "no round").replace("|", "/")] + [""] * 8)
            continue
        cells = [bold(name, not entry["peer"])]
        for of_pass in sums.values():
            ms, share = of_pass.get(name, (None, None))
            best = min((of_pass[n][0] for n in of_pass if w["contenders"][n]["peer"]), default=None)
            cells += [number(ms), percent(share), ratio(ms / best) if ms and best else ""]
        body.append(cells)
    head = ["all convolutions"] + [cell for p in PASSES for cell in (f"{PASS_NAMES[p]}, ms", "% of peak", "ratio")]
    out = [f"### {w['title']}", table(head, body)]
    own = [name for name, entry in w["contenders"].items() if not entry["peer"]]
    body = []
    for layer in layers:
        cells = [layer.label() + (f" ({layer.count} times)" if layer.count > 1 else "")]
        for name in own:
            for p in PASSES:
                part = layer.part(p, w["batch"])
                row = next(r for r in summary.rows(w, layer.gflop(w["batch"]), peak, part) if r.name == name)
                said = [number(row.ms), percent(row.of_peak), ratio(row.ratio)]
                cells.append("; ".join(v for v in said if v))
        body.append(cells)
    head = ["layer: ms; % of peak; ratio"] + [f"{name}: {PASS_NAMES[p]}" for name in own for p in PASSES]
    return "\n\n".join(out + [table(head, body)])


def pattern_table(data, w):
    """Each pattern a row: the best peer's milliseconds, then fusejit's, with and without Winograd."""
    peak = summary.machine(data, w)["gflops"]
    own = [name for name, entry in w["contenders"].items() if not entry["peer"]]
    body = []
    for pattern in patterns():
        part = pattern.part(w["batch"])
        rows = {row.name: row for row in summary.rows(w, pattern.gflop(w["batch"]), peak, part)}
        best = summary.best_peer(w, part)
        cells = [pattern.label(), f"{best}: {number(rows[best].ms)}" if best else "none ran"]
        for name in own:
            said = [number(rows[name].ms), percent(rows[name].of_peak), ratio(rows[name].ratio)]
            cells.append("; ".join(v for v in said if v))
        body.append(cells)
    out = [f"### {w['title']}", table(["layers, channels @ pixels a side", "best peer, ms"] +
                                      [f"{name}: ms; % of peak; ratio" for name in own], body)]
    failed = [f"{name} was not measured: {entry['problem']}" for name, entry in w["contenders"].items()
              if entry.get("problem")]
    return "\n\n".join(out + [". ".join(failed) + "."] * bool(failed))


def versions(data):
    named = {entry["version"] for w in data["workloads"] for entry in w["contenders"].values() if entry.get("version")}
    return ", ".join(sorted(named - {"fusejit"})) or "none"


def markdown(data, picture=None):
    before, after = data["peak"]["before"], data["peak"]["after"]
    in_turn = [peak for w in data["workloads"] for record in w["records"] for peak in record.get("peak_gflops", [])]
    low, high = (number(summary.quantile(in_turn, q)) for q in (0.1, 0.9)) if in_turn else ("", "")
    moved = f" ({low} to {high} in eight of ten rounds)" if in_turn else ""
    others = [record["others_used_cores"] for w in data["workloads"] for record in w["records"]]
    intro = (
        f"{data['date']}, {data['processor']}, {data['threads']} threads. FMA peak before and after "
        f"{number(before['gflops'])} and {number(after['gflops'])} GFLOP/s{moved}, copying "
        f"{number(before['gigabytes_per_second'])} and {number(after['gigabytes_per_second'])} GB/s. Peers: "
        f"{versions(data)}. Medians of {data['rounds']} rounds in turn; a ratio is one of times of the same round, and "
        f"below 1 is faster than the best peer. Other programs used "
        f"{number(summary.quantile(others, 0.5) if others else 0, 2)} cores meanwhile (median; at most "
        f"{number(max(others, default=0), 2)}). % of the peak is of that of the same "
        "round and counts the products of the direct convolution: Winograd may exceed 100, and so may bf16, whose "
        "products are twice as fast. Memory is the growth of the process from its start, with everything it loads, to "
        "its largest size.")
    parts = [intro, overview(data), f"![Milliseconds of a step]({picture})" if picture else "", network_table(data)]
    parts += [layer_tables(data, w) for w in data["workloads"] if w["mode"] == "layers"]
    parts += [pattern_table(data, w) for w in data["workloads"] if w["mode"] == "patterns"]
    return "\n\n".join(part for part in parts if part) + "\n"


def rewritten(document, text):
    """The document with `text` between the marks. ValueError if they are not there, once each, in order."""
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise ValueError(f"the document has no '{BEGIN}' followed by '{END}', once each")
    before, rest = document.split(BEGIN)
    return f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}"
