"""ReactiveSocket: attacks by a responder:
a hostile server, whose answers a program with penstock reads.
"""

from typing import Any

from penstock_tck.wire.reactivesocket import (
    CANCEL,
    RESPONSE,
    WHOLE,
    cancel,
    error,
    ext,
    request_n,
    response,
    setup,
    sized_frame,
)
from penstock_tck.wire.reactivesocket import B as BEGIN
from penstock_tck.wire.reactivesocket import C as COMPLETE
from penstock_tck.wire.reactivesocket import E as END

from penstock.api import Model
from tests.hostile._attacker import VICTIM, Attacker
from tests.hostile._attacker_protocol import REACTIVESOCKET
from tests.hostile._row import PARTS, SCALED, SILENCE, C, I, Row, S, Target
from tests.hostile._rows_before_hello import say_nothing
from tests.hostile._rows_publishers import FIRST, HTTP, MIXED, NO_TLS, NOT_ASKED, send_forever

FRAME = SCALED.max_frame
HUGE = 2**31 - 1
NEVER_BEGAN = "a fragment ends that never began"
TOO_LONG = f"a frame of {FRAME + 1} bytes behind its header"
WITHIN = "a fragment begins within another"
PIECE = bytes(64)


def client(title: str, attack: Any, answer: Any, says: str = "", **more: Any) -> Row:
    return Row(
        target=Target.CLIENT,
        protocol=REACTIVESOCKET,
        title=title,
        attack=attack,
        answer=answer,
        says=says,
        **more,
    )


def fatal(title: str, attack: Any, says: str, **more: Any) -> Row:
    return client(title, attack, C, says, **more)


def stream(title: str, attack: Any, says: str, **more: Any) -> Row:
    return client(title, attack, S, says, **more)


def tolerated(title: str, attack: Any, **more: Any) -> Row:
    return client(title, attack, I, **more)


def element(data: bytes = b"x") -> bytes:
    return response(VICTIM, data)


def begin(data: bytes = PIECE) -> bytes:
    return response(VICTIM, data, BEGIN)


def more(data: bytes = PIECE) -> bytes:
    return response(VICTIM, data, 0)


def end(data: bytes = PIECE) -> bytes:
    return response(VICTIM, data, END)


DONE = response(VICTIM, b"", COMPLETE)


async def tiny_parts(attacker: Attacker) -> None:
    await send_forever(attacker, (begin(b"x") + end(b"x")) * 3)


async def empty_parts(attacker: Attacker) -> None:
    await attacker.send(begin(b""))
    await send_forever(attacker, more(b""))


async def elements_after_the_cancel(attacker: Attacker) -> None:
    await attacker.send(element() * 3)
    await attacker.wait_heard("cancel", VICTIM)
    await send_forever(attacker, b"".join(element(b"x" * size) for size in range(200)))


async def a_few_after_the_cancel(attacker: Attacker) -> None:
    await attacker.send(element() * 3)
    await attacker.wait_heard("cancel", VICTIM)
    await attacker.send(element(b"late") * 3 + begin() + more() + end() + DONE + error(VICTIM))


async def ends_without_end(attacker: Attacker) -> None:
    await send_forever(attacker, DONE)


async def leave_within_an_element(attacker: Attacker) -> None:
    await attacker.send(element(b"x" * 100)[:50])
    await attacker.send_fin()


async def leave_between_parts(attacker: Attacker) -> None:
    await attacker.send(begin() + more())
    await attacker.send_fin()


async def reset_within_an_element(attacker: Attacker) -> None:
    await attacker.send(element(b"x" * 100)[:50])
    await attacker.send_rst()


ONE = {"model": Model.RESPONSE}
SUBSCRIPTION = {"model": Model.SUBSCRIPTION}
BOTH = ("tcp", "tls")

RESPONSES = [
    fatal("HTTP", HTTP, f"limit:frame {int.from_bytes(b'HTTP') - 16} > {FRAME}", **FIRST),
    fatal("another version, first of all", setup(version=1), "version 0", **FIRST),
    fatal(
        "ERROR on stream 0, first of all",
        error(0, "not you"),
        SILENCE,
        stream_error="Rejected",
        schemes=BOTH,
        **FIRST,
    ),
    fatal(
        "nothing, to a client that wants TLS",
        say_nothing,
        SILENCE,
        **NO_TLS,
        within=("tls_timeout",),
        **FIRST,
    ),
    fatal("ERROR on stream 0, later", error(0, "drain"), SILENCE, schemes=BOTH),
    fatal("a thousand ERRORs on stream 0", error(0, "bye") * 1000, SILENCE),
    fatal(
        "the top bit of the length set",
        sized_frame(RESPONSE, VICTIM, length=2**31 + 16),
        "protocol:reserved",
        schemes=BOTH,
    ),
    fatal("a length of 15", sized_frame(RESPONSE, VICTIM, length=15), "protocol:length 15"),
    fatal(
        "a RESPONSE of 2^31-1 bytes announced",
        sized_frame(RESPONSE, VICTIM, length=HUGE),
        f"limit:frame {HUGE - 16} > {FRAME}",
    ),
    fatal("another version", sized_frame(RESPONSE, VICTIM, b"x", version=1), "version 0"),
    fatal("an unknown type", sized_frame(0x30, VICTIM), "protocol:type 0x0030"),
    fatal(
        "an extension that is not known and may not be ignored",
        ext(9, flags=0),
        "protocol:extension 9",
    ),
    fatal("tiny parts without end", tiny_parts, "limit:glitches", demand=10**6),
    fatal("empty parts without end", empty_parts, "limit:glitches", demand=10**6),
    fatal("elements without end after our CANCEL", elements_after_the_cancel, "limit:late"),
    fatal("COMPLETE without end", ends_without_end, "limit:glitches"),
    fatal("COMPLETE without end, for one value", ends_without_end, "limit:glitches", **ONE),
    fatal("the end (FIN) within a frame", leave_within_an_element, SILENCE, schemes=BOTH),
    fatal("the end (FIN) between the parts of an element", leave_between_parts, SILENCE),
    fatal("a reset (RST) within a frame", reset_within_an_element, SILENCE, schemes=BOTH),
    stream("RESPONSE over the limit", element(bytes(FRAME + 1)), TOO_LONG, schemes=BOTH),
    stream("a part over the limit", begin() + begin(bytes(FRAME + 1)), TOO_LONG),
    stream("RESPONSE over the limit, for one value", element(bytes(FRAME + 1)), TOO_LONG, **ONE),
    stream("RESPONSE beyond demand", element() * 3, NOT_ASKED, schemes=BOTH),
    stream("RESPONSE beyond demand, without flags", response(VICTIM, b"x", 0) * 3, NOT_ASKED),
    stream(
        "RESPONSE beyond demand, that completes",
        element() * 2 + response(VICTIM, b"x", WHOLE | COMPLETE),
        NOT_ASKED,
    ),
    stream("a thousand RESPONSEs beyond demand", element() * 1002, NOT_ASKED),
    stream(
        "RESPONSEs of different lengths beyond demand",
        b"".join(element(bytes(each)) for each in MIXED),
        NOT_ASKED,
    ),
    stream("RESPONSE without any demand", element(), NOT_ASKED, demand=0),
    stream("a part beyond demand", element() * 2 + begin(), NOT_ASKED),
    stream("RESPONSE beyond demand, of a subscription", element() * 3, NOT_ASKED, **SUBSCRIPTION),
    stream("an end without a begin", end(), NEVER_BEGAN, schemes=BOTH),
    stream("a second end", begin() + end() + end(), NEVER_BEGAN),
    stream("a begin within a begin", begin() + begin(), WITHIN, schemes=BOTH),
    stream("a whole element within a begin", begin() + element(), WITHIN),
    stream(
        "more parts than `max_parts`, without an end",
        begin() + more() * 64,
        "an element in 65 parts",
    ),
    stream(
        "parts beyond `max_element`",
        begin(bytes(60_000)) + more(bytes(60_000)) * 2,
        "has 180000 bytes so far",
        holds=PARTS,
    ),
    stream(
        "an element that is not finished in time",
        begin() + more(),
        "was left unfinished",
        within=("partial_age",),
        schemes=BOTH,
    ),
    stream("an end without a begin, for one value", end(), NEVER_BEGAN, **ONE),
    stream(
        "one value that is not finished in time",
        begin(),
        "was left unfinished",
        within=("partial_age",),
        **ONE,
    ),
    stream(
        "an element that the serializer cannot take", element(b"[" * 60_000), "", serializer="json"
    ),
    client(
        "elements, parts and ends, right after our CANCEL", a_few_after_the_cancel, I, NOT_ASKED
    ),
    tolerated(
        "COMPLETE on a part that is not the last", response(VICTIM, PIECE, BEGIN | COMPLETE) + end()
    ),
    tolerated(
        "COMPLETE twice, an element behind it, and an ERROR",
        DONE + DONE + element() + error(VICTIM),
    ),
    tolerated("COMPLETE for a subscription", element() + DONE, **SUBSCRIPTION),
    tolerated("a value, and then a bare COMPLETE", response(VICTIM, b"x", 0) + DONE, **ONE),
    tolerated("two values where one was asked for", element() + element(), **ONE),
    tolerated("ERROR within an element", begin() + error(VICTIM)),
    tolerated("ERROR of 60,000 bytes, and no UTF-8", sized_frame(0x21, VICTIM, b"\xff" * 60_000)),
    tolerated("ERROR over the limit", sized_frame(0x21, VICTIM, bytes(FRAME + 1))),
    tolerated(
        "RESPONSE and ERROR for a stream that was never opened", response(77, b"x") + error(77)
    ),
    tolerated("RESPONSE on stream 0", response(0, b"x") + response(0, b"x", BEGIN)),
    tolerated("SETUP, from a server", setup(b"hm") + setup(stream=VICTIM)),
    tolerated(
        "REQUEST_N and CANCEL for a stream that we do not serve", request_n(7, 5) + cancel(7)
    ),
    tolerated(
        "an unknown type and an extension that may be ignored",
        sized_frame(0x30, VICTIM, flags=0x80) + ext(9),
    ),
    tolerated(
        "reserved flags",
        sized_frame(RESPONSE, VICTIM, b"x", flags=WHOLE | 0x8F)
        + sized_frame(CANCEL, 7, flags=0x7F),
    ),
]
