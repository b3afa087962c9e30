"""Floods of messages that are legal once; and peers that do not read, or have gone."""

from penstock_tck.wire.rsio import UNBOUNDED, cancel, goodbye, ping, request, subscribe, varint

from tests.hostile._attacker import COMPANION, VICTIM, Attacker
from tests.hostile._row import KIB, LARGE, SILENCE, UNREAD, C, Row
from tests.hostile._rows_before_hello import EVERYWHERE, say_nothing

ROOM = {"max_subscriptions": 100}
"""A cancelled stream counts until its publisher has stopped, so the scaled `max_subscriptions`
would be reached before the churn limit.
"""

CANCELLED = ROOM["max_subscriptions"] * KIB
"""What cancelled streams hold until their publishers have stopped:
a stream and its name, below a KiB each.
"""


async def flood(attacker: Attacker, data: bytes) -> None:
    """Send `data` repeatedly until a goodbye arrives or sending fails, but no more than 64 MB.

    The pieces are longer than one read of the attacked side, so that every read is full.
    """
    chunk = data * (262_144 // len(data) + 1)
    for _ in range(250):
        if attacker.goodbyes or not await attacker.send(chunk):
            return


async def requests(attacker: Attacker) -> None:
    await attacker.send(subscribe("ticks", VICTIM, 1))
    await flood(attacker, request(VICTIM, 1))


async def requests_for_nothing(attacker: Attacker) -> None:
    await flood(attacker, request(VICTIM, 1))


async def cancels(attacker: Attacker) -> None:
    await flood(attacker, cancel(VICTIM))


async def subscribes_and_cancels(attacker: Attacker) -> None:
    await flood(attacker, subscribe("ticks", VICTIM, 5) + cancel(VICTIM))


async def refusals(attacker: Attacker) -> None:
    await flood(attacker, subscribe("nowhere", VICTIM, 5))


async def pings(attacker: Attacker) -> None:
    await flood(attacker, ping(bytes(125)))


async def pongs(attacker: Attacker) -> None:
    await flood(attacker, b"\x41\x00")


async def take_everything(attacker: Attacker) -> None:
    await attacker.send(
        subscribe("endless", COMPANION, UNBOUNDED) + subscribe("large", VICTIM, UNBOUNDED)
    )


async def ping_and_never_read(attacker: Attacker) -> None:
    """Send pings and read no pong. A pong is as long as its ping, so both directions fill up
    until neither side can send.
    """
    for _ in range(200):
        if not await attacker.send((b"\x40" + varint(125) + bytes(125)) * 500):
            return


async def say_goodbye_and_stay(attacker: Attacker) -> None:
    await attacker.send(goodbye("bye"))
    await flood(attacker, request(0, 1))


async def leave_with_fin(attacker: Attacker) -> None:
    await attacker.send(subscribe("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.send_fin()


async def leave_with_rst(attacker: Attacker) -> None:
    await attacker.send(subscribe("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.send_rst()


async def leave_within_a_message(attacker: Attacker) -> None:
    await attacker.send(subscribe("endless", VICTIM, UNBOUNDED)[:-3])
    await attacker.send_fin()


FLOODS = [
    Row(
        title="requests for one element, without end",
        attack=requests,
        answer=C,
        says="limit:requests",
        schemes=EVERYWHERE,
    ),
    Row(
        title="requests for nothing that is there, without end",
        attack=requests_for_nothing,
        answer=C,
        says="limit:requests",
    ),
    Row(
        title="cancels for nothing without end",
        attack=cancels,
        answer=C,
        says="limit:glitches",
        schemes=EVERYWHERE,
    ),
    Row(
        title="subscribe and cancel in turn, without end",
        attack=subscribes_and_cancels,
        answer=C,
        says="limit:churn",
        schemes=EVERYWHERE,
        changes=ROOM,
        holds=CANCELLED,
    ),
    Row(
        title="subscribes that are refused, without end",
        attack=refusals,
        answer=C,
        says="limit:churn",
    ),
    Row(
        title="pings without end",
        attack=pings,
        answer=C,
        says="limit:pings",
        extensions=(1,),
        schemes=EVERYWHERE,
    ),
    Row(title="pongs without end", attack=pongs, answer=C, says="limit:control", extensions=(1,)),
    Row(
        title="a ping of 126 bytes",
        attack=ping(bytes(126)),
        answer=C,
        says="protocol:ping",
        extensions=(1,),
    ),
    Row(
        title="half a ping of 1,000 bytes",
        attack=b"\x40" + varint(1000) + bytes(500),
        answer=C,
        says="protocol:ping",
        extensions=(1,),
    ),
    Row(
        title="demand without bound, and nothing read",
        attack=take_everything,
        answer=C,
        says=SILENCE,
        within=("write_stall",),
        reads=False,
        schemes=EVERYWHERE,
        holds=UNREAD + LARGE,
    ),
    Row(
        title="pings within all rates, and no pong read",
        attack=ping_and_never_read,
        answer=C,
        says=SILENCE,
        within=("goodbye_timeout",),
        reads=False,
        extensions=(1,),
        holds=UNREAD,
        changes={"control_burst": 10**6, "glitch_burst": 10**6, "keepalive_strikes": 10**6},
    ),
    Row(
        title="goodbye, and the connection kept open and busy",
        attack=say_goodbye_and_stay,
        answer=C,
        says="",
    ),
    Row(
        title="no sign of life, with keepalive",
        attack=say_nothing,
        answer=C,
        says="keepalive",
        within=("keepalive", "keepalive_timeout"),
        extensions=(1,),
    ),
    Row(
        title="nothing more after the hello, and no stream",
        attack=say_nothing,
        answer=C,
        says="idle",
        within=("idle_connection",),
        changes={"idle_connection": 0.4},
    ),
    Row(
        title="the end (FIN) with streams open",
        attack=leave_with_fin,
        answer=C,
        says=SILENCE,
        schemes=EVERYWHERE,
        holds=UNREAD,
    ),
    Row(
        title="a reset (RST) with streams open",
        attack=leave_with_rst,
        answer=C,
        says=SILENCE,
        schemes=("tcp", "tls"),
        holds=UNREAD,
    ),
    Row(
        title="the end (FIN) within a message",
        attack=leave_within_a_message,
        answer=C,
        says=SILENCE,
        schemes=("tcp", "unix"),
    ),
]
