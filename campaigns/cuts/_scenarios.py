"""The scenarios: short exchanges on one connection.
Each is short enough to cut it at each of its bytes.

The client and server of a scenario contain no code for cuts and cancellations:
they are written as a user would write them.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, Final

import attrs
import trio

from campaigns.cuts._run_context import (
    COMPLETED,
    REGISTRY,
    STOPPED,
    PlannedFailure,
    Reading,
    RunContext,
    recording_end,
)
from penstock.api import ConnectionLost, Limits, Rejected
from penstock.runtime import Peer, Server, Service, subscribe
from penstock.spi import Reconnect

LIMITS: Final = replace(Limits(), split_outbound_at=16, turn=1e9)
"""Limits that keep a run short and repeatable.

`split_outbound_at=16` splits elements above 16 bytes into parts of 16 bytes (64 while no other
stream sends a large element).
`turn=1e9`: the real clock never ends a turn, so each run takes the same steps.
"""

NARROW: Final = replace(LIMITS, outbound_high=80)
"""Room for one part at a time. With more room, the only large element is sent in fewer parts."""

SMALL: Final = [b"one", b"two", b"three", b"four", b"five"]
LARGE: Final = [b"before", b"x" * 150, b"y" * 65, b"between", b"z" * 64]
FIXED: Final = [bytes([65 + number]) * 4 for number in range(7)]
FOREVER: Final = [b"%d" % number for number in range(100)]


# --------------------------------------------------------------------------------------- publishers


async def small(context: RunContext) -> AsyncGenerator[bytes, None]:
    for element in SMALL:
        yield element


async def slow(context: RunContext) -> AsyncGenerator[bytes, None]:
    for element in SMALL:
        await trio.sleep(0.1)
        yield element


async def large(context: RunContext) -> AsyncGenerator[bytes, None]:
    for element in LARGE:
        yield element


async def fixed(context: RunContext) -> AsyncGenerator[bytes, None]:
    yield b"".join(FIXED[:4])  # four elements in one yielded block
    for element in FIXED[4:]:
        yield element


async def forever(context: RunContext) -> AsyncGenerator[bytes, None]:
    for element in FOREVER:
        yield element
        await trio.sleep(0.01)


async def failing(context: RunContext) -> AsyncGenerator[bytes, None]:
    for element in SMALL[:2]:
        yield element
    raise PlannedFailure("must not reach the client")


async def rare(context: RunContext) -> AsyncGenerator[bytes, None]:
    for element in SMALL[:3]:
        await trio.sleep(40)
        yield element


async def numbers(context: RunContext) -> AsyncGenerator[dict[str, int], None]:
    for number in range(4):
        yield {"number": number}


async def check_setup(data: bytes) -> None:
    await trio.sleep(0.1)
    if data == b"banned":
        raise Rejected("not you")


def full_service(context: RunContext) -> Service:
    """Return the service of all scenarios."""
    service = context.service(
        check_setup,
        small=small,
        slow=slow,
        large=large,
        forever=forever,
        failing=failing,
        rare=rare,
    )
    context.publish(service, "fixed", fixed, element_size=4)
    context.publish(service, "numbers", numbers, serializer="json")
    service.fire_and_forget(_handle_fire_and_forget)
    return service


async def _handle_fire_and_forget(data: bytes) -> None:
    await trio.sleep(0.05)


# ------------------------------------------------------------------------------------------ clients


async def only_handshake(context: RunContext) -> None:
    async with context.connect() as peer:
        await peer.wait_accepted()


async def subscribe_unknown_name(context: RunContext) -> None:
    async with context.connect() as peer:
        await context.read(peer, "absent", [])
        await context.read(peer, "small", SMALL)


async def read_by_element(context: RunContext) -> None:
    async with context.connect() as peer:
        await context.read(peer, "small", SMALL, demand=2)


async def read_by_batch(context: RunContext) -> None:
    reading = context.add_reading("slow", SMALL)
    async with context.connect() as peer, peer.subscribe("slow", demand=4) as stream:
        with recording_end(reading):
            async for batch in stream.batches():
                reading.received += batch
            reading.end = COMPLETED


async def read_large(context: RunContext) -> None:
    async with context.connect() as peer:
        await context.read(peer, "large", LARGE, demand=3)


async def read_fixed(context: RunContext) -> None:
    async with context.connect() as peer:
        await context.read(peer, "fixed", FIXED, demand=3)


async def read_buffers(context: RunContext) -> None:
    reading = context.add_reading("fixed", FIXED)
    async with context.connect() as peer, peer.subscribe("fixed", demand=5) as stream:
        with recording_end(reading):
            async for buffer in stream.buffers():
                reading.received += [buffer[at : at + 4] for at in range(0, len(buffer), 4)]
            reading.end = COMPLETED


async def read_objects(context: RunContext) -> None:
    async with context.connect() as peer:
        await context.read(
            peer,
            "numbers",
            [{"number": number} for number in range(4)],
            serializer="json",
            demand=2,
        )


async def read_two(context: RunContext) -> None:
    async with context.connect() as peer, trio.open_nursery() as nursery:
        nursery.start_soon(context.read, peer, "slow", SMALL)
        nursery.start_soon(context.read, peer, "large", LARGE)


async def read_beside_cancellable(context: RunContext) -> None:
    """Read two streams. If one is cancelled, the other stream and the connection go on."""
    async with context.connect() as peer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read_cancellable, context, peer)
            await context.read(peer, "large", LARGE)
        await context.read(peer, "small", SMALL)
        await trio.sleep(1)  # until the last frames have arrived
        context.check_idle_counts(peer)
        context.signal.set()
        await trio.lowlevel.checkpoint()


async def _read_cancellable(context: RunContext, peer: Peer) -> None:
    with context.subscription_scope:
        await context.read(peer, "slow", SMALL, demand=2)


async def both_ways(context: RunContext) -> None:
    service = Service()
    context.publish(service, "mine", slow)
    async with context.connect(service) as peer:
        await context.read(peer, "slow", SMALL, demand=2)
        await peer.wait_accepted()
        with trio.move_on_after(1):  # a cancelled server does not set the signal
            await context.signal.wait()


async def read_failing(context: RunContext) -> None:
    async with context.connect() as peer:
        await context.read(peer, "failing", SMALL[:2])


async def stop_early(context: RunContext) -> None:
    async with context.connect() as peer:
        await context.read(peer, "forever", FOREVER, stop_after=2, demand=4)
        await context.read(peer, "small", SMALL)


async def request_by_hand(context: RunContext) -> None:
    reading = context.add_reading("small", SMALL)
    async with context.connect() as peer, peer.subscribe("small", demand=0) as stream:
        with recording_end(reading):
            for demand in (2, 1):
                stream.request(demand)
                for _ in range(demand):
                    reading.received.append(await anext(stream))
            await trio.sleep(0.5)  # no element arrives beyond the demand
            assert stream.statistics().buffered == 0


async def close_while_reading(context: RunContext) -> None:
    reading = context.add_reading("forever", FOREVER)
    async with AsyncExitStack() as stack:
        async with context.connect() as peer:
            stream = await stack.enter_async_context(peer.subscribe("forever", demand=4))
            await _read_first_two(stream, reading)
        await _read_rest(stream, reading)


async def read_until_server_closes(context: RunContext) -> None:
    reading = context.add_reading("forever", FOREVER)
    async with context.connect() as peer, peer.subscribe("forever", demand=4) as stream:
        await _read_first_two(stream, reading)
        context.signal.set()
        await _read_rest(stream, reading)


async def close_on_both_sides(context: RunContext) -> None:
    reading = context.add_reading("forever", FOREVER)
    async with AsyncExitStack() as stack:
        async with context.connect() as peer:
            stream = await stack.enter_async_context(peer.subscribe("forever", demand=4))
            await _read_first_two(stream, reading)
            context.signal.set()
        await _read_rest(stream, reading)


async def read_rare(context: RunContext) -> None:
    async with context.connect() as peer:
        await context.read(peer, "rare", SMALL[:3])


async def request_values(context: RunContext) -> None:
    async with context.connect() as peer, trio.open_nursery() as nursery:
        nursery.start_soon(context.request_value, peer, "slow", SMALL[0])
        nursery.start_soon(context.request_value, peer, "large", LARGE[0])
        await context.request_value(peer, "absent", None)


async def request_streams(context: RunContext) -> None:
    async with context.connect() as peer:
        await context.read(peer, "small", SMALL, method="request_stream", demand=2)
        with suppress(ConnectionLost):
            await peer.fire_and_forget(b"shot")
        await context.read(peer, "small", SMALL, method="request_subscription", demand=2)


async def connect_refused(context: RunContext) -> None:
    with suppress(Rejected):
        async with context.connect(setup=b"banned") as peer:
            await context.read(peer, "small", SMALL)


async def read_with_reconnect(context: RunContext) -> None:
    reading = context.add_reading("slow", SMALL, restarts=True)
    policy = Reconnect(attempts=3, first=0.1, chance=lambda: 0.5)
    async with subscribe(
        f"{context.url}/slow",
        demand=3,
        reconnect=policy,
        limits=context.limits,
        registry=REGISTRY,
        on_violation=context.record_violation,
    ) as stream:
        await _read_rest(stream, reading)


async def _read_first_two(stream: Any, reading: Reading) -> None:
    with recording_end(reading):
        while len(reading.received) < 2:
            reading.received.append(await anext(stream))


async def _read_rest(stream: Any, reading: Reading) -> None:
    if reading.end not in {None, STOPPED}:
        return  # the stream has ended before
    reading.end = None
    with recording_end(reading):
        async for element in stream:
            reading.received.append(element)
        reading.end = COMPLETED


# ------------------------------------------------------------------------------------------ servers


async def serve_until_client_done(context: RunContext, server: Server) -> None:
    """Serve until the client has returned. Then `_run` checks that the server frees the
    connection without being closed.
    """
    await context.client_done.wait()


async def read_client(context: RunContext, server: Server) -> None:
    """Read the publisher of the client."""
    while not server.peers and not context.client_done.is_set():  # noqa: ASYNC110  # no event reports a new peer, and the clock is virtual
        await trio.sleep(0.01)
    for peer in server.peers:
        await context.read(peer, "mine", SMALL, demand=2)
    context.signal.set()
    await context.client_done.wait()


async def check_counts_when_idle(context: RunContext, server: Server) -> None:
    """Check the counters of the connection when the client signals
    that all its streams have ended.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_nursery_on, context.signal, nursery)
        nursery.start_soon(_cancel_nursery_on, context.client_done, nursery)
    if not context.client_done.is_set():
        for peer in server.peers:
            context.check_idle_counts(peer)
    await context.client_done.wait()


async def serve_until_signal(context: RunContext, server: Server) -> None:
    """Return when the client signals or has returned."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_nursery_on, context.signal, nursery)
        nursery.start_soon(_cancel_nursery_on, context.client_done, nursery)


async def _cancel_nursery_on(event: trio.Event, nursery: trio.Nursery) -> None:
    await event.wait()
    nursery.cancel_scope.cancel()


@attrs.frozen(kw_only=True)
class Scenario:
    """A client, a server, and the ends that an undisturbed run must have."""

    client: Callable[[RunContext], Awaitable[None]]
    ends: tuple[str, ...]
    """The end of each reading, in the order in which the readings begin."""
    server: Callable[[RunContext, Server], Awaitable[None]] = serve_until_client_done
    violations: tuple[str, ...] = ()
    """Types of the errors that the `on_violation` hooks may receive."""
    capacity: int = 1 << 16
    cancellable: str | None = None
    """The label of the reading that can be cancelled alone."""
    limits: Limits = LIMITS
    protocol: str = ""
    """The prefix of the URL that selects the protocol."""

    @property
    def notices_silence(self) -> bool:
        """Whether both sides detect silence. In ReactiveSocket, which has no keepalive of its
        own, only a failing send reports it.
        """
        return not self.protocol


LOST: Final = "ConnectionLost"

SCENARIOS: Final[dict[str, Scenario]] = {
    "handshake only": Scenario(client=only_handshake, ends=()),
    "an unknown name": Scenario(client=subscribe_unknown_name, ends=("Rejected", COMPLETED)),
    "small elements by element": Scenario(client=read_by_element, ends=(COMPLETED,)),
    "small elements by batch": Scenario(client=read_by_batch, ends=(COMPLETED,)),
    "large elements in parts": Scenario(client=read_large, ends=(COMPLETED,), limits=NARROW),
    "large elements, a narrow wire": Scenario(
        client=read_large, ends=(COMPLETED,), capacity=32, limits=NARROW
    ),
    "elements of fixed size": Scenario(client=read_fixed, ends=(COMPLETED,)),
    "elements of fixed size as buffers": Scenario(client=read_buffers, ends=(COMPLETED,)),
    "json": Scenario(client=read_objects, ends=(COMPLETED,)),
    "two streams": Scenario(client=read_two, ends=(COMPLETED, COMPLETED)),
    "one of two streams": Scenario(
        client=read_beside_cancellable,
        server=check_counts_when_idle,
        ends=(COMPLETED,) * 3,
        cancellable="slow",
    ),
    "both ways": Scenario(client=both_ways, server=read_client, ends=(COMPLETED, COMPLETED)),
    "a publisher that fails": Scenario(
        client=read_failing, ends=("PublisherFailed",), violations=("PlannedFailure",)
    ),
    "left early": Scenario(client=stop_early, ends=(STOPPED, COMPLETED)),
    "demand by hand": Scenario(client=request_by_hand, ends=(STOPPED,)),
    "goodbye by the client": Scenario(client=close_while_reading, ends=(LOST,)),
    "goodbye by the server": Scenario(
        client=read_until_server_closes, server=serve_until_signal, ends=(LOST,)
    ),
    "goodbyes that cross": Scenario(
        client=close_on_both_sides, server=serve_until_signal, ends=(LOST,)
    ),
    "keepalive": Scenario(client=read_rare, ends=(COMPLETED,)),
    "reconnecting": Scenario(client=read_with_reconnect, ends=(COMPLETED,)),
}

_SHARED: Final = [
    "small elements by batch",
    "large elements, a narrow wire",
    "one of two streams",
    "both ways",
    "a publisher that fails",
    "left early",
    "goodbyes that cross",
    "reconnecting",
]
"""Scenarios that also run over ReactiveSocket."""

_REACTIVESOCKET: Final = {name: SCENARIOS[name] for name in _SHARED} | {
    "requests for one value": Scenario(
        client=request_values, ends=("PublisherFailed", COMPLETED, COMPLETED)
    ),
    "requests for streams": Scenario(client=request_streams, ends=(COMPLETED, "PublisherFailed")),
    "a client that is refused": Scenario(client=connect_refused, ends=("Rejected",)),
}
SCENARIOS.update(
    {
        f"{name}, ReactiveSocket": attrs.evolve(scenario, protocol="reactivesocket+")
        for name, scenario in _REACTIVESOCKET.items()
    }
)
