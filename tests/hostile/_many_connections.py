"""Many hostile connections at a time, and an honest one after them."""

import trio
from penstock_tck.wire.rsio import length_prefixed

from penstock.runtime import Server, connect
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._setup import REGISTRY, Certificates


async def open_many(
    server: Server,
    files: Certificates,
    clock: AttackClock,
    count: int,
    said: bytes = b"",
    *,
    without_tls: bool = True,
) -> list[str]:
    """Open `count` connections, send the same on each, read each to its end,
    and return how they ended.
    """
    endings: list[str] = []

    async def open_one() -> None:
        attacker = Attacker(
            await open_stream(server.addresses[0], files.authority, without_tls=without_tls), clock
        )
        if said:
            await attacker.send(said)
        await attacker.listen()
        endings.append(" ".join(attacker.goodbyes) or attacker.ending)
        await attacker.close()

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(open_one)
    return endings


def bearer(token: bytes) -> bytes:
    """Return the message of a client that shows a token."""
    return b"\x42" + length_prefixed(length_prefixed("bearer") + length_prefixed(token))


async def assert_served(server: Server, files: Certificates) -> None:
    """Assert that an honest client is accepted."""
    async with connect(
        server.addresses[0], registry=REGISTRY, options=files.client_options
    ) as honest:
        await honest.wait_accepted()
