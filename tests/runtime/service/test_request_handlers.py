"""The call of a handler: once, with one answer, and cancelled in its own task."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import Limits, Model, PublisherFailed, PublisherStopped, Request
from penstock.core import Scope
from penstock.runtime import Peer, Service, connect, serve
from penstock.runtime.connection._decoding_turns import DecodingTurns
from penstock.runtime.connection._inline_tasks import InlineTaskRunner
from penstock.runtime.service import (
    Forbidden,
    Handler,
    HandlerCall,
    HandlerCalls,
    RequestHandlers,
    StreamSlots,
)
from penstock.runtime.service._published_streams import _ScopeRunner
from penstock.spi import PeerIdentity
from penstock.testing import ManualSubscriber


class Meeting:
    """A server with one handler, and a client."""

    def __init__(self) -> None:
        self.peer: Peer
        self.told: list[Exception] = []


@asynccontextmanager
async def answering(
    handler: Callable[..., Awaitable[Any]], *, limits: Limits | None = None
) -> AsyncIterator[Meeting]:
    """Serve requests for one value with `handler`."""
    service, meeting = Service(), Meeting()
    service.request_response(handler)
    async with (
        serve(
            service,
            "reactivesocket+memory://test",
            on_violation=meeting.told.append,
            limits=limits or Limits(),
        ),
        connect("reactivesocket+memory://test") as meeting.peer,
    ):
        yield meeting


async def ended(meeting: Meeting, outcome: list[str], data: bytes = b"?") -> None:
    """Make a request, and note how it ends."""
    try:
        outcome.append(repr(await meeting.peer.request_response(data)))
    except PublisherFailed as error:
        outcome.append(str(error))
    except trio.Cancelled:
        outcome.append("cancelled")
        raise


async def test_a_handler_that_does_not_block_runs_in_the_reader_task() -> None:
    """No task is made for it; a handler that blocks has its own, under its own name."""
    names: list[str] = []

    async def handler(data: bytes) -> bytes:
        names.append(trio.lowlevel.current_task().name)
        if data == b"wait":
            await trio.lowlevel.checkpoint()
            names.append(trio.lowlevel.current_task().name)
        return data

    async with answering(handler) as meeting:
        assert await meeting.peer.request_response(b"at once") == b"at once"
        assert await meeting.peer.request_response(b"wait") == b"wait"
    assert names[0] == names[1] == "penstock reader"
    assert "handler" in names[2]


async def test_an_exception_of_a_handler_is_reported_and_fails_the_request() -> None:
    """Before it blocks and after it."""

    async def handler(data: bytes) -> bytes:
        if data == b"wait":
            await trio.lowlevel.checkpoint()
        raise KeyError("no such row")

    async with answering(handler) as meeting:
        for data in (b"", b"wait"):
            with pytest.raises(PublisherFailed, match="the publisher failed"):
                await meeting.peer.request_response(data)
    assert [type(error) for error in meeting.told] == [KeyError, KeyError]


async def test_none_is_not_a_value() -> None:
    """A handler without a return gets a UsageError reported."""

    async def handler(data: bytes) -> None:
        return None

    async with answering(handler) as meeting:
        with pytest.raises(PublisherFailed):
            await meeting.peer.request_response(b"")
    assert (
        "handler returned None, which is never an answer (rule 2.13). For no value return one "
        "that says so"
    ) in str(meeting.told[0])


async def test_a_cancel_cancels_the_handler_and_only_that() -> None:
    """Its cleanup runs; another handler that waits beside it answers."""
    log: list[str] = []
    gate = trio.Event()

    async def handler(data: bytes) -> bytes:
        try:
            await gate.wait()
        except trio.Cancelled:
            log.append(data.decode())
            raise
        return data

    async with answering(handler) as meeting:
        outcome: list[str] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ended, meeting, outcome, b"stays")
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as inner:
                    inner.start_soon(ended, meeting, outcome, b"goes")
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert log == ["goes"]
            gate.set()
        assert outcome == ["cancelled", "b'stays'"]


async def test_a_failure_after_the_cancel_is_reported() -> None:
    """Groups that a nursery in the handler makes are taken apart."""

    async def handler(data: bytes) -> bytes:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("in cleanup")

    async with answering(handler) as meeting:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ended, meeting, [])
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert "in cleanup" in repr(meeting.told[0])


async def test_a_handler_that_shields_itself_keeps_its_place_until_it_has_stopped() -> None:
    """Although the peer has cancelled: places are for handlers that run."""
    gate = trio.Event()

    async def handler(data: bytes) -> bytes:
        if data == b"slow":
            with trio.CancelScope(shield=True):
                await gate.wait()
        return data

    async with answering(handler, limits=Limits(max_subscriptions=1)) as meeting:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ended, meeting, [], b"slow")
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Exception, match="refused"):
            await meeting.peer.request_response(b"quick")
        gate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert await meeting.peer.request_response(b"quick") == b"quick"


async def test_the_end_of_the_connection_stops_the_handler() -> None:
    """It is cancelled, and nothing is reported."""
    log: list[str] = []

    async def handler(data: bytes) -> bytes:
        try:
            await trio.sleep_forever()
        finally:
            log.append("stopped")

    async with answering(handler) as meeting:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ended, meeting, [])
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
    assert (log, meeting.told) == (["stopped"], [])


class CountedPlaces(StreamSlots):
    """Counts the places that are kept for handlers which still run."""

    def __init__(self) -> None:
        self.kept = 0
        self.freed = 0
        self.stops = 0

    def take(self) -> bool:
        return True

    def free(self) -> None:
        self.freed += 1

    def keep(self, size: int, /) -> None:
        self.kept += 1

    def free_kept(self, size: int, /) -> None:
        self.kept -= 1

    def tasks_stopped(self) -> None:
        self.stops += 1


@asynccontextmanager
async def _calling(
    places: CountedPlaces, *, on_violation: Callable[[Exception], None] = lambda _: None
) -> AsyncIterator[tuple[HandlerCalls, trio.Nursery]]:
    """Run the calls of handlers on the task of a connection that hears nothing."""

    async def hear() -> bool:
        await trio.Event().wait()
        return False

    runner = InlineTaskRunner(hear, lambda: None, turns=DecodingTurns(), turn=1.0)
    calls = HandlerCalls(runner, Scope(runner, on_violation=on_violation), places)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner.run, nursery)
        await trio.testing.wait_all_tasks_blocked()
        yield calls, nursery
        if not nursery.cancel_scope.cancel_called:
            runner.stop()


def _call_of(
    handler: Callable[[bytes], Awaitable[bytes]],
    calls: HandlerCalls,
    subscriber: ManualSubscriber | None = None,
) -> HandlerCall:
    """Return one call of a handler, with the data ``data``."""
    peer = PeerIdentity(address="test")
    hears = ManualSubscriber() if subscriber is None else subscriber
    return HandlerCall(calls, Handler(handler, "the handler"), b"data", peer, hears)


async def test_a_cancelled_nursery_stops_the_handler_and_fails_its_subscriber() -> None:
    """Rule 1.4: no subscriber is left waiting, and the place is free."""

    class Hears(ManualSubscriber):
        def on_error(self, error: BaseException, /) -> None:
            heard.append(error)

    async def handler(data: bytes) -> bytes:
        await trio.Event().wait()
        return data

    heard: list[BaseException] = []
    places = CountedPlaces()

    async with _calling(places, on_violation=heard.append) as (calls, nursery):
        subscriber = Hears()
        reply = _call_of(handler, calls, subscriber)
        subscriber.on_subscribe(reply)
        reply.request(1)
        reply.request(1)
        await trio.testing.wait_all_tasks_blocked()
        assert (places.freed, places.kept) == (0, 0)
        nursery.cancel_scope.cancel()
    assert [type(error) for error in heard] == [PublisherStopped]
    assert (places.freed, places.kept, places.stops) == (1, 0, 1)


async def test_a_cancelled_call_keeps_its_place_until_its_handler_has_stopped() -> None:
    """Once, however often it is cancelled. A handler may shield itself, and a peer must not
    start another one meanwhile.
    """
    may_stop, places = trio.Event(), CountedPlaces()

    async def handler(data: bytes) -> bytes:
        with trio.CancelScope(shield=True):
            await may_stop.wait()
        return data

    async with _calling(places) as (calls, _):
        reply = _call_of(handler, calls)
        reply.request(1)
        await trio.testing.wait_all_tasks_blocked()
        reply.cancel()
        reply.cancel()
        assert (places.freed, places.kept) == (0, 1)
        may_stop.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (places.freed, places.kept) == (0, 0)


async def test_a_call_that_has_not_begun_frees_its_place_with_the_cancel() -> None:
    """A place is freed once, by the answer or by the cancel."""
    places = CountedPlaces()
    async with trio.open_nursery() as nursery:
        calls = HandlerCalls(_Starts(nursery), Scope(nursery, on_violation=lambda _: None), places)
        waits, answers = (_call_of(reverse, calls) for _ in range(2))
        waits.cancel()
        waits.cancel()
        assert places.freed == 1
        answers.request(1)
        await trio.testing.wait_all_tasks_blocked()
        answers.cancel()
        assert (places.freed, places.kept) == (2, 0)


class _Starts:
    """Starts each call in a task."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def start_soon(self, function: Any, /, *args: Any, name: str) -> None:
        self._nursery.start_soon(function, *args, name=name)

    def start_call(self, call: HandlerCall, /) -> None:
        self._nursery.start_soon(call.run, name=call.name)


async def test_a_call_that_is_cancelled_before_its_turn_is_not_made() -> None:
    """A call that cancels itself before it blocks is cancelled when it blocks."""
    called: list[str] = []
    places = CountedPlaces()

    async def handler(data: bytes) -> bytes:
        called.append("called")
        reply.cancel()
        await trio.Event().wait()
        return data

    async with _calling(places) as (calls, nursery):
        for cancelled in (True, False):
            reply = _call_of(handler, calls)
            reply.request(1)
            if cancelled:
                reply.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert called == ([] if cancelled else ["called"])
        assert len(nursery.child_tasks) == 1  # the reader


# --- the look-up


def named_service() -> Service:
    """Return a service with a handler and three publishers."""
    service = Service()
    service.request_response(reverse)
    for name in ("ticks/all", "größe"):
        service.publish(name, [b"x"])

    @service.publisher("ticks/{symbol}")
    async def ticks(symbol: str) -> AsyncIterator[bytes]:
        yield symbol.encode()

    return service


async def reverse(data: bytes) -> bytes:
    return data[::-1]


def test_data_that_may_be_a_name_is_left_to_the_publishers() -> None:
    """It is judged as bytes, without decoding; all other data goes to the handler."""
    service, peer = named_service(), PeerIdentity(address="test")
    handlers = RequestHandlers(service)
    for name in ("ticks/all", "ticks/all?x=1", "größe", "ticks/ACME", "any/thing", "größe?"):
        assert handlers.find(Request(Model.RESPONSE, name.encode()), peer) is None, name
    for data in (b"", b"ticks", b"ticks/all/of", bytes(64), b"\xff"):
        assert (
            handlers.find(Request(Model.RESPONSE, data), peer) is service.handlers[Model.RESPONSE]
        ), data


def test_a_request_of_another_kind_is_left_to_the_publishers() -> None:
    """Only requests for one value have this shorter look-up."""
    assert (
        RequestHandlers(named_service()).find(
            Request(Model.STREAM, b""), PeerIdentity(address="test")
        )
        is None
    )


def test_a_peer_that_may_not_open_a_request_does_not_reach_its_handler() -> None:
    """The decision gets the request and the peer."""
    handlers = RequestHandlers(named_service(), may_open=lambda target, _: str(target) != "secret")
    with pytest.raises(Forbidden):
        handlers.find(Request(Model.RESPONSE, b"secret"), PeerIdentity(address="test"))
    assert (
        handlers.find(Request(Model.RESPONSE, b"public"), PeerIdentity(address="test")) is not None
    )


async def test_a_call_without_a_connection_knows_the_task_of_its_handler(autojump_clock) -> None:
    """And not that of the subscriber, which has started it."""
    running: list[Any] = []

    async def handler(_data: bytes, _peer: PeerIdentity) -> bytes:
        running.append(trio.lowlevel.current_task())
        await trio.sleep_forever()
        return b""

    async with trio.open_nursery() as nursery:
        scope = Scope(nursery, on_violation=lambda _: None)
        calls = HandlerCalls(_ScopeRunner(scope), scope, CountedPlaces())
        peer, hears = PeerIdentity(address="test"), ManualSubscriber()
        call = HandlerCall(calls, Handler(handler, "the handler"), b"", peer, hears)
        hears.on_subscribe(call)
        hears.request(1)
        await trio.testing.wait_all_tasks_blocked()
        assert call.pipe_part().task is running[0]
        nursery.cancel_scope.cancel()
