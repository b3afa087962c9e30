"""Attack a client: its program reads two streams of a hostile server, one of which is attacked,
and a canary of an honest server.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import trio

from penstock.api import ConnectionLost, Rejected, Subscriber, Subscription
from penstock.runtime import Peer, connect, serve
from penstock.spi import TransportOptions
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker import PROBE, VICTIM, Attacker, steady_element
from tests.hostile._attacker_protocol import RSIO
from tests.hostile._beside_a_canary import Aftermath
from tests.hostile._canary import TICK, Canary
from tests.hostile._census import census, wait_forgotten
from tests.hostile._figures import watch_figures
from tests.hostile._row import SILENCE, C, Row, S
from tests.hostile._setup import REGISTRY, Certificates, Setup, service


class Reader(Subscriber[Any]):
    """Requests once, and records the elements and the ends."""

    def __init__(self, demand: int, on_element: Callable[[], None] = lambda: None) -> None:
        self.elements: list[Any] = []
        self.ends: list[str] = []
        """As text: an exception would keep the objects of its traceback alive."""
        self._demand = demand
        self._on_element = on_element

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.request(self._demand)

    def on_next(self, element: Any, /) -> None:
        self.elements.append(element)
        self._on_element()

    def on_error(self, error: BaseException, /) -> None:
        self.ends.append(f"{type(error).__name__}: {error}")

    def on_complete(self, /) -> None:
        self.ends.append("complete")


@dataclass
class ClientOutcome:
    """The result of an attack on a client.
    Times are in seconds of the attack's clock, but for `waited`.
    """

    goodbyes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Error texts that the attacker received."""
    victim: Reader = field(default_factory=lambda: Reader(0))
    companion: Reader = field(default_factory=lambda: Reader(0))
    answered: float = 0.0
    waited: float = 0.0
    gone: float = 0.0
    companion_gap: float = 0.0
    refused: str = ""
    """Why `connect` failed, or nothing."""
    told: list[Exception] = field(default_factory=list)


async def attack_client(
    row: Row, scheme: str, files: Certificates, stretch: float
) -> tuple[ClientOutcome, Aftermath]:
    """Let a hostile server do to a client what `row` says, beside a canary."""
    clock = AttackClock(stretch)
    attack = _Attack(
        row,
        Setup(
            files=files,
            scheme=scheme,
            protocol=row.protocol,
            unstretched=row.limits,
            stretch=stretch,
        ),
        clock,
    )
    async with (
        serve(service(), "rsio+tcp://127.0.0.1:0", registry=REGISTRY) as honest,
        connect(honest.addresses[0], registry=REGISTRY) as peer,
    ):
        async with peer.subscribe("ticks") as ticks, trio.open_nursery() as nursery:
            canary = Canary(clock)
            nursery.start_soon(canary.watch, ticks)
            await canary.wait_ticks()
            before = census()
            with (
                trio.fail_after(attack.setup.hangs_after * stretch),
                watch_figures(lambda: attack.attacked) as figures,
            ):
                # After the census, for which the canary waits.
                canary.restart()
                await attack.run()
            await canary.wait_ticks()
            aftermath = Aftermath(
                canary.longest, {}, attack.outcome.told, stretch, figures.held, figures.longest
            )
            aftermath.left = await wait_forgotten(before, clock)
            nursery.cancel_scope.cancel()
    clock.close()
    return attack.outcome, aftermath


class _Attack:
    """One attack: the client's side in `run`, the hostile server's in `_serve`."""

    def __init__(self, row: Row, setup: Setup, clock: AttackClock) -> None:
        self.outcome = ClientOutcome()
        self.attacked: list[Any] = []
        """The connection of the client."""
        self._row = row
        self.setup = setup
        self._clock = clock
        self._times: list[float] = []
        """When the companion's elements came."""
        self._began = self._opened_on_the_wall = 0.0
        self._answer_seen = trio.Event()

    async def run(self) -> None:
        outcome, row, limits = self.outcome, self._row, self.setup.limits
        outcome.victim = Reader(row.demand)
        outcome.companion = Reader(10**6, lambda: self._times.append(self._clock.now()))
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        address = f"{row.protocol.url_prefix}{self.setup.scheme}://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._serve, listener)
            # Before the connection, where the deadlines of the client start.
            self._opened_on_the_wall = trio.current_time()
            options = TransportOptions(
                tls=self.setup.files.client_options.tls, handshake_timeout=limits.tls_timeout
            )
            given: dict[str, Any] = {
                "options": options,
                "resume": row.resumes,
                "on_violation": outcome.told.append,
            }
            try:
                async with connect(address, limits=limits, registry=REGISTRY, **given) as peer:
                    self.attacked.append(peer._connection)
                    self._read(peer)
                    await self._answer_seen.wait()
            except Rejected:
                pass  # the streams have ended with it as well
            except ConnectionLost as error:
                outcome.refused = str(error)
                self._note_answer()
            outcome.gone = self._clock.now() - self._began
            self.attacked.clear()  # its objects would stand in the census
            nursery.cancel_scope.cancel()
        await listener.aclose()
        outcome.companion_gap = max(
            (later - one for one, later in pairwise(self._times)), default=0.0
        )

    def _read(self, peer: Peer) -> None:
        row, outcome = self._row, self.outcome
        victim = peer.source("victim", serializer=row.serializer)
        # The ids of the streams must be those of the attacker:
        # RS.io counts from 0, ReactiveSocket from 1.
        if row.protocol is RSIO:
            peer.source("steady").attach(outcome.companion)
            victim.attach(outcome.victim)
        else:
            peer._requesting(row.model, "victim", peer._loader(row.serializer, None)).attach(
                outcome.victim
            )
            peer.source("steady").attach(outcome.companion)

    def _begin(self) -> None:
        self._began = self._clock.now()

    def _note_answer(self) -> None:
        self.outcome.answered = self._clock.now() - self._began
        self.outcome.waited = trio.current_time() - self._opened_on_the_wall

    async def _serve(self, listener: trio.SocketListener) -> None:
        row, stream = self._row, await listener.accept()
        self._begin()
        if self.setup.scheme == "tls" and not row.without_tls:
            context = self.setup.files.server_options.tls.server_context((row.protocol.alpn,))  # type: ignore[union-attr]  # it is given
            stream = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        attacker = Attacker(stream, self._clock, row.protocol)
        try:
            await self._attack(attacker)
        finally:
            await attacker.close()

    async def _attack(self, attacker: Attacker) -> None:
        async with trio.open_nursery() as nursery:
            if not self._row.without_tls:
                nursery.start_soon(attacker.listen)
            await self._say_hello(attacker, nursery)
            self._begin()
            nursery.start_soon(self._act, attacker)
            await self._wait_for_answer(attacker)
            self._note_answer()
            self._answer_seen.set()
            nursery.cancel_scope.cancel()
        outcome = self.outcome
        outcome.goodbyes = attacker.goodbyes
        outcome.errors = [message[2] for message in attacker.heard if message[0] == "onError"]

    async def _say_hello(self, attacker: Attacker, nursery: trio.Nursery) -> None:
        if not self._row.says_hello:
            return
        protocol = self._row.protocol
        await attacker.send(
            protocol.server_hello(*self._row.extensions) + protocol.on_subscribe(protocol.companion)
        )
        nursery.start_soon(self._tick, attacker)
        await attacker.wait(
            lambda: any(message[:2] == ("subscribe", "victim") for message in attacker.heard)
        )
        if self._row.accepts_victim:
            await attacker.send(protocol.on_subscribe(VICTIM, self._row.size))

    async def _tick(self, attacker: Attacker) -> None:
        while await attacker.send(steady_element(self._row.protocol)):  # noqa: ASYNC110 (a steady pace is the purpose)
            await trio.sleep(TICK)

    async def _act(self, attacker: Attacker) -> None:
        if isinstance(self._row.attack, bytes):
            await attacker.send(self._row.attack)
        else:
            await self._row.attack(attacker)
        if self._row.answer is not C:
            await attacker.send(self._row.protocol.subscribe("nothing", PROBE, 1))

    async def _wait_for_answer(self, attacker: Attacker) -> None:
        row, victim = self._row, self.outcome.victim
        if row.without_tls:
            await trio.sleep_forever()
        elif row.answer is C:
            await attacker.wait(lambda: row.says != SILENCE and attacker.goodbyes)
            return
        await attacker.wait(
            lambda: any(message[:2] == ("onError", PROBE) for message in attacker.heard)
        )
        if row.answer is S:
            await attacker.wait(
                lambda: ("cancel", VICTIM) in attacker.heard if row.cancels else victim.ends
            )
        wanted = len(self._times) + 2
        while len(self._times) < wanted and not attacker.ending:  # noqa: ASYNC110 (the program receives them, not this task)
            await trio.sleep(TICK)
