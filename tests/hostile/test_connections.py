"""Many connections at a time: no more are kept than the limits allow, and honest clients are
served before, meanwhile and after.
"""

import pytest
import trio
from penstock_tck.wire.rsio import goodbye, hello

from penstock.api import Credentials
from penstock.runtime import Server, Service, connect, serve
from penstock.runtime.server import _attempts
from tests._real_time import HANGS_AFTER
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._beside_a_canary import beside_a_canary, wait_alone, wait_until
from tests.hostile._control_canary import ControlCanary
from tests.hostile._many_connections import assert_served, bearer, open_many
from tests.hostile._row import SCALED, Row
from tests.hostile._rows_connections import (
    CONNECTIONS,
    FROM_ONE_ADDRESS,
    GOODBYES,
    GUESSES,
    IN_ALL,
    PENDING,
    RESETS,
)
from tests.hostile._setup import Certificates, Setup

SCHEMES = ("tcp", "tls")


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_silent_connections_take_no_more_than_their_places(
    scheme: str, files: Certificates, control: ControlCanary
) -> None:
    """Of 30 silent connections, `max_pending_handshakes` are kept until their time is over;
    the others are closed at once.
    """

    async def attempt(stretch: float) -> None:
        most: list[int] = []
        endings: list[str] = []

        async def watch(server: Server) -> None:
            await wait_until(lambda: most.append(len(server._admission._handshaking)))

        async def attack(server: Server, clock: AttackClock) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch, server)
                endings.extend(await open_many(server, files, clock, 30))
                nursery.cancel_scope.cancel()
            await wait_alone(server)
            await assert_served(server, files)

        setup = Setup(files=files, scheme=scheme, unstretched=PENDING.limits, stretch=stretch)
        (await beside_a_canary(setup, attack)).check()
        assert len(endings) == 30
        assert max(most) == SCALED.max_pending_handshakes
        assert endings.count("limit:handshake") == (
            SCALED.max_pending_handshakes if scheme == "tcp" else 0
        )

    await control.judge(attempt)


@pytest.mark.parametrize(
    ("row", "most"), [(FROM_ONE_ADDRESS, SCALED.max_connections_per_address), (IN_ALL, 5)], ids=str
)
async def test_connections_beyond_a_limit_are_closed_at_once(
    row: Row, most: int, files: Certificates, control: ControlCanary
) -> None:
    """When one of the accepted connections has left, there is room for one again."""
    assert row in CONNECTIONS

    async def attempt(stretch: float) -> None:
        async def attack(server: Server, clock: AttackClock) -> None:
            guests = []
            for _ in range(most - 1):  # the canary takes one place
                guest = Attacker(await open_stream(server.addresses[0], files.authority), clock)
                await guest.send(hello())
                assert await guest.stream.receive_some(100)
                guests.append(guest)
            # Some are told why. More at a time than may be told are closed at once.
            reason = "places:connections" if row is IN_ALL else "places:address"
            assert set(await open_many(server, files, clock, 20, hello())) <= {"end", "cut", reason}
            assert len(server._admission.open) == most
            await guests.pop().close()
            await wait_until(lambda: len(server._admission.open) < most)
            await assert_served(server, files)
            for guest in guests:
                await guest.close()

        (
            await beside_a_canary(
                Setup(files=files, unstretched=row.limits, stretch=stretch), attack
            )
        ).check()

    await control.judge(attempt)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_each_of_90_goodbyes_is_answered(
    scheme: str, files: Certificates, control: ControlCanary
) -> None:
    """Each connection gets its goodbye back, and is forgotten."""

    async def attempt(stretch: float) -> None:
        endings: list[str] = []

        async def attack(server: Server, clock: AttackClock) -> None:
            for _ in range(15):
                endings.extend(
                    await open_many(
                        server, files, clock, 6, hello() + goodbye("bye") * 3, without_tls=False
                    )
                )

        (
            await beside_a_canary(
                Setup(files=files, scheme=scheme, unstretched=GOODBYES.limits, stretch=stretch),
                attack,
            )
        ).check()
        # A goodbye without a reason shows as the end that follows it.
        assert set(endings) <= {"end", "cut"}
        assert len(endings) == 90

    await control.judge(attempt)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_connections_that_are_reset_are_forgotten(
    scheme: str, files: Certificates, control: ControlCanary
) -> None:
    """150 resets: before the hello, in the middle of it, after it, and within a TLS record."""

    async def attempt(stretch: float) -> None:
        async def attack(server: Server, clock: AttackClock) -> None:
            for number in range(150):
                attacker = Attacker(
                    await open_stream(server.addresses[0], files.authority, without_tls=True), clock
                )
                await attacker.send((b"", hello()[:2], hello(), b"\x16\x03\x01")[number % 4])
                await attacker.send_rst()
            await wait_alone(server)
            await assert_served(server, files)

        (
            await beside_a_canary(
                Setup(files=files, scheme=scheme, unstretched=RESETS.limits, stretch=stretch),
                attack,
            )
        ).check()

    await control.judge(attempt)


async def test_wrong_credentials_are_examined_less_and_less(
    files: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ones of an address get their answer, and the others wait and are refused
    unexamined. Meanwhile a client of the same address whose credentials were right comes back.
    """
    monkeypatch.setattr(_attempts, "PATIENCE", 0.2)
    clock, examined = AttackClock(), list[bytes]()

    def authenticate(_scheme: str, data: bytes, _peer: object) -> str | None:
        examined.append(data)
        return "anna" if data == b"right" else None

    async def honest(server: Server) -> None:
        credentials = Credentials("bearer", b"right")
        async with connect(server.addresses[0], credentials=credentials) as peer:
            await peer.wait_accepted()

    with trio.fail_after(HANGS_AFTER):
        async with serve(
            Service(authenticate=authenticate), "tcp://127.0.0.1:0", on_violation=lambda _: None
        ) as server:
            await honest(server)
            said = hello(2) + bearer(b"wrong")
            endings = await open_many(server, files, clock, 2 * _attempts.AT_ONCE, said)
            await honest(server)
    assert endings.count("auth") + endings.count(GUESSES.says) == 2 * _attempts.AT_ONCE
    assert endings.count(GUESSES.says) >= _attempts.AT_ONCE // 2
    assert examined.count(b"wrong") == endings.count("auth")
    clock.close()
