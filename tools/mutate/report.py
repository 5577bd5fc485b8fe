"""What a run says: a line a mutant, and the table of docs/testing.md."""

import json

HOW = ("wrong result", "refused", "crashed", "hung")
BEGIN, END = "<!-- mutants: written by tools/mutate -->", "<!-- end of mutants -->"


def area(file):
    """The folder that a mutant counts for."""
    parts = file.split("/")
    if parts[:2] == ["scheduler", "lower"]:
        return "scheduler/lower/cuda" if parts[2] == "cuda" else "scheduler/lower"
    return parts[0] if parts[0] in ("scheduler", "runtime") else "/".join(parts[:2])


def save(path, outcomes):
    """Outcomes by id: a run of a few updates those of a run of all."""
    known = json.loads(path.read_text()) if path.is_file() else {}
    known.update({m.id: vars(o) for m, o in outcomes})
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def table(mutants, outcomes):
    """Markdown: mutants and what became of them, by folder; then every survivor with its sentence."""
    by_area = {}
    for m in mutants:
        if m.id in outcomes:
            by_area.setdefault(area(m.file), []).append((m, outcomes[m.id]))
    lines = ["| folder | edits | killed | " + " | ".join(HOW) + " |", "| --- |" + " ---: |" * (len(HOW) + 2)]

    def row(name, all_of_it):
        counts = [sum(o["how"] == how for _, o in all_of_it) for how in HOW]
        return f"| {name} | {len(all_of_it)} | {sum(counts)} | " + " | ".join(str(c or "") for c in counts) + " |"

    lines += [row(name, rows) for name, rows in sorted(by_area.items())]
    everything = [pair for rows in by_area.values() for pair in rows]
    lines.append(row("all", everything))
    killed = sum(o["how"] != "survived" for _, o in everything)
    lines += ["", f"{killed} of {len(everything)} are killed, {100 * killed / len(everything):.1f} %."]
    new = [m.id for m in mutants if m.id not in outcomes]
    if new:
        lines += ["", f"Not run yet: {', '.join(f'`{id}`' for id in new)}."]
    survivors = [m for m, o in everything if o["how"] == "survived"]
    if survivors:
        lines += ["", "Survivors:", ""]
        lines += [f"- `{m.id}` ({m.file}; {m.mistake}): {m.harmless or 'a test is missing.'}" for m in survivors]
    return "\n".join(lines)


def write_between_markers(path, text):
    page = path.read_text(encoding="utf-8")
    assert page.count(BEGIN) == 1 and page.count(END) == 1, f"{path} lacks its markers"
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
