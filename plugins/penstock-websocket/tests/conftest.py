"""A client that sends any bytes, and a service for the tests."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
import trio
from wsproto.frame_protocol import FrameProtocol

import penstock
from penstock import Limits, Service
from penstock.spi import TransportOptions, open_tcp, parse_url

LIMITS = Limits(goodbye_timeout=0.5, linger=0.3)
KEY = "AAAAAAAAAAAAAAAAAAAAAA=="
HEADERS = {
    "Host": "127.0.0.1",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
}
HELLO = bytes.fromhex("01 00 00")
"""The hello of an RS.io client without extensions."""


class RawClient:
    """A TCP connection, and the frames that are easy to get wrong."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream

    async def send(self, data: bytes) -> None:
        """Send bytes unchanged. A server that has closed already is not an error."""
        with suppress(trio.BrokenResourceError):
            await self.stream.send_all(data)

    async def upgrade(self, **changes: str | None) -> str:
        """Ask for a WebSocket with changed headers, and return the status line.
        None leaves a header out.
        """
        headers = HEADERS | {name.replace("_", "-"): value for name, value in changes.items()}
        lines = [
            "GET / HTTP/1.1",
            *(f"{name}: {value}" for name, value in headers.items() if value is not None),
            "",
            "",
        ]
        await self.send("\r\n".join(lines).encode())
        return (await self.head()).partition("\r\n")[0]

    async def head(self) -> str:
        """Return the head of the response, byte by byte, so that no frame after it is lost."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = await self.stream.receive_some(1)
            if not byte:
                break
            head += byte
        return head.decode()

    async def frames(self) -> list[tuple[int, object]]:
        """Return all frames until the end of the connection:
        the opcode, and the payload or the code of a Close.
        """
        protocol = FrameProtocol(client=True, extensions=[])
        with suppress(trio.BrokenResourceError):
            while data := await self.stream.receive_some(1 << 16):
                protocol.receive_bytes(data)
        found: list[tuple[int, object]] = []
        for frame in protocol.received_frames():
            payload = frame.payload
            found.append(
                (int(frame.opcode), payload[0] if isinstance(payload, tuple) else bytes(payload))
            )
        return found


def frame(
    payload: bytes,
    *,
    opcode: int = 2,
    fin: bool = True,
    masked: bool = True,
    length: int | None = None,
    rsv: int = 0,
) -> bytes:
    """Return a frame of a client; `length` is announced instead of the payload's."""
    size = len(payload) if length is None else length
    short, long = (
        (size, b"")
        if size < 126
        else (126, size.to_bytes(2))
        if size < 1 << 16
        else (127, size.to_bytes(8))
    )
    head = bytes([(fin << 7) | rsv | opcode, (masked << 7) | short]) + long
    return head + (bytes(4) if masked else b"") + payload


Connect = Callable[[str], Awaitable[RawClient]]


@pytest.fixture
async def raw() -> AsyncIterator[Connect]:
    """A function that connects to a URL, by TCP alone."""
    clients = []

    async def connect(url: str) -> RawClient:
        stream, _ = await open_tcp(parse_url(url), TransportOptions())
        clients.append(RawClient(stream))
        return clients[-1]

    yield connect
    for client in clients:
        await client.stream.aclose()


@pytest.fixture
def serving() -> Callable[..., object]:
    """A function that serves `numbers/{count}`, `big` and `echo` at a URL, with short deadlines."""
    service = Service()

    @service.publisher("numbers/{count}", serializer="json")
    async def numbers(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number

    @service.publisher("big")
    async def big() -> AsyncIterator[bytes]:
        while True:
            yield bytes(100_000)

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    @asynccontextmanager
    async def serve(
        url: str = "ws://127.0.0.1:0", **options: object
    ) -> AsyncIterator[penstock.Server]:
        given = {"limits": LIMITS, "on_violation": lambda _: None} | options
        async with penstock.serve(service, url, **given) as server:
            yield server

    return serve


@pytest.fixture(name="frame")
def _frame() -> Callable[..., bytes]:
    return frame


@pytest.fixture
def hello() -> bytes:
    """The hello of an RS.io client."""
    return HELLO
