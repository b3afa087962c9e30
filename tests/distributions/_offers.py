"""The server that the table of clients is made with, in a thread, at a URL of each kind."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import trio
from google.protobuf.wrappers_pb2 import StringValue

import penstock
from campaigns.resume._kills import tls_options
from penstock.spi import TransportOptions
from tests._real_time import HANGS_AFTER
from tests._relay import Relay, relaying

ELEMENTS = 300
"""Elements of the log, and of `numbers`."""

CUT_AT = 100
"""Elements that are read before a connection is cut."""

TOKEN = penstock.Credentials.bearer("swordfish")
PATIENT = penstock.Limits(handshake_timeout=HANGS_AFTER)


@dataclass
class Quote:
    name: str
    price: int


class World:
    """Where the server is reached."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tls: TransportOptions = tls_options(folder)
        self.urls: dict[str, str] = {}
        """By the scheme; `closed` wants credentials, and `resumed` goes on after a loss."""
        self.relays: dict[str, Relay] = {}
        """Relays to the server, by the name of its URL."""
        self.back: penstock.Server
        """The server at `back`. It has one client at a time, which it asks."""
        self.stop: Callable[[], None]


def _service(world: World, log: penstock.RingLog, received: penstock.RingLog) -> penstock.Service:  # noqa: C901  # a list of publishers
    made = penstock.Service()
    penstock.receive(made, "orders", received)
    made.publish("log", log)

    @made.publisher("numbers", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        for number in range(ELEMENTS):
            await trio.lowlevel.checkpoint()
            yield number

    @made.publisher("packed", element_size=4)
    async def packed() -> AsyncIterator[bytes]:
        yield b"0000" * ELEMENTS

    @made.publisher("raw")
    async def raw() -> AsyncIterator[bytes]:
        yield b"bytes"

    @made.publisher("quotes")
    async def quotes() -> AsyncIterator[Quote]:
        yield Quote("EURUSD", 108)

    @made.publisher("msgpack", serializer="msgpack")
    async def packs() -> AsyncIterator[list[int]]:
        yield [1, 2]

    @made.publisher("protobuf", type=StringValue, serializer="protobuf")
    async def messages() -> AsyncIterator[StringValue]:
        yield StringValue(value="hello")

    @made.publisher("arrow", serializer="arrow")
    async def tables() -> AsyncIterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"price": [1, 2, 3]})

    @made.publisher("silent")
    async def silent() -> AsyncIterator[bytes]:
        yield b"first"
        await trio.sleep_forever()

    @made.request("double")
    async def double(payload: int) -> int:
        return 2 * payload

    @made.request("never")
    async def never() -> int:
        await trio.sleep_forever()
        return 0

    @made.request("cut")
    async def cut(payload: str) -> str:
        """Cut the connections of a relay. This answer does not arrive over one of them."""
        world.relays[payload].cut()
        return "cut"

    @made.request("read")
    async def read(payload: str) -> str:
        """Read a publisher of the client."""
        (client,) = world.back.peers
        async with client.subscribe(payload) as stream:
            return b",".join([element async for element in stream]).decode()

    @made.request("ask")
    async def ask(payload: str) -> str:
        """Make a request of the client."""
        (client,) = world.back.peers
        return (await client.request(payload)).decode()

    return made


async def _serve(world: World, ready: threading.Event) -> None:
    log, received = (
        penstock.RingLog(retention=penstock.Retention(max_count=10_000)) for _ in range(2)
    )
    await log.append([b"%d" % number for number in range(ELEMENTS)])
    service = _service(world, log, received)
    closed = penstock.Service(
        authenticate=lambda scheme, data, _: (scheme, data) == ("bearer", b"swordfish") and "alice"
    )

    @closed.request("double")
    async def double(payload: int) -> int:
        return 2 * payload

    places = {
        **{name: f"{name}://127.0.0.1:0" for name in ("tcp", "tls", "ws", "wss", "h2", "http")},
        "unix": f"unix://{world.folder}/socket",
        "reactivesocket": "reactivesocket+tcp://127.0.0.1:0",
        "back": "tcp://127.0.0.1:0",
        "resumed": "tcp://127.0.0.1:0",
        "closed": "tcp://127.0.0.1:0",
        "closed ws": "ws://127.0.0.1:0",
    }
    async with AsyncExitStack() as stack:
        for name, url in places.items():
            server = await stack.enter_async_context(
                penstock.serve(
                    closed if name.startswith("closed") else service,
                    url,
                    options=world.tls if name in ("tls", "wss") else None,
                    limits=PATIENT,
                    credentials=TOKEN if name == "closed" else None,
                    resume=name == "resumed",
                )
            )
            world.urls[name] = str(server.addresses[0])
            if name == "back":
                world.back = server
        with trio.CancelScope() as scope:
            token = trio.lowlevel.current_trio_token()
            world.stop = lambda: token.run_sync_soon(scope.cancel)
            ready.set()
            await trio.sleep_forever()


@contextmanager
def offering(folder: Path) -> Iterator[World]:
    """Run the server, and relays to some of its URLs."""
    world, ready = World(folder), threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            trio.run(_serve, world, ready)
        except BaseException as error:  # raised in the test
            failures.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(HANGS_AFTER)
    try:
        if failures:
            raise failures[0]
        with ExitStack() as stack:
            for name in ("tcp", "resumed", "ws"):
                world.relays[name] = stack.enter_context(relaying(world.urls[name]))
            yield world
    finally:
        if thread.is_alive():
            world.stop()
        thread.join(HANGS_AFTER)
        assert not thread.is_alive()
