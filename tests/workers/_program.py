"""A service in workers, run as a program, for tests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from campaigns.workers._signals import with_signals
from tests._real_time import HANGS_AFTER

SERVICE = """
import os
import penstock

service = penstock.Service()


@service.publisher("who")
async def who():
    while True:
        yield b"%d" % os.getpid()
"""


class Program:
    """A parent with its workers."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self.process = process
        self._log = log
        self._addresses: list[str] = []

    @property
    def log(self) -> str:
        """The text that it has written to standard error."""
        return self._log.read_text()

    def wait_for(self, text: str, count: int = 1) -> str:
        """Wait until it has written `text` that many times, and return all that it has written."""
        ends = time.monotonic() + HANGS_AFTER
        while self.log.count(text) < count:
            assert time.monotonic() < ends, self.log
            assert self.process.poll() is None or self.log.count(text) >= count, self.log
            time.sleep(0.02)
        return self.log

    @property
    def address(self) -> str:
        """Its first address."""
        log = self.wait_for(" at ")
        return next(line for line in log.splitlines() if " at " in line).rpartition(" at ")[2]

    def workers(self) -> list[int]:
        """The processes of its workers, once they serve."""
        self.wait_for(" at ")
        return children_of(self.process.pid)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the status."""
        self.process.send_signal(number)
        return self.process.wait(HANGS_AFTER)


def children_of(process: int) -> list[int]:
    """The child processes of a process."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[1] == str(process) and fields[0] != "Z":
                found.append(int(folder.name))
    return sorted(found)


def wait_gone(*processes: int) -> None:
    """Wait until these processes have ended."""
    ends = time.monotonic() + HANGS_AFTER
    for process in processes:
        while Path(f"/proc/{process}").exists() and not is_zombie(process):
            assert time.monotonic() < ends, process
            time.sleep(0.02)


def is_zombie(process: int) -> bool:
    """Whether a process has ended, and its parent has not asked for its status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@contextmanager
def program(
    folder: Path,
    *arguments: str,
    source: str = SERVICE,
    url: str = "tcp://127.0.0.1:0",
    workers: int = 2,
) -> Iterator[Program]:
    """Run ``penstock serve --workers`` in `folder`, with `source` as its module."""
    module = folder / "served.py"
    if not module.exists():
        module.write_text(source)
    command = [
        sys.executable,
        "-m",
        "penstock",
        "serve",
        "served:service",
        *url.split(),
        "--workers",
        str(workers),
        *arguments,
    ]
    with started(folder, command) as running:
        yield running


@contextmanager
def started(folder: Path, command: list[str]) -> Iterator[Program]:
    """Run a command that has workers, and end all of its processes behind the block."""
    log = folder / f"log{len(list(folder.glob('log*')))}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with log.open("w") as file:
        process = subprocess.Popen(
            with_signals(command), cwd=folder, stderr=file, stdout=file, text=True, env=environment
        )
    running = Program(process, log)
    children: list[int] = []
    try:
        yield running
    finally:
        children = children_of(process.pid)
        if process.poll() is None:
            process.kill()
        process.wait(HANGS_AFTER)
        # They end by themselves: their parent has gone.
        wait_gone(*children)
