"""`connect()` with a policy to reconnect: running streams end with the connection, and new ones
wait for the next connection.
"""

from collections.abc import AsyncIterator
from typing import ClassVar

import pytest
import trio
from trio.testing import MockClock

import penstock
from penstock.api import ConnectionLost, Rejected, UsageError
from penstock.runtime import Service, connect, serve
from penstock.spi import (
    Connection,
    Reconnect,
    ReconnectEvent,
    Transport,
    TransportOptions,
    Url,
    build_registry,
    hookimpl,
    parse_url,
)
from penstock.transports import MemoryTransport

ADDRESS = "memory://again"
PROTOCOLS = ("rsio", "reactivesocket")
POLICY = Reconnect(chance=lambda: 1.0)


def ticking_service() -> Service:
    """Return a service with a stream, a fast request and a slow one."""
    service = Service()

    @service.publisher("ticks", serializer="json")
    async def ticks() -> AsyncIterator[int]:
        for number in range(1_000):
            yield number
            await trio.sleep(1)

    @service.request("now")
    async def now() -> str:
        return "now"

    @service.request("slow")
    async def slow() -> str:
        await trio.sleep(100)
        return "done"

    return service


async def serve_with_a_gap(first: float, gap: float, *, task_status: trio.TaskStatus[None]) -> None:
    """Serve, stop for `gap` seconds, and serve again."""
    async with serve(ticking_service(), ADDRESS):
        task_status.started()
        await trio.sleep(first)
    await trio.sleep(gap)
    async with serve(ticking_service(), ADDRESS):
        await trio.sleep_forever()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_runs_ends_and_what_is_asked_for_meanwhile_waits(
    protocol: str, autojump_clock: MockClock
) -> None:
    """The stream and the request of before end with ConnectionLost; those of the time without a
    server are served by the next one.
    """
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_with_a_gap, 10, 60)
        async with connect(f"{protocol}+{ADDRESS}", reconnect=POLICY) as peer:

            async def ask_for_long() -> None:
                with pytest.raises(ConnectionLost):
                    await peer.request("slow")

            nursery.start_soon(ask_for_long)
            with pytest.raises(ConnectionLost):
                async with peer.subscribe("ticks", serializer="json") as stream:
                    async for _ in stream:
                        pass
            assert trio.current_time() == pytest.approx(10, abs=3)
            await trio.sleep(1)
            assert not peer.is_connected
            assert await peer.request("now", type=str) == "now"
            assert peer.is_connected
            assert trio.current_time() == pytest.approx(80, abs=25)
            async with peer.subscribe("ticks", serializer="json") as stream:
                assert await anext(stream) == 0
        nursery.cancel_scope.cancel()


async def test_all_that_can_be_asked_for_waits_for_the_next_connection(
    autojump_clock: MockClock,
) -> None:
    """Streams and requests that carry data, messages without an answer, and the wait for a peer."""
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_with_a_gap, 1, 5)
        async with connect(f"reactivesocket+{ADDRESS}", reconnect=POLICY) as peer:
            for ask in (
                peer.wait_accepted,
                lambda: peer.request_response("now"),
                lambda: peer.fire_and_forget("now"),
            ):
                await trio.sleep(2 if peer.is_connected and trio.current_time() < 2 else 0)
                await ask()
            async with peer.request_stream("ticks", serializer="json") as stream:
                assert await anext(stream) == 0
            async with peer.request_subscription("ticks", serializer="json") as stream:
                assert await anext(stream) == 0
        nursery.cancel_scope.cancel()


async def test_a_source_with_retry_goes_on_over_the_next_connection(
    autojump_clock: MockClock,
) -> None:
    """It looks for the connection each time that it is attached."""
    got: list[int] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_with_a_gap, 3.5, 20)
        async with connect(ADDRESS, reconnect=POLICY) as peer:
            source = penstock.pipe(
                peer.source("ticks", serializer="json"),
                penstock.ops.retry(None, backoff=1.0),
                penstock.ops.take(8),
            )
            async with penstock.subscribe(source) as stream:
                got.extend([number async for number in stream])
        nursery.cancel_scope.cancel()
    assert got == [0, 1, 2, 3, 0, 1, 2, 3]


async def test_the_first_connection_is_waited_for(autojump_clock: MockClock) -> None:
    """The server starts later than its client."""

    async def serve_later() -> None:
        await trio.sleep(7)
        async with serve(ticking_service(), ADDRESS):
            await trio.sleep(60)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_later)
        async with connect(ADDRESS, reconnect=POLICY) as peer:
            assert await peer.request("now", type=str) == "now"
        nursery.cancel_scope.cancel()


async def test_after_the_last_attempt_all_that_is_asked_for_fails(
    autojump_clock: MockClock,
) -> None:
    """Entering fails too, if the first connection cannot be made."""
    policy = Reconnect(attempts=3, chance=lambda: 1.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_with_a_gap, 1, 1_000)
        async with connect(ADDRESS, reconnect=policy) as peer:
            await trio.sleep(2)
            for _ in range(2):
                with pytest.raises(
                    ConnectionLost, match="no further attempt to connect is made: no listener at"
                ):
                    await peer.request("now")
            with pytest.raises(ConnectionLost):
                async with penstock.subscribe(peer.source("ticks")) as stream:
                    await anext(stream)
        with pytest.raises(ConnectionLost, match="no listener at"):
            async with connect(ADDRESS, reconnect=policy):
                pass
        nursery.cancel_scope.cancel()


async def test_leaving_the_block_ends_the_attempts(autojump_clock: MockClock) -> None:
    """At once. Streams and requests that still wait get ConnectionLost."""
    ended: list[str] = []

    async def ask(peer: penstock.Peer) -> None:
        try:
            await peer.request("now")
        except ConnectionLost as lost:
            ended.append(str(lost))

    async with trio.open_nursery() as nursery:
        await nursery.start(serve_with_a_gap, 1, 1_000)
        async with connect(ADDRESS, reconnect=POLICY) as peer:
            await trio.sleep(100)
            nursery.start_soon(ask, peer)
            await trio.testing.wait_all_tasks_blocked()
            left_at = trio.current_time()
        assert trio.current_time() == left_at
        await trio.testing.wait_all_tasks_blocked()
        assert len(ended) == 1
        assert "no further attempt" in ended[0]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "ask",
    [
        lambda peer: peer.request("now"),
        lambda peer: peer.wait_accepted(),
        lambda peer: peer.subscribe("ticks").__aenter__(),
    ],
    ids=["request", "wait_accepted", "subscribe"],
)
async def test_a_cancelled_program_is_not_told_that_attempts_have_ended(
    ask, autojump_clock: MockClock
) -> None:
    """A scope around the block that is cancelled ends the attempts as well. The program in the
    block gets trio's exception, which leaves the scope silently.
    """
    async with penstock.serve(ticking_service(), ADDRESS):
        with trio.CancelScope() as scope:
            async with connect(ADDRESS, reconnect=POLICY) as peer:
                scope.cancel()
                with trio.CancelScope(shield=True):  # the connection ends meanwhile
                    await trio.sleep(1)
                await ask(peer)
        assert scope.cancelled_caught


class _LateTransport(MemoryTransport):
    """The handshake of its second connection succeeds although its task was cancelled."""

    schemes: ClassVar[tuple[str, ...]] = ("late",)

    def __init__(self) -> None:
        self.opened = 0
        self.is_late = trio.Event()

    @hookimpl
    def penstock_transports(self) -> list[Transport]:
        return [self]

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        connection = await super().connect(url, options=options, nursery=nursery)
        self.opened += 1
        if self.opened == 2:
            connection.handshake = self._shake_hands  # type: ignore[method-assign]  # of this one
        return connection

    async def _shake_hands(self, _: trio.Nursery) -> None:
        self.is_late.set()
        with trio.CancelScope(shield=True):
            await trio.sleep(1)


async def test_leaving_closes_a_transport_that_has_just_opened(
    autojump_clock: MockClock,
) -> None:
    """Nobody else knows of it: its server would keep it until it is idle for too long."""
    transport = _LateTransport()
    registry = build_registry(plugins=[transport])
    async with trio.open_nursery() as nursery:
        listener = await transport.listen(
            parse_url("late://again"), options=TransportOptions(), nursery=nursery
        )
        async with connect("late://again", reconnect=POLICY, registry=registry):
            await (await listener.accept()).abort()
            await transport.is_late.wait()
        assert transport.opened == 2
        server_side = await listener.accept()
        with trio.fail_after(60):
            assert await server_side.receive() is None
        await server_side.aclose()
        await listener.aclose()


async def test_a_refusal_is_not_tried_again(autojump_clock: MockClock) -> None:
    """It would be refused again. The block raises it, as without a policy."""
    service = Service(setup=lambda _: False)
    async with serve(service, "reactivesocket+memory://refuses"):
        with pytest.raises(Rejected):
            async with connect(
                "reactivesocket+memory://refuses", setup=b"x", reconnect=POLICY
            ) as peer:
                await peer.request_response("x")


async def test_observers_hear_of_each_step(autojump_clock: MockClock) -> None:
    """Lost, each attempt, and back."""
    stages: list[str] = []

    class Seen:
        @hookimpl
        def penstock_reconnect(self, event: ReconnectEvent) -> None:
            stages.append(event.stage.value)

    async with trio.open_nursery() as nursery:
        await nursery.start(serve_with_a_gap, 20, 0.15)
        async with connect(
            ADDRESS, reconnect=POLICY, registry=build_registry(plugins=[Seen()])
        ) as peer:
            await peer.wait_accepted()
            await trio.sleep(30)
            assert await peer.request("now", type=str) == "now"
        nursery.cancel_scope.cancel()
    assert stages[0] == "lost"
    assert stages[-1] == "back"
    assert set(stages[1:-1]) == {"retrying"}


async def test_mistakes_are_raised_at_the_call() -> None:
    """As without a policy."""
    async with serve(ticking_service(), ADDRESS), connect(ADDRESS, reconnect=POLICY) as peer:
        for make in (peer.source, peer.subscribe):
            with pytest.raises(UsageError, match="the name is empty"):
                make("")
