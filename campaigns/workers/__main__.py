"""Kill workers under load, and hand over to the next version of the program. Print the figures.

Readers follow a log from its first element, one of them over connections that can be resumed.
Others connect, ask, and leave. `python -m campaigns workers` kills 100 workers and hands over 20
times, by turns with SIGHUP and with a second start. It exits with 1 if a reader has lost or
repeated an element, or if a client was refused during a handover.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

import trio

import penstock.blocking
from campaigns.workers._signals import with_signals
from penstock import Peer, Reconnect

GIVE_UP = 120.0
"""Seconds after which something that is waited for will not come."""


class Server:
    """The parent that serves, one after another."""

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder}/served.sock"
        self._folder = folder
        self._log = folder / "stderr"
        self.process = self._start()
        self.wait_for("serving at ")

    def _start(self) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "CAMPAIGN_LOG": str(self._folder / "numbers.log")}
        with self._log.open("ab") as file:
            return subprocess.Popen(
                with_signals(
                    [
                        sys.executable,
                        "-m",
                        "campaigns.workers._program",
                        self.url,
                        str(self._folder / "handover"),
                    ]
                ),
                stderr=file,
                env=environment,
            )

    @property
    def log(self) -> str:
        """What it has written."""
        return self._log.read_text()

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until it has written `text` that many times."""
        wait_until(lambda: self.log.count(text) >= count, lambda: self.log)

    def workers(self) -> list[int]:
        """The processes of its workers."""
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(child) for file in children for child in file.read_text().split()]

    def renew(self) -> None:
        """Hand over with SIGHUP."""
        count = self.log.count("the next version serves")
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("the next version serves", count + 1)

    def follow(self) -> None:
        """Hand over to a second start."""
        first, count = self.process, self.log.count("serving at ")
        self.process = self._start()
        self.wait_for("serving at ", count + 1)
        if first.wait(GIVE_UP):
            raise AssertionError(self.log)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()

    def end(self) -> int:
        """End it, and return its status."""
        self.process.terminate()
        return self.process.wait(GIVE_UP)


def wait_until(is_true: Callable[[], bool], told: Callable[[], object]) -> None:
    """Wait until something is so."""
    ends = monotonic() + GIVE_UP
    while not is_true():
        if monotonic() > ends:
            raise AssertionError(told())
        sleep(0.02)


class Reader:
    """Follows the log from its first element."""

    def __init__(self, url: str, *, resume: bool) -> None:
        self._url = url
        self.resumed = 0
        self._read = self._cut_and_resume if resume else self._reconnect
        self.received: list[int] = []
        self.failure: BaseException | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._read()
        except BaseException as error:
            self.failure = error

    def _reconnect(self) -> None:
        with (
            penstock.blocking.connect(self._url, reconnect=Reconnect(most=0.2)) as peer,
            peer.subscribe("numbers", start=0) as stream,
        ):
            for element in stream:
                self.received.append(int(element))
                if self._ends.is_set():
                    return

    def _cut_and_resume(self) -> None:
        trio.run(self._resume)

    async def _resume(self) -> None:
        """Read over connections that are cut again and again, and go on with another one if the
        worker has died that holds them.
        """
        while not self._ends.is_set():
            try:
                async with penstock.connect(self._url, resume=True) as peer:
                    await self._read_cut(peer)
            except* (penstock.ConnectionLost, penstock.Rejected):
                await trio.sleep(0.05)

    async def _read_cut(self, peer: Peer) -> None:
        async with (
            peer.subscribe("numbers", start=len(self.received)) as stream,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._cut, peer)
            try:
                async for element in stream:
                    self.received.append(int(element))
                    if self._ends.is_set():
                        break
            finally:
                self.resumed += peer.statistics().resumed
                nursery.cancel_scope.cancel()

    async def _cut(self, peer: Peer) -> None:
        while True:
            await trio.sleep(0.2)
            await peer._connection.connection.abort()

    def end(self) -> int:
        """Return how many elements were lost or repeated."""
        self._ends.set()
        self._thread.join(GIVE_UP)
        if self.failure is not None:
            print("a reader has failed:", repr(self.failure))
            return 1
        if self.received != list(range(len(self.received))):
            print("not in order:", len(self.received), "elements")
            return 1
        return 0


class Visitor:
    """Connects, asks and leaves, again and again."""

    def __init__(self, url: str, *, is_refused: Callable[[BaseException], object]) -> None:
        self._url = url
        self._is_refused = is_refused
        self.visits = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                with penstock.blocking.connect(self._url) as peer:
                    peer.request("who")
                self.visits += 1
            except penstock.PenstockError as error:
                self._is_refused(error)

    def end(self) -> None:
        """Let it end."""
        self._ends.set()
        self._thread.join(GIVE_UP)


@contextmanager
def crowd(url: str, refused: list[BaseException]) -> Iterator[list[Visitor]]:
    """Visitors for the length of a block."""
    visitors = [Visitor(url, is_refused=refused.append) for _ in range(2)]
    try:
        yield visitors
    finally:
        for visitor in visitors:
            visitor.end()


def have_more(visitors: list[Visitor], before: list[int]) -> bool:
    """Whether each visitor has been answered since then."""
    return all(visitor.visits > count for visitor, count in zip(visitors, before, strict=True))


def kill(server: Server, kills: int, chance: random.Random) -> tuple[int, int]:
    """Kill workers; return the visits, and how many found no answer: a client that was served when
    its worker was killed has lost its connection.
    """
    refused: list[BaseException] = []
    with crowd(server.url, refused) as visitors:
        for number in range(1, kills + 1):
            wait_until(lambda: len(server.workers()) == 2, lambda: server.log)
            # Some of them have just begun, and die before they serve.
            sleep(chance.uniform(0.2, 2.5))
            os.kill(chance.choice(server.workers()), signal.SIGKILL)
            server.wait_for("was ended by SIGKILL", number)
    return sum(visitor.visits for visitor in visitors), len(refused)


def hand_over(server: Server, handovers: int) -> tuple[int, list[BaseException]]:
    """Hand over; return the visits, and what clients that were refused have got."""
    refused: list[BaseException] = []
    with crowd(server.url, refused) as visitors:
        for number in range(handovers):
            (server.follow if number % 2 else server.renew)()
            before = [visitor.visits for visitor in visitors]
            wait_until(partial(have_more, visitors, before), lambda: server.log)
    return sum(visitor.visits for visitor in visitors), refused


def run(kills: int, handovers: int, seed: int) -> int:
    """Run, print the figures, and return the number of faults."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        server = Server(Path(folder))
        stack.callback(server.kill)
        readers = [Reader(server.url, resume=resume) for resume in (False, False, True)]
        began = monotonic()
        visits, lost = kill(server, kills, random.Random(seed))
        print(
            f"{kills} workers killed in {monotonic() - began:.0f} s: {visits:,} clients were "
            f"answered, {lost} lost the worker that served them",
            flush=True,
        )
        began = monotonic()
        visits, refused = hand_over(server, handovers)
        for error in refused[:5]:
            print("refused:", error)
        print(
            f"{handovers} handovers in {monotonic() - began:.0f} s: {visits:,} clients were "
            f"answered, {len(refused)} refused",
            flush=True,
        )
        faults = len(refused) + sum(reader.end() for reader in readers)
        if faults:
            print(server.log)
        shortest = min(len(reader.received) for reader in readers)
        status = server.end()
        print(
            f"{len(readers)} readers of at least {shortest:,} elements, {readers[-1].resumed} "
            f"connections resumed, status {status}, {faults} faults"
        )
        return faults + (status != 0) + (shortest == 0)


def main(argv: list[str]) -> int:
    """Run the campaign, and return the exit code."""
    parser = argparse.ArgumentParser(prog="campaigns workers", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="workers to kill (default: 100)")
    parser.add_argument("--handovers", type=int, default=20, help="handovers (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of workers (default: 0)")
    options = parser.parse_args(argv)
    return 1 if run(options.kills, options.handovers, options.seed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
