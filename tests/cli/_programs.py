"""Programs that a test starts. They are killed at the end of the test."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def penstock(
    *arguments: str, folder: Path = ROOT
) -> AbstractContextManager["subprocess.Popen[bytes]"]:
    """Run the command in its own process, in `folder`."""
    return python("-m", "penstock", *arguments, folder=folder)


@contextmanager
def python(*arguments: str, folder: Path = ROOT) -> Iterator["subprocess.Popen[bytes]"]:
    """Run Python with `arguments` in its own process."""
    with _running([sys.executable, *arguments], folder) as program:
        yield program


def shell(command: str) -> AbstractContextManager["subprocess.Popen[bytes]"]:
    """Run a command of the shell in its own process.
    It ends with ``exec``, so that the process is the program.
    """
    return _running(["/bin/sh", "-c", command], ROOT)


@contextmanager
def _running(command: list[str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with interruptible():
        program = subprocess.Popen(command, cwd=folder, bufsize=0, **pipes)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


@contextmanager
def interruptible() -> Iterator[None]:
    """Start programs with the default reaction to SIGINT.

    A shell starts background processes with SIGINT ignored, and their child processes inherit that.
    A handler is not inherited: `exec` resets it to the default.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def signal_until_it_ends(program: "subprocess.Popen[Any]", number: signal.Signals) -> int:
    """Send a signal again and again, and return the exit status. One that follows another within
    50 ms is taken for the same one.
    """
    while True:
        try:
            return program.wait(0.1)
        except subprocess.TimeoutExpired:
            program.send_signal(number)


def line_of(program: "subprocess.Popen[bytes]") -> str:
    """Return the next line of standard error."""
    assert program.stderr is not None
    return program.stderr.readline().decode()


@contextmanager
def served() -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """Serve the service of these tests on TCP; yield the program and its address."""
    with penstock("serve", "tests.cli._service:service", "tcp://127.0.0.1:0") as program:
        yield program, line_of(program).split()[-1]
