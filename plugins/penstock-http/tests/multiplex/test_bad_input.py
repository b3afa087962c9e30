"""A server and clients that break a rule, over raw sockets. Each gets its answer; a stream of
another connection goes on meanwhile.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    ExtensionFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

import penstock
from penstock import Limits

CALM = "ENHANCE_YOUR_CALM"
FIELDS = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", "/")]
HEADERS = Encoder().encode(FIELDS)


@pytest.fixture
async def server(serving: Any) -> AsyncIterator[penstock.Server]:
    """A server of ``h2://`` with its own subscriber, whose stream must go on."""
    async with _beside_a_subscriber(serving, "h2://127.0.0.1:0") as server:
        yield server


@pytest.fixture(params=["h2", "http"])
async def either_server(
    serving: Any, request: pytest.FixtureRequest
) -> AsyncIterator[penstock.Server]:
    """A server of ``h2://``, and one of ``http://``, at whose port the same streams are served."""
    async with _beside_a_subscriber(serving, f"{request.param}://127.0.0.1:0") as server:
        yield server


@asynccontextmanager
async def _beside_a_subscriber(serving: Any, url: str) -> AsyncIterator[penstock.Server]:
    async with (
        serving(url) as server,
        penstock.connect(str(server.addresses[0]).replace("http:", "h2:")) as peer,
        peer.subscribe("big", demand=4) as stream,
    ):
        await anext(stream)
        yield server
        # During the attack and after it.
        for _ in range(20):
            assert await anext(stream) == bytes(100_000)


@pytest.mark.parametrize(
    ("first", "answer"),
    [
        (b"\x01\x00\x00" + bytes(30), b""),
        (b"\x16\x03\x01\x02\x00", b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 505 "),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\n\n", b""),
    ],
    ids=["RS.io", "TLS", "HTTP/1.1", "nearly HTTP/2"],
)
async def test_a_client_that_speaks_something_else_is_refused(
    server: penstock.Server, raw: Any, first: bytes, answer: bytes
) -> None:
    """A client of HTTP/1.1 gets an answer that it can show;
    the others get the end of the connection.
    """
    client = await raw(server.addresses[0], begins=False)
    await client.send(first)
    received = b""
    while data := await client.stream.receive_some():
        received += data
    assert received.startswith(answer)
    assert bool(received) == bool(answer)


def _open(stream_id: int, *more: tuple[str, str]) -> bytes:
    block = Encoder().encode([*FIELDS, *more]) if more else HEADERS
    return HeadersFrame(stream_id, block, flags=["END_HEADERS"]).serialize()


def _rapid_reset() -> bytes:
    return b"".join(
        _open(number) + RstStreamFrame(number, error_code=8).serialize()
        for number in range(1, 1001, 2)
    )


def _made_reset() -> bytes:
    # A client can also make the server reset its streams,
    # by an update of zero for example (CVE-2025-8671).
    zero = b"\x00\x00\x04\x08\x00"
    return b"".join(
        _open(number) + zero + number.to_bytes(4) + bytes(4) for number in range(1, 1001, 2)
    )


def _refused() -> bytes:
    block = Encoder().encode(
        [(":method", "GET"), (":scheme", "http"), (":authority", "x"), (":path", "/")]
    )
    return b"".join(
        HeadersFrame(number, block, flags=["END_HEADERS", "END_STREAM"]).serialize()
        for number in range(1, 401, 2)
    )


def _bomb() -> bytes:
    encoder = Encoder()
    block = encoder.encode(
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "x"),
            (":path", "/"),
            ("x", "y" * 4000),
        ]
    )
    return HeadersFrame(
        1, block + encoder.encode([("x", "y" * 4000)]) * 2000, flags=["END_HEADERS"]
    ).serialize()


ATTACKS: dict[str, tuple[bytes, set[str], str]] = {
    "rapid reset": (_rapid_reset(), {CALM}, "too many RST_STREAM frames"),
    "resets that the server is made to send": (_made_reset(), {"PROTOCOL_ERROR", CALM}, ""),
    "refused requests": (_refused(), {CALM}, "too many refused requests"),
    "pings": (PingFrame(0, b"12345678").serialize() * 200, {CALM}, "too many PING frames"),
    "settings": (
        SettingsFrame(0, settings={4: 70000}).serialize() * 200,
        {CALM},
        "too many SETTINGS frames",
    ),
    "many settings": (
        SettingsFrame(0, settings=dict.fromkeys(range(10, 60), 1)).serialize(),
        {CALM},
        "50 settings in one frame",
    ),
    "priorities": (
        PriorityFrame(1, depends_on=3).serialize() * 300,
        {CALM},
        "too many PRIORITY frames",
    ),
    "empty data": (_open(1) + DataFrame(1).serialize() * 300, {CALM}, "too many empty DATA frames"),
    "padding": (
        _open(1) + DataFrame(1, b"", flags=["PADDED"], pad_length=1).serialize() * 300,
        {CALM},
        "too many empty DATA frames",
    ),
    "window updates": (
        WindowUpdateFrame(0, window_increment=1).serialize() * 1500,
        {CALM},
        "too many WINDOW_UPDATE frames",
    ),
    "a window beyond its end": (
        WindowUpdateFrame(0, window_increment=2**31 - 1).serialize(),
        {"FLOW_CONTROL_ERROR"},
        "",
    ),
    "unknown frames": (
        ExtensionFrame(type=0xFB, stream_id=0, flag_byte=0, body=b"").serialize() * 200,
        {CALM},
        "unknown types",
    ),
    "continuations": (
        HeadersFrame(1, b"").serialize() + ContinuationFrame(1, b"").serialize() * 100,
        {CALM},
        "headers in more than 16 frames",
    ),
    "long headers": (
        HeadersFrame(1, bytes(9000)).serialize() + ContinuationFrame(1, bytes(9000)).serialize(),
        {CALM},
        "16384 bytes",
    ),
    "a bomb of headers": (_bomb(), {CALM}, ""),
    "headers that are no HPACK": (
        HeadersFrame(1, b"\xff" * 50, flags=["END_HEADERS"]).serialize(),
        {"PROTOCOL_ERROR"},
        "",
    ),
    "a transfer coding": (_open(1, ("transfer-encoding", "chunked")), {"PROTOCOL_ERROR"}, ""),
    "two hosts": (_open(1, ("host", "other")), {"PROTOCOL_ERROR"}, ""),
    "a long frame": (
        b"\xff\xff\xff\x00\x00\x00\x00\x00\x01",
        {"FRAME_SIZE_ERROR"},
        "16777215 bytes; 16384 are allowed",
    ),
    "too many streams": (
        b"".join(map(_open, range(1, 211, 2))),
        {"PROTOCOL_ERROR", "REFUSED_STREAM"},
        "",
    ),
    "data beyond the window": (
        _open(1) + DataFrame(1, bytes(16384)).serialize() * 5,
        {"FLOW_CONTROL_ERROR"},
        "",
    ),
    "data without a stream": (DataFrame(1, b"x").serialize(), {"PROTOCOL_ERROR"}, ""),
    "a promise of a client": (
        PushPromiseFrame(1, 2, HEADERS, flags=["END_HEADERS"]).serialize(),
        {"PROTOCOL_ERROR"},
        "",
    ),
    "a stream of the server": (_open(2), {"PROTOCOL_ERROR"}, ""),
    "another frame within headers": (
        HeadersFrame(1, HEADERS).serialize() + PingFrame(0).serialize(),
        {"PROTOCOL_ERROR"},
        "",
    ),
    "data that is longer than it says": (
        HeadersFrame(
            1,
            Encoder().encode(
                [
                    (":method", "POST"),
                    (":scheme", "http"),
                    (":authority", "x"),
                    (":path", "/"),
                    ("content-length", "1"),
                ]
            ),
            flags=["END_HEADERS"],
        ).serialize()
        + DataFrame(1, b"xy").serialize(),
        {"PROTOCOL_ERROR"},
        "",
    ),
}


OF_BYTES = {"refused requests", "data beyond the window"}
"""For streams of bytes alone: over HTTP each request has an answer, and a body is read
and dropped.
"""


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_flood_or_a_fault_gets_its_goaway(
    either_server: penstock.Server, raw: Any, attack: str
) -> None:
    """With the documented code and text. Then the connection ends, and its streams with it."""
    server = either_server
    if attack in OF_BYTES and str(server.addresses[0]).startswith("http:"):
        return
    data, codes, words = ATTACKS[attack]
    client = await raw(server.addresses[0])
    await client.send(data)
    code, text = await client.goaway()
    assert code in codes
    assert words in text
    await client.stream.aclose()  # the server waits for that, or for Limits.linger
    while len(server.peers) > 1 or server.statistics().handshaking:
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    "begins",
    [
        b"",
        b"PRI * HTTP/2.0",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        _open(1)[:9],
        _open(1),
    ],
    ids=["nothing", "a part of the preface", "no request", "a part of a frame", "no hello"],
)
async def test_silence_ends_in_time(serving: Any, raw: Any, begins: bytes) -> None:
    """Wherever a stranger stops. Another subscriber is served meanwhile."""
    limits = Limits(handshake_timeout=0.4, tls_timeout=0.3, goodbye_timeout=0.2, linger=0.1)
    async with serving(limits=limits) as server:
        client = await raw(server.addresses[0], begins=False)
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame(0).serialize()
        await client.send(begins if begins.startswith(b"PRI") or not begins else preface + begins)
        # On a busy machine this client may be too slow for the limit itself, and tries again.
        tries = penstock.Reconnect(attempts=20, first=0.01, most=0.1)
        async with penstock.subscribe(
            f"{server.addresses[0]}/numbers/3", serializer="json", reconnect=tries
        ) as stream:
            assert [number async for number in stream][-3:] == [0, 1, 2]
        while await _receives(client):
            pass
        while server.statistics().handshaking:
            await trio.lowlevel.checkpoint()


async def _receives(client: Any) -> bool:
    try:
        return bool(await client.stream.receive_some())
    except trio.BrokenResourceError:
        return False


# --- servers that break a rule


Play = Callable[[trio.SocketStream], Awaitable[None]]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the handshake of HTTP/2|opens no stream"),
        (
            SettingsFrame(0).serialize() + SettingsFrame(0, settings={3: 0}).serialize() * 200,
            "too many SETTINGS frames",
        ),
        (
            SettingsFrame(0).serialize()
            + PushPromiseFrame(1, 2, HEADERS, flags=["END_HEADERS"]).serialize(),
            "PROTOCOL_ERROR",
        ),
        (
            SettingsFrame(0).serialize() + RstStreamFrame(1, error_code=7).serialize(),
            r"the peer reset the stream \(REFUSED_STREAM\)",
        ),
        (
            SettingsFrame(0).serialize()
            + HeadersFrame(
                1, Encoder().encode([(":status", "502")]), flags=["END_HEADERS"]
            ).serialize(),
            "it answered the request with 502",
        ),
        (
            SettingsFrame(0).serialize() + b"\x00\x00\x0c\x07" + bytes(12) + b"\x0bcalm",
            "ended the connection with ENHANCE_YOUR_CALM: calm",
        ),
        (
            SettingsFrame(0).serialize() + b"\x00\x00\x08\x07" + bytes(13),
            "goes away, and has not looked at the request",
        ),
        (SettingsFrame(0).serialize(), "the peer ended the connection"),
    ],
    ids=[
        "HTTP/1.1",
        "settings",
        "a promise",
        "a reset",
        "another status",
        "an error",
        "a goaway",
        "the end",
    ],
)
async def test_a_server_that_opens_no_stream_is_a_lost_connection(
    answer: bytes, words: str
) -> None:
    """The message says what it did."""

    async def play(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)
        if answer == SettingsFrame(0).serialize():
            await stream.send_eof()
        while await stream.receive_some():
            pass

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(_listen, play)
        port = listeners[0].socket.getsockname()[1]
        with pytest.raises(penstock.ConnectionLost, match=words):
            async with penstock.connect(f"h2://127.0.0.1:{port}"):
                pass
        nursery.cancel_scope.cancel()


async def _listen(
    play: Play,
    *,
    task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED,
) -> None:
    async def handle(stream: trio.SocketStream) -> None:
        async with stream:
            with suppress(trio.BrokenResourceError):  # the client has left
                await play(stream)

    await trio.serve_tcp(handle, 0, host="127.0.0.1", task_status=task_status)
