"""Attacks by the extensions *resume* and *resuming*: against connections that go on after a
loss, of the attacker itself or of another client.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from penstock_tck.wire.rsio import acknowledge, ask, hello, length_prefixed, ping

from tests.hostile._attacker import Attacker
from tests.hostile._row import RETAINED, SCALED, SILENCE, UNREAD, C, Row, Target
from tests.hostile._rows_before_hello import EVERYWHERE, HANDSHAKE, say_nothing
from tests.hostile._rows_connections import together
from tests.hostile._rows_floods import flood

KEEPALIVE, RESUME, RESUMING = 1, 5, 8
"""The ids of the extensions."""
NEVER_SENT = 1 << 40
"""A position behind all that was sent."""
TOKEN, ANSWER = b"\x48", b"\x4b"


@asynccontextmanager
async def listening(attacker: Attacker) -> AsyncIterator[None]:
    """Decode what comes, in this block."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(attacker.listen)
        yield
        nursery.cancel_scope.cancel()


async def lose_a_connection(attacker: Attacker) -> tuple[bytes, int]:
    """Open another connection and lose it.
    Return its token, and the number of bytes that it has received.
    """
    lost = await attacker.open_another()
    await lost.send(hello(RESUME))
    async with listening(lost):
        await lost.wait(lambda: lost.found("token"))
    await lost.send_rst()
    return lost.found("token")[0][:32], lost.received


async def ask_to_go_on(attacker: Attacker, token: bytes, position: int) -> None:
    """Go on for a lost connection, and wait for the server's answer. Its hello is said already."""
    await attacker.send(ask(token, position))
    await attacker.wait(lambda: attacker.found("answer"))


async def use_a_token_twice(attacker: Attacker) -> None:
    token, position = await lose_a_connection(attacker)
    back = await attacker.open_another()
    await back.send(hello(RESUMING))
    async with listening(back):
        await ask_to_go_on(back, token, position)
        # behind the answer, so the server knows that it has come.
        await back.send(acknowledge(position) + ping())
        await back.wait(lambda: back.found("acknowledge"))
        await attacker.send(ask(token, position))
        await attacker.wait(lambda: attacker.goodbyes)
    await back.close()


async def give_a_token_to_two_clients(attacker: Attacker) -> None:
    token, position = await lose_a_connection(attacker)
    await ask_to_go_on(attacker, token, position)
    back = await attacker.open_another()
    await back.send(hello(RESUMING))
    async with listening(back):
        await ask_to_go_on(back, token, position)
        await attacker.wait(lambda: False)
    await back.close()


async def come_back_too_late(attacker: Attacker) -> None:
    token, position = await lose_a_connection(attacker)
    await attacker.pause(SCALED.resume_timeout + 0.1)
    await attacker.send(hello(RESUMING))
    await attacker.wait(lambda: attacker.heard)
    await attacker.send(ask(token, position))


async def say_a_position_that_does_not_fit(attacker: Attacker) -> None:
    token, _ = await lose_a_connection(attacker)
    await attacker.send(ask(token, NEVER_SENT))


async def acknowledge_nothing_new(attacker: Attacker) -> None:
    await flood(attacker, acknowledge(1))


async def ping_and_acknowledge_nothing(attacker: Attacker) -> None:
    await flood(attacker, ping(bytes(125)))


def resume(title: str, attack: Any, says: str, *extensions: int, **more: Any) -> Row:
    return Row(
        title=title, attack=attack, answer=C, says=says, extensions=extensions, resumes=True, **more
    )


MANY = together(
    "the loss of all connections that one address may have, with elements unread",
    within=("resume_timeout",),
    resumes=True,
    changes={"resume_timeout": 1.5},
)
FULL = together(
    "the loss of all connections that a server may have",
    within=("resume_timeout",),
    resumes=True,
    changes={"max_connections": 6, "resume_timeout": 1.5},
)
FOREIGN = together("a token of another principal", "resume", resumes=True)

LOST = [
    resume(
        "an acknowledgement of bytes that were never sent",
        acknowledge(NEVER_SENT),
        f"protocol:resume {NEVER_SENT}",
        RESUME,
        schemes=EVERYWHERE,
    ),
    resume(
        "an acknowledgement of another length",
        b"\x49" + length_prefixed(bytes(7)),
        "protocol:resume",
        RESUME,
    ),
    resume("a token, from a client", TOKEN + length_prefixed(bytes(36)), "protocol:resume", RESUME),
    resume(
        "the same acknowledgement, without end", acknowledge_nothing_new, "limit:glitches", RESUME
    ),
    resume(
        "pings within all rates, and nothing acknowledged",
        ping_and_acknowledge_nothing,
        "slow-reader",
        *(KEEPALIVE, RESUME),
        holds=RETAINED + UNREAD,
        changes={"control_burst": 10**6, "glitch_burst": 10**6, "keepalive_strikes": 10**6},
    ),
    resume(
        "a token that was never given", ask(bytes(32), 0), "resume", RESUMING, schemes=EVERYWHERE
    ),
    resume("a token that was used", use_a_token_twice, "resume", RESUMING),
    resume(
        "a token, after its time",
        come_back_too_late,
        "resume",
        within=("resume_timeout",),
        says_hello=False,
        changes={"handshake_timeout": 3.0},
    ),
    resume(
        "a position that does not fit, with a token",
        say_a_position_that_does_not_fit,
        "resume",
        RESUMING,
    ),
    resume(
        "a token, which another client then gives too",
        give_a_token_to_two_clients,
        SILENCE,
        RESUMING,
    ),
    resume(
        "no token, on a connection that is to go on for another one",
        say_nothing,
        "limit:handshake",
        RESUMING,
        within=HANDSHAKE,
    ),
    resume(
        "a token of another length",
        b"\x4a" + length_prefixed(bytes(39)),
        "protocol:resume",
        RESUMING,
    ),
    resume(
        "the server's answer, from a client",
        ANSWER + length_prefixed(bytes(40)),
        "protocol:resume",
        RESUMING,
    ),
    FOREIGN,
    MANY,
    FULL,
    resume(
        "an acknowledgement of bytes that were never sent, from a server",
        acknowledge(NEVER_SENT),
        f"protocol:resume {NEVER_SENT}",
        RESUME,
        target=Target.CLIENT,
        schemes=("tcp", "tls"),
    ),
    resume(
        "a token of another length, from a server",
        TOKEN + length_prefixed(bytes(35)),
        "protocol:resume",
        RESUME,
        target=Target.CLIENT,
    ),
]
