"""A contender's process: started, asked for steps, stopped while others run, and why it failed if it did."""

import json
import os
import pathlib
import selectors
import signal
import subprocess
import tempfile
import time


class Failed(Exception):
    """The reason in one sentence, for the table."""


class Running:
    """Speaks the lines that bench/peers/README.md describes. `cache` is a folder for whatever the contender keeps
    between processes."""

    def __init__(self, contender, cache, patience, processors=None):
        self.name, self.patience, self.pid = contender.name, patience, None
        if contender.problem:
            raise Failed(contender.problem)
        self.errors = tempfile.TemporaryFile()
        environment = {**os.environ, **dict(contender.environment), "BENCH_CACHE": str(cache), "FUSEJIT_CACHE": "on",
                       "FUSEJIT_CACHE_DIR": str(cache), "TORCHINDUCTOR_CACHE_DIR": str(cache)}
        try:
            self.process = subprocess.Popen(
                contender.command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                start_new_session=True,
                preexec_fn=(lambda: os.sched_setaffinity(0, processors)) if processors else None)
        except OSError as error:
            self.errors.close()
            raise Failed(f"cannot be started: {error}") from None
        self.pid = self.process.pid
        self.buffer = b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        try:
            self.version = self.answer().get("ready", "")
        except Failed:
            self.end()
            raise

    def answer(self):
        """The next line of JSON; lines that are none are passed over."""
        deadline = time.monotonic() + self.patience
        while True:
            while b"\n" not in self.buffer:
                if not self.selector.select(max(0.0, deadline - time.monotonic())):
                    self.end()
                    raise Failed(f"no answer in {self.patience:.0f} s")
                read = os.read(self.process.stdout.fileno(), 1 << 16)
                if not read:
                    raise Failed(self.last_words())
                self.buffer += read
            line, self.buffer = self.buffer.split(b"\n", 1)
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if isinstance(said, dict):
                break
        if "error" in said:
            raise Failed(said["error"])
        return said

    def last_words(self):
        code = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        how = f"killed by signal {-code}" if code < 0 else f"ended with {code}"
        return f"{how}: {lines[-1].strip()[:200]}" if lines else how

    def run(self, count, part=""):
        """{"ms": [...], "peak_mib": ..., "loss": ...} of so many steps."""
        os.killpg(self.pid, signal.SIGCONT)
        try:
            self.process.stdin.write(f"run {count} {part}".strip().encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self.last_words()) from None
        said = self.answer()
        os.killpg(self.pid, signal.SIGSTOP)  # threads that spin while they wait would take the others' time
        if len(said.get("ms", [])) != count:
            raise Failed(f"asked for {count} steps, answered {said}"[:200])
        return said

    def processor_seconds(self):
        try:
            fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        if self.pid is None:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            try:
                stream.close()
            except BrokenPipeError:
                pass
        self.selector.close()
        self.pid = None
