"""Programs that are started for a test, and what they say; none outlives it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def penstock(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The command as a process of its own."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with _interruptible():
        program = subprocess.Popen([sys.executable, "-m", "penstock", *arguments], cwd=ROOT, bufsize=0, **pipes)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


@contextmanager
def _interruptible() -> Iterator[None]:
    """What a shell starts in its background ignores Ctrl-C, and so would all that is started in turn: tests that run there say no."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a handler does not outlive exec: what starts has the default
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def line_of(program: "subprocess.Popen[bytes]") -> str:
    """The next line on standard error."""
    assert program.stderr is not None
    return program.stderr.readline().decode()


@contextmanager
def served() -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """The service of these tests on TCP, and its address."""
    with penstock("serve", "tests.cli._service:service", "tcp://127.0.0.1:0") as program:
        yield program, line_of(program).split()[-1]
