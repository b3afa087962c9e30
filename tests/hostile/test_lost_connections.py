"""Connections that are lost and can be resumed: their memory is bounded, and their tokens are
good for their own principal alone.
"""

import trio
from penstock_tck.wire.rsio import UNBOUNDED, ask, hello, subscribe

from penstock.runtime import Server, Service, serve
from tests._real_time import HANGS_AFTER
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._beside_a_canary import beside_a_canary, wait_alone, wait_until
from tests.hostile._control_canary import ControlCanary
from tests.hostile._many_connections import assert_served, bearer, open_many
from tests.hostile._row import RETAINED, SCALED, UNREAD
from tests.hostile._rows_resume import FOREIGN, FULL, MANY, RESUME, RESUMING, listening
from tests.hostile._setup import Certificates, Setup

LOST = SCALED.max_connections_per_address - 1
"""As many as one address may have, beside the canary."""


async def _lose_all(
    server: Server, files: Certificates, clock: AttackClock, count: int = LOST
) -> None:
    """Open `count` connections, read each until the server holds back because nothing is
    acknowledged, and reset it.
    """
    # One after another: of those that are opened at the same time,
    # `max_pending_handshakes` are kept.
    for _ in range(count):
        attacker = Attacker(await open_stream(server.addresses[0], files.authority), clock)
        await attacker.send(hello(RESUME) + subscribe("endless", 1, UNBOUNDED))
        async with listening(attacker):
            await attacker.wait(lambda: attacker.received >= SCALED.resume_bytes)  # noqa: B023  # called in this turn of the loop
        await attacker.send_rst()
    await wait_until(lambda: server.statistics().suspended == count)


async def test_lost_connections_hold_their_places_and_a_bounded_memory(
    files: Certificates, control: ControlCanary
) -> None:
    """Beside them an honest client is served, also of the same address: the connection that was
    lost first gives way. After `resume_timeout` everything is free.
    """

    async def attempt(stretch: float) -> None:
        held: list[int] = []

        async def attack(server: Server, clock: AttackClock) -> None:
            await _lose_all(server, files, clock)
            held.append(server.statistics().buffered_bytes)
            await assert_served(server, files)
            assert server.statistics().suspended == LOST - 1
            await wait_alone(server)
            await assert_served(server, files)

        setup = Setup(files=files, unstretched=MANY.limits, resumes=MANY.resumes, stretch=stretch)
        aftermath = await beside_a_canary(setup, attack)
        aftermath.check(holds=RETAINED + UNREAD)
        assert LOST * SCALED.resume_bytes <= held[0] <= LOST * (RETAINED + UNREAD)

    await control.judge(attempt)


async def test_a_newcomer_at_a_server_full_of_lost_connections_is_served(
    files: Certificates, control: ControlCanary
) -> None:
    """The connection that was lost first gives way, so a client need not wait until they expire."""
    lost = FULL.limits.max_connections - 1  # the canary takes one place

    async def attempt(stretch: float) -> None:
        async def attack(server: Server, clock: AttackClock) -> None:
            await _lose_all(server, files, clock, lost)
            # The second one comes when the first has left: its place is free.
            for _ in range(2):
                await assert_served(server, files)
                assert server.statistics().suspended == lost - 1
            await wait_alone(server)

        setup = Setup(files=files, unstretched=FULL.limits, resumes=FULL.resumes, stretch=stretch)
        (await beside_a_canary(setup, attack)).check(holds=RETAINED + UNREAD)

    await control.judge(attempt)


async def test_silent_connections_beside_lost_ones_take_no_more_than_their_places(
    files: Certificates, control: ControlCanary
) -> None:
    """The client of a lost connection is let in beyond the bounds; `max_pending_handshakes`
    bounds how many may pretend to be one.
    """

    async def attempt(stretch: float) -> None:
        most: list[int] = []

        async def watch(server: Server) -> None:
            await wait_until(lambda: most.append(len(server._admission._places)))

        async def attack(server: Server, clock: AttackClock) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch, server)
                await _lose_all(server, files, clock)
                await open_many(server, files, clock, 30)
                nursery.cancel_scope.cancel()
            await wait_alone(server)

        setup = Setup(files=files, unstretched=MANY.limits, resumes=MANY.resumes, stretch=stretch)
        (await beside_a_canary(setup, attack)).check(holds=RETAINED + UNREAD)
        assert max(most) == LOST + 1 + SCALED.max_pending_handshakes

    await control.judge(attempt)


async def test_a_token_is_refused_to_another_principal(files: Certificates) -> None:
    """In the words of a token that is not known. For its own principal it stays good."""
    clock = AttackClock()

    def authenticate(_scheme: str, data: bytes, _peer: object) -> str | None:
        return data.decode() if data in (b"anna", b"bert") else None

    async def greet(server: Server, extension: int) -> Attacker:
        attacker = Attacker(await open_stream(server.addresses[0], files.authority), clock)
        await attacker.send(hello(2, extension))
        return attacker

    async def come_back(server: Server, name: bytes, question: bytes) -> list[str]:
        attacker = await greet(server, RESUMING)
        async with listening(attacker):
            await attacker.wait(lambda: attacker.heard)
            await attacker.send(bearer(name) + question)
            await attacker.wait(lambda: attacker.goodbyes or attacker.found("answer"))
        await attacker.close()
        return attacker.goodbyes

    with trio.fail_after(HANGS_AFTER):  # with the default limits: no deadline of a test is near
        async with serve(
            Service(authenticate=authenticate), "tcp://127.0.0.1:0", resume=FOREIGN.resumes
        ) as server:
            lost = await greet(server, RESUME)
            async with listening(lost):
                await lost.wait(lambda: lost.heard)
                await lost.send(bearer(b"anna"))
                await lost.wait(lambda: lost.found("token"))
            await lost.send_rst()
            question = ask(lost.found("token")[0][:32], lost.received)
            assert await come_back(server, b"bert", question) == [FOREIGN.says]
            assert await come_back(server, b"anna", question) == []
    clock.close()
