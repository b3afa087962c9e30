"""A server of penstock on trio in a thread, for clients that block or run on asyncio;
and raw servers that misbehave.
"""

import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import trio
from penstock_tck.wire import rsio

import penstock
from penstock.spi import TransportOptions
from tests._real_time import HANGS_AFTER

SERVER_HELLO: Final = rsio.server_hello()
"""That of a server without extensions."""


@dataclass
class Quote:
    name: str
    price: int


class Served:
    """The requests and signals that the server has seen."""

    def __init__(self) -> None:
        self.most_outstanding = 0
        self.stopped: list[str] = []
        self.heard: list[Any] = []
        self.url = ""
        self.server: Any = None
        self._token: Any = None
        self._scope: Any = None

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run an async function in the server's thread."""
        return trio.from_thread.run(function, *arguments, trio_token=self._token)

    def soon(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Let a function run in the server's thread, soon."""
        self._token.run_sync_soon(function, *arguments)

    def stop(self) -> None:
        """Stop the server. It may have stopped before:
        its thread is alive for a little longer than its run.
        """
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._scope.cancel)


def service(served: Served) -> penstock.Service:  # noqa: C901  # a list of publishers
    made = penstock.Service()

    @made.publisher("numbers")
    async def numbers(count: int = 10, size: int = 0) -> AsyncIterator[bytes]:
        try:
            for number in range(count):
                yield b"%d" % number if not size else (b"%d" % number).rjust(size)
        finally:
            served.stopped.append("numbers")

    @made.publisher("packed", element_size=4)
    async def packed(count: int = 10) -> AsyncIterator[bytes]:
        for number in range(count):
            yield b"%04d" % number

    @made.publisher("quotes")
    async def quotes() -> AsyncIterator[Quote]:
        for number in range(3):
            yield Quote("EURUSD", number)

    @made.publisher("forever")
    async def forever() -> AsyncIterator[bytes]:
        number = 0
        try:
            while True:
                yield b"%d" % number
                number += 1
        finally:
            served.stopped.append("forever")

    @made.publisher("silent")
    async def silent() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await trio.sleep_forever()
        finally:
            served.stopped.append("silent")

    @made.publisher("burst")
    async def burst(sizes: str = "", end: str = "") -> AsyncIterator[bytes]:
        """Yield elements of the sizes that the text lists, and fail, or complete."""
        for number, size in enumerate(filter(None, sizes.split("."))):
            yield bytes([65 + number]) * int(size)
        if end:
            raise penstock.PublicError(end)

    @made.publisher("burst of fives", element_size=5)
    async def burst_of_fives(blocks: str = "", end: str = "") -> AsyncIterator[bytes]:
        """Yield blocks of as many elements as the text lists, and fail, or complete."""
        for number, count in enumerate(filter(None, blocks.split("."))):
            yield bytes([65 + number]) * (5 * int(count))
        if end:
            raise penstock.PublicError(end)

    @made.publisher("failing")
    async def failing() -> AsyncIterator[bytes]:
        yield b"one"
        raise penstock.PublicError("out of paper")

    _add_requests(made, served)
    _add_log(made)
    return made


def _add_log(made: penstock.Service) -> None:
    """Publish a log with ten elements in each of two partitions: number n has the time 1000 + n."""
    times = iter(range(20))
    log = penstock.RingLog(
        retention=penstock.Retention(max_count=100),
        partitions=["east", "west"],
        clock=lambda: 1_000.0 + next(times) // 2,
    )
    filled: list[bool] = []

    @made.request("fill the log")
    async def fill() -> bytes:
        for number in range(0 if filled else 10):
            for partition in log.partitions:
                await log.append([b"%d" % number], partition=partition)
        filled.append(True)
        return b"filled"

    made.publish("log", log)

    @made.publisher("no log")
    def no_log(positions: str, at: str) -> list[bytes]:
        return [b"7"]


def _add_requests(made: penstock.Service, served: Served) -> None:
    @made.request("echo")
    async def echo(payload: bytes = b"nothing") -> bytes:
        return payload

    here: list[trio.Event] = []

    @made.request("meet")
    async def meet(count: int) -> bytes:
        """Answer when `count` of these requests are here."""
        here.append(trio.Event())
        if len(here) == count:
            for event in here:
                event.set()
            here.clear()
        else:
            await here[-1].wait()
        return b"met"

    @made.request("never")
    async def never() -> bytes:
        try:
            await trio.sleep_forever()
        finally:
            served.stopped.append("never")

    @made.request("collect")
    async def collect(name: str = "", demand: int = 4) -> bytes:
        """Read a publisher of the client, and answer with its elements."""
        (client,) = served.server.peers
        async with client.subscribe(name, demand=demand) as stream:
            got = [element async for element in stream]
        return b",".join(got)

    @made.request("measure")
    async def measure(name: str = "") -> bytes:
        """Read a publisher of the client, and answer with the lengths of its elements, and with the
        text of its failure.
        """
        (client,) = served.server.peers
        got = []
        try:
            async with client.subscribe(name) as stream:
                async for element in stream:
                    got.append(str(len(element)))  # noqa: PERF401 (those before the failure count)
        except penstock.PublisherFailed as error:
            got.append(str(error))
        return ",".join(got).encode()

    @made.request("hold")
    async def hold(name: str = "", demand: int = 4) -> bytes:
        """Ask a publisher of the client for some elements, and read none of them."""
        (client,) = served.server.peers
        async with client.subscribe(name, demand=demand):
            await trio.sleep_forever()


def examining_service(_served: Served) -> penstock.Service:
    """Return a service whose clients show the token `swordfish`.
    It tells them how often it was asked.
    """
    made = penstock.Service(
        authenticate=lambda scheme, data, _peer: (
            (scheme, data) == ("bearer", b"swordfish") and "alice"
        )
    )
    asked: list[str] = []

    @made.request("count")
    async def count() -> str:
        asked.append("once")
        return str(len(asked))

    return made


@contextmanager
def serving(
    url: str = "tcp://127.0.0.1:0",
    *,
    make: Callable[[Served], penstock.Service] = service,
    options: TransportOptions | None = None,
    limits: penstock.Limits | None = None,
    credentials: penstock.Credentials | None = None,
) -> Iterator[Served]:
    """Run a server in a thread; yield its URL and its record."""
    served, ready = Served(), threading.Event()
    failures: list[BaseException] = []

    async def main() -> None:
        served._token = trio.lowlevel.current_trio_token()
        made = make(served)
        async with penstock.serve(
            made,
            url,
            options=options,
            limits=limits,
            credentials=credentials,
            on_violation=served.heard.append,
        ) as server:
            served.url, served.server = str(server.addresses[0]), server
            with trio.CancelScope() as served._scope:
                ready.set()
                await trio.sleep_forever()

    def run() -> None:
        try:
            trio.run(main)
        except BaseException as error:  # raised in the test
            failures.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(HANGS_AFTER)
    try:
        if failures:
            raise failures[0]
        yield served
    finally:
        if thread.is_alive():
            served.stop()
        thread.join(HANGS_AFTER)
        assert not thread.is_alive()


@contextmanager
def raw_server(script: Callable[[socket.socket], None]) -> Iterator[str]:
    """Accept clients one after another in a thread, and run `script` with each; yield the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        closing = threading.Event()

        def run() -> None:
            while True:
                try:
                    sock, _ = listening.accept()
                except OSError:
                    return
                if closing.is_set():
                    sock.close()
                    return
                with sock:
                    sock.settimeout(HANGS_AFTER)
                    with suppress(OSError):
                        script(sock)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            closing.set()
            with socket.create_connection(listening.getsockname()):  # ends accept()
                thread.join(HANGS_AFTER)
            assert not thread.is_alive()


def read_hello(sock: socket.socket) -> bytes:
    """Return what the client sends first."""
    return sock.recv(4096)
