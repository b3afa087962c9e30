"""Scene: the command `penstock` serves a live service,
and a subscriber reads it over each transport.
"""

import json
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import live_service
import trio
import trustme

import penstock
from demo_parts import programs
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "Over a network, with the command line"
STORY = """\
`penstock serve live_service:service tcp://… tls://… unix://…` runs as its own program, and so does one `penstock cat` for each
transport. First all of them read prices at 50 a second; then one after the other reads elements of 64 bytes at full speed."""
PRICES = "ticks/EURUSD?every=0.02"
TICKS = 120
ELEMENTS, SIZE = 100_000, 64
BLOCKS = f"blocks/{ELEMENTS}?size={SIZE}"
READ_SECONDS = 120.0


class Subscriber:
    """A `penstock cat` over one transport, and the elements that arrived."""

    def __init__(self, name: str, url: str, *arguments: str) -> None:
        self.name = name
        self.url = url  # the name of the publisher is appended to it
        self.arguments = arguments
        self.cat = programs.cat
        self.ticks: list[int] = []
        self.trouble = ""
        self.rate = 0.0
        self._rest = b""
        self._bytes = 0
        self._first = self._last = 0.0

    async def watch(self) -> None:
        """Read the prices."""
        with trio.move_on_after(READ_SECONDS) as limit:
            arguments = ("--format", "json", "--count", str(TICKS), *self.arguments)
            self.trouble = await self.cat(self.url + PRICES, *arguments, take=self.take_ticks)
        if limit.cancelled_caught:
            self.trouble = f"{len(self.ticks)} ticks in {READ_SECONDS:g} s"

    async def hurry(self) -> None:
        """Read elements at full speed."""
        with trio.move_on_after(READ_SECONDS) as limit:
            arguments = ("--format", "raw", "--demand", "1024", *self.arguments)
            self.trouble = self.trouble or await self.cat(
                self.url + BLOCKS, *arguments, take=self.take_bytes
            )
        if limit.cancelled_caught or self._bytes != ELEMENTS * SIZE:
            self.trouble = (
                self.trouble or f"{self._bytes // SIZE:,} of {ELEMENTS:,} elements arrived"
            )
        else:
            self.rate = ELEMENTS / (self._last - self._first)

    def take_ticks(self, data: bytes) -> None:
        """Keep the prices in `data`, one line of JSON each."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.ticks += [json.loads(line)["tick"] for line in lines]

    def take_bytes(self, data: bytes) -> None:
        """Count bytes, and the time from the first to the last."""
        self._last = trio.current_time()
        self._first = self._first or self._last
        self._bytes += len(data)

    def look(self) -> Gauge:
        """Return the gauge of this subscriber."""
        if self.rate:
            return Gauge(
                self.name, f"{self.rate:,.0f} elements a second", min(1.0, self.rate / 1e6)
            )
        return Gauge(
            self.name,
            self.trouble or f"{len(self.ticks)} of {TICKS} ticks",
            len(self.ticks) / TICKS,
        )

    def judge(self) -> Finding:
        """Return the finding: the elements that arrived, and their rate."""
        right = self.ticks == list(range(1, TICKS + 1)) and self.rate > 0
        seen = (
            f"{len(self.ticks)} ticks in order; then {ELEMENTS:,} elements, {self.rate:,.0f} a "
            "second"
        )
        trouble = self.trouble or f"ticks {self.ticks}"
        return Finding(
            f"all elements arrive over {self.name}", seen if right else trouble, shown=right
        )


class InProcess(Subscriber):
    """A subscriber inside this process, without `penstock cat`."""

    async def watch(self) -> None:
        """Read the prices."""
        with trio.move_on_after(READ_SECONDS):
            async with penstock.subscribe(self.url + PRICES, serializer="json") as stream:
                async for tick in stream:
                    self.ticks.append(tick["tick"])
                    if len(self.ticks) == TICKS:
                        break

    async def hurry(self) -> None:
        """Read elements at full speed."""
        with trio.move_on_after(READ_SECONDS):
            async with penstock.subscribe(self.url + BLOCKS, demand=1024) as stream:
                began = trio.current_time()
                count = sum([len(batch) async for batch in stream.batches()])
            self.rate = count / (trio.current_time() - began) if count == ELEMENTS else 0.0


def _subscribers(addresses: list[str], authority: Path) -> list[Subscriber]:
    tcp, tls, unix = addresses
    child = shlex.join(programs.penstock("serve", "--quiet", programs.SERVICE, "pipe:"))
    piped = Subscriber("pipe:", "pipe:#")
    piped.cat = programs.cat_through_pipes
    return [
        Subscriber("tcp://", f"{tcp}/"),
        Subscriber("tls://", f"{tls}/", "--tls-ca", str(authority)),
        Subscriber("unix://", f"{unix}#"),
        Subscriber("exec:", f"exec:{child}#"),
        piped,
        InProcess("memory://", "memory://live/"),
    ]


async def play(screen: Screen) -> list[Finding]:
    """Serve, read the prices over all transports at once, then at full speed over each in turn,
    and stop the server.
    """
    with tempfile.TemporaryDirectory() as folder:
        authority, certificate, socket = (
            Path(folder) / name for name in ("authority.pem", "server.pem", "live.sock")
        )
        ca = trustme.CA()
        ca.cert_pem.write_to_path(authority)
        ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
        urls = ("tcp://127.0.0.1:0", "tls://127.0.0.1:0", f"unix://{socket}")
        try:
            async with (
                penstock.serve(live_service.service, "memory://live"),
                programs.serving(*urls, "--tls-cert", str(certificate)) as server,
            ):
                subscribers = _subscribers(server.addresses, authority)
                await _read_all(screen, subscribers)
                status, seconds = await server.shut_down()
        except programs.DidNotStart as trouble:
            return [Finding("penstock serve starts", str(trouble), shown=False)]
        left = f", but {socket} is still there" if socket.exists() else ""
    goodbye = f"status {status}, {seconds * 1000:,.0f} ms after SIGTERM{left}"
    judged = [subscriber.judge() for subscriber in subscribers]
    return [
        *judged,
        Finding("the server shuts down with status 0", goodbye, shown=status == 0 and not left),
    ]


async def _read_all(screen: Screen, subscribers: list[Subscriber]) -> None:
    def look() -> Iterator[Gauge]:
        yield from (subscriber.look() for subscriber in subscribers)

    async with trio.open_nursery() as watchers:
        watchers.start_soon(screen.watch, look)
        async with trio.open_nursery() as nursery:
            for subscriber in subscribers:
                nursery.start_soon(subscriber.watch)
        for subscriber in subscribers:
            await subscriber.hurry()
        watchers.cancel_scope.cancel()
