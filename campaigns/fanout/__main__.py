"""What a topic with many subscribers over TCP costs its server: processor time for each delivered
element, and memory for each subscriber.

    python -m campaigns fanout [--short]

The time of a delivery is compared with one bare write of such a message to a socket: that is the
least of a server that writes each element by itself. The exit status is 1 if a row misses its bar.
pytest does not run this file: it judges time.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from campaigns.fanout._crowd import Crowd
from campaigns.fanout._server import SIZE

SCHEMES: Final = ("tcp", "reactivesocket+tcp")
BARS: Final = {"one": 0.6, "many": 0.6}
"""The most that a delivery may cost, in bare writes: by `publish`, and by `publish_many`."""

KIB_EACH: Final = 27.0
"""Resident memory of a subscriber that has received elements."""


class Server:
    """The server process, and what it answers."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.url: str = self._line()

    def ask(self, command: str) -> None:
        """Send a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def answer(self, command: str = "") -> Any:
        """Send a command, and return its answer."""
        if command:
            self.ask(command)
        return json.loads(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError("the server process has ended; its traceback is printed above")
        return line


@contextmanager
def serving(scheme: str) -> Iterator[Server]:
    """Run the server process until the block ends."""
    command = [sys.executable, str(Path(__file__).with_name("_server.py")), scheme]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def measure_deliveries(scheme: str, subscribers: int, elements: int) -> bool:
    """Print the cost of a delivery, and return whether the bars are kept."""
    kept = True
    with serving(scheme) as server:
        crowd = Crowd(server.url, size=SIZE)
        crowd.join(subscribers)
        server.answer(f"wait {subscribers}")
        for how, bar in BARS.items():
            publish(server, crowd, 500, how)
            bare = float(server.answer("bare"))
            seconds = publish(server, crowd, elements, how)
            each = seconds / elements / subscribers
            kept = kept and each <= bar * bare and not crowd.lost
            write(
                f"{scheme:<19}{subscribers:>6,} subscribers, {how:<5}"
                f"{each * 1e6:>7.2f} us a delivery, {each / bare:.2f} x a bare write of "
                f"{bare * 1e6:.1f} us (at most {bar:g}); {crowd.lost} lost"
            )
        crowd.leave()
    return kept


def measure_crowd(scheme: str, subscribers: int, elements: int) -> bool:
    """Let many join, receive and leave; print the memory of each."""
    with serving(scheme) as server:
        before = server.answer("measure")
        crowd = Crowd(server.url, size=SIZE)
        began = time.monotonic()
        crowd.join(subscribers)
        server.answer(f"wait {subscribers}")
        seconds = publish(server, crowd, elements, "one")
        after = server.answer("measure")
        crowd.leave()
        server.answer("alone")
        took = time.monotonic() - began
    each = (after["resident"] - before["resident"]) / subscribers
    write(
        f"{scheme:<19}{subscribers:>6,} subscribers joined, got {elements} elements each and left "
        f"in {took:.1f} s; {crowd.lost} lost, {crowd.pings:,} pings answered, {each:.1f} KiB each (at most {KIB_EACH:g}), "
        f"{seconds / elements / subscribers * 1e6:.1f} us a delivery"
    )
    return not crowd.lost and each <= KIB_EACH


def publish(server: Server, crowd: Crowd, elements: int, how: str) -> float:
    """Publish, and return the processor time of the server until all has arrived."""
    before = server.answer("measure")
    server.ask(f"publish {elements} {how}")
    crowd.read_all(elements)
    server.answer()
    return float(server.answer("measure")["seconds"] - before["seconds"])


def write(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(argv: list[str]) -> int:
    """Measure all rows."""
    parser = argparse.ArgumentParser(prog="campaigns fanout", description=__doc__)
    parser.add_argument("--short", action="store_true", help="200 subscribers, for some seconds")
    short = parser.parse_args(argv).short
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    kept = [measure_deliveries(scheme, 100, 3_000 if short else 30_000) for scheme in SCHEMES]
    for subscribers, elements in [(200, 500)] if short else [(1_000, 2_000), (9_000, 10)]:
        kept.append(measure_crowd("tcp", subscribers, elements))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
