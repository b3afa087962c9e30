"""Terminals: runs the ``console`` blocks of a page as a reader does, each in a shell,
in the order of the page.

Rules of this file:

* All terminals of a page work in one folder, with the files
  that the reader makes of the blocks with a file name.
* A line ``^C`` says that the reader presses Ctrl-C there. Such a terminal stays open, and the next
  ones begin when it has printed its first line. When all blocks of the page have run, it must print
  the lines above ``^C``, gets SIGINT, and must print those below.
* Each port from 7000 to 7999 is replaced by a free one, in files, commands and outputs:
  several tests may run at a time.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests._free_port import free_port
from tests._real_time import HANGS_AFTER
from tests.cli._programs import interruptible
from tests.examples._pages import Block, commands_in

PORT: Final = re.compile(r"\b7\d{3}\b")
CTRL_C: Final = "^C\n"


@dataclass(frozen=True)
class Transcript:
    """A terminal: the block, its printed text, and the text that the page shows."""

    block: Block
    printed: str
    shown: str


def shell_environment() -> dict[str, str]:
    """The environment of a reader's shell, in which penstock is installed. Python writes each
    line at once, as it does to a terminal.
    """
    installed = str(Path(sys.executable).parent)
    path = os.pathsep.join([installed, os.environ.get("PATH", os.defpath)])
    return {
        **os.environ,
        "PATH": path,
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONUTF8": "1",
    }


def run_terminals(
    consoles: Sequence[Block], files: Sequence[Block], folder: Path, free_ports: "FreePorts"
) -> list[Transcript]:
    """Run the blocks in `folder`; return a transcript of each."""
    for file in files:
        assert file.file_name is not None
        (folder / file.file_name).write_text(free_ports.replace_in(file.text), encoding="utf-8")
    with ExitStack() as stack:
        terminals = [
            stack.enter_context(_open_terminal(block, folder, free_ports)) for block in consoles
        ]
        return [terminal.finish() for terminal in terminals]


class FreePorts:
    """Replaces each port that a page names by a free one, always by the same."""

    def __init__(self) -> None:
        self._free: dict[str, str] = {}

    def replace_in(self, text: str) -> str:
        return PORT.sub(lambda port: self._free.setdefault(port[0], str(free_port())), text)


@contextmanager
def _open_terminal(block: Block, folder: Path, free_ports: FreePorts) -> Iterator["_Terminal"]:
    shown = free_ports.replace_in("".join(_output_lines(block)))
    script = free_ports.replace_in("\n".join(commands_in(block)))
    with interruptible():
        shell = subprocess.Popen(
            ["sh", "-c", script],
            cwd=folder,
            env=shell_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C reaches the shell and its programs, and not the tests
        )
    watchdog = threading.Timer(HANGS_AFTER, _signal_all, [shell, signal.SIGKILL])
    watchdog.start()
    try:
        terminal = _Terminal(block, shell, shown)
        terminal.begin()
        yield terminal
    finally:
        watchdog.cancel()
        _signal_all(shell, signal.SIGKILL)
        shell.communicate()


def _output_lines(block: Block) -> list[str]:
    lines = block.text.replace("\\\n", " ").splitlines(keepends=True)
    return [line for line in lines if not line.startswith("$ ")]


def _signal_all(shell: "subprocess.Popen[str]", number: int) -> None:
    with suppress(ProcessLookupError):  # every program of the terminal has ended
        os.killpg(shell.pid, number)


class _Terminal:
    def __init__(self, block: Block, shell: "subprocess.Popen[str]", shown: str) -> None:
        self._block = block
        self._shell = shell
        self._shown = shown
        self._printed = ""

    def begin(self) -> None:
        """Run the block to its end. If Ctrl-C ends it, only until it has printed a line."""
        if CTRL_C in self._shown:
            self._read_line()
        else:
            self._read_rest()

    def finish(self) -> Transcript:
        """Press Ctrl-C, if the block shows it, and return the transcript."""
        before, ctrl_c, after = self._shown.partition(CTRL_C)
        if ctrl_c:
            while self._printed.count("\n") < before.count("\n") and self._read_line():
                pass
            _signal_all(self._shell, signal.SIGINT)
            self._read_rest()
        return Transcript(self._block, printed=self._printed, shown=before + after)

    def _read_line(self) -> str:
        assert self._shell.stdout is not None
        line = self._shell.stdout.readline()
        self._printed += line
        return line

    def _read_rest(self) -> None:
        while self._read_line():
            pass
