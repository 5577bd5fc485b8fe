#!/usr/bin/env python3
"""docs/site/as_doxygen.py: what a comment means by where it stands."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

FILTER = pathlib.Path(__file__).resolve().parents[3] / 'docs/site/as_doxygen.py'


def filtered(text, name='h.h'):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_text(text, encoding='utf-8')
        return subprocess.run([sys.executable, FILTER, path], capture_output=True, text=True, check=True).stdout


def said_of(declaration, text):
    """The comment lines right above a declaration."""
    lines = filtered(text).splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip().startswith(declaration))
    first = at
    while first > 0 and lines[first - 1].strip().startswith('///'):
        first -= 1
    return [line.strip()[3:].strip() for line in lines[first:at]]


class Filter(unittest.TestCase):
    HEAD = '// Thing: what it is.\n#pragma once\n\nnamespace f {\n\n'

    def test_the_files_comment_is_the_classes_that_it_names(self):
        text = self.HEAD + 'class Thing {\n};\nclass Other {\n};\n'
        self.assertEqual(said_of('class Thing', text), ['Thing: what it is.'])
        self.assertEqual(said_of('class Other', text), [])

    def test_functions_that_follow_share_a_comment(self):
        text = self.HEAD + '// Both.\nint a(int x,\n      int y);\nint b();\n\nint c();\n'
        self.assertEqual(said_of('int b', text), ['Both.'])
        self.assertEqual(said_of('int c', text), [])

    def test_in_a_class_overloads_do(self):
        text = self.HEAD + ('// It.\nclass C {\n public:\n  // Rate.\n  int lr() const;\n  void set_lr(int);\n'
                            '  int groups();\n};\n')
        self.assertEqual(said_of('void set_lr', text), ['Rate.'])
        self.assertEqual(said_of('int groups', text), [])

    def test_a_section_speaks_for_what_says_nothing(self):
        text = self.HEAD + '// ---- sums ----\n// In order.\n\nint a();\nint b();  // own\n'
        self.assertEqual(said_of('int a', text), ['In order.'])
        self.assertEqual(said_of('int b', text), [])
        self.assertIn('int b();  ///< own', filtered(text))
        self.assertIn('/// @name sums', filtered(text))

    def test_options_belong_to_what_takes_them(self):
        text = self.HEAD + 'struct AOptions {\n  int x = 0;\n};\n// Does.\nint a(AOptions options);\n'
        self.assertEqual(said_of('struct AOptions', text), ['Settings of a().'])
        text = self.HEAD + '// A.\nstruct AOptions {\n};\nclass A {\n};\n'
        self.assertEqual(said_of('class A ', text), ['A.'])

    def test_code_is_code_and_text_is_plain(self):
        text = self.HEAD + '// a*b of <x>:\n//   f(a * b);\nint a();\n'
        self.assertEqual(said_of('int a', text), [r'a\*b of \<x\>:', '@code{.cpp}', 'f(a * b);', '@endcode'])

    def test_what_is_internal_is_left_out(self):
        text = self.HEAD + '// Never.\nint a(int x,\n      int y);  // internal\n// Shown.\nint b();\n'
        lines = filtered(text).splitlines()
        self.assertLess(lines.index('/// @cond'), lines.index('int a(int x,'))
        self.assertLess(lines.index('/// @endcond'), lines.index('/// Shown.'))
        self.assertNotIn('/// Never.', lines)

    def test_pages(self):
        page = 'To [it](#the-end).\n**`%x`** and `c\'`\n```\n`%x`\n```\n## The end\n## Another\n'
        self.assertEqual(filtered(page, 'p.md'), 'To [it](#p-the-end).\n<b>`%%x`</b> and <code>c\'</code>\n'
                         '```\n`%x`\n```\n## The end {#p-the-end}\n## Another\n')


if __name__ == '__main__':
    unittest.main()
