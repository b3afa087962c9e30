"""A peer that is stopped is noticed within 45 s with the default limits, and a peer that answers
is kept, over each protocol.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost
from penstock.protocols import reactivesocket as rs
from penstock.protocols import rsio
from penstock.runtime import Service, serve, subscribe
from penstock.spi import Connection, TransportOptions, build_registry, parse_url
from penstock.testing import FrameList
from tests.runtime._services import raw_connection

WITHIN = 45.0
KEEPALIVE = rs.Ext(stream_id=0, ignore=True, ext_type=0x100, data=b"")


def quiet_service() -> Service:
    """Return a service whose publisher has one element, and never another."""
    service = Service()

    @service.publisher("quiet")
    async def quiet() -> AsyncIterator[bytes]:
        yield b"element"
        await trio.sleep_forever()

    return service


RS_CLIENT = b"".join(
    rs.encode(frame)
    for frame in (rs.Setup(), KEEPALIVE, rs.RequestStream(stream_id=1, demand=9, data=b"quiet"))
)
RSIO_CLIENT = rsio.encode(rsio.ClientHello(extensions=(1,))) + rsio.encode(
    rsio.Subscribe(publisher="quiet", subscriber=0, demand=9)
)


@pytest.mark.parametrize("hello", [RSIO_CLIENT, RS_CLIENT], ids=["RS.io", "ReactiveSocket"])
async def test_a_server_notices_a_client_that_is_stopped(
    hello: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    """The client had the keepalive and a stream, and sends nothing any more."""
    async with trio.open_nursery() as nursery, serve(quiet_service(), "memory://test") as server:
        raw = await raw_connection(nursery)
        await raw.send(hello)
        await trio.sleep(1)
        assert len(server.peers) == 1
        await trio.sleep(WITHIN)
        assert server.peers == ()
        await raw.abort()


Answer = Callable[[Connection], Awaitable[None]]


async def answer_rsio_hello(connection: Connection) -> None:
    await connection.send(rsio.encode(rsio.ServerHello(extensions=(1,))))
    await connection.send(
        rsio.encode(rsio.OnSubscribe(subscriber=0))
        + rsio.encode(rsio.OnNext(subscriber=0, element=b"element"))
    )


async def answer_with_keepalive(connection: Connection) -> None:
    await connection.send(
        rs.encode(KEEPALIVE) + rs.encode(rs.Response(stream_id=1, data=b"element"))
    )


async def answer_request(connection: Connection) -> None:
    await connection.send(rs.encode(rs.Response(stream_id=1, data=b"element")))


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        ("rsio", answer_rsio_hello),
        ("reactivesocket", answer_with_keepalive),
        ("reactivesocket", answer_request),
    ],
    ids=["RS.io", "ReactiveSocket with keepalive", "ReactiveSocket of another kind"],
)
async def test_a_client_notices_a_server_that_is_stopped(
    url: str, answer: Answer, autojump_clock: trio.testing.MockClock
) -> None:
    """The server has sent one element.
    A server without the keepalive would have had to answer a request for one value.
    """
    transport = build_registry().transport("memory")
    async with trio.open_nursery() as nursery:
        listener = await transport.listen(
            parse_url("memory://test"), options=TransportOptions(), nursery=nursery
        )

        async def be_stopped() -> None:
            connection = await listener.accept()
            await connection.receive()
            await answer(connection)
            await trio.sleep_forever()

        nursery.start_soon(be_stopped)
        async with subscribe(f"{url}+memory://test/quiet") as stream:
            assert await anext(stream) == b"element"
            stopped_at = trio.current_time()
            with pytest.raises(ConnectionLost, match=r"Limits\.keepalive"):
                await anext(stream)
            assert trio.current_time() - stopped_at <= WITHIN
        nursery.cancel_scope.cancel()
        await listener.aclose()


async def test_a_quiet_server_of_another_kind_is_kept(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It skips EXT frames, and answers each request for one value with an ERROR, for hours."""
    transport = build_registry().transport("memory")
    async with trio.open_nursery() as nursery:
        listener = await transport.listen(
            parse_url("memory://test"), options=TransportOptions(), nursery=nursery
        )
        probes = 0

        async def answer() -> None:
            nonlocal probes
            connection, frames = await listener.accept(), FrameList()
            decoder = rs.ReactiveSocketDecoder(frames, {})
            while data := await connection.receive():
                decoder.feed(bytes(data))
                for frame in frames.frames:
                    if isinstance(frame, rs.RequestStream):
                        await connection.send(
                            rs.encode(rs.Response(stream_id=frame.stream_id, data=b"element"))
                        )
                    elif isinstance(frame, rs.RequestResponse):
                        probes += 1
                        await connection.send(
                            rs.encode(rs.Error(stream_id=frame.stream_id, data=b"no such service"))
                        )
                frames.frames.clear()

        nursery.start_soon(answer)
        async with subscribe("reactivesocket+memory://test/quiet") as stream:
            assert await anext(stream) == b"element"
            with trio.move_on_after(2 * 3600) as waiting:
                await anext(stream)
            assert waiting.cancelled_caught
        assert probes > 300
        nursery.cancel_scope.cancel()
        await listener.aclose()
