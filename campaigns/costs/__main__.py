"""What one connection can cost a server: `python -m campaigns costs` attacks a server process with default
limits and prints what it held.

A row is missed if the server held more than its bar.
Then the program names the row and exits with 1.
"""

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import groupby
from pathlib import Path
from typing import IO, NamedTuple, cast

from campaigns.costs._rows import CONNECTION, KIB, ROWS, Row

PAGE = "_costs_measured.md"

SECONDS = 1.0
"""Time for the server to act on an attack, after its last byte was sent;
`--short` takes a third.
"""


class Cost(NamedTuple):
    """The figures of one row: bytes of one connection."""

    title: str
    sent: int
    held: int
    """The largest number of bytes that the server process held, less those that it held before."""
    counted: int
    """The bytes that the memory budget counts at the end."""
    at_most: int
    why: str

    @property
    def is_kept(self) -> bool:
        """Whether the server held no more than the bar."""
        return self.held <= self.at_most

    @property
    def line(self) -> str:
        """The figures as a row of a table in Markdown."""
        ratio = f"{self.held / self.sent:.1f}" if self.held > CONNECTION else ""
        figures = " | ".join(f"{each / KIB:,.0f}" for each in (self.sent, self.held, self.counted))
        return (
            f"| {self.title} | {figures} | {ratio} | "
            f"{self.at_most / KIB:,.0f}{f' ({self.why})' if self.why else ''} |"
        )


HEAD = (
    "| one connection | sends, KiB | held, KiB | counted, KiB | held for each byte sent | at "
    "most, KiB |\n|---|--:|--:|--:|--:|--:|"
)


class Server:
    """The server process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._input, self._output = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
        self.port = int(self._output.readline())

    def ask(self, command: str) -> dict[str, int]:
        """Return the figures that the process prints for a command."""
        self._input.write(f"{command}\n")
        self._input.flush()
        return cast("dict[str, int]", json.loads(self._output.readline()))


def measure(row: Row, server: Server, seconds: float = SECONDS) -> Cost:
    """Attack the server as the row says, wait `seconds`, and return its figures."""
    attack = row.attack()
    server.ask("mark")
    sent = 0
    with ExitStack() as open_sockets:
        for _ in range(row.connections):
            sock = open_sockets.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", server.port))
            if row.then is None:
                sent += _send(sock, attack, seconds)
            else:
                answers, bytes_sent = _converse(sock, attack, seconds)
                _, more = _converse(sock, row.then(answers), seconds)
                sent += bytes_sent + more
        time.sleep(seconds)
        figures = server.ask("read")
    server.ask("empty")
    held, counted = figures["peak"] // row.connections, figures["counted"] // row.connections
    return Cost(row.title, sent // row.connections, held, counted, row.at_most, row.why)


def _send(sock: socket.socket, data: bytes, seconds: float) -> int:
    """Send as much as the server reads without a pause of `seconds`,
    and return how many bytes that were.
    """
    sock.settimeout(seconds)
    sent = 0
    try:
        while sent < len(data):
            sent += sock.send(data[sent : sent + 64 * KIB])
    except OSError:
        pass  # the server has closed the connection, or does not read on
    return sent


def _measure_at(scheme: str, rows: Sequence[Row], seconds: float) -> Iterator[Cost]:
    """Measure rows at a server process of their own, and print each."""
    command = [sys.executable, "-m", "campaigns.costs._server", scheme]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        server = Server(process)
        for row in rows:
            cost = measure(row, server, seconds)
            print(cost.line, flush=True)
            yield cost
        cast("IO[str]", process.stdin).close()


def _converse(sock: socket.socket, data: bytes, seconds: float) -> tuple[bytes, int]:
    """Send `data`, and read all the while. Return the answers, up to a pause of `seconds`, and how
    many bytes were sent.
    """
    sock.settimeout(seconds)
    answers, sent = bytearray(), 0
    with suppress(OSError):  # the server has closed the connection, or sends nothing more
        while sent < len(data):
            sent += sock.send(data[sent : sent + 4 * KIB])
            with suppress(BlockingIOError):
                answers += sock.recv(64 * KIB, socket.MSG_DONTWAIT)
        while part := sock.recv(64 * KIB):
            answers += part
    return bytes(answers), sent


def main(argv: list[str]) -> int:
    """Measure the rows, print them, and return the exit status."""
    parser = argparse.ArgumentParser(prog="campaigns costs", description=__doc__)
    parser.add_argument(
        "--only", default="", help="measure only the rows whose title contains this text"
    )
    parser.add_argument("--short", action="store_true", help="a third of the time for each row")
    parser.add_argument(
        "--docs", type=Path, metavar="FOLDER", help=f"write the table to {PAGE} in FOLDER"
    )
    options = parser.parse_args(argv)
    costs: list[Cost] = []
    print(HEAD)
    for scheme, rows in groupby(ROWS, key=lambda row: row.scheme):
        chosen = [row for row in rows if options.only in row.title]
        if chosen:
            costs += _measure_at(scheme, chosen, SECONDS / 3 if options.short else SECONDS)
    if options.docs:
        (options.docs / PAGE).write_text(
            "\n".join([HEAD, *(cost.line for cost in costs)]) + "\n", encoding="utf-8"
        )
    missed = [cost for cost in costs if not cost.is_kept]
    for cost in missed:
        print(
            (
                f"missed: {cost.title}: {cost.held / KIB:,.0f} KiB held, "
                f"{cost.at_most / KIB:,.0f} allowed"
            ),
            file=sys.stderr,
        )
    print(f"{len(costs)} attacks, {len(missed)} above the bar")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
