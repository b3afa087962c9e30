"""What is legal once, and is done without end; and peers that do not read, or are not there any more."""

from tests.hostile._attacker import COMPANION, VICTIM, Attacker
from tests.hostile._row import SILENCE, C, Row
from tests.hostile._rows_before import EVERYWHERE, nothing
from tests.hostile._wire import UNBOUNDED, cancel, goodbye, ping, request, subscribe, varint

ROOM = {"max_subscriptions": 100}
"""Streams whose publisher has not stopped yet count: with the scaled limits their number would be reached first."""


async def flood(attacker: Attacker, data: bytes) -> None:
    """Send it again and again until nobody takes it any more, or a goodbye is in."""
    chunk = data * (65_536 // len(data) + 1)
    for _ in range(1000):
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
    await attacker.send(subscribe("endless", COMPANION, UNBOUNDED) + subscribe("large", VICTIM, UNBOUNDED))


async def ask_and_never_read(attacker: Attacker) -> None:
    """Answers of which each is as long as its question, until neither side can send."""
    for _ in range(200):
        if not await attacker.send((b"\x40" + varint(125) + bytes(125)) * 500):
            return


async def say_goodbye_and_stay(attacker: Attacker) -> None:
    await attacker.send(goodbye("bye"))
    await flood(attacker, request(0, 1))


async def leave_with_fin(attacker: Attacker) -> None:
    await attacker.send(subscribe("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.finish()


async def leave_with_rst(attacker: Attacker) -> None:
    await attacker.send(subscribe("endless", VICTIM, UNBOUNDED))
    await attacker.pause(0.02)
    await attacker.reset()


async def leave_within_a_message(attacker: Attacker) -> None:
    await attacker.send(subscribe("endless", VICTIM, UNBOUNDED)[:-3])
    await attacker.finish()


FLOODS = [
    Row(what="requests for one element, without end", act=requests, answer=C, says="limit:requests", over=EVERYWHERE),
    Row(what="requests for nothing that is there, without end", act=requests_for_nothing, answer=C, says="limit:glitches"),
    Row(what="cancels for nothing without end", act=cancels, answer=C, says="limit:glitches", over=EVERYWHERE),
    Row(
        what="subscribe and cancel in turn, without end",
        act=subscribes_and_cancels,
        answer=C,
        says="limit:churn",
        over=EVERYWHERE,
        changes=ROOM,
    ),
    Row(what="subscribes that are refused, without end", act=refusals, answer=C, says="limit:churn"),
    Row(what="pings without end", act=pings, answer=C, says="limit:pings", extensions=(1,), over=EVERYWHERE),
    Row(what="pongs without end", act=pongs, answer=C, says="limit:control", extensions=(1,)),
    Row(what="a ping of 126 bytes", act=ping(bytes(126)), answer=C, says="protocol:ping", extensions=(1,)),
    Row(
        what="demand without bound, and nothing read",
        act=take_everything,
        answer=C,
        says=SILENCE,
        within=("write_stall",),
        hears=False,
        over=EVERYWHERE,
    ),
    Row(
        what="pings within all rates, and no pong read",
        act=ask_and_never_read,
        answer=C,
        says=SILENCE,
        within=("goodbye_timeout",),
        hears=False,
        extensions=(1,),
        changes={"control_burst": 10**6, "glitch_burst": 10**6, "keepalive_strikes": 10**6},
    ),
    Row(what="goodbye, and the connection kept open and busy", act=say_goodbye_and_stay, answer=C, says=""),
    Row(
        what="no sign of life, with keepalive",
        act=nothing,
        answer=C,
        says="keepalive",
        within=("keepalive", "keepalive_timeout"),
        extensions=(1,),
    ),
    Row(
        what="nothing more after the hello, and no stream",
        act=nothing,
        answer=C,
        says="idle",
        within=("idle_connection",),
        changes={"idle_connection": 0.4},
    ),
    Row(what="the end (FIN) with streams open", act=leave_with_fin, answer=C, says=SILENCE, over=EVERYWHERE),
    Row(what="a reset (RST) with streams open", act=leave_with_rst, answer=C, says=SILENCE, over=("tcp", "tls")),
    Row(what="the end (FIN) within a message", act=leave_within_a_message, answer=C, says=SILENCE, over=("tcp", "unix")),
]
