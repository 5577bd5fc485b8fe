"""The figures as one SVG: a panel a network, a bar a contender; a dashed line is the arithmetic's floor."""

from xml.sax.saxutils import escape

from contest import summary
from contest.table import number, ratio
from contest.workloads import is_in_parts

COLUMN, NAME, BAR, LINE, GAP = 640, 310, 208, 17, 46
STYLE = """
text { font: 12px sans-serif; fill: #222 } .title { font-weight: bold } .problem { fill: #888; font-style: italic }
.own { fill: #d1495b } .peer { fill: #9aa5b1 } .best { fill: #30638e } .floor { stroke: #222; stroke-dasharray: 3 2 }
"""


def panel(data, w, left, top):
    """SVG elements, and the height they take."""
    peak = summary.machine(data, w)
    rows = summary.rows(w, w.get("gflop"), peak["gflops"])
    longest = max((row.ms for row in rows if row.ms is not None), default=1.0)
    best, scale = summary.best_peer(w), BAR / longest
    out = [f'<text class="title" x="{left}" y="{top}">{escape(w["title"])}, ms</text>']
    y = top + 8
    for row in rows:
        middle = y + 12
        out.append(f'<text x="{left + NAME - 6}" y="{middle}" text-anchor="end">{escape(row.name)}</text>')
        if row.ms is None:
            why = escape(row.problem[:48] or "no round")
            out.append(f'<text class="problem" x="{left + NAME}" y="{middle}">{why}</text>')
        else:
            kind = "own" if not row.peer else "best" if row.name == best else "peer"
            width = row.ms * scale
            said = number(row.ms) + (f" ({ratio(row.ratio)})" if row.ratio is not None else "")
            out.append(f'<rect class="{kind}" x="{left + NAME}" y="{y + 2}" width="{width:.1f}" height="{LINE - 4}"/>')
            out.append(f'<text x="{left + NAME + width + 4:.1f}" y="{middle}">{said}</text>')
        y += LINE
    floor, _ = summary.floor_ms(w.get("gflop"), None, peak, w.get("products", 1))
    if floor is not None and floor <= longest:
        x = left + NAME + floor * scale
        out.append(f'<line class="floor" x1="{x:.1f}" y1="{top + 8}" x2="{x:.1f}" y2="{y}"/>')
    return out, y - top + GAP - 8


def svg(data):
    """Two columns; the next panel goes where there is more room."""
    bottoms, out = [30, 30], []
    for w in data["workloads"]:
        if is_in_parts(w["mode"]):
            continue
        column = bottoms.index(min(bottoms))
        elements, height = panel(data, w, 10 + column * COLUMN, bottoms[column])
        out += elements
        bottoms[column] += height
    height = max(bottoms)
    note = (f"{data['processor']}, {data['threads']} threads, {data['date']}. In brackets: ratio to the best peer "
            "(blue). Dashed: the floor of the arithmetic.")
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * COLUMN}" height="{height}" '
        f'viewBox="0 0 {2 * COLUMN} {height}">',
        f"<style>{STYLE}</style>", '<rect width="100%" height="100%" fill="white"/>', *out,
        f'<text x="10" y="{height - 12}">{escape(note)}</text>', "</svg>"]) + "\n"
