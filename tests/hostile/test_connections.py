"""Many connections at a time: none too many is kept, and who was there before, or comes after, is served."""

import pytest
import trio

from penstock.runtime import Server, connect
from tests.hostile._arena import GAP, REGISTRY, Certificates, Peace, beside_a_canary, wait_alone, wait_until
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._own_time import OwnTime
from tests.hostile._row import SCALED, Row
from tests.hostile._rows_connections import CONNECTIONS, FROM_ONE_ADDRESS, GOODBYES, IN_ALL, PENDING, RESETS
from tests.hostile._wire import goodbye, hello

SCHEMES = ("tcp", "tls")


def _check(peace: Peace) -> None:
    assert peace.gap <= GAP
    assert peace.left == {}
    assert peace.told == []


async def _invade(server: Server, files: Certificates, clock: OwnTime, count: int, said: bytes = b"", *, plain: bool = True) -> list[str]:
    """Open so many connections, say the same on each, and return what became of them, each being read to its end."""
    endings: list[str] = []

    async def one() -> None:
        attacker = Attacker(await open_stream(server.addresses[0], files.authority, plain=plain), clock)
        if said:
            await attacker.send(said)
        await attacker.listen()
        endings.append(" ".join(attacker.goodbyes) or attacker.ending)
        await attacker.close()

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)
    return endings


async def _is_welcome(server: Server, files: Certificates) -> None:
    """An honest client is served."""
    async with connect(server.addresses[0], registry=REGISTRY, options=files.calling) as friend:
        await friend.wait_accepted()


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_silent_connections_take_no_more_than_their_places(scheme: str, files: Certificates) -> None:
    """Those beyond are hung up on at once; the others when their time is over; then there is room again."""

    async def act(server: Server, clock: OwnTime) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, server, nursery.cancel_scope)
            endings.extend(await _invade(server, files, clock, 30))
            nursery.cancel_scope.cancel()
        await wait_alone(server)
        await _is_welcome(server, files)

    async def watch(server: Server, _: trio.CancelScope) -> None:
        await wait_until(lambda: most.append(len(server._admission._handshaking)))

    most: list[int] = []
    endings: list[str] = []
    _check(await beside_a_canary(PENDING.limits, scheme, files, act))
    assert len(endings) == 30
    assert max(most) == SCALED.max_pending_handshakes
    assert endings.count("limit:handshake") == (SCALED.max_pending_handshakes if scheme == "tcp" else 0)


@pytest.mark.parametrize(("row", "most"), [(FROM_ONE_ADDRESS, SCALED.max_connections_per_address), (IN_ALL, 5)], ids=str)
async def test_one_address_and_all_together_have_so_many_connections_and_no_more(row: Row, most: int, files: Certificates) -> None:
    """One more is closed without a word; when one of them has left, there is room for one."""
    assert row in CONNECTIONS

    async def act(server: Server, clock: OwnTime) -> None:
        guests = []
        for _ in range(most - 1):  # the canary is one, too
            guest = Attacker(await open_stream(server.addresses[0], files.authority), clock)
            await guest.send(hello())
            assert await guest.stream.receive_some(100)
            guests.append(guest)
        assert set(await _invade(server, files, clock, 20, hello())) <= {"end", "cut"}
        assert len(server._admission.open) == most
        await guests.pop().close()
        await wait_until(lambda: len(server._admission.open) < most)
        await _is_welcome(server, files)
        for guest in guests:
            await guest.close()

    _check(await beside_a_canary(row.limits, "tcp", files, act))


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_storm_of_goodbyes_is_answered_one_by_one(scheme: str, files: Certificates) -> None:
    """Each gets its goodbye back, and is forgotten."""
    endings: list[str] = []

    async def act(server: Server, clock: OwnTime) -> None:
        for _ in range(15):
            endings.extend(await _invade(server, files, clock, 6, hello() + goodbye("bye") * 3, plain=False))

    _check(await beside_a_canary(GOODBYES.limits, scheme, files, act))
    assert set(endings) <= {"end", "cut"}  # a goodbye without a reason shows as the end behind it
    assert len(endings) == 90


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_connections_that_are_reset_at_once_are_forgotten_at_once(scheme: str, files: Certificates) -> None:
    """Before the hello, in the middle of it, and behind it."""

    async def act(server: Server, clock: OwnTime) -> None:
        for number in range(150):
            attacker = Attacker(await open_stream(server.addresses[0], files.authority, plain=True), clock)
            await attacker.send((b"", hello()[:2], hello(), b"\x16\x03\x01")[number % 4])
            await attacker.reset()
        await wait_alone(server)
        await _is_welcome(server, files)

    _check(await beside_a_canary(RESETS.limits, scheme, files, act))
