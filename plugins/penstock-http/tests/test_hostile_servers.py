"""The client against servers that misbehave: each has a bound, and an error that says who must act."""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
import trustme
from penstock_http import HttpSource

from penstock import ConnectionLost, Limits, Rejected, remote, subscribe
from penstock.api import LimitExceeded, ProtocolError
from penstock.spi import (
    ByteConnection,
    PeerIdentity,
    Tls,
    TransportOptions,
    build_registry,
    hookimpl,
)

Clock = trio.testing.MockClock
PEER = PeerIdentity(address="memory://hostile")
CREATED = b"HTTP/1.1 201 x\r\nLocation: ../s/1\r\nContent-Length: 0\r\n\r\n"
BATCH = b"Content-Encoding: X-Rsio-LengthPrefixedElements\r\n"
ELEMENT = b"\0\0\0\x04spam"

Answer = Callable[[int], Iterator[bytes]]
"""Takes the number of a poll, from 0 on, and yields the bytes of its answer, without an end perhaps."""


class HostileServer:
    """A server in memory. It accepts each subscription, and `answer` makes the answers to polls."""

    def __init__(self, answer: Answer, nursery: trio.Nursery) -> None:
        self.polls = 0
        self.opened = 0
        self.sent = 0
        self.created = CREATED
        self.pause = 0.0
        """Seconds between two parts of an answer."""
        self._answer = answer
        self._nursery = nursery

    async def open(self, *_: Any) -> ByteConnection:
        self.opened += 1
        client, server = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self._serve, server)
        return ByteConnection(client, peer=PEER, options=TransportOptions())

    async def _serve(self, stream: Any) -> None:
        received = b""
        try:
            async for data in stream:
                received += data
                while b"\r\n\r\n" in received:
                    head, _, received = received.partition(b"\r\n\r\n")
                    if b"/p/" in head:
                        await stream.send_all(self.created)
                    elif b"/cancel" not in head:
                        number, self.polls = self.polls, self.polls + 1
                        for part in self._answer(number):
                            self.sent += len(part)
                            await stream.send_all(part)
                            await trio.sleep(self.pause)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await stream.aclose()

    @hookimpl
    def penstock_sources(self) -> list[HttpSource]:
        return [HttpSource(self.open)]


@asynccontextmanager
async def hostile(answer: Answer) -> AsyncIterator[HostileServer]:
    async with trio.open_nursery() as nursery:
        yield HostileServer(answer, nursery)
        nursery.cancel_scope.cancel()


async def read(server: HostileServer, **options: Any) -> list[bytes]:
    registry = build_registry([server], environ={"PENSTOCK_DISABLE_PLUGINS": "http"})
    got: list[bytes] = []
    async with subscribe("http://site/p/x", registry=registry, **options) as stream:
        async for element in stream:
            got.append(element)  # noqa: PERF401  # elements before an error count
    return got


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


def whole(body: bytes, *headers: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 x\r\nContent-Length: %d\r\n" % len(body) + b"".join(headers) + b"\r\n" + body
    )


def chunked(*headers: bytes) -> bytes:
    return b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n" + b"".join(headers) + b"\r\n"


@pytest.mark.parametrize("position", [b"X-Rsio-Position: 0\r\n", b""])
async def test_more_elements_than_were_requested_end_the_stream(
    position: bytes, autojump_clock: Clock
) -> None:
    """Rule 1.1, as over a connection of RS.io: a batch without end is not read on."""

    def answer(_: int) -> Iterator[bytes]:
        yield chunked(BATCH, position)
        while True:
            yield chunk(ELEMENT * 1000)

    async with hostile(answer) as server:
        with pytest.raises(ProtocolError, match=r"4 were requested \(rule 1\.1\)"):
            await read(server, demand=4)
    assert server.sent < 100_000


async def test_a_packed_batch_above_the_demand_is_not_cut_apart(autojump_clock: Clock) -> None:
    """A million elements of a byte would be a million objects."""

    def answer(_: int) -> Iterator[bytes]:
        body = b"\0\0\0\x01" + bytes(1_000_000)
        yield whole(body, b"Content-Encoding: X-Rsio-FixedSizeElements\r\n")

    async with hostile(answer) as server:
        with pytest.raises(ProtocolError, match=r"1,000,000 elements, and 4 were requested"):
            await read(server, demand=4)


async def test_a_batch_that_must_be_kept_whole_has_a_bound_in_bytes(autojump_clock: Clock) -> None:
    """A server without positions sends elements of 1 MiB; an answer of it counts when it ends."""

    def answer(_: int) -> Iterator[bytes]:
        yield chunked(BATCH)
        for _ in range(100):
            yield chunk(b"\0\x10\0\0" + bytes(1 << 20))

    async with hostile(answer) as server:
        with pytest.raises(LimitExceeded, match=r"4,194,304 are allowed \(Limits.unread_bytes\)"):
            await read(server, demand=100, limits=Limits(unread_bytes=4 << 20))


async def test_empty_batches_that_come_at_once_are_asked_for_with_pauses_and_not_for_ever(
    autojump_clock: Clock,
) -> None:
    """Half a second between two from the second one on, and twenty of them."""

    def answer(_: int) -> Iterator[bytes]:
        yield whole(b"", BATCH)

    async with hostile(answer) as server:
        began = trio.current_time()
        with pytest.raises(ProtocolError, match="21 polls in a row at once"):
            await read(server)
    assert server.polls == 21
    assert trio.current_time() - began >= 9


async def test_a_second_answer_is_not_taken_for_that_to_the_next_poll(
    autojump_clock: Clock,
) -> None:
    """It came with the first one, before its request."""

    def answer(number: int) -> Iterator[bytes]:
        yield whole(ELEMENT, BATCH) * (2 if number == 0 else 1)

    async with hostile(answer) as server:
        with pytest.raises(ProtocolError, match="an answer that no request had asked for"):
            await read(server, demand=1)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_second_answer_in_the_socket_is_found_before_the_next_poll(
    scheme: str, tmp_path: Path
) -> None:
    """It came after the first one had been read. Over TLS the socket also has session tickets,
    which are not taken for an answer.
    """
    polls = 0
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "roots.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    options = TransportOptions(tls=Tls(authorities=str(tmp_path / "roots.pem")))

    async def accept(stream: trio.SocketStream) -> None:
        await serve(
            stream if scheme == "http" else trio.SSLStream(stream, context, server_side=True)  # type: ignore[arg-type]  # it has the same methods
        )

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal polls
        with suppress(trio.BrokenResourceError):  # the client has left
            async for data in stream:
                if b"/p/" in data:
                    await stream.send_all(CREATED)
                elif b"/cancel" not in data:
                    polls += 1
                    await stream.send_all(whole(ELEMENT, BATCH))
                    if polls == 2:
                        await asked.wait()
                        await stream.send_all(whole(ELEMENT, BATCH))
                        sent.set()

    asked, sent = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, accept, 0)
        port = listeners[0].socket.getsockname()[1]
        url = f"{scheme}://127.0.0.1:{port}/p/x"
        async with subscribe(remote(url, options=options), demand=0) as stream:
            for _ in range(2):
                stream.request(1)
                assert await anext(stream) == b"spam"
            asked.set()
            await sent.wait()
            stream.request(1)
            with pytest.raises(ProtocolError, match="an answer that no request had asked for"):
                await anext(stream)
        nursery.cancel_scope.cancel()
    assert polls == 2


async def test_endless_extensions_of_chunks_are_not_read_for_ever(autojump_clock: Clock) -> None:
    """A byte of content in each 1,000."""

    def answer(_: int) -> Iterator[bytes]:
        yield chunked(BATCH) + chunk((1 << 20).to_bytes(4, "big"))
        while True:
            yield chunk(b"\0", b";x=" + b"y" * 1000)

    async with hostile(answer) as server:
        with pytest.raises(ProtocolError, match="bytes of framing for"):
            await read(server)
    assert server.sent < 1 << 20


async def test_small_chunks_are_read(autojump_clock: Clock) -> None:
    """A server may send each byte in its own chunk."""

    def answer(number: int) -> Iterator[bytes]:
        if number:
            yield b"HTTP/1.1 410 x\r\nContent-Length: 0\r\n\r\n"
            return
        yield chunked(BATCH)
        for byte in (20_000).to_bytes(4, "big") + bytes(20_000):
            yield chunk(bytes([byte]))
        yield b"0\r\n\r\n"

    async with hostile(answer) as server:
        assert await read(server) == [bytes(20_000)]


async def test_endless_interim_answers_are_not_read_for_ever(autojump_clock: Clock) -> None:
    """16 are, and a server sends one or two."""

    def answer(_: int) -> Iterator[bytes]:
        while True:
            yield b"HTTP/1.1 103 x\r\n\r\n"

    async with hostile(answer) as server:
        with pytest.raises(ProtocolError, match="more than 16 interim answers"):
            await read(server)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 x\r\nX-Slow: ", chunked() + b"4;extension="])
async def test_a_head_that_comes_byte_by_byte_is_given_up(
    head: bytes, autojump_clock: Clock
) -> None:
    """Each byte comes in time, and the rest of the head does not."""

    def answer(_: int) -> Iterator[bytes]:
        yield head
        for _ in range(10_000):
            yield b"a"

    async with hostile(answer) as server:
        server.pause = 5.0
        with pytest.raises(ConnectionLost, match="not the rest of it within 30 s"):
            await read(server)
    assert server.polls <= 8
    assert trio.current_time() < 300


async def test_a_body_that_comes_byte_by_byte_is_read(autojump_clock: Clock) -> None:
    """The limit of 30 s is for the head. A body may come over a slow link."""

    def answer(_: int) -> Iterator[bytes]:
        element = b"e" * 20
        yield b"HTTP/1.1 200 x\r\nX-Rsio-Position: 0\r\nContent-Length: %d\r\n\r\n" % len(element)
        for byte in element:
            yield bytes([byte])

    async with hostile(answer) as server:
        server.pause = 5.0
        registry = build_registry([server], environ={"PENSTOCK_DISABLE_PLUGINS": "http"})
        async with subscribe("http://site/p/x", registry=registry, demand=1) as stream:
            assert await anext(stream) == b"e" * 20


async def test_a_good_answer_without_a_subscription_says_that_it_is_none(
    autojump_clock: Clock,
) -> None:
    """An ordinary page answers like that: the user has written another URL."""
    async with hostile(lambda _: iter(())) as server:
        server.created = b"HTTP/1.1 201 x\r\nContent-Length: 0\r\n\r\n"
        with pytest.raises(Rejected, match="it is no publisher over HTTP"):
            await read(server)


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_server_that_cannot_be_reached_is_reported_at_once(
    hangs: bool, autojump_clock: Clock
) -> None:
    """No subscription exists that a later attempt could save. A name server that hangs has the time
    of a handshake.
    """

    def answer(_: int) -> Iterator[bytes]:
        yield b""

    async with hostile(answer) as server:

        async def open_nothing(*_: Any) -> ByteConnection:
            server.opened += 1
            if hangs:
                await trio.sleep_forever()
            raise ConnectionLost("nothing listens there")

        server.open = open_nothing  # type: ignore[method-assign]  # another server's method
        began = trio.current_time()
        with pytest.raises(ConnectionLost, match=r"did not answer|nothing listens"):
            await read(server)
    assert server.opened == 1
    assert trio.current_time() - began == pytest.approx(10 if hangs else 0, abs=0.1)


async def test_a_server_that_is_silent_on_a_subscribe_is_reported_soon(
    autojump_clock: Clock,
) -> None:
    """Once, and within `Limits.handshake_timeout`: no element is waited for, and there is no
    subscription that a repeated request would save.
    """
    opened = 0

    class Silent(HttpSource):
        def __init__(self) -> None:
            super().__init__(self.open)

        async def open(self, *_: Any) -> ByteConnection:
            nonlocal opened
            opened += 1
            client, server = trio.testing.memory_stream_pair()
            held.append(server)
            return ByteConnection(client, peer=PEER, options=TransportOptions())

    class Plugin:
        @hookimpl
        def penstock_sources(self) -> list[HttpSource]:
            return [Silent()]

    held: list[Any] = []
    registry = build_registry([Plugin()], environ={"PENSTOCK_DISABLE_PLUGINS": "http"})
    began = trio.current_time()
    with pytest.raises(ConnectionLost, match="did not answer the subscribe within 10"):
        async with subscribe("http://site/p/x", registry=registry) as stream:
            await anext(stream)
    assert opened == 1
    assert trio.current_time() - began < 11
