#!/usr/bin/env python3
"""The table of docs/fusion.md of what a step moves without each rule is what fusejit-dump says of the page's target.

    docs_figures_test.py FUSEJIT-DUMP
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[3] / 'docs/fusion.md'
DUMP = sys.argv[1]
MODELS = ('resnet50@16x3x224x224:train', 'mobilenet_v2@16x3x224x224:train')


def shown(model, rules, target):
    """Kernels, MiB moved and MiB of the arena, as the page writes them."""
    done = subprocess.run([DUMP, 'show', model, '--target', target, '--rules=' + rules, '--format', 'json'],
                          check=True, capture_output=True, text=True)
    plan = json.loads(done.stdout)
    mib = [round(plan[key] / 2**20) for key in ('ledger_bytes', 'arena_bytes')]
    return [f'{number:,}' for number in (len(plan['kernels']), *mib)]


class Figures(unittest.TestCase):
    def test_a_rule_less(self):
        text = PAGE.read_text()
        target = re.search(r'^target `(x86:[^`]+)`', text, flags=re.M).group(1)
        number = r'([\d,]+)'
        rows = re.findall(rf'^\| (all|none|inductor|-R\d) ?[a-z]* ' + rf'\| {number} ' * 8 + r'\|$', text, flags=re.M)
        self.assertEqual([row[0] for row in rows],
                         ['all', '-R1', '-R2', '-R3', '-R5', '-R6', '-R7', '-R8', '-R9', 'inductor', 'none'])
        for rules, *figures in rows:
            for model, first in zip(MODELS, (0, 4)):
                with self.subTest(rules=rules, model=model):
                    self.assertEqual(figures[first:first + 3], shown(model, rules, target))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
