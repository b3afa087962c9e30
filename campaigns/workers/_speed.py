"""Requests that are answered in a second by one worker and by two, with a handler that computes.

`python -m campaigns.workers._speed` prints them. The client writes requests that are ready made, and
counts a mark in what comes back: it needs a small part of what the handler needs.
"""

import os
import select
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, process_time, sleep
from typing import Final

from penstock.protocols import rsio

SERVICE: Final = """
from time import perf_counter
import penstock

service = penstock.Service()


@service.publisher("compute")
async def compute():
    ends = perf_counter() + {seconds}
    while perf_counter() < ends:
        pass
    yield b"{mark}"
"""

MARK: Final = b"the-answer"
COMPUTES: Final = 0.000_200
CONNECTIONS: Final = 8
IN_FLIGHT: Final = 16
"""Requests of each connection."""

AT_ONCE: Final = 8
"""Requests that are sent together: the client should cost little."""

WARM_UP: Final = 1.0
SECONDS: Final = 4.0
ROUNDS: Final = 3


class Client:
    """A connection that has some requests in flight."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.sendall(rsio.encode(rsio.ClientHello()))
        self._next = 0
        self._rest = b""
        self._answered = 0
        self.ask(IN_FLIGHT)

    def ask(self, count: int) -> None:
        """Send some requests."""
        numbers = range(self._next, self._next + count)
        self._next += count
        self.socket.sendall(
            b"".join(
                rsio.encode(rsio.Subscribe(publisher="compute", subscriber=each, demand=2))
                for each in numbers
            )
        )

    def answer(self) -> int:
        """Read what has come, ask again, and return the number of answers."""
        data = self._rest + self.socket.recv(1 << 16)
        count = data.count(MARK)
        # A mark may be cut; a whole one must not count twice.
        self._rest = data[data.rfind(MARK) + 1 :][1 - len(MARK) :] if count else data[-9:]
        self._answered += count
        if self._answered >= AT_ONCE:
            self.ask(self._answered)
            self._answered = 0
        return count


def processor_of(process: int) -> float:
    """Return the seconds of the processor that the children of a process have used."""
    ticks = 0
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        for child in file.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def answered(folder: Path, workers: int) -> tuple[float, float, float]:
    """Return the requests that a server with so many workers answers in a second, and the seconds
    of the processor that a request takes of the workers, and of the client.
    """
    path = folder / "speed.sock"
    (folder / "speed.py").write_text(SERVICE.format(seconds=COMPUTES, mark=MARK.decode()))
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "penstock", "serve", "speed:service", f"unix://{path}"),
            *("--workers", str(workers)),
        ],
        cwd=folder,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert server.stderr is not None
    server.stderr.readline()
    try:
        clients = {
            each.socket.fileno(): each for each in [Client(path) for _ in range(CONNECTIONS)]
        }
        poll = select.epoll()
        for number in clients:
            poll.register(number, select.EPOLLIN)
        _count(poll, clients, WARM_UP)
        own, theirs = process_time(), processor_of(server.pid)
        count = _count(poll, clients, SECONDS)
        return (
            count / SECONDS,
            (processor_of(server.pid) - theirs) / count,
            (process_time() - own) / count,
        )
    finally:
        server.kill()
        server.wait()
        sleep(0.2)


def _count(poll: "select.epoll", clients: dict[int, Client], seconds: float) -> int:
    ends, count = monotonic() + seconds, 0
    while monotonic() < ends:
        for number, _ in poll.poll(0.1):
            count += clients[number].answer()
    return count


def main() -> None:
    """Measure, and print the table."""
    with TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            (one, cost, client), (two, _, _) = (
                answered(Path(folder), workers) for workers in (1, 2)
            )
            print(
                f"one worker {one:,.0f}/s, two workers {two:,.0f}/s: {two / one:.2f} x; a request "
                f"takes {cost * 1e6:.0f} us of a worker and {client * 1e6:.0f} us of the client: "
                f"on two processors without other work {2 * cost / (cost + client):.2f} x",
                flush=True,
            )


if __name__ == "__main__":
    main()
