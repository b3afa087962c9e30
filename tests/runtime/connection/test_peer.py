"""The peer as a program sees it."""

from time import monotonic
from typing import Any

import pytest
import trio
import trio.testing

import penstock
from penstock.api import ConnectionLost, ProtocolError, StreamState, Subscription, UsageError
from penstock.core import Stream
from penstock.elements import JsonSerializer
from penstock.runtime import Service, connect, serve
from penstock.runtime.connection._decoder import Decoder
from penstock.testing import ManualSubscriber
from tests.runtime._services import numbers_service


async def test_a_peer_has_an_identity_and_tells_whether_it_is_connected() -> None:
    """Before and after the end."""
    async with serve(numbers_service(), "memory://test") as server:
        async with connect(server.addresses[0]) as peer:
            await peer.wait_accepted()
            assert peer.is_connected
            assert "memory" in peer.identity.address
            assert repr(peer).startswith("<peer ")
        assert not peer.is_connected
        assert repr(peer).endswith(", gone>")
        with pytest.raises(ConnectionLost):
            await peer.wait_accepted()


async def test_a_stream_on_a_connection_that_is_gone_fails_at_once() -> None:
    """Its error tells why the connection ended."""
    async with serve(numbers_service(), "memory://test") as server:
        async with connect(server.addresses[0]) as peer:
            pass
        async with peer.subscribe("endless") as stream:
            with pytest.raises(ConnectionLost, match="closed the connection"):
                await anext(stream)


@pytest.mark.parametrize(
    ("name", "says"),
    [("", "give the publisher's name"), ("\udcff", "half a character"), ("é" * 600, "1200 bytes")],
)
async def test_a_name_that_would_cost_the_connection_is_refused_here(name: str, says: str) -> None:
    """The connection and its other streams go on."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        with pytest.raises(UsageError, match=says):
            peer.subscribe(name)
        async with peer.subscribe("numbers/1", serializer="json") as stream:
            assert [number async for number in stream] == [0]


async def test_a_subscription_is_opened_once() -> None:
    """A second time is a UsageError with advice."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        opening = peer.subscribe("endless")
        async with opening:
            pass
        with pytest.raises(UsageError, match="opened before"):
            async with opening:
                pass


async def test_a_peers_publisher_is_a_source() -> None:
    """For pipes and sinks; each subscription is a separate stream."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        source = peer.source("numbers/3", serializer="json")
        assert "numbers/3" in repr(source)
        assert await penstock.collect(source) == await penstock.collect(source) == [0, 1, 2]


async def test_a_failing_decoder_cancels_the_stream_and_fails_it_once() -> None:
    """Elements behind the bad one are dropped."""
    service = Service()
    service.publish("mixed", [b"1", b"x", b"2"])
    async with serve(service, "memory://test") as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("mixed", serializer="json") as stream:
            assert await anext(stream) == 1
            with pytest.raises(ProtocolError):
                await anext(stream)
            with pytest.raises(StopAsyncIteration):
                await anext(stream)


def test_after_a_cancel_a_decoder_lets_nothing_through() -> None:
    """Not even bytes that it cannot read; and it cancels once."""
    subscriber, upstream = ManualSubscriber(), Counting()
    decoder = Decoder(subscriber, JsonSerializer())
    decoder.on_subscribe(upstream)
    decoder.on_next(b"1")
    decoder.cancel()
    decoder.cancel()
    decoder.on_next(b"no json")
    decoder.on_error(ValueError())
    decoder.on_complete()
    assert upstream.cancels == 1
    assert subscriber.elements == [1]


@pytest.mark.parametrize("takes_lists", [True, False])
def test_a_decoder_delivers_what_a_run_holds_before_an_element_that_cannot_be_read(
    *, takes_lists: bool
) -> None:
    """As one list if the subscriber takes lists;
    the peer is told to stop, and the subscriber gets the reason.
    """
    stream: Stream[Any] = Stream(demand=10)
    plain, upstream = ManualSubscriber(), Counting()
    decoder = Decoder(stream if takes_lists else plain, JsonSerializer())
    decoder.on_subscribe(upstream)
    decoder.on_next_many([b"1", b"[2]"])
    decoder.on_next_many([b"3", b"no json", b"4"])
    decoder.on_next_many([b"5"])
    assert upstream.cancels == 1
    if takes_lists:
        assert (stream.statistics().received, stream.statistics().state) == (3, StreamState.FAILED)
    else:
        assert plain.elements == [1, [2], 3]
        assert isinstance(plain.error, ProtocolError)


class Counting(Subscription):
    """Counts cancels."""

    def __init__(self) -> None:
        self.cancels = 0

    def request(self, n: int, /) -> None:
        pass

    def cancel(self, /) -> None:
        self.cancels += 1


@pytest.mark.parametrize(
    ("data", "says"),
    [(5, "is 'int'; give bytes"), (None, "is 'NoneType'"), ("\ud800", r"'\\ud800' cannot be")],
)
async def test_data_of_the_wrong_type_is_refused_before_anything_is_sent(
    data: Any, says: str
) -> None:
    """The int 5 does not become five zero bytes."""
    async with (
        serve(Service(), "memory://test") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        with pytest.raises(UsageError, match=says):
            await peer.request_response(data)
        with pytest.raises(UsageError, match=says):
            await peer.fire_and_forget(data)
        with pytest.raises(UsageError, match=says):
            peer.request_stream(data)


async def test_the_block_around_a_stream_checkpoints() -> None:
    """A loop over such blocks alone lets other tasks run, and can be cancelled."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        with trio.testing.assert_checkpoints():
            async with peer.subscribe("numbers/1"):
                pass
        with trio.CancelScope() as scope:
            scope.cancel()
            async with peer.subscribe("numbers/1"):
                pytest.fail("entered although it was cancelled")


@pytest.mark.parametrize(("seconds", "waits"), [(0.0, False), (1.0, True)])
@pytest.mark.parametrize("to_the_end", [False, True])
async def test_leaving_a_stream_checkpoints_unless_its_reader_has_just_waited(
    monkeypatch: pytest.MonkeyPatch, seconds: float, waits: bool, to_the_end: bool
) -> None:
    """Other tasks ran then; a stream with one element should not pay for another pass."""
    now, turns = monotonic(), 0
    monkeypatch.setattr("penstock.core._stream._now", lambda: now)
    monkeypatch.setattr("penstock.reader._stream_buffer._now", lambda: now)

    class RoundRobin(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            nonlocal turns
            turns += task is me

    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        me = trio.lowlevel.current_task()
        opening = peer.subscribe("numbers/1", serializer="json")
        stream = await opening.__aenter__()
        assert await anext(stream) == 0
        if to_the_end:
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        now += seconds
        instrument = RoundRobin()
        trio.lowlevel.add_instrument(instrument)
        turns = 0
        await opening.__aexit__(None, None, None)
        trio.lowlevel.remove_instrument(instrument)
        assert turns == waits


@pytest.mark.parametrize("name", [b"ticks", 3, None], ids=["bytes", "a number", "None"])
async def test_a_name_that_is_no_text_is_refused_at_the_call(name: Any) -> None:
    """The connection stays usable."""
    service = Service()
    service.publish("ticks", [b"1"])
    async with serve(service, "memory://names"), connect("memory://names") as peer:
        with pytest.raises(UsageError, match="cannot be a publisher's name: give a str"):
            peer.subscribe(name)
        assert await peer.request("ticks") == b"1"
    with pytest.raises(UsageError, match="cannot be a publisher's name: give a str"):
        service.publish(name, [b"1"])
