"""Taps see each signal of a stream on both sides of a connection, in each form
that its elements travel in.
"""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.api import SignalKind
from penstock.logs import Retention, RingLog
from penstock.runtime import Service, connect, serve
from penstock.session import ReceivingStream
from penstock.spi import StreamOpened, build_registry, hookimpl
from tests.runtime._taps import ListTap, Taps

PROTOCOLS = pytest.mark.parametrize("scheme", ["memory", "reactivesocket+memory"])

LENGTHS = [1, 60, 0, 300, 64, 64, 64, 20_000, 5, 7, 70_000, 1, 2, 3]
ELEMENTS = [bytes(LENGTHS[number % len(LENGTHS)]) for number in range(700)]


def _service() -> Service:
    service = Service()

    @service.publisher("mixed")
    async def mixed() -> AsyncIterator[bytes]:
        for element in ELEMENTS:
            yield element

    @service.publisher("list")
    def from_list() -> list[bytes]:
        return ELEMENTS

    @service.publisher("fixed", element_size=8)
    async def fixed() -> AsyncIterator[bytes]:
        for number in range(3_000):
            yield number.to_bytes(8, "big")

    @service.publisher("json", serializer="json")
    async def json() -> AsyncIterator[dict[str, int]]:
        for number in range(300):
            yield {"number": number}

    @service.publisher("failing")
    async def failing() -> AsyncIterator[bytes]:
        yield b"one"
        raise ValueError("a secret")

    @service.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x"

    @service.request("answer")
    async def answer() -> int:
        return 42

    return service


@PROTOCOLS
@pytest.mark.parametrize("name", ["mixed", "list", "fixed", "json"])
@pytest.mark.parametrize("each_signal", [False, True])
async def test_both_taps_count_all_elements_and_their_bytes(
    scheme: str, name: str, *, each_signal: bool
) -> None:
    """The sums of both sides are equal, demand is never exceeded, and the rows begin
    and end as a stream does.
    """
    here, there = Taps(each_signal=each_signal), Taps(each_signal=each_signal)
    async with serve(_service(), f"{scheme}://tap", registry=there.registry()) as server:
        async with (
            connect(server.addresses[0], registry=here.registry()) as peer,
            peer.subscribe(name, serializer="bytes") as stream,
        ):
            elements = [element async for element in stream]
    (got,), (sent,) = here.taps, there.taps
    count = {"mixed": len(ELEMENTS), "list": len(ELEMENTS), "fixed": 3_000, "json": 300}[name]
    size = {
        "mixed": sum(map(len, ELEMENTS)),
        "list": sum(map(len, ELEMENTS)),
        "fixed": 24_000,
        "json": sum(map(len, elements)),
    }[name]
    for tap in (got, sent):
        assert tap.total(SignalKind.ON_NEXT) == count == len(elements)
        assert tap.size == size
        assert tap.kinds[:2] == [SignalKind.ON_SUBSCRIBE, SignalKind.REQUEST]
        assert tap.kinds[-1] is SignalKind.ON_COMPLETE
        assert (
            tap.kinds.count(SignalKind.ON_COMPLETE) == tap.kinds.count(SignalKind.ON_SUBSCRIBE) == 1
        )
        assert tap.most_beyond_demand() == 0
        assert all(row.first <= row.last for row in tap.rows)
        assert [row.first for row in tap.rows] == sorted(row.first for row in tap.rows)
    assert (got.event.outbound, sent.event.outbound) == (False, True)


@pytest.mark.parametrize("demand", [1, 8, 256, 8_192])
async def test_elements_of_a_log_are_counted_once(demand: int) -> None:
    """A log gives the last elements of a reservation as a list. The stream requests the next ones
    before it has taken that list, and the list is not counted again then.
    """
    there, count = Taps(), 2_000
    log = RingLog(retention=Retention(max_count=count))
    await log.append([b"%d" % number for number in range(count)])
    service = Service()
    service.publish("log", log)
    async with (
        serve(service, "memory://tap", registry=there.registry()),
        connect("memory://tap") as peer,
        peer.subscribe("log?start=0&stop=2000", demand=demand) as stream,
    ):
        assert len([element async for element in stream]) == count
    (sent,) = there.taps
    assert sent.total(SignalKind.ON_NEXT) == count
    assert sent.most_beyond_demand() == 0


@PROTOCOLS
async def test_a_request_by_name_is_seen_on_both_sides(scheme: str) -> None:
    """One request, one element, the end."""
    here, there = Taps(), Taps()
    async with serve(_service(), f"{scheme}://tap", registry=there.registry()) as server:
        async with connect(server.addresses[0], registry=here.registry()) as peer:
            assert await peer.request("answer", type=int) == 42
    for tap in (here.taps[0], there.taps[0]):
        assert tap.kinds[:3] == [SignalKind.ON_SUBSCRIBE, SignalKind.REQUEST, SignalKind.ON_NEXT]
        assert tap.total(SignalKind.ON_NEXT) == 1


@PROTOCOLS
async def test_a_failure_and_a_cancel_end_the_rows(scheme: str) -> None:
    """An error has its row on both sides, and so has a cancel; nothing follows either."""
    here, there = Taps(), Taps()
    async with serve(
        _service(), f"{scheme}://tap", registry=there.registry(), on_violation=lambda error: None
    ) as server:
        async with connect(server.addresses[0], registry=here.registry()) as peer:
            with pytest.raises(Exception, match="the publisher failed"):
                async with peer.subscribe("failing") as stream:
                    assert [element async for element in stream] == [b"one"]
            async with peer.subscribe("endless", demand=3) as stream:
                assert await anext(stream) == b"x"
    for taps in (here, there):
        failed, cancelled = taps.taps
        assert failed.kinds[-1] is SignalKind.ON_ERROR
        assert failed.total(SignalKind.ON_NEXT) == 1
        assert cancelled.kinds[-1] is SignalKind.CANCEL
        assert cancelled.most_beyond_demand() == 0


async def test_a_stream_that_begins_before_the_hello_has_all_its_rows() -> None:
    """The subscription and its first demand are shown as soon as the connection has a number."""
    here = Taps()
    async with (
        serve(_service(), "memory://tap") as server,
        connect(server.addresses[0], registry=here.registry()) as peer,
    ):
        # Behind connect() the hello has not come: the peer was not waited for.
        async with peer.subscribe("mixed", demand=500) as stream:
            assert [element async for element in stream] == ELEMENTS
    (tap,) = here.taps
    assert tap.kinds[:2] == [SignalKind.ON_SUBSCRIBE, SignalKind.REQUEST]
    assert tap.total(SignalKind.REQUEST) >= len(ELEMENTS)
    assert tap.most_beyond_demand() == 0


class _Picky:
    """A plugin that taps nothing, an object that is not a tap, or a tap that raises."""

    def __init__(self, tap: object) -> None:
        self.tap, self.asked = tap, 0

    @hookimpl
    def penstock_signals(self, event: StreamOpened) -> Any:
        self.asked += 1
        return self.tap


class _RaisingTap:
    each_signal = False

    def __init__(self) -> None:
        self.calls = 0

    def record(self, *row: int) -> None:
        self.calls += 1
        raise ValueError("a broken tap")


@PROTOCOLS
@pytest.mark.parametrize("kind", ["none", "wrong", "raises"])
async def test_a_stream_goes_on_without_a_tap_and_with_a_broken_one(
    scheme: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """None is silent; an object that is not a tap and a tap that raises are reported once,
    and the stream is whole.
    """
    raising = _RaisingTap()
    picky = _Picky({"none": None, "wrong": "a text", "raises": raising}[kind])
    caplog.set_level(logging.ERROR)
    async with serve(_service(), f"{scheme}://tap", registry=build_registry([picky])) as server:
        async with connect(server.addresses[0]) as peer, peer.subscribe("mixed") as stream:
            assert [element async for element in stream] == ELEMENTS
    assert picky.asked == 1
    texts = [record.getMessage() for record in caplog.records]
    if kind == "none":
        assert texts == []
    elif kind == "wrong":
        assert texts == [
            (
                "plugin '_Picky' raised in its observer of StreamOpened; later failures are "
                "logged as debug"
            )
        ]
        assert "returned str from penstock_signals" in str(caplog.records[0].exc_info)
    else:
        assert raising.calls == 1
        assert texts == [
            (
                "the tap of a stream raised ValueError: a broken tap; it gets no more rows of "
                "this stream"
            )
        ]


async def test_two_plugins_both_get_the_rows() -> None:
    """Taps of several plugins see the same rows."""
    one, other = Taps(), Taps()
    registry = build_registry([_Named(one, "one"), _Named(other, "other")])
    async with (
        serve(_service(), "memory://tap") as server,
        connect(server.addresses[0], registry=registry) as peer,
    ):
        async with peer.subscribe("json") as stream:
            assert len([element async for element in stream]) == 300
    assert one.taps[0].rows == other.taps[0].rows


class _Named:
    """A plugin with another name: a registry refuses two of one name."""

    def __init__(self, taps: Taps, name: str) -> None:
        self._taps, self.__name__ = taps, name

    @hookimpl
    def penstock_signals(self, event: StreamOpened) -> ListTap:
        return self._taps.penstock_signals(event)


async def test_a_stream_that_a_recorder_leaves_out_has_no_relay() -> None:
    """Neither the elements that arrive nor those that are served pass through one."""
    registry = build_registry([_Picky(None)])
    async with (
        serve(_service(), "memory://test", registry=registry) as server,
        connect("memory://test", registry=registry) as peer,
    ):
        await peer.wait_accepted()
        async with peer.subscribe("endless") as stream:
            await anext(stream)
            (received,) = peer._connection.session.streams.opened.values()
            assert isinstance(received, ReceivingStream)
            assert received._subscriber is stream
            (client,) = server.peers
            (served,) = client._connection.session.streams.serving.values()
            assert client._connection._events._tapped == {}
            assert served._upstream is not None
