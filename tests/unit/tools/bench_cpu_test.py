#!/usr/bin/env python3
"""bench/cpu.py with contenders that are made up: who fails is named, ratios are those of one round, texts say so."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
from contest import heats, picture, summary, table, workloads  # noqa: E402

# A contender whose step takes as long as it says; argv: what it does wrong, milliseconds, a log of its runs.
FAKE = """
import json, sys
wrong, ms, log = sys.argv[1], float(sys.argv[2]), sys.argv[3]
if wrong == "dies": sys.exit("no such thing as a step")
print("a banner that is no answer")
print(json.dumps({"ready": "Fake 1.0"}), flush=True)
for ran, line in enumerate(sys.stdin):
    count = int(line.split()[1])
    open(log, "a").write(f"{ms:g} {line.strip()}\\n")
    if wrong == "silent": continue
    if wrong == "refuses": print(json.dumps({"error": "bf16 is not for me"}), flush=True); continue
    if wrong == "dies in a round" and ran == 4: sys.exit("enough")
    if wrong == "dies later" and count > 1: sys.exit("out of memory")
    print(json.dumps({"ms": [ms] * (0 if wrong == "short" else count), "peak_mib": 100, "loss": 0.5}), flush=True)
"""
WORKLOAD = workloads.Workload("w", "A network", "train", "resnet50", 1)
SETTINGS = heats.Settings(rounds=3, seconds=0.1, warm_up_seconds=1, patience=2, busy=False)


class Measuring(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.log = pathlib.Path(self.folder.name) / "log"
        self.addCleanup(self.folder.cleanup)

    def fake(self, name, ms, wrong="", peer=True, **more):
        command = (sys.executable, "-c", FAKE, wrong, str(ms), str(self.log))
        return workloads.Contender(name, command, peer, **more)

    def test_whoever_fails_is_named_with_the_reason_and_the_rest_goes_on(self):
        wrong = {"dies": "ended with 1: no such thing as a step", "refuses": "bf16 is not for me",
                 "silent": "no answer in 2 s", "short": "asked for 1 steps",
                 "dies later": "ended with 1: out of memory"}
        contenders = [self.fake("own", 50, peer=False), *(self.fake(name, 20, name) for name in wrong),
                      workloads.Contender("absent", ("/no/such/program",)),
                      self.fake("bare", 1, problem="not installed"), self.fake("peer", 100)]
        result = heats.contest(WORKLOAD, contenders, SETTINGS)
        wrong |= {"absent": "cannot be started", "bare": "not installed"}
        for name, reason in wrong.items():
            said = result["contenders"][name]["problem"]
            self.assertTrue(said.startswith(reason), said)
        rows = {row.name: row for row in summary.rows(result)}
        self.assertEqual([n for n, row in rows.items() if row.ms is not None], ["own", "peer"])
        self.assertEqual((rows["own"].ratio, rows["peer"].ratio), (0.5, 1.0))
        self.assertEqual((rows["own"].cold_ms, rows["own"].warm_ms, rows["own"].peak_mib), (50, 50, 100))
        text = table.markdown(data_of([result]))
        for name, reason in wrong.items():
            self.assertRegex(text, rf"\| {name} \| not measured: .*{reason}")

    def test_whoever_fails_in_a_round_keeps_the_rounds_before(self):
        contenders = [self.fake("own", 50, peer=False), self.fake("peer", 50, "dies in a round")]
        result = heats.contest(WORKLOAD, contenders, SETTINGS)
        self.assertEqual([len(r) for r in summary.rounds_of(result)], [2, 1, 1])
        self.assertIn("| peer (then: ended with 1: enough) | 50.0 |", table.markdown(data_of([result])))

    def test_rounds_are_in_turn_and_each_begins_with_another(self):
        contenders = [self.fake("a", 20, peer=False), self.fake("b", 40), self.fake("c", 60)]
        result = heats.contest(WORKLOAD, contenders, SETTINGS)
        orders = ["".join(r) for r in summary.rounds_of(result)]
        self.assertEqual(orders, ["abc", "bca", "cab"])
        ran = [line.split()[0] for line in self.log.read_text().splitlines()][-9:]
        self.assertEqual(ran, ["20", "40", "60", "40", "60", "20", "60", "20", "40"])
        counts = {line.split()[0]: line.split()[2] for line in self.log.read_text().splitlines()}
        self.assertEqual(counts, {"20": "5", "40": "3", "60": "2"})  # 100 ms of each

    def test_the_peak_is_measured_in_each_quiet_round(self):
        settings = heats.Settings(**{**vars(SETTINGS), "busy": True})
        result = heats.contest(WORKLOAD, [self.fake("a", 20, peer=False)], settings, self.fake("FMA peak", 5))
        self.assertEqual([r["peak_gflops"] for r in result["records"]], [[200.0] * 3, []])
        self.assertEqual(list(result["contenders"]), ["a"])

    def test_without_a_peak_in_turn_rounds_have_none(self):
        result = heats.contest(WORKLOAD, [self.fake("a", 20, peer=False)], SETTINGS, self.fake("FMA peak", 5, "dies"))
        self.assertEqual([(len(r["rounds"]), r["peak_gflops"]) for r in result["records"]], [(3, [])])
        self.assertEqual(summary.rows(result, gflop=10, probed_gflops=1000)[0].of_peak, 0.5)

    def test_beside_a_busy_loop_is_a_condition_of_its_own(self):
        settings = heats.Settings(**{**vars(SETTINGS), "busy": True})
        result = heats.contest(WORKLOAD, [self.fake("a", 20, peer=False), self.fake("b", 40)], settings)
        self.assertEqual([len(summary.rounds_of(result, "", c)) for c in ("quiet", "busy")], [3, 3])
        self.assertEqual(summary.rows(result)[0].busy_ratio, 0.5)

    def test_what_does_not_fit_together_runs_in_heats_with_the_first_in_each(self):
        peaks = {"own": 10, "a": 30, "b": 30, "c": 200, "d": 1}
        self.assertEqual(heats.packed(list(peaks), peaks, 80), [["own", "a", "b"], ["own", "c"], ["own", "d"]])
        self.assertEqual(heats.packed(["own"], peaks, 1), [["own"]])
        settings = heats.Settings(**{**vars(SETTINGS), "memory_mib": 200})
        contenders = [self.fake("own", 20, peer=False), self.fake("a", 40), self.fake("b", 10)]
        result = heats.contest(WORKLOAD, contenders, settings)
        self.assertEqual([sorted(record["rounds"][0]) for record in result["records"]], [["a", "own"], ["b", "own"]])
        self.assertEqual([row.ratio for row in summary.rows(result)], [2, 4, 1])


def result_of(rounds, peers, key="w", **more):
    """As heats.contest gives it; each list of rounds is a heat."""
    names = {name: None for heat in rounds for r in heat for name in r}
    records = [{"part": "", "condition": "quiet", "rounds": heat, "others_used_cores": 0.25} for heat in rounds]
    entries = {name: {"peer": name in peers, "peak_mib": 50, **more} for name in names}
    return {"key": key, "contenders": entries, "records": records}


def data_of(results, **about):
    peak = {"gflops": 200.0, "gigabytes_per_second": 20.0}
    shared = {"title": "A network", "mode": "train", "batch": 1, **about}
    return {"date": "2026-01-01", "processor": "a processor", "threads": 2, "rounds": 3,
            "peak": {"before": {**peak, "gflops": 190.0}, "after": peak},
            "workloads": [{**shared, **result} for result in results]}


class Figures(unittest.TestCase):
    def test_a_ratio_is_of_times_of_the_same_round(self):
        # The machine is three times as slow in the second heat: medians alone would call `b` the slower peer.
        rounds = [[{"own": 10, "a": 20}, {"own": 12, "a": 24}], [{"own": 30, "b": 45}, {"own": 36, "b": 54}]]
        result = result_of(rounds, {"a", "b"})
        self.assertEqual(summary.best_peer(result), "b")
        ratios = summary.ratios_to_best_peer(result)
        self.assertAlmostEqual(ratios["own"], 1 / 1.5)
        self.assertAlmostEqual(ratios["a"], 2 / 1.5)
        self.assertEqual(summary.ratios_to_best_peer(result_of(rounds, set())), {})

    def test_a_contender_that_stops_halfway_counts_only_rounds_it_was_in(self):
        ratios = summary.ratios_to_best_peer(result_of([[{"own": 10, "a": 20}, {"own": 10}, {"a": 90}]], {"a"}))
        self.assertEqual(ratios, {"own": 0.5, "a": 1.0})

    def test_parts_of_the_peak_and_floors(self):
        row = summary.rows(result_of([[{"own": 100}]], set()), gflop=10, probed_gflops=200)[0]
        self.assertAlmostEqual(row.of_peak, 0.5)  # 10 GFLOP in 0.1 s are 100 GFLOP/s
        floors = summary.floor_ms(10, 1000, {"gflops": 200, "gigabytes_per_second": 20})
        self.assertAlmostEqual(floors[0], 50)
        self.assertAlmostEqual(summary.floor_ms(10, 1000, {"gflops": 200, "gigabytes_per_second": 20}, 2)[0], 25)
        self.assertAlmostEqual(floors[1], 52.4288)

    def test_a_part_of_the_peak_is_one_of_the_same_round(self):
        result = result_of([[{"own": 100}, {"own": 50}, {"own": 200}]], set())
        result["records"][0]["peak_gflops"] = [200.0, 400.0, 100.0]  # clocks moved: half of the peak each time
        self.assertAlmostEqual(summary.rows(result, gflop=10, probed_gflops=999)[0].of_peak, 0.5)
        self.assertEqual(summary.peak_gflops(result), 200)
        self.assertEqual(summary.machine(data_of([result]), result), {"gflops": 200, "gigabytes_per_second": 20})
        result["records"][0]["peak_gflops"] = []  # as runs of before have it
        self.assertEqual(summary.machine(data_of([result]), result)["gflops"], 200)
        self.assertAlmostEqual(summary.rows(result, gflop=10, probed_gflops=200)[0].of_peak, 0.5)

    def test_layers_are_those_of_the_network(self):
        layers = workloads.resnet50_layers()
        self.assertEqual((len(layers), sum(layer.count for layer in layers)), (23, 53))
        counted = 0
        small = workloads.Layer(1, 5, 6, 7, 3, 2)
        for o in range(3):
            for p in range(3):
                counted += sum(0 <= 2 * o + r - 1 < 6 and 0 <= 2 * p + s - 1 < 6 for r in range(3) for s in range(3))
        self.assertAlmostEqual(small.gflop(4), 2e-9 * 4 * 5 * 7 * counted)

    def test_sums_count_layers_as_often_as_they_are_there_and_want_all_of_them(self):
        layers = [workloads.Layer(1, 3, 8, 4, 3), workloads.Layer(3, 4, 8, 4, 1)]
        records = [{"part": layer.part(p, 2), "condition": "quiet", "rounds": [{"own": 2.0, "half": 1.0}]}
                   for layer in layers for p in workloads.PASSES if not (p == "dx" and layer.channels == 3)]
        del records[0]["rounds"][0]["half"]
        result = {"contenders": {"own": {"peer": False}, "half": {"peer": True}}, "records": records}
        sums = summary.layer_sums(result, layers, 2, "forward")
        self.assertEqual(list(sums), ["own"])
        self.assertEqual(sums["own"], (8.0, None))
        for record in records:
            record["peak_gflops"] = [1.0 if " 2 3 8 4 3 " in record["part"] else 0.5]
        first, second = (layer.gflop(2) * 500 for layer in layers)
        self.assertAlmostEqual(summary.layer_sums(result, layers, 2, "forward")["own"][1],
                               (first + 3 * second / 0.5) / 4)
        self.assertEqual(summary.layer_sums(result, layers, 2, "dx")["own"][0], 6.0)


class Text(unittest.TestCase):
    def data(self):
        result = result_of([[{"own": 1234.5, "fast": 2469.0, "slow <&>": 9876.0}]], {"fast", "slow <&>"}, cold_ms=1500,
                           warm_ms=2000)
        result["contenders"]["gone"] = {"peer": True, "problem": "ended | with 1"}
        return data_of([result], gflop=100.0, mib=500.0)

    def test_table(self):
        text = table.markdown(self.data(), "x.svg")
        for line in ("| A network | 1,234 |  | fast: 2,469 | 0.50 |  | 41 |  |",
                     "| **A network**; floor: 100 GFLOP in 500 ms, 500 MiB in 26.2 ms |",
                     "| **own** | 1,234 | 1,234–1,234 | **0.50** | 41 | 50.0 | 1.50; 2.00 |  |  |",
                     "| slow <&> | 9,876 | 9,876–9,876 | 4.00 | 5 | 50.0 | 1.50; 2.00 |  |  |",
                     "| gone | not measured: ended / with 1 |", "![Milliseconds of a step](x.svg)",
                     "FMA peak before and after 190 and 200 GFLOP/s"):
            self.assertIn(line, text)
        rows = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual({line.count("|") for line in rows[:3]}, {9})
        self.assertEqual({line.count("|") for line in rows[3:]}, {10})

    def test_layers(self):
        layers = workloads.resnet50_layers()
        records = [{"part": layer.part(p, 16), "condition": "quiet", "others_used_cores": 0,
                    "rounds": [{"own": 1.0, "peer": 2.0}]} for layer in layers for p in workloads.PASSES
                   if not (p == "dx" and layer.channels == 3)]
        result = {"key": "layers", "contenders": {"own": {"peer": False}, "peer": {"peer": True}}, "records": records}
        text = table.markdown(data_of([result], mode="layers", batch=16))
        self.assertIn("| **own** | 53.0 | 1191 | 0.50 | 52.0 | 1178 | 0.50 |", text)
        self.assertIn("| 3×3 64→64 @56 (3 times) | 1.00; 1806; 0.50 |", text)

    def test_patterns(self):
        patterns = workloads.patterns()
        self.assertEqual(len(patterns), 16)
        convolution = workloads.Layer(1, 64, 56, 64, 3)
        self.assertEqual(patterns[4].gflop(16), 3 * convolution.gflop(16))
        records = [{"part": pattern.part(16), "condition": "quiet", "others_used_cores": 0,
                    "rounds": [{"own": 10.0, "peer": 20.0}]} for pattern in patterns]
        result = {"key": "patterns", "records": records,
                  "contenders": {"own": {"peer": False}, "peer": {"peer": True}, "gone": {"peer": True, "problem": "no"}}}
        text = table.markdown(data_of([result], mode="patterns", batch=16))
        self.assertIn("| BN→add→relu 256 @56 | peer: 20.0 | 10.0; 0.50 |", text)
        self.assertIn("| conv→BN→relu 64 @56 | peer: 20.0 | 10.0; 542; 0.50 |", text)
        self.assertIn("gone was not measured: no.", text)

    def test_numbers(self):
        said = [table.number(v) for v in (12345.6, 123.4, 12.34, 1.234, 0.1234, 0, None)]
        self.assertEqual(said, ["12,346", "123", "12.3", "1.23", "0.12", "0.00", ""])

    def test_picture(self):
        root = xml.etree.ElementTree.fromstring(picture.svg(self.data()))
        space = "{http://www.w3.org/2000/svg}"
        bars = {e.get("class"): float(e.get("width")) for e in root.iter(space + "rect") if e.get("class")}
        self.assertEqual(bars, {"own": 26.0, "best": 52.0, "peer": 208.0})
        texts = [e.text for e in root.iter(space + "text")]
        for said in ("1,234 (0.50)", "slow <&>", "ended | with 1", "A network, ms"):
            self.assertIn(said, texts)

    def test_the_document_is_rewritten_between_its_marks_alone(self):
        document = f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n"
        self.assertEqual(table.rewritten(document, "new\n"), document.replace("old", "new"))
        for bad in ("no marks", f"{table.END}{table.BEGIN}", document + document):
            with self.assertRaises(ValueError):
                table.rewritten(bad, "new\n")
        table.rewritten((ROOT / "docs" / "performance.md").read_text(), "")  # it has them


class Program(unittest.TestCase):
    def run_program(self, *more):
        return subprocess.run([sys.executable, ROOT / "bench" / "cpu.py", *more], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)

    def test_peers_that_cannot_be_started_are_listed_with_the_reason(self):
        listed = self.run_program("--list", "--peers", "--python", "/no/such/python").stdout
        for workload in workloads.WORKLOADS:
            self.assertIn(f"{workload.key}: {workload.title}", listed)
        for line in ("JAX: no Python environment: bench/peers/setup.sh makes it",
                     "oneDNN, SYCL: no onednn_contender_sycl"):
            self.assertIn(line, listed)

    def test_programs_that_are_not_built_are_named(self):
        ran = self.run_program("--programs", "/no/such/folder")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        named = "network_contender, layer_contender, pattern_contender, machine_peak, fusejit-dump"
        self.assertIn(f"no {named} in /no/such/folder", ran.stderr)

    def test_wrong_words_are_refused(self):
        for words in (["--workloads", "resnet99"], ["--rounds", "0"]):
            ran = self.run_program(*words, "--list")
            self.assertEqual(ran.returncode, 2)
            self.assertIn(words[0], ran.stderr)

    def test_tables_of_several_runs_are_made_again(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for i, (key, ms) in enumerate([("resnet50-train-f32", 10), ("convnet-train-256", 20),
                                           ("resnet50-train-f32", 30)]):
                data = data_of([result_of([[{"own": ms}]], set(), key)], title=key)
                files.append(pathlib.Path(folder) / f"{i}.json")
                files[-1].write_text(json.dumps(data))
            ran = self.run_program("--render", *files, "--output", folder)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("| resnet50-train-f32 | 30.0 |", ran.stdout)
            self.assertIn("| convnet-train-256 | 20.0 |", ran.stdout)
            self.assertNotIn("10.0", ran.stdout)
            self.assertTrue((pathlib.Path(folder) / "table.svg").exists())


if __name__ == "__main__":
    unittest.main()
