"""The honest clients of the soak. Each error that one of them sees is a failure of the soak.

Rules of this file:

* Each client makes one round at least, so that a soak of a second also has elements and requests.
* A client compares each element and each answer with what it must be.
* A client that vanishes resets its connection in the middle of a stream. A server loses many such
  clients, and none of them is an attack.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count

import trio
from penstock_tck.wire.rsio import UNBOUNDED

import penstock
from campaigns.soak._elements import COUNT, LENGTHS, elements
from campaigns.soak._proxy import CuttingProxy
from campaigns.soak._tally import Course, Tally
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._attacker_protocol import PROTOCOLS, AttackerProtocol
from tests.hostile._setup import Certificates

DIALECTS = [protocol.name for protocol in PROTOCOLS]
PAUSE = 0.02
"""Seconds between two rounds of a client:
without it the honest clients alone would fill the time of the server.
"""

SLOW = 0.05
"""Seconds that a slow client takes for an element."""

HANGS_AFTER = 120.0
"""Seconds after which a round is an error."""


@dataclass
class Clients:
    """The honest clients, by their acts in a round."""

    addresses: list[str]
    files: Certificates
    clock: AttackClock
    tally: Tally
    course: Course

    def __post_init__(self) -> None:
        self._seeds = count()

    def start(self, nursery: trio.Nursery) -> int:
        """Start the clients, and return how many connections they have at most."""
        started = 0
        for address in self.addresses:
            for dialect in DIALECTS:
                url = f"{dialect}+{address}"
                for kind in (self._stay, self._come_and_go, self._be_slow):
                    nursery.start_soon(self._run, kind, url)
                    started += 1
        for protocol in PROTOCOLS:
            nursery.start_soon(self._vanish_again_and_again, protocol)
            nursery.start_soon(self._run, self._be_cut, f"{protocol.name}+{self.addresses[0]}")
            started += 2
        return started

    async def _run(self, kind: Callable[[str], Awaitable[None]], url: str) -> None:
        """Run a client until the time is over, again after an error."""
        while True:
            try:
                await kind(url)
            except Exception as error:  # boundary: each error of a client is a finding
                self.tally.errors.append(f"{kind.__name__.strip('_')} at {url}: {error!r}")
            if self.course.is_over:
                return
            await trio.sleep(1)

    def _connect(self, url: str) -> "object":
        self.tally.connections += 1
        return penstock.connect(url, options=self.files.client_options)

    # --- kinds of clients

    async def _stay(self, url: str) -> None:
        """Keep one connection, with a stream and requests at the same time."""
        async with self._connect(url) as peer:
            while True:
                async with self.course.round(), trio.open_nursery() as nursery:
                    nursery.start_soon(self._read, peer)
                    for _ in range(4):
                        nursery.start_soon(self._ask, peer)
                if self.course.is_over:
                    return
                await trio.sleep(PAUSE)

    async def _come_and_go(self, url: str) -> None:
        """Connect for each round; cancel a stream in the middle."""
        while True:
            async with self.course.round(), self._connect(url) as peer:
                await self._ask(peer)
                await self._read(peer, upto=COUNT // 4)
            if self.course.is_over:
                return
            await trio.sleep(PAUSE)

    async def _be_slow(self, url: str) -> None:
        """Read a stream more slowly than it comes."""
        async with self._connect(url) as peer:
            while True:
                async with self.course.round():
                    await self._read(peer, upto=COUNT // 8, pause=SLOW)
                if self.course.is_over:
                    return

    async def _be_cut(self, url: str) -> None:
        """Read through a proxy that cuts the connection,
        and connect again each time by the policy of penstock.
        """
        dialect, _, address = url.partition("+")
        async with trio.open_nursery() as nursery:
            proxy = await nursery.start(CuttingProxy(address).run)
            policy = penstock.Reconnect(first=0.01, most=0.5)
            async with penstock.subscribe(
                f"{dialect}+{proxy.url}/ticks", reconnect=policy
            ) as ticks:
                async for tick in ticks:
                    self._expect(tick, b"tick")
                    self.tally.elements += 1
                    if self.course.is_over:
                        break
                    await self.course.wait_turn()
            self.tally.connections += proxy.connections
            nursery.cancel_scope.cancel()

    async def _vanish_again_and_again(self, protocol: AttackerProtocol) -> None:
        """Reset a connection in the middle of a stream."""
        while True:
            async with self.course.round():
                stream = await open_stream(self.addresses[0], self.files.authority)
                client = Attacker(stream, self.clock, protocol)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client.listen)
                    await client.send(
                        protocol.hello()
                        + protocol.subscribe(f"lengths/{next(self._seeds)}", 1, UNBOUNDED)
                    )
                    with trio.move_on_after(1):
                        await client.wait(lambda: len(client.heard) > 5)  # noqa: B023 (waited for at once)
                    nursery.cancel_scope.cancel()
                await client.send_rst()
            self.tally.connections += 1
            if self.course.is_over:
                return
            await trio.sleep(PAUSE)

    # --- what they do

    async def _read(self, peer: penstock.Peer, *, upto: int = COUNT, pause: float = 0.0) -> None:
        seed, read = next(self._seeds), 0
        with trio.fail_after(HANGS_AFTER):
            async with peer.subscribe(f"lengths/{seed}") as stream:
                for expected in elements(seed, upto):
                    self._expect(await anext(stream), expected)
                    read += 1
                    if pause:
                        await trio.sleep(pause)
                if upto == COUNT:
                    assert [element async for element in stream] == []
        self.tally.elements += read

    async def _ask(self, peer: penstock.Peer) -> None:
        length = LENGTHS[next(self._seeds) % len(LENGTHS)]
        with trio.fail_after(HANGS_AFTER):
            self._expect(await peer.request("size", bytes(length)), str(length).encode())
            self._expect(await peer.request("answer", str(length).encode()), bytes(length))
        self.tally.requests += 2

    @staticmethod
    def _expect(got: bytes, expected: bytes) -> None:
        if got != expected:
            raise ValueError(
                f"{len(got)} bytes came, {got[:40]!r}; expected were {len(expected)}, "
                f"{expected[:40]!r}"
            )
