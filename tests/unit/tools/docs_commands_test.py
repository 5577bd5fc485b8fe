#!/usr/bin/env python3
"""The commands of docs/when-it-is-slow.md run, and say what stands there; the pictures of docs/fusion.md are those of
their commands.

    docs_commands_test.py PROGRAM...      each is found under its name

In a block of code, a line that begins with `$ ` is a command, which ends with 0 or as it says, `# exit code 3`, and
what follows is what it prints; a line of `…` stands for any number of lines, and `…` at the end of one for what else is
in it. Numbers and the machine's own names may differ. A block that begins with `; name` is a file.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[3] / 'docs/when-it-is-slow.md'
PROGRAMS = [pathlib.Path(program).resolve() for program in sys.argv[1:]]


def blocks(text):
    return re.findall(r'^```\w*\n(.*?)^```$', text, flags=re.M | re.S)


def commands(text):
    """(command, the lines that it prints) of each, in order."""
    found = []
    for block in blocks(text):
        if not block.startswith('$ '):
            continue
        for line in block.splitlines():
            if line.startswith('$ '):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def same_of_any_machine(line):
    """A line without what differs between machines: numbers, and what a plan, a processor and a target are called."""
    line = re.sub(r'^(processor|target) .*', r'\1', line)
    line = re.sub(r'x86:\w+(,\w+=\w+)*|\b(plan|entry \() ?[0-9a-f]{8}\b', '', line)
    return re.sub(r'\s+', ' ', re.sub(r'[-+]?\d[\d,.]*', '0', line)).strip()


def agrees(expected, printed):
    """Whether the printed lines are the expected ones, in which … stands for what is left out."""
    if not expected:
        return not printed
    head, rest = expected[0], expected[1:]
    if head == '…':
        return any(agrees(rest, printed[skipped:]) for skipped in range(len(printed) + 1))
    if not printed:
        return False
    wanted, line = same_of_any_machine(head.removesuffix('…')), same_of_any_machine(printed[0])
    return (line.startswith(wanted) if head.endswith('…') else line == wanted) and agrees(rest, printed[1:])


class Commands(unittest.TestCase):
    def test_agreement(self):
        self.assertTrue(agrees(['a 1 ms', '…', 'z'], ['a 2 ms', 'b', 'c', 'z']))
        self.assertTrue(agrees(['a …', '…'], ['a b']))
        self.assertFalse(agrees(['a', 'z'], ['a', 'b', 'z']))
        self.assertFalse(agrees(['a', '…', 'z'], ['a', 'b']))
        self.assertFalse(agrees(['12 kernels'], ['12 plans']))

    def test_page(self):
        text = PAGE.read_text(encoding='utf-8')
        self.assertGreater(len(commands(text)), 10)
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, 'FUSEJIT_CACHE_DIR': f'{folder}/cache',
                           'PATH': f'{folder}/bin:' + os.environ['PATH']}
            os.mkdir(f'{folder}/bin')
            for program in PROGRAMS:
                os.symlink(program, f'{folder}/bin/{program.name}')
            for block in blocks(text):
                if name := re.match(r'; (\S+)\n', block):
                    pathlib.Path(folder, name[1]).write_text(block, encoding='utf-8')
            for command, expected in commands(text):
                with self.subTest(command=command):
                    run = subprocess.run(['bash', '-c', command], cwd=folder, env=environment, capture_output=True,
                                         text=True, timeout=300)
                    code = re.search(r'# exit code (\d+)$', command)
                    self.assertEqual(run.returncode, int(code[1]) if code else 0, run.stderr)
                    self.assertTrue(agrees(expected, run.stdout.splitlines()), run.stdout)

    def test_pictures(self):
        root = PAGE.parents[1]
        dump = next(program for program in PROGRAMS if program.name == 'fusejit-dump')
        drawn = re.findall(r'^fusejit-dump (graph .*) -o (docs/\S+\.svg)$', (root / 'docs/fusion.md').read_text(), re.M)
        self.assertEqual(len(drawn), 7)
        for command, picture in drawn:
            with self.subTest(picture=picture), tempfile.TemporaryDirectory() as folder:
                made = pathlib.Path(folder, 'made.svg')
                subprocess.run([dump, *command.split(), '-o', made], cwd=root, check=True)
                self.assertEqual(made.read_text(encoding='utf-8'), (root / picture).read_text(encoding='utf-8'))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
