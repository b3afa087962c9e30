"""ReactiveSocket: attacks before a SETUP or in place of one;
and frames that end a connection in any state.
"""

from typing import Any

from penstock_tck.wire.reactivesocket import (
    CANCEL,
    EXT,
    REQUEST_N,
    REQUEST_STREAM,
    cancel,
    error,
    ext,
    fire_and_forget,
    request_n,
    request_response,
    request_stream,
    request_sub,
    response,
    setup,
    sized_frame,
)
from penstock_tck.wire.reactivesocket import B as BEGIN
from penstock_tck.wire.reactivesocket import E as END
from penstock_tck.wire.reactivesocket import I as IGNORE

from tests.hostile._attacker import Attacker
from tests.hostile._attacker_protocol import GREETING, REACTIVESOCKET
from tests.hostile._row import SILENCE, C, I, Row
from tests.hostile._rows_before_hello import EVERYWHERE, HTTP, say_nothing

UNKNOWN = 0x30


def row(title: str, attack: Any, answer: Any, says: str = "", **more: Any) -> Row:
    return Row(
        title=title, attack=attack, answer=answer, says=says, protocol=REACTIVESOCKET, **more
    )


def before(title: str, attack: Any, says: str, **more: Any) -> Row:
    return row(title, attack, C, says, says_hello=False, **more)


def fatal(title: str, attack: Any, says: str, **more: Any) -> Row:
    return row(title, attack, C, says, **more)


def tolerated(title: str, attack: Any, **more: Any) -> Row:
    return row(title, attack, I, **more)


async def send_byte_by_byte(attacker: Attacker) -> None:
    """Send a SETUP byte by byte. Each pause is shorter than any deadline; all together are
    longer than `handshake_timeout`.
    """
    for byte in setup(bytes(100)):
        if attacker.ending or attacker.goodbyes or not await attacker.send(bytes([byte])):
            return
        await attacker.pause(0.02)


async def drip_a_request(attacker: Attacker) -> None:
    for byte in request_stream("ticks" * 20, 5, 1):
        if attacker.ending or attacker.goodbyes or not await attacker.send(bytes([byte])):
            return
        await attacker.pause(0.02)


async def large_in_pieces(attacker: Attacker) -> None:
    said = setup(bytes(6000))
    for start in range(0, len(said), 1000):
        await attacker.send(said[start : start + 1000])
        await attacker.pause(0.01)


OTHER_VERSION = {"version": 1}

BEFORE_SETUP = [
    before(
        "nothing at all",
        say_nothing,
        "limit:handshake",
        within=("handshake_timeout",),
        schemes=EVERYWHERE,
    ),
    before(
        "a SETUP, byte by byte, without end",
        send_byte_by_byte,
        "limit:handshake",
        within=("handshake_timeout",),
        schemes=EVERYWHERE,
    ),
    before(
        "half of a SETUP", setup(bytes(50))[:40], "limit:handshake", within=("handshake_timeout",)
    ),
    before("a SETUP of 6,016 bytes", setup(bytes(6000)), "limit:hello", schemes=EVERYWHERE),
    before("a SETUP of 6,016 bytes in pieces", large_in_pieces, "limit:hello"),
    before("a SETUP of another version", setup(version=1), "version 0", schemes=EVERYWHERE),
    before("a SETUP on stream 5", setup(stream=5), "protocol:setup"),
    before(
        "a SETUP that is refused, and requests behind it",
        setup(b"send me away") + request_response("one", 1),
        "not you",
        schemes=EVERYWHERE,
    ),
    before(
        "a SETUP whose examination does not end, and requests behind it",
        setup(b"keep me waiting") + request_stream("endless", 1, 5),
        "limit:handshake",
        within=("handshake_timeout",),
        schemes=EVERYWHERE,
    ),
    before(
        "REQUEST_RESPONSE before SETUP",
        request_response("one", 1),
        "protocol:setup",
        schemes=EVERYWHERE,
    ),
    before("REQUEST_FNF before SETUP", fire_and_forget("one", 1), "protocol:setup"),
    before("REQUEST_STREAM before SETUP", request_stream("one", 1, 5), "protocol:setup"),
    before("REQUEST_SUB before SETUP", request_sub("one", 1, 5), "protocol:setup"),
    before("REQUEST_N before SETUP", request_n(1, 5), "protocol:setup"),
    before("CANCEL before SETUP", cancel(1), "protocol:setup"),
    before("RESPONSE before SETUP", response(1, b"x"), "protocol:setup"),
    before("ERROR before SETUP", error(0), "protocol:setup"),
    before("EXT that may be ignored before SETUP", ext(1), "protocol:setup"),
    before(
        "an unknown type that may be ignored before SETUP",
        sized_frame(UNKNOWN, 0, flags=IGNORE),
        "protocol:setup",
    ),
    before("an unknown type before SETUP", sized_frame(UNKNOWN, 0), "protocol:type 0x0030"),
    before(
        "the top bit of the length set, first of all",
        sized_frame(1, 0, length=2**31 + 16),
        "protocol:reserved",
        schemes=EVERYWHERE,
    ),
    before("a length of 15, first of all", sized_frame(1, 0, length=15), "protocol:length 15"),
    before(
        "a length over the limit, first of all",
        sized_frame(1, 0, length=65_553),
        "limit:frame 65537 > 65536",
    ),
    before(
        "nothing, to the TLS port",
        say_nothing,
        SILENCE,
        within=("tls_timeout",),
        schemes=("tls",),
        without_tls=True,
    ),
    before(
        "a SETUP without TLS, to the TLS port", setup(), SILENCE, schemes=("tls",), without_tls=True
    ),
    before("HTTP without TLS, to the TLS port", HTTP, SILENCE, schemes=("tls",), without_tls=True),
]

FRAMES = [
    fatal(
        "the top bit of the length set",
        sized_frame(CANCEL, 1, length=2**31 + 16),
        "protocol:reserved",
        schemes=EVERYWHERE,
    ),
    fatal("a length of 0", sized_frame(CANCEL, 1, length=0), "protocol:length 0"),
    fatal(
        "a length of 15",
        sized_frame(CANCEL, 1, length=15),
        "protocol:length 15",
        schemes=EVERYWHERE,
    ),
    tolerated("REQUEST_FNF over the limit", fire_and_forget(bytes(65_537), 1)),
    tolerated(
        "an unknown type that may be ignored, over the limit",
        sized_frame(UNKNOWN, 1, bytes(65_537), flags=IGNORE),
    ),
    tolerated("EXT that may be ignored, over the limit", ext(9, bytes(65_537))),
    tolerated("RESPONSE to nothing, over the limit", response(1, bytes(65_537))),
    fatal(
        "EXT that may not be ignored, over the limit",
        ext(9, bytes(65_537), flags=0),
        "limit:frame 65541 > 65536",
    ),
    fatal("ERROR on stream 0 over the limit", error(0, "x" * 65_537), "limit:frame 65537 > 65536"),
    fatal("a length of 2^31-1", (2**31 - 1).to_bytes(4), f"limit:frame {2**31 - 17} > 65536"),
    fatal(
        "REQUEST_STREAM without its demand",
        sized_frame(REQUEST_STREAM, 1, bytes(7)),
        "protocol:length 23",
    ),
    fatal(
        "REQUEST_N without its demand", sized_frame(REQUEST_N, 1, bytes(7)), "protocol:length 23"
    ),
    fatal("EXT without its type", sized_frame(EXT, 0, bytes(3)), "protocol:length 19"),
    tolerated(
        "EXT without its type, that may be ignored",
        sized_frame(EXT, 0, bytes(3), flags=IGNORE) + sized_frame(EXT, 0, flags=IGNORE),
    ),
    fatal(
        "another version, after SETUP",
        sized_frame(CANCEL, 1, **OTHER_VERSION),
        "version 0",
        schemes=EVERYWHERE,
    ),
    fatal(
        "another version, though it may be ignored",
        sized_frame(CANCEL, 1, flags=IGNORE, **OTHER_VERSION),
        "version 0",
    ),
    fatal("a second SETUP of another version", setup(version=1), "version 0"),
    fatal("an unknown type", sized_frame(UNKNOWN, 1), "protocol:type 0x0030", schemes=EVERYWHERE),
    fatal("type 0, which is reserved", sized_frame(0, 1), "protocol:type 0x0000"),
    fatal(
        "an extension that is not known and may not be ignored",
        ext(9, flags=0),
        "protocol:extension 9",
    ),
    fatal(
        "a frame that is left unfinished",
        request_stream("ticks", 5, 1)[:-2],
        "limit:partial",
        within=("partial_age",),
    ),
    fatal(
        "a frame, byte by byte, without end",
        drip_a_request,
        "limit:partial",
        within=("partial_age",),
    ),
    fatal(
        "bytes that mean nothing", b"\xff\xfe\xfd" * 500, "protocol:reserved", schemes=EVERYWHERE
    ),
    fatal("ERROR on stream 0", error(0, "bye"), SILENCE, schemes=EVERYWHERE),
    fatal(
        "ERROR on stream 0, and then more",
        error(0, "bye") + request_stream("endless", 1, 5) + setup() + b"\xff",
        SILENCE,
    ),
    fatal("a thousand ERRORs on stream 0", error(0, "bye") * 1000, SILENCE),
    fatal("ERROR on stream 0 that would command a terminal", error(0, "\x1b[2J\x07"), SILENCE),
    tolerated("a second SETUP", setup(), schemes=EVERYWHERE),
    tolerated("a second SETUP, on a stream", setup(stream=1)),
    tolerated("a second SETUP that would be refused", setup(b"send me away")),
    tolerated(
        "an unknown type that may be ignored",
        sized_frame(UNKNOWN, 1, bytes(100), flags=IGNORE),
        schemes=EVERYWHERE,
    ),
    tolerated("type 0 that may be ignored", sized_frame(0, 1, flags=IGNORE)),
    tolerated(
        "an extension that is not known and may be ignored", ext(9, b"whatever"), schemes=EVERYWHERE
    ),
    tolerated(
        "reserved flags, and what follows the fields", sized_frame(CANCEL, 1, b"more", flags=0x7F)
    ),
    tolerated("RESPONSE to nothing", response(1, b"x"), schemes=EVERYWHERE),
    tolerated(
        "parts of a RESPONSE to nothing",
        response(2, b"x", BEGIN) + response(2, b"x", 0) + response(2, b"x", END),
    ),
    tolerated("RESPONSE on stream 0", response(0, b"x")),
    tolerated("ERROR from the requester, for its own stream", error(GREETING), schemes=EVERYWHERE),
    tolerated("ERROR for a stream that was never opened", error(7)),
]
