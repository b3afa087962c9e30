"""Starts the server process of a network contender; it serves all rounds."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

PROGRAM = Path(__file__).parent / "_peer_process.py"


class ServingProcess:
    """A running server process and the ports that it prints."""

    def __init__(self, output: IO[str], kind: str) -> None:
        self._output = output
        self._kind = kind
        self.port: int = self.next_port()

    def next_port(self) -> int:
        """Read the next port that the process prints."""
        line = self._output.readline()
        if not line:
            raise RuntimeError(
                f"the server process of {self._kind} ended before it served; its traceback is "
                "printed above"
            )
        return int(line)


@contextmanager
def serving_process(kind: str, size: int, count: int, *more: str) -> Iterator[ServingProcess]:
    """Run the server process of a contender until the block ends."""
    command = [sys.executable, str(PROGRAM), kind, str(size), str(count), *more]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield ServingProcess(cast("IO[str]", process.stdout), kind)
        finally:
            process.kill()
