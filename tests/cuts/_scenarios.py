"""The scenarios: what two ends may do on one connection, small enough to be cut at each of its bytes.

A scenario's client and server are told nothing of cuts and cancellations: they are written as a user would write them.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import trio

from penstock.api import ConnectionLost, Limits, Rejected
from penstock.runtime import Peer, Reconnect, Server, Service, subscribe
from tests.cuts._stage import COMPLETED, LEFT, REGISTRY, Boom, Reading, Stage, ending

LIMITS: Final = replace(Limits(), split_outbound_at=16, turn=1e9)
"""Parts so small that a large element is a few hundred bytes (of 64 bytes while no other stream has one), and no look at the real clock:
the same steps in each run."""

NARROW: Final = replace(LIMITS, outbound_high=80)
"""Room for one such part at a time: with more, an element that is alone goes in fewer parts."""

SMALL: Final = [b"one", b"two", b"three", b"four", b"five"]
LARGE: Final = [b"before", b"x" * 150, b"y" * 65, b"between", b"z" * 64]
FIXED: Final = [bytes([65 + number]) * 4 for number in range(7)]
FOREVER: Final = [b"%d" % number for number in range(100)]


# ------------------------------------------------------------------------------------------------------- publishers


async def small(stage: Stage) -> AsyncGenerator[bytes, None]:
    for element in SMALL:
        yield element


async def slow(stage: Stage) -> AsyncGenerator[bytes, None]:
    for element in SMALL:
        await trio.sleep(0.1)
        yield element


async def large(stage: Stage) -> AsyncGenerator[bytes, None]:
    for element in LARGE:
        yield element


async def fixed(stage: Stage) -> AsyncGenerator[bytes, None]:
    yield b"".join(FIXED[:4])  # several in one piece
    for element in FIXED[4:]:
        yield element


async def forever(stage: Stage) -> AsyncGenerator[bytes, None]:
    for element in FOREVER:
        yield element
        await trio.sleep(0.01)


async def failing(stage: Stage) -> AsyncGenerator[bytes, None]:
    for element in SMALL[:2]:
        yield element
    raise Boom("for those who run it only")


async def rare(stage: Stage) -> AsyncGenerator[bytes, None]:
    for element in SMALL[:3]:
        await trio.sleep(40)
        yield element


async def numbers(stage: Stage) -> AsyncGenerator[dict[str, int], None]:
    for number in range(4):
        yield {"number": number}


async def doorkeeper(data: bytes) -> None:
    await trio.sleep(0.1)
    if data == b"nobody":
        raise Rejected("not you")


def everything(stage: Stage) -> Service:
    """Return the service that every server offers."""
    service = stage.service(doorkeeper, small=small, slow=slow, large=large, forever=forever, failing=failing, rare=rare)
    stage.offer(service, "fixed", fixed, element_size=4)
    stage.offer(service, "numbers", numbers, serializer="json")
    service.fire_and_forget(_swallow)
    return service


async def _swallow(data: bytes) -> None:
    await trio.sleep(0.05)


# ---------------------------------------------------------------------------------------------------------- clients


async def shake_hands(stage: Stage) -> None:
    async with stage.connect() as peer:
        await peer.wait_accepted()


async def ask_for_nobody(stage: Stage) -> None:
    async with stage.connect() as peer:
        await stage.read(peer, "nobody", [])
        await stage.read(peer, "small", SMALL)


async def read_by_element(stage: Stage) -> None:
    async with stage.connect() as peer:
        await stage.read(peer, "small", SMALL, demand=2)


async def read_by_batch(stage: Stage) -> None:
    reading = stage.due("slow", SMALL)
    async with stage.connect() as peer, peer.subscribe("slow", demand=4) as stream:
        with ending(reading):
            async for batch in stream.batches():
                reading.got += batch
            reading.end = COMPLETED


async def read_large(stage: Stage) -> None:
    async with stage.connect() as peer:
        await stage.read(peer, "large", LARGE, demand=3)


async def read_fixed(stage: Stage) -> None:
    async with stage.connect() as peer:
        await stage.read(peer, "fixed", FIXED, demand=3)


async def read_buffers(stage: Stage) -> None:
    reading = stage.due("fixed", FIXED)
    async with stage.connect() as peer, peer.subscribe("fixed", demand=5) as stream:
        with ending(reading):
            async for buffer in stream.buffers():
                reading.got += [buffer[at : at + 4] for at in range(0, len(buffer), 4)]
            reading.end = COMPLETED


async def read_objects(stage: Stage) -> None:
    async with stage.connect() as peer:
        await stage.read(peer, "numbers", [{"number": number} for number in range(4)], serializer="json", demand=2)


async def read_two(stage: Stage) -> None:
    async with stage.connect() as peer, trio.open_nursery() as nursery:
        nursery.start_soon(stage.read, peer, "slow", SMALL)
        nursery.start_soon(stage.read, peer, "large", LARGE)


async def lose_one(stage: Stage) -> None:
    """One of two streams may be cancelled; the other, and the connection, must not notice."""
    async with stage.connect() as peer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read_one, stage, peer)
            await stage.read(peer, "large", LARGE)
        await stage.read(peer, "small", SMALL)
        await trio.sleep(1)  # what is still on its way
        stage.count_what_is_left(peer)
        stage.cue.set()
        await trio.lowlevel.checkpoint()


async def _read_one(stage: Stage, peer: Peer) -> None:
    with stage.one:
        await stage.read(peer, "slow", SMALL, demand=2)


async def both_ways(stage: Stage) -> None:
    mine = Service()
    stage.offer(mine, "mine", slow)
    async with stage.connect(mine) as peer:
        await stage.read(peer, "slow", SMALL, demand=2)
        await peer.wait_accepted()
        with trio.move_on_after(1):  # the server has what it wants, or is gone
            await stage.cue.wait()


async def meet_failure(stage: Stage) -> None:
    async with stage.connect() as peer:
        await stage.read(peer, "failing", SMALL[:2])


async def leave_early(stage: Stage) -> None:
    async with stage.connect() as peer:
        await stage.read(peer, "forever", FOREVER, most=2, demand=4)
        await stage.read(peer, "small", SMALL)


async def ask_by_hand(stage: Stage) -> None:
    reading = stage.due("small", SMALL)
    async with stage.connect() as peer, peer.subscribe("small", demand=0) as stream:
        with ending(reading):
            for asked in (2, 1):
                stream.request(asked)
                for _ in range(asked):
                    reading.got.append(await anext(stream))
            await trio.sleep(0.5)  # everything that was asked for is here, and nothing more comes
            assert stream.statistics().buffered == 0


async def hang_up(stage: Stage) -> None:
    reading = stage.due("forever", FOREVER)
    async with AsyncExitStack() as later:
        async with stage.connect() as peer:
            stream = await later.enter_async_context(peer.subscribe("forever", demand=4))
            await _some(stream, reading)
        await _rest(stream, reading)


async def be_hung_up_on(stage: Stage) -> None:
    reading = stage.due("forever", FOREVER)
    async with stage.connect() as peer, peer.subscribe("forever", demand=4) as stream:
        await _some(stream, reading)
        stage.cue.set()
        await _rest(stream, reading)


async def hang_up_too(stage: Stage) -> None:
    reading = stage.due("forever", FOREVER)
    async with AsyncExitStack() as later:
        async with stage.connect() as peer:
            stream = await later.enter_async_context(peer.subscribe("forever", demand=4))
            await _some(stream, reading)
            stage.cue.set()
        await _rest(stream, reading)


async def wait_long(stage: Stage) -> None:
    async with stage.connect() as peer:
        await stage.read(peer, "rare", SMALL[:3])


async def ask_for_values(stage: Stage) -> None:
    async with stage.connect() as peer, trio.open_nursery() as nursery:
        nursery.start_soon(stage.ask, peer, "slow", SMALL[0])
        nursery.start_soon(stage.ask, peer, "large", LARGE[0])
        await stage.ask(peer, "nobody", None)


async def ask_for_streams(stage: Stage) -> None:
    async with stage.connect() as peer:
        await stage.read(peer, "small", SMALL, how="request_stream", demand=2)
        with suppress(ConnectionLost):
            await peer.fire_and_forget(b"shot")
        await stage.read(peer, "small", SMALL, how="request_subscription", demand=2)


async def be_refused(stage: Stage) -> None:
    with suppress(Rejected):
        async with stage.connect(setup=b"nobody") as peer:
            await stage.read(peer, "small", SMALL)


async def begin_anew(stage: Stage) -> None:
    reading = stage.due("slow", SMALL, restarts=True)
    policy = Reconnect(attempts=3, first=0.1, chance=lambda: 0.5)
    async with subscribe(
        f"{stage.url}/slow", demand=3, reconnect=policy, limits=stage.limits, registry=REGISTRY, on_violation=stage.hear
    ) as stream:
        await _rest(stream, reading)


async def _some(stream: Any, reading: Reading) -> None:
    with ending(reading):
        while len(reading.got) < 2:
            reading.got.append(await anext(stream))


async def _rest(stream: Any, reading: Reading) -> None:
    if reading.end not in {None, LEFT}:
        return  # it has ended already
    reading.end = None
    with ending(reading):
        async for element in stream:
            reading.got.append(element)
        reading.end = COMPLETED


# ---------------------------------------------------------------------------------------------------------- servers


async def serve_on(stage: Stage, server: Server) -> None:
    """Serve until the client is done, and a little longer: what is left of it must go by itself."""
    await stage.client_over.wait()


async def read_client(stage: Stage, server: Server) -> None:
    """Subscribe to what the client publishes."""
    while not server.peers and not stage.client_over.is_set():  # noqa: ASYNC110  # nobody announces it, and the clock is virtual
        await trio.sleep(0.01)
    for peer in server.peers:
        await stage.read(peer, "mine", SMALL, demand=2)
    stage.cue.set()
    await stage.client_over.wait()


async def count_streams(stage: Stage, server: Server) -> None:
    """Look at what a connection counts when the client says that nothing runs on it."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_leave_at, stage.cue, nursery)
        nursery.start_soon(_leave_at, stage.client_over, nursery)
    if not stage.client_over.is_set():
        for peer in server.peers:
            stage.count_what_is_left(peer)
    await stage.client_over.wait()


async def serve_briefly(stage: Stage, server: Server) -> None:
    """Leave when the client gives the sign, or has gone."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_leave_at, stage.cue, nursery)
        nursery.start_soon(_leave_at, stage.client_over, nursery)


async def _leave_at(event: trio.Event, nursery: trio.Nursery) -> None:
    await event.wait()
    nursery.cancel_scope.cancel()


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Two ends, and how it goes when nobody disturbs it."""

    client: Callable[[Stage], Awaitable[None]]
    ends: tuple[str, ...]
    """How each reading ends, in the order in which they begin."""
    server: Callable[[Stage, Server], Awaitable[None]] = serve_on
    told: tuple[str, ...] = ()
    """What the `on_violation` hooks are told."""
    capacity: int = 1 << 16
    one: str | None = None
    """Which of its subscriptions can be cancelled alone."""
    limits: Limits = LIMITS
    protocol: str = ""
    """What stands before the transport in the URL."""

    @property
    def notices_silence(self) -> bool:
        """ReactiveSocket has no liveness of its own: a cable that was pulled shows when something is sent, and not before."""
        return not self.protocol


LOST: Final = "ConnectionLost"

SCENARIOS: Final[dict[str, Scenario]] = {
    "handshake only": Scenario(client=shake_hands, ends=()),
    "an unknown name": Scenario(client=ask_for_nobody, ends=("Rejected", COMPLETED)),
    "small elements by element": Scenario(client=read_by_element, ends=(COMPLETED,)),
    "small elements by batch": Scenario(client=read_by_batch, ends=(COMPLETED,)),
    "large elements in parts": Scenario(client=read_large, ends=(COMPLETED,), limits=NARROW),
    "large elements, a narrow wire": Scenario(client=read_large, ends=(COMPLETED,), capacity=32, limits=NARROW),
    "elements of fixed size": Scenario(client=read_fixed, ends=(COMPLETED,)),
    "elements of fixed size as buffers": Scenario(client=read_buffers, ends=(COMPLETED,)),
    "json": Scenario(client=read_objects, ends=(COMPLETED,)),
    "two streams": Scenario(client=read_two, ends=(COMPLETED, COMPLETED)),
    "one of two streams": Scenario(client=lose_one, server=count_streams, ends=(COMPLETED,) * 3, one="slow"),
    "both ways": Scenario(client=both_ways, server=read_client, ends=(COMPLETED, COMPLETED)),
    "a publisher that fails": Scenario(client=meet_failure, ends=("PublisherFailed",), told=("Boom",)),
    "left early": Scenario(client=leave_early, ends=(LEFT, COMPLETED)),
    "demand by hand": Scenario(client=ask_by_hand, ends=(LEFT,)),
    "goodbye by the client": Scenario(client=hang_up, ends=(LOST,)),
    "goodbye by the server": Scenario(client=be_hung_up_on, server=serve_briefly, ends=(LOST,)),
    "goodbyes that cross": Scenario(client=hang_up_too, server=serve_briefly, ends=(LOST,)),
    "keepalive": Scenario(client=wait_long, ends=(COMPLETED,)),
    "reconnecting": Scenario(client=begin_anew, ends=(COMPLETED,)),
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
"""Scenarios that say something of the other protocol, too."""

_REQUESTS: Final = {name: SCENARIOS[name] for name in _SHARED} | {
    "requests for one value": Scenario(client=ask_for_values, ends=("PublisherFailed", COMPLETED, COMPLETED)),
    "requests for streams": Scenario(client=ask_for_streams, ends=(COMPLETED, "PublisherFailed")),
    "a client that is refused": Scenario(client=be_refused, ends=("Rejected",)),
}
SCENARIOS.update({f"{name}, ReactiveSocket": replace(each, protocol="reactivesocket+") for name, each in _REQUESTS.items()})
