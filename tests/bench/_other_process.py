"""The serving process of a network contender. It runs for all rounds."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

PROGRAM = Path(__file__).parent / "_peer_process.py"


class OtherProcess:
    """A running serving process."""

    def __init__(self, output: IO[str], what: str) -> None:
        self._output = output
        self._what = what
        self.port: int = self.next_port()

    def next_port(self) -> int:
        """Read the next port that the process prints."""
        line = self._output.readline()
        if not line:
            raise RuntimeError(f"the other process of {self._what} ended before it served; its error is above")
        return int(line)


@contextmanager
def other_process(kind: str, size: int, count: int, *more: str) -> Iterator[OtherProcess]:
    """Run the serving process of a contender for the length of the block."""
    command = [sys.executable, str(PROGRAM), kind, str(size), str(count), *more]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield OtherProcess(cast("IO[str]", process.stdout), kind)
        finally:
            process.kill()
