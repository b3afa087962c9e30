"""A client of ours at a hostile server: its program reads two streams, of which one is attacked, and a canary of another server's."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import trio

from penstock.api import ConnectionLost, Rejected, Subscriber, Subscription
from penstock.plugins import TransportOptions
from penstock.runtime import Peer, connect, serve
from tests.hostile._arena import PATIENCE, REGISTRY, TICK, Canary, Certificates, census, service, wait_forgotten
from tests.hostile._attacker import PROBE, VICTIM, Attacker, steady
from tests.hostile._own_time import OwnTime
from tests.hostile._row import SILENCE, C, Row, S
from tests.hostile._tongue import RSIO


class Reader(Subscriber[Any]):
    """Asks once, and notes what comes of it."""

    def __init__(self, demand: int, came: Callable[[], None] = lambda: None) -> None:
        self.elements: list[Any] = []
        self.ends: list[str] = []
        """As text: an error would keep alive what it came from."""
        self._demand = demand
        self._came = came

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.request(self._demand)

    def on_next(self, element: Any, /) -> None:
        self.elements.append(element)
        self._came()

    def on_error(self, error: BaseException, /) -> None:
        self.ends.append(f"{type(error).__name__}: {error}")

    def on_complete(self, /) -> None:
        self.ends.append("complete")


@dataclass
class ClientOutcome:
    """What came of an attack on a client."""

    goodbyes: list[str] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Error texts that the attacker was sent."""
    victim: Reader = field(default_factory=lambda: Reader(0))
    companion: Reader = field(default_factory=lambda: Reader(0))
    answered: float = 0.0
    waited: float = 0.0
    gone: float = 0.0
    gap: float = 0.0
    companion_gap: float = 0.0
    refused: str = ""
    """The connection never came to be."""
    left: dict[str, int] = field(default_factory=dict)
    told: list[Exception] = field(default_factory=list)


async def attack_client(row: Row, scheme: str, files: Certificates) -> ClientOutcome:
    """Let a hostile server do to a client what `row` says, beside a canary."""
    clock = OwnTime()
    outcome = ClientOutcome()
    async with (
        serve(service(), "rsio+tcp://127.0.0.1:0", registry=REGISTRY) as honest,
        connect(honest.addresses[0], registry=REGISTRY) as peer,
    ):
        async with peer.subscribe("ticks") as ticks, trio.open_nursery() as nursery:
            canary = Canary(clock)
            nursery.start_soon(canary.watch, ticks)
            await canary.wait_ticks()
            before = census()
            canary.begin()
            with trio.fail_after(PATIENCE):
                await _Fight(row, scheme, files, clock, outcome).go_on()
            await canary.wait_ticks()
            outcome.gap = canary.longest
            outcome.left = await wait_forgotten(before)
            nursery.cancel_scope.cancel()
    clock.close()
    return outcome


class _Fight:
    """One attack, from both sides."""

    def __init__(self, row: Row, scheme: str, files: Certificates, clock: OwnTime, outcome: ClientOutcome) -> None:
        self.row = row
        self.scheme = scheme
        self.files = files
        self.clock = clock
        self.outcome = outcome
        self.times: list[float] = []
        self.began = self.began_by_the_wall = 0.0
        self.over = trio.Event()
        """The attacker has seen what it wanted to see."""

    async def go_on(self) -> None:
        outcome, row = self.outcome, self.row
        outcome.victim = Reader(row.demand)
        outcome.companion = Reader(10**6, lambda: self.times.append(self.clock.now()))
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        address = f"{row.tongue.prefix}{self.scheme}://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._attack, listener)
            options = TransportOptions(tls=self.files.calling.tls, handshake_timeout=row.limits.tls_timeout)
            try:
                async with connect(
                    address, limits=row.limits, registry=REGISTRY, options=options, on_violation=outcome.told.append
                ) as peer:
                    self._read(peer)
                    await self.over.wait()
            except Rejected:
                pass  # told by the streams as well
            except ConnectionLost as error:
                outcome.refused = str(error)
                self._note_answer()
            outcome.gone = self.clock.now() - self.began
            nursery.cancel_scope.cancel()
        await listener.aclose()
        outcome.companion_gap = max((later - one for one, later in pairwise(self.times)), default=0.0)

    def _read(self, peer: Peer) -> None:
        row, outcome = self.row, self.outcome
        victim = peer.source("victim", serializer=row.serializer)
        if row.tongue is RSIO:
            peer.source("steady").attach(outcome.companion)
            victim.attach(outcome.victim)
        else:  # whose ids begin with 1
            peer._requesting(row.asks, "victim", row.serializer).attach(outcome.victim)
            peer.source("steady").attach(outcome.companion)

    def _note_answer(self) -> None:
        self.outcome.answered = self.clock.now() - self.began
        self.outcome.waited = trio.current_time() - self.began_by_the_wall

    async def _attack(self, listener: trio.SocketListener) -> None:
        row, stream = self.row, await listener.accept()
        self.began, self.began_by_the_wall = self.clock.now(), trio.current_time()
        if self.scheme == "tls" and not row.plain:
            context = self.files.serving.tls.server_context((row.tongue.alpn,))  # type: ignore[union-attr]  # it is given
            stream = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        attacker = Attacker(stream, self.clock, row.tongue)
        try:
            await self._fight(attacker)
        finally:
            await attacker.close()

    async def _fight(self, attacker: Attacker) -> None:
        async with trio.open_nursery() as nursery:
            if not self.row.plain:
                nursery.start_soon(attacker.listen)
            await self._greet(attacker, nursery)
            self.began, self.began_by_the_wall = self.clock.now(), trio.current_time()
            nursery.start_soon(self._act, attacker)
            await self._wait_answer(attacker)
            self._note_answer()
            self.over.set()
            nursery.cancel_scope.cancel()
        outcome = self.outcome
        outcome.goodbyes = attacker.goodbyes
        outcome.cancels = [message[1] for message in attacker.heard if message[0] == "cancel"]
        outcome.errors = [message[2] for message in attacker.heard if message[0] == "onError"]

    async def _greet(self, attacker: Attacker, nursery: trio.Nursery) -> None:
        if not self.row.greets:
            return
        tongue = self.row.tongue
        await attacker.send(tongue.server_hello(*self.row.extensions) + tongue.on_subscribe(tongue.companion))
        nursery.start_soon(self._tick, attacker)
        await attacker.wait(lambda: any(message[:2] == ("subscribe", "victim") for message in attacker.heard))
        if self.row.begins:
            await attacker.send(tongue.on_subscribe(VICTIM, self.row.size))

    async def _tick(self, attacker: Attacker) -> None:
        while await attacker.send(steady(self.row.tongue)):  # noqa: ASYNC110 (it is the pace that counts)
            await trio.sleep(TICK)

    async def _act(self, attacker: Attacker) -> None:
        if isinstance(self.row.act, bytes):
            await attacker.send(self.row.act)
        else:
            await self.row.act(attacker)
        if self.row.answer is not C:
            await attacker.send(self.row.tongue.subscribe("nothing", PROBE, 1))

    async def _wait_answer(self, attacker: Attacker) -> None:
        row, victim = self.row, self.outcome.victim
        if row.plain:
            await trio.sleep_forever()
        elif row.answer is C:
            await attacker.wait(lambda: row.says != SILENCE and attacker.goodbyes)
            return
        await attacker.wait(lambda: any(message[:2] == ("onError", PROBE) for message in attacker.heard))
        if row.answer is S:
            await attacker.wait(lambda: ("cancel", VICTIM) in attacker.heard if row.cancels else victim.ends)
        there = len(self.times) + 2
        while len(self.times) < there and not attacker.ending:  # noqa: ASYNC110 (the program is told, not this task)
            await trio.sleep(TICK)
