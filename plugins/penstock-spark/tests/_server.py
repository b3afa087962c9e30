"""A server for the tests, as a separate program: logs on disk with known elements.
`Served` starts and ends it.

The element at each position is a function of the position (`element_at`), so a test can say
which value belongs where.
"""

import argparse
import contextlib
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import trio

from penstock import DiskLog, Retention, RingLog, Service, serve
from penstock.logs import Log

AT_ONCE = 20_000
STREAM = "orders"
FIRST_TIME = 1_782_900_000
"""2026-07-01T10:00:00Z: the time of the first elements of a server with --minutes."""


def element_at(kind: str, partition: int, position: int) -> bytes:  # noqa: PLR0911  # one a kind
    """Return the element at a position."""
    number = position * 10 + partition
    if kind == "json":
        return json.dumps({"id": number, "name": f"name {number % 7}"}).encode()
    if kind == "mixed":
        return b"%d" % number + b"." * (number % 24)
    if kind == "grown":
        return bytes(1 if position < 64 else 1 << 20)
    if kind == "msgpack":
        import msgspec

        return msgspec.msgpack.encode(
            {"id": number, "name": f"name {number % 7}", "amount": number / 4}
        )
    if kind.isdigit():
        return b"%0*d" % (int(kind), number)
    if kind == "arrow":
        return _arrow_rows(number)
    return b"%032d" % number


def _arrow_rows(first: int) -> bytes:
    """Return 1,000 rows as an Arrow IPC stream."""
    import numpy as np
    import pyarrow as pa

    numbers = np.arange(first, first + 1_000)
    batch = pa.record_batch(
        {"id": numbers, "amount": numbers / 4, "twice": numbers * 2, "half": numbers // 2}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


async def fill(log: Log, kind: str, count: int, at_once: int = AT_ONCE) -> None:
    """Append up to `count` elements to each partition; elements that are there stay."""
    for index, partition in enumerate(log.partitions):
        for first in range(log.latest()[partition], count, at_once):
            last = min(first + at_once, count)
            await log.append(
                [element_at(kind, index, position) for position in range(first, last)],
                partition=partition,
            )


async def main() -> None:
    """Serve until the process is killed. Prints the port when it serves. A line of standard
    input appends up to that many elements.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", default="fixed")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--retains", type=int, default=100_000_000)
    parser.add_argument("--in-memory", action="store_true")
    # An append has as many elements, and comes a minute after the one before.
    parser.add_argument("--minutes", type=int, default=0)
    parser.add_argument("--token", default="")
    # The clock of the log is set back by an hour, ahead by a year and back again, in turns.
    parser.add_argument("--jumps", action="store_true")
    options = parser.parse_args()
    names = [str(options.first + number) for number in range(options.partitions)]
    retention = Retention(max_count=options.retains)
    seconds = itertools.count(FIRST_TIME, 60)
    clock = (lambda: float(next(seconds))) if options.minutes else time.time
    if options.jumps:
        places = itertools.cycle([0.0, -3_600.0, 31_536_000.0, 0.0])
        clock = lambda: time.time() + next(places)  # noqa: E731  # a name of the others
    async with contextlib.AsyncExitStack() as stack:
        if options.in_memory:
            log: Log = RingLog(retention=retention, partitions=names, clock=clock)
        else:
            path = Path(options.folder) / "orders.log"
            log = await stack.enter_async_context(
                DiskLog(path, retention=retention, partitions=names, clock=clock)
            )
        await fill(log, options.kind, options.count, options.minutes or AT_ONCE)
        token = options.token.encode()
        service = Service(
            describe=True,
            authenticate=(lambda scheme, data, peer: "ann" if data == token else None)
            if token
            else None,
        )
        service.publish(STREAM, log)

        @service.publisher("ticks")
        async def ticks():  # type: ignore[no-untyped-def]  # as programs have it
            for number in range(1_000_000):
                yield b"%d" % number

        async with serve(service, f"tcp://127.0.0.1:{options.port}") as server:
            print(str(server.addresses[0].port), flush=True)
            while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
                await fill(log, options.kind, int(line))
                print("filled", flush=True)


class Served:
    """The server, as a test uses it."""

    def __init__(
        self, folder: Path, *, in_memory: bool = False, jumps: bool = False, **options: int | str
    ) -> None:
        given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        self._command = [
            sys.executable,
            __file__,
            str(folder),
            *given,
            *["--in-memory"] * in_memory,
            *["--jumps"] * jumps,
        ]
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def uri(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, on the port of the last time if there was one, and wait until it serves."""
        self._process = subprocess.Popen(
            [*self._command, "--port", str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._line())

    def grow(self, count: int) -> None:
        """Append up to `count` elements to each partition."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        self._line()

    def kill(self) -> None:
        """Kill the process, as kill -9 does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()

    def _line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextlib.contextmanager
def served(folder: Path, **options: int | str) -> Iterator[Served]:
    """Serve for the length of a block."""
    server = Served(folder, **options)  # type: ignore[arg-type]  # of mixed types
    server.start()
    try:
        yield server
    finally:
        server.kill()


if __name__ == "__main__":
    trio.run(main)
