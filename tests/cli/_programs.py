"""Programs that a test starts. They are killed at the end of the test."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def penstock(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the command in its own process."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with interruptible():
        program = subprocess.Popen([sys.executable, "-m", "penstock", *arguments], cwd=ROOT, bufsize=0, **pipes)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


@contextmanager
def interruptible() -> Iterator[None]:
    """Start programs with the default reaction to SIGINT.

    A shell starts background processes with SIGINT ignored, and their child processes inherit that. A handler is not inherited: `exec`
    resets it to the default.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def line_of(program: "subprocess.Popen[bytes]") -> str:
    """Return the next line of standard error."""
    assert program.stderr is not None
    return program.stderr.readline().decode()


@contextmanager
def served() -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """Serve the service of these tests on TCP; yield the program and its address."""
    with penstock("serve", "tests.cli._service:service", "tcp://127.0.0.1:0") as program:
        yield program, line_of(program).split()[-1]
