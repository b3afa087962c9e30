"""A connection that is suspended, and goes on over another link:
its streams, its clock, its memory, its end.
"""

from collections import Counter
from dataclasses import replace

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, Limits
from penstock.extensions import Keepalive
from penstock.runtime import connect, serve
from penstock.runtime.connection._resumption import SurrenderedConnection, retained_bytes
from penstock.spi import ConnectionResumed, ConnectionSuspended, build_registry, hookimpl
from tests.runtime._resuming import LIMITS, URL, cut, numbers_service


class Observer:
    """A plugin that notes what is suspended and resumed."""

    def __init__(self) -> None:
        self.events: list[ConnectionSuspended | ConnectionResumed] = []

    @hookimpl
    def penstock_connection_suspended(self, event: ConnectionSuspended) -> None:
        """Note it."""
        self.events.append(event)

    @hookimpl
    def penstock_connection_resumed(self, event: ConnectionResumed) -> None:
        """Note it."""
        self.events.append(event)


async def test_streams_and_requests_go_on_in_both_directions(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each element comes once; both sides see the loss and the return, and count it."""
    observer = Observer()
    registry = build_registry([observer])
    async with serve(
        numbers_service(), URL, limits=LIMITS, registry=registry, resume=True
    ) as server:
        async with connect(
            URL, limits=LIMITS, registry=registry, resume=True, service=numbers_service()
        ) as peer:
            await peer.wait_accepted()
            (back,) = server.peers
            async with (
                peer.subscribe("numbers", demand=2) as down,
                back.subscribe("numbers", demand=2) as up,
            ):
                read: list[list[bytes]] = [[], []]
                for _ in range(5):
                    for elements, stream in zip(read, (down, up), strict=True):
                        elements += [await anext(stream) for _ in range(7)]
                    await cut(peer)
                for elements, stream in zip(read, (down, up), strict=True):
                    elements += [element async for element in stream]
            assert read == [[b"%d" % number for number in range(100)]] * 2
            assert await peer.request("ask", type=str) == "answer"
            assert (
                peer.statistics().resumed
                == back.statistics().resumed
                == server.statistics().resumed
                == 5
            )
            assert not peer.statistics().is_suspended
        assert server.statistics().resumed == 5
    kinds = [(type(event).__name__, event.accepted) for event in observer.events]
    assert Counter(kinds) == {
        (kind, accepted): 5
        for kind in ("ConnectionSuspended", "ConnectionResumed")
        for accepted in (True, False)
    }
    assert kinds[0][0] == "ConnectionSuspended"
    assert all(event.address == URL and event.connection > 0 for event in observer.events)


async def test_one_side_alone_resumes_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """The stream gets ConnectionLost at once;
    it does not say that the connection could have gone on.
    """
    for of_server, of_client in ((True, False), (False, True)):
        async with (
            serve(numbers_service(), URL, limits=LIMITS, resume=of_server),
            connect(URL, limits=LIMITS, resume=of_client) as peer,
        ):
            async with peer.subscribe("numbers", demand=1) as stream:
                await anext(stream)
                began = trio.current_time()
                await cut(peer)
                with pytest.raises(ConnectionLost) as caught:
                    while True:
                        await anext(stream)
                assert caught.value.resumable is None
                assert trio.current_time() == began
            assert peer.statistics().retained_bytes == 0


async def test_a_connection_that_cannot_be_resumed_is_lost_for_good(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The server is gone. Streams wait for the time that the shorter of both limits allows,
    and get the reason.
    """
    async with trio.open_nursery() as nursery:
        server = serve(
            numbers_service(), URL, limits=replace(LIMITS, resume_timeout=20.0), resume=True
        )
        await server.__aenter__()
        async with connect(URL, limits=LIMITS, resume=True) as peer:
            async with peer.subscribe("numbers", demand=1) as stream:
                await anext(stream)
                for listener in server._listeners:  # type: ignore[attr-defined]  # nothing else stops it from accepting
                    await listener.aclose()
                began = trio.current_time()
                await cut(peer)
                assert peer.statistics().is_suspended
                with pytest.raises(
                    ConnectionLost,
                    match=r"not resumed: no server answered within 20 s \(Limits.resume_timeout",
                ) as caught:
                    while True:
                        await anext(stream)
                assert caught.value.resumable is False
                assert trio.current_time() - began == pytest.approx(20.0)
        await server.__aexit__(None, None, None)
        nursery.cancel_scope.cancel()


async def test_leaving_a_suspended_connection_waits_for_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No goodbye can be sent, and none can come."""
    server = serve(numbers_service(), URL, limits=LIMITS, resume=True)
    await server.__aenter__()
    async with connect(URL, limits=LIMITS, resume=True) as peer:
        await peer.wait_accepted()
        for listener in server._listeners:  # type: ignore[attr-defined]  # nothing else stops it from accepting
            await listener.aclose()
        await cut(peer)
        began = trio.current_time()
    assert trio.current_time() - began < 0.1
    await server.__aexit__(None, None, None)


async def test_the_clock_of_a_suspended_connection_stands_still(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A message that was cut may stay incomplete for longer than `partial_age`, and a silent
    peer is not pinged meanwhile.
    """
    limits = replace(
        LIMITS,
        resume_timeout=500.0,
        partial_age=5.0,
        keepalive=5.0,
        keepalive_timeout=5.0,
        idle_connection=50.0,
    )
    async with serve(
        numbers_service(), URL, limits=limits, resume=True, extensions=[Keepalive()]
    ) as server:
        listener = server._listeners[0]
        async with connect(URL, limits=limits, resume=True, extensions=[Keepalive()]) as peer:
            async with peer.subscribe("numbers", demand=1) as stream:
                await anext(stream)
                await trio.sleep(1)
                (task,) = server._connections.running
                # The beginning of a ping; the client has to wait for the rest of it.
                task.session.outbox.put(b"\x40\x03ab")
                task._link_switcher.current.writer.flush()
                await trio.testing.wait_all_tasks_blocked()
                assert peer._connection.session.channel.dialect.held() == 4
                accept = listener.accept

                async def accept_late() -> object:
                    await trio.sleep(300)
                    return await accept()

                listener.accept = accept_late  # type: ignore[assignment, method-assign]  # for this test
                await cut(peer)
                task.session.outbox.put(b"c")
                await trio.sleep(400)
                assert await anext(stream) == b"1"
                assert peer.statistics().resumed == 1
                assert peer._connection.session.channel.dialect.held() == 0


async def test_a_dead_transport_suspends_the_connection_in_place_of_ending_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nothing arrives, and no error comes:
    the keepalive finds it, and the client connects again.
    """
    limits = replace(LIMITS, keepalive=5.0, keepalive_timeout=5.0)
    async with serve(numbers_service(), URL, limits=limits, resume=True) as server:
        async with connect(URL, limits=limits, resume=True) as peer:
            async with peer.subscribe("numbers", demand=1) as stream:
                await anext(stream)
                for side in (peer, *server.peers):
                    side._connection._link_switcher.current.writer.can_send = False
                await trio.sleep(30)
                assert peer.statistics().resumed == 1
                assert [await anext(stream) for _ in range(3)] == [b"1", b"2", b"3"]


async def test_what_is_kept_counts_against_the_memory_budget(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A suspended connection that holds too much is closed at once, and its place is free."""
    limits = replace(LIMITS, memory_budget=1 << 20, keepalive=1000.0)
    told: list[BaseException] = []
    async with serve(
        numbers_service(), URL, limits=limits, resume=True, on_violation=told.append
    ) as server:
        async with connect(URL, limits=limits, resume=True) as peer:
            await peer.wait_accepted()
            for listener in server._listeners:
                await listener.aclose()
            (task,) = server._connections.running
            await cut(peer)
            assert server.statistics().suspended == 1
            retained = task.session.outbox.retained
            assert retained is not None
            retained.add(bytearray(900_000))
            assert server.statistics().buffered_bytes > 900_000
            began = trio.current_time()
            assert server._settings.budget is not None
            server._settings.budget.measure()
            await trio.testing.wait_all_tasks_blocked()
            assert server.peers == ()
            assert trio.current_time() == began
            assert len(told) == 1


async def test_a_surrendered_connection_does_nothing() -> None:
    """Another connection task uses the transport: to close it here would cut that one."""
    async with serve(numbers_service(), URL), connect(URL) as peer:
        await peer.wait_accepted()
        connection = peer._connection.connection
        surrendered = SurrenderedConnection(connection)
        await surrendered.abort()
        await surrendered.aclose()
        for call in (surrendered.receive(), surrendered.send(b"x")):
            with pytest.raises(trio.ClosedResourceError):
                await call
        assert surrendered.peer is connection.peer
        assert await peer.request("ask", type=str) == "answer"


def test_the_bound_has_room_for_what_the_outbox_holds() -> None:
    """An honest peer never meets the end of it:
    an element that is sent, and one after it, come on top of `resume_bytes`.
    """
    limits = replace(Limits(), resume_bytes=1000)
    retained = retained_bytes(limits)
    assert retained.bound == 1000
    assert retained.most > 1000 + 2 * limits.max_element
