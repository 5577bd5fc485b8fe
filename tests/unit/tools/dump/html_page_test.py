#!/usr/bin/env python3
"""fusejit-dump html: the page is well-formed, needs nothing, has every kernel, and nobody's text becomes its markup."""

import json
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from dump_program import Case, Plan, run, text

SOURCES = [["convnet@4:train", "--no-asm"], ["convnet@4", "--target", "cuda:sm_90", "--no-asm"],
           ["convnet@4:train", "--rules", "none", "--no-asm"]]


def page_of(*arguments):
    return ElementTree.fromstring(text("html", *arguments))


def words(element):
    return "".join(element.itertext())


class Pages(Case):
    def test_every_kernel_has_its_row_and_code(self):
        for source in [[self.graph, "--no-asm"], *SOURCES]:
            options = [o for o in source if o != "--no-asm"]
            page, plan = page_of(*source), Plan(*options)
            shown = json.loads(text("show", "--format", "json", *options))
            rows = {row.get("id"): row for row in page.iter("tr") if row.get("id")}
            self.assertEqual(sorted(rows), sorted(f"s{k['index']}" for k in plan.kernels), source)
            code = {d.get("id"): d for d in page.iter("details") if d.get("id")}
            for kernel in shown["kernels"]:
                row = rows[f"s{kernel['index']}"]
                self.assertEqual(row[1].find("a").text, kernel["name"])
                self.assertEqual(words(row[2]), ", ".join(kernel["written"]))
                self.assertEqual(row[2].get("title"), ", ".join(kernel["ops"]))
                self.assertEqual([float(row[c].get("data-v")) for c in (3, 4)],
                                 [kernel["read_bytes"], kernel["written_bytes"]])
                self.assertEqual(float(row[5].get("data-v")), float(f"{kernel['flop']:.9g}"))
                first = kernel.get("same_as", kernel["index"])
                self.assertEqual(row[1].find("a").get("href"), f"#k{first}")
                loops = code[f"k{first}"].find(".//pre").text
                self.assertTrue(loops.endswith(plan.texts[first]), kernel["name"])
            self.assertEqual(len(code), shown["different_kernels"], source)
            cards = [card.find("b").text for card in page.iter("div") if card.get("class") == "card"]
            self.assertEqual(cards[0], str(len(plan.kernels)), source)
            self.assertIn(f"{shown['ledger_bytes']:,} bytes", words(page), source)

    def test_what_was_not_fused_is_ranked(self):
        page, why = page_of("convnet@4:train", "--no-asm"), json.loads(text("why", "--format", "json", "convnet@4:train"))
        section = next(s for s in page.iter("section") if s.get("id") == "refused")
        rows = [[words(cell) for cell in row] for row in section.iter("tr") if row[0].tag == "td"]
        self.assertEqual([row[1:] for row in rows],
                         [[r["code"], r["producer"], r["consumer"], r["sentence"]] for r in why["refusals"]])

    def test_links_lead_somewhere_on_the_page(self):
        for source in SOURCES:
            page = page_of(*source)
            ids = [element.get("id") for element in page.iter() if element.get("id")]
            self.assertEqual(len(ids), len(set(ids)), source)
            for element in page.iter():
                self.assertIsNone(element.get("src"))
                self.assertNotIn(element.tag, ("link", "iframe", "img", "object", "embed"))
                if element.get("href"):
                    self.assertIn(element.get("href")[1:], ids, source)
                    self.assertEqual(element.get("href")[0], "#")

    def test_nothing_is_loaded(self):
        page = text("html", "convnet@4:train", "--no-asm")
        self.assertEqual(set(re.findall(r"https?://[^\s\"'<)]*", page)), {"http://www.w3.org/2000/svg"})
        self.assertNotIn("url(", page)
        self.assertNotIn("@import", page)
        self.assertIn("default-src 'none'", page)

    def test_nobodys_text_is_markup(self):
        name = "<script>alert(1)<b id='code'>&\"'.fj"
        self.write(name, (self.folder / "g.fj").read_text())
        path = str(self.folder / name)
        page = page_of(path, "--no-asm")
        self.assertEqual(len(list(page.iter("script"))), 1)
        self.assertIn(path, words(page))

    def test_code_is_there_where_it_is_asked_for(self):
        titles = lambda page: {caption.text for caption in page.iter("figcaption")}  # noqa: E731
        self.assertEqual(titles(page_of(self.graph, "--no-asm")), {"loops"})
        self.assertEqual(titles(page_of(self.graph, "--target", "cuda:sm_90", "--no-asm")), {"loops", "CUDA C++"})
        with_code = run("html", self.graph, "--asm", "--target", "x86:avx2")
        if with_code.returncode == 4:
            self.skipTest(with_code.stderr.decode())
        page = ElementTree.fromstring(with_code.stdout.decode())
        self.assertEqual(titles(page), {"loops", "assembly"})
        self.assertIn("vmaxps", words(page))
        self.assertIn("code bytes", words(page))
        self.assertEqual(titles(page_of(self.graph, "--target", "x86:avx2")), {"loops", "assembly"})

    def test_measured_roofs(self):
        if "x86" not in text("show", self.graph):
            self.skipTest("this machine's arithmetic is measured on x86 alone")
        measured, plain = page_of(self.graph, "--measure", "--no-asm"), page_of(self.graph, "--no-asm")
        self.assertIn("least ms", words(measured))
        self.assertNotIn("least ms", words(plain))
        rows = [row for row in measured.iter("tr") if (row.get("id") or "").startswith("s")]
        self.assertTrue(rows)
        for row in rows:
            least, took, part = (float(cell.get("data-v")) for cell in row[-3:])
            self.assertGreater(least, 0)
            self.assertAlmostEqual(least / took, part, delta=1e-6 * part)
        shown = next(s for s in measured.iter("section") if s.get("id") == "times")
        self.assertEqual([rect for rect in plain.iter("section") if rect.get("id") == "times"], [])
        svg = "{http://www.w3.org/2000/svg}"
        widths = [float(r.get("width")) for r in shown.iter() if r.tag in ("rect", svg + "rect")]
        self.assertEqual(len(widths), len(rows))
        self.assertAlmostEqual(sum(widths), sum(float(row[-2].get("data-v")) for row in rows), delta=1e-4 * sum(widths))
        self.assertEqual(run("html", self.graph, "--measure", "--target", "cuda:sm_90").returncode, 1)

    def test_a_plan_without_kernels(self):
        page = page_of(self.write("none.fj", "graph @none(%x: f32[4]) {\n  return %x\n}\n"))
        self.assertIn("Every pair of neighbours is one kernel", words(page))

    def test_the_same_bytes_again(self):
        self.assertEqual(text("html", "convnet@4:train"), text("html", "convnet@4:train"))

    def test_large_plans_are_small_pages(self):
        out = self.folder / "r.html"
        text("html", "resnet50@16x3x224x224:train", "--target", "x86:avx2", "-o", out)
        self.assertLess(out.stat().st_size, 5_000_000)
        page = ElementTree.fromstring(out.read_text())
        self.assertGreater(len([row for row in page.iter("tr") if row.get("id")]), 285)
        self.assertNotIn("assembly", {caption.text for caption in page.iter("figcaption")})

    def test_mistakes(self):
        self.check_mistakes("html", [(1, [self.graph, "--format", "svg"])])
        cut = (self.folder / "g.fj").read_text()
        for end in range(0, len(cut) - 3, 7):
            answer = run("html", "--no-asm", self.write("cut.fj", cut[:end]))
            self.assertEqual((answer.returncode, answer.stdout), (2, b""), end)

    def test_a_browser_opens_it(self):
        browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
        if not browser:
            self.skipTest("no Chromium is here")
        out = self.folder / "page.html"
        text("html", "convnet@4:train", "--no-asm", "-o", out)
        answer = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/user",
                                 "--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom", f"file://{out}#k4"],
                                capture_output=True, check=False, timeout=120)
        if answer.returncode != 0 or not answer.stdout:
            self.skipTest("Chromium does not start: " + answer.stderr.decode()[-300:])
        page, errors = answer.stdout.decode(), answer.stderr.decode()
        self.assertRegex(page, r'<details id="k4"[^>]*open')
        self.assertNotRegex(page, r'<details id="k3"[^>]*open')
        for sign in ("Uncaught", "Refused to", "ERR_"):
            self.assertNotIn(sign, errors)


if __name__ == "__main__":
    unittest.main()
