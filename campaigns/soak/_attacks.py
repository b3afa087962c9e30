"""The attacks of the soak: the rows of the hostile tests and of the costs,
against a server with default limits.

Rules of this file:

* An attack has some seconds, and then its connections are reset. No answer is judged here: the
  hostile tests do that, with scaled limits.
* Attackers with many connections have addresses of their own,
  because a server bounds the connections of an address.
"""

import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio
from penstock_tck.wire.rsio import goodbye, hello

from campaigns.costs._rows import ROWS as COSTS
from campaigns.costs._rows import Row as CostRow
from campaigns.soak._tally import Course, Tally
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attack_on_server import act, say_hello, wait_for_answer
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._row import Row
from tests.hostile._rows_connections import FROM_ONE_ADDRESS, GOODBYES, PENDING, RESETS
from tests.hostile._setup import Certificates
from tests.hostile._table import AGAINST_SERVERS

SECONDS = 3.0
"""The time of an attack."""

HANDSHAKE = 12.0
"""The time of an attack on a handshake: more than `Limits.handshake_timeout`."""

AT_A_TIME = 8
"""Attacks that run at the same time."""

BROKEN = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack, made once by each call of `run`."""

    chapter: str
    title: str
    run: Callable[[], Awaitable[object]]
    seconds: float = SECONDS


@dataclass
class Attacks:
    """Makes attacks on the server at `addresses`, by scheme."""

    addresses: dict[str, str]
    files: Certificates
    clock: AttackClock
    tally: Tally
    course: Course
    only: str
    """Attacks are made whose title contains this text."""

    def all(self) -> list[Attack]:
        """Return each attack once, in an order that mixes the kinds and is the same in each run."""
        made = [
            self._of_row(row, scheme) for row, scheme in AGAINST_SERVERS if scheme in self.addresses
        ]
        made += [
            Attack("One connection", row.title, lambda row=row: self._cost(row)) for row in COSTS
        ]  # type: ignore[misc]  # bound here
        made += [
            Attack("Connections", PENDING.title, lambda: self._open_many("127.0.0.3", 300, b"")),
            Attack(
                "Connections",
                FROM_ONE_ADDRESS.title,
                lambda: self._open_many("127.0.0.4", 300, hello()),
            ),
            Attack(
                "Connections", GOODBYES.title, lambda: self._come_and_go(hello() + goodbye("bye"))
            ),
            Attack("Connections", RESETS.title, lambda: self._come_and_go(b"")),
        ]
        made = [attack for attack in made if self.only in f"{attack.chapter}: {attack.title}"]
        random.Random(1).shuffle(made)
        return made

    async def attack(self, attacks: list[Attack], first: int) -> None:
        """Make one attack after the other until the time is over: each eighth of the list,
        beginning with number `first`.
        """
        number = first
        while True:
            attack = attacks[number % len(attacks)]
            async with self.course.round():
                with trio.move_on_after(attack.seconds):
                    await attack.run()
            self.tally.attacks[f"{attack.chapter}: {attack.title}"] += 1
            number += AT_A_TIME
            if self.course.is_over:
                return

    # --- kinds of attacks

    def _of_row(self, row: Row, scheme: str) -> Attack:
        takes_long = {"handshake_timeout", "tls_timeout"} & {*row.within}
        chapter = {"rsio": "RS.io", "reactivesocket": "ReactiveSocket"}[row.protocol.name]
        return Attack(
            chapter,
            row.title,
            lambda: self._hostile(row, scheme),
            HANDSHAKE if takes_long else SECONDS,
        )

    async def _hostile(self, row: Row, scheme: str) -> None:
        try:
            stream = await open_stream(
                self.addresses[scheme],
                self.files.authority,
                without_tls=row.without_tls,
                small_buffer=not row.reads,
            )
        except BROKEN:
            return
        attacker = Attacker(stream, self.clock, row.protocol)
        try:
            async with trio.open_nursery() as nursery:
                await say_hello(row, attacker, nursery)
                nursery.start_soon(act, row, attacker)
                if row.reads:
                    await wait_for_answer(row, attacker)
                else:
                    await trio.sleep_forever()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await attacker.close()

    async def _cost(self, row: CostRow) -> None:
        attack = await trio.to_thread.run_sync(row.attack)
        async with trio.open_nursery() as nursery:
            for _ in range(row.connections):
                nursery.start_soon(self._send_and_stay, "127.0.0.2", attack)

    async def _open_many(self, source: str, count: int, said: bytes) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(self._send_and_stay, source, said)

    async def _send_and_stay(self, source: str, data: bytes) -> None:
        try:
            async with self._open(source) as sock:
                view = memoryview(data)
                while view:
                    view = view[await sock.send(view[: 1 << 16]) :]
                await trio.sleep_forever()
        except BROKEN:
            pass

    async def _come_and_go(self, said: bytes) -> None:
        while True:
            try:
                async with self._open("127.0.0.5") as sock:
                    if said:
                        await sock.send(said)
                        await sock.recv(100)
            except BROKEN:
                pass

    @asynccontextmanager
    async def _open(self, source: str) -> AsyncIterator[trio.socket.SocketType]:
        """Connect without a buffer for the server's bytes, and reset the connection at the end."""
        host, _, port = self.addresses["tcp"].rpartition("//")[2].rpartition(":")
        with trio.socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            await sock.bind((source, 0))
            await sock.connect((host, int(port)))
            yield sock
