"""Scene: the messages of a connection, and the elements in them, in several encodings."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "Encodings"
STORY = """\
The messages of RS.io are compact, or MessagePack, or protocol buffers: the client chooses. The elements in them are those of a
class, as JSON or MessagePack, or record batches of Arrow. The same quotes are read in each."""
QUOTES = 20_000
ROWS = 1_000


@dataclass
class Quote:
    """What is sent."""

    symbol: str
    price: float
    size: int


def missing() -> str:
    """Return why this scene cannot be played, or an empty text."""
    needed = ("penstock_msgpack", "penstock_protobuf", "penstock_arrow")
    lacking = [name.replace("_", "-") for name in needed if find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


def _quote(number: int) -> Quote:
    return Quote(f"S{number % 500}", 100 + number % 1_000 / 8, number)


EXPECTED = [_quote(number) for number in range(QUOTES)]


async def quotes() -> AsyncIterator[Quote]:
    """All quotes."""
    for quote in EXPECTED:
        yield quote


async def batches() -> AsyncIterator[Any]:
    """The same quotes, in record batches of `ROWS` rows."""
    import pyarrow as pa  # noqa: PLC0415  # 40 MiB; not before the scene begins

    rows = [vars(quote) for quote in EXPECTED]
    for begin in range(0, QUOTES, ROWS):
        yield pa.RecordBatch.from_pylist(rows[begin : begin + ROWS])


class _Reading:
    """One way to read the quotes, and how it went."""

    def __init__(self, messages: str, elements: str) -> None:
        self.messages = messages
        self.elements = elements
        self.is_right = False
        self.bytes = 0
        self.rate = 0.0

    async def read(self, url: str) -> None:
        """Read all quotes, and compare them."""
        encoding: dict[str, Any] = {}
        if self.messages != "compact":
            encoding["encoding"] = self.messages
        options: dict[str, Any] = {"serializer": self.elements, "demand": 1024}
        if self.elements != "arrow":
            options["type"] = Quote
        async with penstock.connect(url, **encoding) as peer:
            began, before = trio.current_time(), peer.statistics().received_bytes
            async with peer.subscribe(f"quotes/{self.elements}", **options) as stream:
                found = [element async for element in stream]
            self.rate = QUOTES / (trio.current_time() - began)
            self.bytes = peer.statistics().received_bytes - before
        if self.elements == "arrow":
            found = [Quote(**row) for batch in found for row in batch.to_pylist()]
        self.is_right = found == EXPECTED

    def look(self) -> Gauge:
        """Return the gauge of this way."""
        return Gauge(
            f"{self.messages}, {self.elements}",
            f"{self.bytes / QUOTES:.1f} bytes a quote, {self.rate:,.0f} a second",
            min(1.0, self.rate / 1e6),
        )

    def judge(self) -> Finding:
        """Return the finding: the quotes are equal, and what they cost."""
        return Finding(
            f"messages {self.messages}, elements {self.elements}: the same quotes",
            f"{QUOTES:,} {'equal' if self.is_right else 'NOT EQUAL'}; {self.bytes / QUOTES:.1f} "
            f"bytes a quote on the wire, {self.rate:,.0f} quotes a second",
            shown=self.is_right,
        )


async def play(screen: Screen) -> list[Finding]:
    """Read the quotes in each encoding."""
    service = penstock.Service()
    for name in ("json", "msgpack"):
        service.publisher(f"quotes/{name}", serializer=name, type=Quote)(quotes)
    service.publisher("quotes/arrow", serializer="arrow")(batches)
    ways = [
        _Reading("compact", "json"),
        _Reading("msgpack", "json"),
        _Reading("protobuf", "json"),
        _Reading("compact", "msgpack"),
        _Reading("compact", "arrow"),
    ]

    def look() -> Iterator[Gauge]:
        yield from (way.look() for way in ways if way.rate)

    async with (
        penstock.serve(service, "tcp://127.0.0.1:0") as server,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(screen.watch, look)
        for way in ways:
            await way.read(str(server.addresses[0]))
        nursery.cancel_scope.cancel()
    return [way.judge() for way in ways]
