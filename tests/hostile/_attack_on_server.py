"""Attack a server with one row of the table, and measure the answer."""

from dataclasses import dataclass, replace
from itertools import pairwise

import trio

from penstock.runtime import Server
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker import PROBE, VICTIM, Attacker, companion, open_stream
from tests.hostile._beside_a_canary import Aftermath, beside_a_canary, wait_alone
from tests.hostile._row import SILENCE, C, I, Row, S
from tests.hostile._setup import Certificates, Setup


@dataclass
class Outcome:
    """The result of an attack on a server.
    Times are in seconds of the attack's clock, but for `waited`.
    """

    attacker: Attacker
    answered: float = 0.0
    """From the attack to the answer."""
    waited: float = 0.0
    """The same on the wall clock: an answer must not come before its deadline, either."""
    gone: float = 0.0
    """From the attack until the server had forgotten the connection."""
    companion_gap: float = 0.0
    """The longest wait on the attacker's own well-behaved stream."""


async def attack_server(
    row: Row, scheme: str, files: Certificates, stretch: float
) -> tuple[Outcome, Aftermath]:
    """Let an attacker do to a server what `row` says, beside a canary."""
    outcomes: list[Outcome] = []

    async def attack(server: Server, clock: AttackClock) -> None:
        outcomes.append(await _attack(row, server, files, clock))

    setup = Setup(
        files=files,
        scheme=scheme,
        protocol=row.protocol,
        unstretched=row.limits,
        resumes=row.resumes,
        stretch=stretch,
    )
    if scheme == "memory":  # minutes of virtual time
        setup = replace(setup, ticks="seconds", hangs_after=600)
    aftermath = await beside_a_canary(setup, attack)
    return outcomes[0], aftermath


async def _attack(row: Row, server: Server, files: Certificates, clock: AttackClock) -> Outcome:
    # Before the connection: the deadline of the server starts before the TLS handshake of the
    # attacker returns, 46 to 57 ms on a busy machine.
    opened_on_the_wall = trio.current_time()
    stream = await open_stream(
        server.addresses[0],
        files.authority,
        without_tls=row.without_tls,
        small_buffer=not row.reads,
    )
    attacker = Attacker(stream, clock, row.protocol)
    outcome = Outcome(attacker)
    async with trio.open_nursery() as nursery:
        await say_hello(row, attacker, nursery)
        began = clock.now()
        nursery.start_soon(act, row, attacker)
        if row.answer is C and not row.reads:
            await wait_alone(server)
        else:
            await wait_for_answer(row, attacker)
        outcome.answered = clock.now() - began
        outcome.waited = trio.current_time() - opened_on_the_wall
        if row.answer is not C:
            await attacker.close()
        await wait_alone(server)
        outcome.gone = clock.now() - began
        nursery.cancel_scope.cancel()
    await attacker.close()
    del attacker.stream  # its objects would stand in the census
    outcome.companion_gap = max(
        (later - one for one, later in pairwise(attacker.times)), default=0.0
    )
    return outcome


async def say_hello(row: Row, attacker: Attacker, nursery: trio.Nursery) -> None:
    """Say hello if the row does, and wait for the server's:
    after it, the server counts the connection.
    """
    if row.reads:
        nursery.start_soon(attacker.listen)
    if row.says_hello:
        await attacker.send(row.protocol.hello(*row.extensions))
        if row.reads:
            await attacker.wait(lambda: attacker.heard)
        else:
            await attacker.stream.receive_some(100)


async def act(row: Row, attacker: Attacker) -> None:
    """Attack as the row says, and send the request
    that shows whether the connection still works.
    """
    if row.answer is not C:
        await attacker.send(companion(row.protocol))
        await attacker.wait_companion()
    if isinstance(row.attack, bytes):
        await attacker.send(row.attack)
    else:
        await row.attack(attacker)
    if row.answer is I:
        await attacker.send(row.protocol.subscribe("one", PROBE, 2))


async def wait_for_answer(row: Row, attacker: Attacker) -> None:
    """Return when the answer of the row has come, or the connection has ended;
    for an attacker that reads.
    """
    if row.answer is C:
        await attacker.wait(lambda: row.says != SILENCE and attacker.goodbyes)
    elif row.answer is S:
        await attacker.wait(
            lambda: any(message[:2] == ("onError", VICTIM) for message in attacker.heard)
        )
        await attacker.wait_companion()
    else:
        await attacker.wait_heard("onComplete", PROBE)
        await attacker.wait_companion()
