"""Where attacks take place: a real server, a canary on a connection of its own, and a count of everything before and after."""

import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import trio
import trustme

from penstock.api import Limits, Rejected
from penstock.plugins import Tls, TransportOptions, build_registry
from penstock.runtime import Server, Service, connect, serve
from tests.hostile._attacker import PROBE, VICTIM, Attacker, companion, open_stream
from tests.hostile._own_time import OwnTime
from tests.hostile._row import SILENCE, C, I, Row, S
from tests.hostile._tongue import RSIO, Tongue

GAP = 0.1
"""The longest that a canary may wait, in seconds of our own."""

TICK = 0.01
PATIENCE = 60
"""Seconds after which a test ends that hangs."""

REGISTRY = build_registry()
OPEN_FILES = Path("/proc/self/fd")
_COUNTED = ("penstock", "socket", "ssl.SSL", "_ssl", "builtins.async_generator", "trio.S", "trio.Nursery", "trio.lowlevel.Task")


class Certificates:
    """Made once: keys take time."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.authority = folder / "ca.pem"
        self.server = folder / "server.pem"
        authority.cert_pem.write_to_path(self.authority)
        authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(self.server)
        self.folder = folder

    def url(self, scheme: str, tongue: Tongue = RSIO) -> str:
        places = {"unix": f"{self.folder}/s.sock", "memory-framed": "arena"}
        return f"{tongue.prefix or 'rsio+'}{scheme}://{places.get(scheme, '127.0.0.1:0')}"

    @property
    def serving(self) -> TransportOptions:
        return TransportOptions(tls=Tls(certificate=self.server))

    @property
    def calling(self) -> TransportOptions:
        return TransportOptions(tls=Tls(authorities=self.authority))


def service() -> Service:
    """What is published to friend and foe."""
    made = Service(setup=doorkeeper)

    @made.publisher("ticks")
    async def ticks() -> AsyncIterator[bytes]:
        while True:
            yield b"tick"
            await trio.sleep(TICK)

    @made.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    @made.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000

    @made.publisher("up-to/{count}")
    async def up_to(count: int) -> AsyncIterator[bytes]:
        yield b"x" * count

    @made.publisher("one")
    async def one() -> AsyncIterator[bytes]:
        yield b"one"

    @made.publisher("none")
    async def none() -> AsyncIterator[bytes]:
        for nothing in ():
            yield nothing

    @made.fire_and_forget
    async def swallow(data: bytes) -> None:
        await trio.lowlevel.checkpoint()

    return made


async def doorkeeper(data: bytes) -> None:
    """Lets everybody in but those who say that they would rather not."""
    if data == b"keep me waiting":
        await trio.sleep_forever()
    if data == b"send me away":
        raise Rejected("not you")


class Canary:
    """Reads one tick after the other, and knows the longest wait."""

    def __init__(self, clock: OwnTime) -> None:
        self._clock = clock
        self._last: float | None = None
        self._ticked = trio.Event()
        self.longest = 0.0

    async def watch(self, stream: Any) -> None:
        async for _ in stream:
            self.ticked()

    def ticked(self) -> None:
        now = self._clock.now()
        if self._last is not None:
            self.longest = max(self.longest, now - self._last)
        self._last = now
        self._ticked.set()
        self._ticked = trio.Event()

    async def wait_ticks(self, count: int = 2) -> None:
        for _ in range(count):
            await self._ticked.wait()

    def begin(self) -> None:
        """Forget how long things took until now."""
        self.longest = 0.0


def census() -> "Counter[str]":
    """Everything that lives of ours, each socket, stream, task and generator; and the open files."""
    gc.collect()
    names = (f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    found = Counter(name for name in names if name.startswith(_COUNTED))
    found["open files"] = len(list(OPEN_FILES.iterdir())) if OPEN_FILES.is_dir() else 0
    found["tasks"] = trio.lowlevel.current_statistics().tasks_living
    return found


@dataclass
class Outcome:
    """What came of an attack."""

    attacker: Attacker
    answered: float = 0.0
    """Seconds of our own until the answer was there."""
    waited: float = 0.0
    """The same by the clock on the wall."""
    gone: float = 0.0
    """Seconds until the server had forgotten the connection."""
    gap: float = 0.0
    companion_gap: float = 0.0
    left: dict[str, int] = field(default_factory=dict)
    told: list[Exception] = field(default_factory=list)


async def wait_until(condition: Callable[[], object]) -> None:
    """Look again and again: what is waited for happens inside a server, which tells nobody."""
    while not condition():  # noqa: ASYNC110 (the same)
        await trio.sleep(0.002)


async def wait_alone(server: Server) -> None:
    """Return when nobody but the canary is connected."""
    await wait_until(lambda: len(server._admission.open) == 1)


async def wait_forgotten(before: "Counter[str]") -> dict[str, int]:
    """Return what is more than before: nothing, as soon as what is still on its way out has gone."""
    with trio.move_on_after(1):
        while (census() - before).total():  # noqa: ASYNC110 (a socket that is closed tells nobody)
            await trio.sleep(0.01)
    return dict(census() - before)


@dataclass
class Peace:
    """What a canary, the hooks and the census say after something was done to a server."""

    gap: float
    left: dict[str, int]
    told: list[Exception]


async def beside_a_canary(
    limits: Limits, scheme: str, files: Certificates, act: Callable[[Server, OwnTime], Awaitable[None]], tongue: Tongue = RSIO
) -> Peace:
    """Do something to a server, beside a canary on a connection of its own, and look what is left of it."""
    told: list[Exception] = []
    clock = OwnTime()
    serving = serve(service(), files.url(scheme, tongue), limits=limits, registry=REGISTRY, options=files.serving, on_violation=told.append)
    own = replace(Limits(), keepalive_least=limits.keepalive_least)  # a server with scaled limits asks more often than is polite
    async with serving as server, connect(server.addresses[0], limits=own, registry=REGISTRY, options=files.calling) as peer:
        async with peer.subscribe("ticks") as ticks, trio.open_nursery() as nursery:
            canary = Canary(clock)
            nursery.start_soon(canary.watch, ticks)
            await canary.wait_ticks()
            before = census()
            canary.begin()
            with trio.fail_after(PATIENCE):
                await act(server, clock)
                await wait_alone(server)
            await canary.wait_ticks()
            peace = Peace(canary.longest, {}, told)
            peace.left = await wait_forgotten(before)
            nursery.cancel_scope.cancel()
    clock.close()
    return peace


async def attack_server(row: Row, scheme: str, files: Certificates) -> Outcome:
    """Let one attacker do to a server what `row` says, beside a canary."""
    outcomes: list[Outcome] = []

    async def act(server: Server, clock: OwnTime) -> None:
        outcomes.append(await _attack(row, server, files, clock))

    peace = await beside_a_canary(row.limits, scheme, files, act, row.tongue)
    [outcome] = outcomes
    outcome.gap, outcome.left, outcome.told = peace.gap, peace.left, peace.told
    return outcome


async def _attack(row: Row, server: Server, files: Certificates, clock: OwnTime) -> Outcome:
    stream = await open_stream(server.addresses[0], files.authority, plain=row.plain, small=not row.hears)
    attacker = Attacker(stream, clock, row.tongue)
    outcome = Outcome(attacker)
    async with trio.open_nursery() as nursery:
        await _greet(row, attacker, nursery)
        began, began_by_the_wall = clock.now(), trio.current_time()
        nursery.start_soon(_act, row, attacker)
        await _wait_answer(row, attacker, server)
        outcome.answered = clock.now() - began
        outcome.waited = trio.current_time() - began_by_the_wall
        if row.answer is not C:
            await attacker.close()
        await wait_alone(server)
        outcome.gone = clock.now() - began
        nursery.cancel_scope.cancel()
    await attacker.close()
    del attacker.stream  # what it consists of is none of the server's
    outcome.companion_gap = max((later - one for one, later in pairwise(attacker.times)), default=0.0)
    return outcome


async def _greet(row: Row, attacker: Attacker, nursery: trio.Nursery) -> None:
    """Say hello, if that is to be done, and hear the server's: from now on it knows of us."""
    if row.hears:
        nursery.start_soon(attacker.listen)
    if row.greets:
        await attacker.send(row.tongue.hello(*row.extensions))
        if row.hears:
            await attacker.wait(lambda: attacker.heard)
        else:
            await attacker.stream.receive_some(100)


async def _act(row: Row, attacker: Attacker) -> None:
    if row.answer is not C:
        await attacker.send(companion(row.tongue))
        await attacker.wait_companion()
    if isinstance(row.act, bytes):
        await attacker.send(row.act)
    else:
        await row.act(attacker)
    if row.answer is I:
        await attacker.send(row.tongue.subscribe("one", PROBE, 2))


async def _wait_answer(row: Row, attacker: Attacker, server: Server) -> None:
    if row.answer is C and not row.hears:
        await wait_alone(server)
    elif row.answer is C:
        await attacker.wait(lambda: row.says != SILENCE and attacker.goodbyes)
    elif row.answer is S:
        await attacker.wait(lambda: any(message[:2] == ("onError", VICTIM) for message in attacker.heard))
        await attacker.wait_companion()
    else:
        await attacker.wait_heard("onComplete", PROBE)
        await attacker.wait_companion()
