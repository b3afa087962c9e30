"""A subscription that reconnects goes on at the position of its next element,
if the publisher has positions.
"""

import pytest
import trio
from trio.testing import MockClock

from penstock.api import Positions, ProtocolError, Rejected, Subscriber
from penstock.core import Scope
from penstock.extensions import Position
from penstock.logs import Retention, RingLog
from penstock.runtime import Service, remote, serve, subscribe
from penstock.spi import Reconnect
from penstock.streams import Source, collect, from_iterable

KEEP_ALL = Retention(max_count=1_000_000)
PROTOCOLS = ("rsio", "reactivesocket")
POLICY = Reconnect(chance=lambda: 1.0)


async def filled(count: int) -> RingLog:
    """Return a log with the elements 0, 1, 2, …"""
    log = RingLog(retention=KEEP_ALL)
    await log.append([b"%d" % number for number in range(count)])
    return log


def service_of(log: RingLog) -> Service:
    service = Service()
    service.publish("orders", log)
    return service


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_reconnect_goes_on_where_the_stream_was(
    protocol: str, autojump_clock: MockClock
) -> None:
    """The server is stopped again and again with elements flowing:
    each element comes once, and no restart is counted.
    """
    log = await filled(0)
    count = 2_000
    running: list[trio.CancelScope] = []

    async def serve_again_and_again() -> None:
        while True:
            async with serve(service_of(log), "memory://again"):
                with trio.CancelScope() as scope:
                    running.append(scope)
                    await trio.sleep(0.7)
            await trio.sleep(0.1)

    async def append() -> None:
        for number in range(count):
            await log.append([b"%d" % number])
            await trio.sleep(0.01)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_again_and_again)
        nursery.start_soon(append)
        source = remote(f"{protocol}+memory://again/orders", start=0, stop=count, reconnect=POLICY)
        async with subscribe(
            f"{protocol}+memory://again/orders", start=0, stop=count, reconnect=POLICY, demand=16
        ) as stream:
            received = [int(element) async for element in stream]
            assert stream.position == count
            assert stream.restarts == 0
        assert received == list(range(count))
        assert len(running) > 10
        assert [int(each) for each in await collect(source)] == list(range(count))
        nursery.cancel_scope.cancel()


async def test_reconnect_needs_no_place_if_the_publisher_has_positions(
    autojump_clock: MockClock,
) -> None:
    """The answer of the first subscribe has the position, and `stop="latest"` is decided once."""
    log = await filled(500)

    async def serve_twice() -> None:
        async with serve(service_of(log), "memory://again"):
            await lost.wait()
        await log.append([b"500"])
        async with serve(service_of(log), "memory://again"):
            await trio.sleep_forever()

    lost = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_twice)
        async with subscribe(
            "memory://again/orders", stop="latest", reconnect=POLICY, demand=10
        ) as stream:
            received = [int(await anext(stream)) for _ in range(20)]
            lost.set()
            received += [int(element) async for element in stream]
        assert received == list(range(500))
        nursery.cancel_scope.cancel()


async def test_a_log_that_was_lost_ends_the_stream(autojump_clock: MockClock) -> None:
    """A server that comes back with an empty log does not have the positions: the subscriber is
    told, and gets no other elements.
    """
    full, empty = await filled(100), await filled(3)

    async def serve_both() -> None:
        async with serve(service_of(full), "memory://again"):
            await trio.sleep(1)
        async with serve(service_of(empty), "memory://again"):
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_both)
        with pytest.raises(
            Rejected, match=r"position 100; it has 0 up to, and not with, 3\. It does not exist yet"
        ):
            async with subscribe("memory://again/orders", reconnect=POLICY) as stream:
                async for _ in stream:
                    pass
        assert stream.position == 100
        nursery.cancel_scope.cancel()


class FixedNumbers(Source[bytes]):
    """Numbers of four bytes each, from a position on."""

    def __init__(self, positions: Positions) -> None:
        self.positions = positions

    def attach(self, subscriber: Subscriber[bytes], scope: Scope) -> None:
        numbers = range(self.positions.first, 100)
        from_iterable([number.to_bytes(4, "big") for number in numbers]).attach(subscriber, scope)


async def test_packed_elements_count_as_elements(autojump_clock: MockClock) -> None:
    """A publisher of another kind than a log may have positions too. Its elements come as
    memory, and are counted by their size.
    """
    service = Service()

    @service.publisher("fixed", element_size=4)
    def fixed(start: int = 0) -> Source[bytes]:
        return FixedNumbers(Positions(start, 0, 100))

    async def serve_twice() -> None:
        for stops in (lost, trio.Event()):
            async with serve(service, "memory://again", extensions=[Position()]):
                await stops.wait()

    lost = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_twice)
        async with subscribe(
            "memory://again/fixed", demand=10, reconnect=POLICY, extensions=[Position()]
        ) as stream:
            received = await anext(stream.buffers())
            assert stream.position == len(received) // 4
            lost.set()
            async for piece in stream.buffers():
                received += piece
        nursery.cancel_scope.cancel()
    assert received == b"".join(number.to_bytes(4, "big") for number in range(100))


async def test_a_publisher_that_begins_elsewhere_is_refused(autojump_clock: MockClock) -> None:
    """It says that its first element has another position than the requested one: no element is
    delivered.
    """
    service = Service()

    @service.publisher("liar", element_size=4)
    def liar(start: int) -> Source[bytes]:
        return FixedNumbers(Positions(start - 1, 0, 100))

    async with serve(service, "memory://again", extensions=[Position()]):
        with pytest.raises(ProtocolError, match="begins at position 4, and 5 was asked for"):
            async with subscribe(
                "memory://again/liar", start=5, reconnect=POLICY, extensions=[Position()]
            ) as stream:
                await anext(stream)
