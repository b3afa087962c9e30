"""Attacks that last minutes, with the default limits. They run on virtual time over the memory
transport, and take seconds.

Each of them is slow enough for a limit that looks at one moment, and is caught by a limit
that looks at the whole time.
"""

from typing import Any

from penstock_tck.wire.reactivesocket import cancel as rs_cancel
from penstock_tck.wire.reactivesocket import request_stream
from penstock_tck.wire.rsio import UNBOUNDED, cancel, ping, subscribe

from penstock.api import Limits
from tests.hostile._attacker import COMPANION, Attacker
from tests.hostile._attacker_protocol import REACTIVESOCKET
from tests.hostile._row import SILENCE, UNREAD, C, Row
from tests.hostile._rows_before_hello import say_nothing

LIMITS = Limits()


def minutes(title: str, attack: Any, says: str, at_least: float, **more: Any) -> tuple[Row, float]:
    """Return a row with the default limits, and the seconds of virtual time before
    which the answer must not come.
    """
    return Row(
        title=title, attack=attack, answer=C, says=says, base=LIMITS, schemes=("memory",), **more
    ), at_least


async def repeat(attacker: Attacker, data: bytes, pause: float) -> None:
    """Send `data` every `pause` seconds, until the connection ends."""
    while not attacker.ending and not attacker.goodbyes and await attacker.send(data):
        await attacker.pause(pause)


async def cancel_too_fast(attacker: Attacker) -> None:
    """Send 40 cancels for nothing a second: 7 more than `glitch_rate`."""
    await repeat(attacker, cancel(77) * 4, 0.1)


async def rs_cancel_too_fast(attacker: Attacker) -> None:
    await repeat(attacker, rs_cancel(77) * 4, 0.1)


async def ping_too_often(attacker: Attacker) -> None:
    await repeat(attacker, ping(), 4.0)


async def drip(attacker: Attacker) -> None:
    """Send a message byte by byte: each byte is in time, the message is not."""
    for byte in subscribe("ticks" * 100, 1, 1):
        if attacker.goodbyes or not await attacker.send(bytes([byte])):
            return
        await attacker.pause(9.0)


async def rs_drip(attacker: Attacker) -> None:
    for byte in request_stream("ticks" * 100, 1, 1):
        if attacker.goodbyes or not await attacker.send(bytes([byte])):
            return
        await attacker.pause(9.0)


async def read_slowly(attacker: Attacker, wanted: bytes) -> None:
    """Read 150 bytes a second: never nothing, but in no `write_stall` what waits to be sent."""
    await attacker.send(wanted)
    while await attacker.receive(150):
        await attacker.pause(1.0)


async def vanish(attacker: Attacker) -> None:
    """Wait for elements, and give no sign of life: a process that is stopped, or a path that drops
    all packets.
    """
    await attacker.send(subscribe("seconds", COMPANION, 1))
    await attacker.wait(lambda: False)


async def vanish_asked_for_all(attacker: Attacker) -> None:
    """The same while elements are sent, which nobody reads."""
    await attacker.send(subscribe("seconds", COMPANION, UNBOUNDED))
    await attacker.wait(lambda: False)


async def dribble(attacker: Attacker) -> None:
    await read_slowly(attacker, subscribe("endless", COMPANION, UNBOUNDED))


async def rs_dribble(attacker: Attacker) -> None:
    await read_slowly(attacker, request_stream("endless", REACTIVESOCKET.companion, UNBOUNDED))


RS: dict[str, Any] = {"protocol": REACTIVESOCKET}
READS_SLOWLY: dict[str, Any] = {"reads": False, "holds": UNREAD}

MINUTES = [
    minutes(
        "cancels for nothing, a little above `glitch_rate`", cancel_too_fast, "limit:glitches", 120
    ),
    minutes(
        "CANCELs for nothing, a little above `glitch_rate`",
        rs_cancel_too_fast,
        "limit:glitches",
        120,
        **RS,
    ),
    minutes("nothing more, and no stream", say_nothing, "idle", 300),
    minutes("nothing more after SETUP, and no stream", say_nothing, "idle", 300, **RS),
    minutes(
        "nothing more, while a stream waits, with keepalive",
        vanish,
        "keepalive",
        40,
        extensions=(1,),
    ),
    minutes(
        "nothing more, while elements are sent, with keepalive",
        vanish_asked_for_all,
        "keepalive",
        40,
        extensions=(1,),
    ),
    minutes("pings a little too often", ping_too_often, "limit:pings", 8, extensions=(1,)),
    minutes("a message byte by byte, over an hour", drip, "limit:partial", 30),
    minutes("a frame byte by byte, over an hour", rs_drip, "limit:partial", 30, **RS),
    minutes("elements read at 150 bytes a second", dribble, SILENCE, 20, **READS_SLOWLY),
    minutes("RESPONSEs read at 150 bytes a second", rs_dribble, SILENCE, 20, **READS_SLOWLY, **RS),
]
