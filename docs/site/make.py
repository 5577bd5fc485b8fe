#!/usr/bin/env python3
"""Makes the site of the public headers and the pages of docs/ with Doxygen: OUTPUT/html/index.html.

    docs/site/make.py [OUTPUT]        build/docs, unless another folder is named

Fails on any warning: a link that leads nowhere, text that Doxygen takes for markup, a class, function, type or constant
without a comment. A member may go without one, where its name and its class say what it is. Exits with 77 where there
is no doxygen or no dot.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMBER = re.compile(r'warning: Member .* of (struct|class) .* is not documented')


def main():
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / 'build/docs').resolve()
    for program in ('doxygen', 'dot'):
        if not shutil.which(program):
            print(f'docs: no {program} here (apt-get install doxygen graphviz)')
            return 77
    output.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(output / 'html', ignore_errors=True)
    run = subprocess.run(['doxygen', 'docs/site/Doxyfile'], cwd=ROOT, env={**os.environ, 'FUSEJIT_SITE': str(output)},
                         capture_output=True, text=True)
    said = [line for line in run.stderr.splitlines() if line.strip() and not MEMBER.search(line)]
    if said or run.returncode:
        print('\n'.join(said) or f'docs: doxygen ended with {run.returncode}')
        return 1
    print(output / 'html/index.html')
    return 0


if __name__ == '__main__':
    sys.exit(main())
