#!/usr/bin/env python3
"""fusejit-dump graph: pictures are well-formed, have every kernel and every value in them, and nothing lies on anything."""

import re
import unittest
import xml.etree.ElementTree as ElementTree

from dump_program import Case, Plan, run, text

SVG = "{http://www.w3.org/2000/svg}"
SOURCES = [["convnet@4:train"], ["convnet@4:train", "--rules", "none"], ["mobilenet_v2@2x3x64x64"],
           ["convnet@4:train", "--target", "cuda:sm_90"]]


def boxes_of(svg):
    return {int(g.get("id")[1:]): g for g in svg.iter(SVG + "g") if (g.get("class") or "").startswith("box ") and g.get("id")}


def rectangle(box):
    return [float(box.find(SVG + "rect").get(side)) for side in ("x", "y", "width", "height")]


def flows_of(svg):
    """Sorted (from, to, name, bytes), from what a pointer is told and again from the attributes. What goes far is told at
    both of its ends."""
    found, starts, ends_of_far = [], [], []
    for group in svg.iter(SVG + "g"):
        if group.get("class") not in ("flow", "side"):
            continue
        lines = group.find(SVG + "title").text.split("\n")
        sizes = [int(size) for size in group.get("data-bytes").split()]
        for line, size in zip(lines, sizes, strict=True):
            ends, named = (f"{group.get('data-from')} to {group.get('data-to')}", line) if group.get(
                "class") == "flow" else line.split(": ", 1)
            name, said = re.fullmatch(r"(.*), (\d+) bytes", named).groups()
            assert int(said) == size, line
            a, b = (-1 if end in ("argument", "result") else int(end) for end in ends.split(" to "))
            far = group.get("class") == "side" and a >= 0 and b >= 0
            (found if not far else starts if group.get("data-from") else ends_of_far).append((a, b, name, size))
    assert sorted(starts) == sorted(ends_of_far)
    return sorted(found + starts)


class Pictures(Case):
    def test_every_kernel_and_value_of_the_plan(self):
        for source in [[self.graph], *SOURCES]:
            plan, svg = Plan(*source), ElementTree.fromstring(text("graph", *source))
            boxes = boxes_of(svg)
            self.assertEqual(sorted(boxes), list(range(len(plan.kernels))), source)
            for kernel in plan.kernels:
                said = boxes[kernel["index"]].find(SVG + "title").text
                for words in [f"{kernel['index']} {kernel['name']}", *kernel["ops"], *kernel["written"]]:
                    self.assertIn(words, said, source)
            self.assertEqual(flows_of(svg), plan.flows(), source)

    def test_every_op_as_recorded(self):
        for source in [[self.graph], *SOURCES]:
            svg = ElementTree.fromstring(text("graph", "--stage", "before", *source))
            nodes = re.findall(r"^  (%\d+ = .*?)(?:  ; .*)?$", text("source", "--stage", "graph", *source), re.M)
            boxes = boxes_of(svg)
            self.assertEqual([boxes[i].find(SVG + "title").text for i in range(len(boxes))], nodes, source)
            used = {(int(a), b) for b, node in enumerate(nodes) for a in re.findall(r"%(\d+)\b", node.split("=", 1)[1])}
            self.assertEqual({(a, b) for a, b, *_ in flows_of(svg) if a >= 0 and b >= 0}, used, source)

    def test_nothing_lies_on_anything(self):
        for source in SOURCES + [["resnet50@2x3x64x64:train"]]:
            svg = ElementTree.fromstring(text("graph", *source))
            width, height = float(svg.get("width")), float(svg.get("height"))
            rows = {}
            for number, box in boxes_of(svg).items():
                x, y, w, h = rectangle(box)
                self.assertTrue(0 <= x and x + w <= width and 0 <= y and y + h <= height, (source, number))
                rows.setdefault(y, []).append((x, x + w, y + h))
            for (y, row), after in zip(sorted(rows.items()), sorted(rows)[1:] + [height]):
                row.sort()
                self.assertTrue(all(a[1] < b[0] for a, b in zip(row, row[1:])), (source, y))
                self.assertTrue(all(bottom <= after for _, _, bottom in row), (source, y))
            for group in svg.iter(SVG + "g"):
                if group.get("class") == "flow":
                    ys = [float(y) for y in re.findall(r"[MC ](?:[\d.]+) ([\d.]+)", group.find(SVG + "path").get("d"))]
                    self.assertEqual(ys, sorted(ys), (source, group.get("data-from"), group.get("data-to")))

    def test_names_lead_to_boxes(self):
        svg = ElementTree.fromstring(text("graph", "resnet50@2x3x64x64:train"))
        boxes = boxes_of(svg)
        links = [a.get("href") for a in svg.iter(SVG + "a")]
        self.assertTrue(links)
        self.assertTrue({link for link in links} <= {f"#b{b}" for b in boxes})

    def test_dot_has_the_same_flows(self):
        for source in [[self.graph], *SOURCES]:
            flows = Plan(*source).flows()
            dot = text("graph", "--format", "dot", *source)
            found = [(-1 if a.startswith("in") else int(a[1:]), -1 if b.startswith("out") else int(b[1:]), name, int(size))
                     for a, b, name, size in re.findall(r'^  (\w+) -> (\w+) \[.*tooltip="(.*), (\d+) bytes"\];$', dot, re.M)]
            self.assertEqual(sorted(found), flows, source)
            self.assertEqual(dot.count("{"), dot.count("}"), source)
            for line in dot.split("\n"):
                self.assertEqual(len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2, 0, line)

    def test_files_say_their_format(self):
        for name, beginning in {"x.svg": "<svg ", "x.dot": "digraph ", "x.html": "<!DOCTYPE html>", "x": "<svg "}.items():
            path = self.folder / name
            self.assertEqual(text("graph", self.graph, "-o", path), "")
            self.assertTrue(path.read_text().startswith(beginning), name)
        ElementTree.fromstring((self.folder / "x.html").read_text())
        self.assertEqual(text("graph", self.graph, "--format", "dot", "-o", self.folder / "x.svg"), "")
        self.assertTrue((self.folder / "x.svg").read_text().startswith("digraph "))

    def test_the_same_bytes_again(self):
        for more in (["--format", "svg"], ["--format", "dot"], ["--stage", "before"]):
            self.assertEqual(text("graph", "convnet@4:train", *more), text("graph", "convnet@4:train", *more))

    def test_mistakes(self):
        self.check_mistakes("graph", [(1, [self.graph, "--format", "png"]), (1, [self.graph, "--stage", "middle"])])

    def test_too_large_is_said(self):
        lines = "".join(f"  %{i} = relu(%{'x' if i == 0 else i - 1}) : f32[2]\n" for i in range(20001))
        path = self.write("long.fj", "graph @g(%x: f32[2]) {\n" + lines + "  return %20000\n}\n")
        answer = run("graph", "--stage", "before", path)
        self.assertEqual(answer.returncode, 4)
        self.assertIn(b"20000 boxes at most, this one would have 20001", answer.stderr)
        self.assertIn("%20000 relu", text("graph", "--stage", "before", "--format", "dot", path))


if __name__ == "__main__":
    unittest.main()
