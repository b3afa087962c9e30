"""A server and clients that break a rule, over raw sockets. Each gets its answer and nothing
else; another subscriber is not affected.
"""

from collections.abc import Callable
from typing import Any

import pytest
import trio

import penstock
from penstock import Limits

Frame = Callable[..., bytes]
BINARY, CLOSE, PONG = 2, 8, 10


@pytest.fixture
async def server(serving: Any) -> Any:
    async with serving() as server:
        yield server


async def _still_serves(server: penstock.Server) -> None:
    async with penstock.subscribe(f"{server.addresses[0]}/numbers/3", serializer="json") as stream:
        assert [number async for number in stream] == [0, 1, 2]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x01\x00\x00", "400"),
        (b"\x16\x03\x01\x02\x00", "400"),
        (b"GET / HTTP/1.1\r\n\r\n", "400"),
        (b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * (17 << 10), "431"),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 101 + b"\r\n", "431"),
    ],
    ids=[
        "RS.io",
        "TLS",
        "no host",
        "HTTP/1.0",
        "no upgrade",
        "HTTP/2",
        "long headers",
        "many headers",
    ],
)
async def test_a_client_that_asks_for_no_websocket_gets_a_response_of_http(
    server: Any, raw: Any, request_bytes: bytes, status: str
) -> None:
    """Then the end of the connection."""
    client = await raw(server.addresses[0])
    await client.send(request_bytes)
    assert (await client.head()).startswith(f"HTTP/1.1 {status} ")
    await _still_serves(server)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Sec_WebSocket_Key": "AAAA"}, "400"),
        ({"Sec_WebSocket_Version": "8"}, "426"),
        ({"Sec_WebSocket_Protocol": "mqtt"}, "400"),
        ({"Sec_WebSocket_Protocol": "rsio.v0+unknown"}, "400"),
        ({"Origin": "https://evil.example"}, "403"),
        ({"Origin": "null"}, "403"),
        ({"Host": "evil.example"}, "421"),
    ],
    ids=str,
)
async def test_a_refused_request_has_its_status(
    server: Any, raw: Any, changes: dict[str, str], status: str
) -> None:
    """And the connection ends: a refused page can send nothing."""
    client = await raw(server.addresses[0])
    assert (await client.upgrade(**changes)).startswith(f"HTTP/1.1 {status} ")
    await _still_serves(server)


async def test_compression_is_not_accepted(
    server: Any, raw: Any, frame: Frame, hello: bytes
) -> None:
    """A client that offers it is accepted without it; a frame that uses it is a broken rule."""
    client = await raw(server.addresses[0])
    await client.send(b"")
    head = await client.upgrade(
        Sec_WebSocket_Extensions="permessage-deflate; client_max_window_bits"
    )
    assert head.startswith("HTTP/1.1 101 ")
    await client.send(frame(hello) + frame(b"x", rsv=0x40))
    assert (await client.frames())[-1] == (CLOSE, 1002)


BEFORE_THE_HELLO = {
    "text": (lambda frame: frame(b"text", opcode=1), 1003),
    "text, its first fragment": (lambda frame: frame(b"", opcode=1, fin=False), 1003),
    "no mask": (lambda frame: frame(b"\x01", masked=False), 1002),
    "a reserved bit": (lambda frame: frame(b"\x01", rsv=0x20), 1002),
    "an unknown opcode": (lambda frame: frame(b"\x01", opcode=5), 1002),
    "a continuation of nothing": (lambda frame: frame(b"\x01", opcode=0), 1002),
    "a long control frame": (lambda frame: frame(bytes(126), opcode=9), 1002),
    "a Close with a forbidden code": (lambda frame: frame(b"\x03\xed", opcode=8), 1002),
    "a Close that is not UTF-8": (lambda frame: frame(b"\x03\xe8\xff", opcode=8), 1007),
    "an announced MiB": (lambda frame: frame(b"\x01", length=1 << 20), 1009),
    "more than preauth_bytes in fragments": (
        lambda frame: frame(b"\x01", fin=False) + frame(b"", opcode=0, length=4096),
        1009,
    ),
    "fragments without end": (
        lambda frame: frame(b"", fin=False) + frame(b"", opcode=0, fin=False) * 2000,
        1008,
    ),
    "empty messages": (lambda frame: frame(b"") * 2000, 1008),
    "pings": (lambda frame: frame(b"", opcode=9) * 200, 1008),
    "pongs": (lambda frame: frame(b"", opcode=10) * 200, 1008),
}


@pytest.mark.parametrize("case", BEFORE_THE_HELLO)
@pytest.mark.parametrize("subprotocol", ["rsio.v0", "reactivesocket.v0", None])
async def test_a_stranger_that_breaks_a_rule_gets_a_close_frame(
    server: Any, raw: Any, frame: Frame, case: str, subprotocol: str | None
) -> None:
    """With its code, and no goodbye before it."""
    make, code = BEFORE_THE_HELLO[case]
    client = await raw(server.addresses[0])
    await client.upgrade(Sec_WebSocket_Protocol=subprotocol)
    await client.send(make(frame))
    found = await client.frames()
    assert [each for each in found if each[0] != PONG] == [(CLOSE, code)]
    await _still_serves(server)


AFTER_THE_HELLO = {
    "text": (lambda frame: frame(b"text", opcode=1), 1003),
    "a message of more than max_message": (
        lambda frame: frame(b"\x10", length=(1 << 20) + 1),
        1009,
    ),
    "fragments without end": (
        lambda frame: frame(b"", fin=False) + frame(b"", opcode=0, fin=False) * 2000,
        1008,
    ),
    "a Close that is not UTF-8": (lambda frame: frame(b"\x03\xe8\xff", opcode=8), 1007),
    "pings": (lambda frame: frame(b"", opcode=9) * 200, 1008),
}


@pytest.mark.parametrize("case", AFTER_THE_HELLO)
async def test_a_client_that_breaks_a_rule_of_websocket_gets_no_goodbye(
    server: Any, raw: Any, frame: Frame, hello: bytes, case: str
) -> None:
    """The hello of the server, pongs, and a Close frame."""
    make, code = AFTER_THE_HELLO[case]
    client = await raw(server.addresses[0])
    await client.upgrade(Sec_WebSocket_Protocol="rsio.v0")
    await client.send(frame(hello) + make(frame))
    found = await client.frames()
    assert found[0][0] == BINARY
    assert found[-1] == (CLOSE, code)
    assert {opcode for opcode, _ in found[1:-1]} <= {PONG}
    await _still_serves(server)


@pytest.mark.parametrize(
    ("data", "reason", "code"),
    [
        (b"\x7f" * 40, b"protocol:", 1002),
        (bytes.fromhex("10 ffffffffffffffff7f"), b"limit:", 1008),
        (bytes.fromhex("03 00"), b"", 1000),
    ],
    ids=["protocol", "limit", "goodbye"],
)
async def test_the_code_of_a_close_follows_the_goodbye(
    server: Any, raw: Any, frame: Frame, hello: bytes, data: bytes, reason: bytes, code: int
) -> None:
    """1002 for a broken rule of the protocol, 1008 for a limit, 1000 for a goodbye of the
    client. The goodbye comes first.
    """
    client = await raw(server.addresses[0])
    await client.upgrade(Sec_WebSocket_Protocol="rsio.v0")
    await client.send(frame(hello) + frame(data))
    found = await client.frames()
    assert found[-1] == (CLOSE, code)
    goodbye = b"".join(payload for opcode, payload in found if opcode == BINARY)
    assert reason in goodbye
    assert b"\x03" in goodbye


@pytest.mark.parametrize(
    ("subprotocol", "first", "answer"),
    [
        ("rsio.v0", bytes.fromhex("00 00 0001 00000000"), b"\x03"),
        ("reactivesocket.v0", bytes.fromhex("01 00 00 00 00 00 00 00"), b"protocol:"),
        ("rsio.v0", b"GET / HTTP/1.1\r\n\r\n", b""),
    ],
)
async def test_a_first_byte_of_another_protocol_is_refused_in_the_words_of_the_chosen_one(
    server: Any, raw: Any, frame: Frame, subprotocol: str, first: bytes, answer: bytes
) -> None:
    """A goodbye of RS.io, an ERROR of ReactiveSocket. Then a Close with 1002."""
    client = await raw(server.addresses[0])
    await client.upgrade(Sec_WebSocket_Protocol=subprotocol)
    await client.send(frame(first))
    found = await client.frames()
    assert found[-1] == (CLOSE, 1002)
    assert answer in found[0][1] if len(found) > 1 else not answer


async def test_a_second_frame_in_a_message_of_reactivesocket_is_refused(
    server: Any, raw: Any, frame: Frame
) -> None:
    """One message is one frame: the frame's own length rule judges."""
    setup = bytes.fromhex("00 00 0001 00000000 00000000 00000000 00000000")
    client = await raw(server.addresses[0])
    await client.upgrade(Sec_WebSocket_Protocol="reactivesocket.v0")
    cancel = bytes.fromhex("00 00 0015 00000001")
    await client.send(frame(setup) + frame(cancel) + frame(cancel + cancel))
    found = await client.frames()
    assert found[-1] == (CLOSE, 1002)
    assert b"protocol:length" in found[0][1]


async def test_the_end_of_tcp_without_a_close_frame_is_a_lost_connection(
    serving: Any, raw: Any, frame: Frame, hello: bytes
) -> None:
    """The server drops the connection, and serves the others."""
    async with serving() as server:
        client = await raw(server.addresses[0])
        await client.upgrade(Sec_WebSocket_Protocol="rsio.v0")
        await client.send(frame(hello))
        while not server.peers:
            await trio.testing.wait_all_tasks_blocked()
        await client.stream.send_eof()
        await client.frames()
        while server.peers:
            await trio.testing.wait_all_tasks_blocked()
        await _still_serves(server)


@pytest.mark.parametrize(
    "say", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", "upgrade", "upgrade and half a frame"], ids=repr
)
async def test_silence_ends_the_handshake_in_time(
    serving: Any, raw: Any, frame: Frame, say: bytes | str
) -> None:
    """Before TCP has brought a byte, within the request, and before or within the first message."""
    async with serving(limits=Limits(handshake_timeout=0.6, tls_timeout=0.3)) as server:
        client = await raw(server.addresses[0])
        if isinstance(say, bytes):
            await client.send(say)
        else:
            await client.upgrade()
            await client.send(frame(b"\x01", length=3) if "half" in say else b"")
        await client.frames()
        assert not server.peers


async def test_a_peer_that_closes_gets_a_close_frame_also_across_a_fast_stream(
    server: Any, raw: Any, frame: Frame, hello: bytes
) -> None:
    """The frame that is being sent is sent to its end, the Close frame follows,
    and nothing follows that.
    """
    client = await raw(server.addresses[0])
    await client.upgrade(Sec_WebSocket_Protocol="rsio.v0")
    subscribe = b"\x10\x03big\x00" + b"\xff" * 8 + b"\x7f"
    await client.send(frame(hello) + frame(subscribe))
    # The buffers of the system are full: the server is within a frame.
    await trio.testing.wait_all_tasks_blocked(0.05)
    await client.send(frame(b"\x03\xe9", opcode=8))
    found = await client.frames()
    assert found[-1] == (CLOSE, 1001)
    assert [opcode for opcode, _ in found].count(CLOSE) == 1
