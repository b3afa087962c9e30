"""Attacks by a publisher: a hostile server, whose elements a program with penstock reads."""

from typing import Any

from penstock_tck.wire.rsio import (
    goodbye,
    hello,
    on_complete,
    on_error,
    on_next,
    on_next_packed,
    on_subscribe,
    part,
    request,
    server_hello,
    varint,
)

from tests.hostile._attacker import VICTIM, Attacker
from tests.hostile._row import PARTS, SCALED, SILENCE, C, I, Row, S, Target
from tests.hostile._rows_before_hello import say_nothing

HUGE = 2**62
HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
FRAME = SCALED.max_frame
MIXED = (0, 1, 64, 60_000, 1000)
"""The lengths of elements beyond demand."""
NOT_ASKED = "an element arrived that was not asked for"


def client(**row: Any) -> Row:
    return Row(target=Target.CLIENT, **row)


def fatal(title: str, attack: Any, says: str, **more: Any) -> Row:
    return client(title=title, attack=attack, answer=C, says=says, **more)


def stream(title: str, attack: Any, says: str, **more: Any) -> Row:
    return client(title=title, attack=attack, answer=S, says=says, **more)


async def send_forever(attacker: Attacker, data: bytes) -> None:
    chunk = data * (65_536 // len(data) + 1)
    for _ in range(1000):
        if attacker.goodbyes or not await attacker.send(chunk):
            return


async def tiny_parts(attacker: Attacker) -> None:
    await send_forever(
        attacker,
        b"".join(
            part(VICTIM, element, b"x") + part(VICTIM, element, b"x", last=True)
            for element in range(3)
        ),
    )


async def empty_parts(attacker: Attacker) -> None:
    await send_forever(attacker, part(VICTIM, 0, b""))


async def elements_after_the_cancel(attacker: Attacker) -> None:
    await attacker.send(on_next(VICTIM, b"x") * 3)
    await attacker.wait_heard("cancel", VICTIM)
    await send_forever(attacker, b"".join(on_next(VICTIM, b"x" * size) for size in range(200)))


async def a_few_after_the_cancel(attacker: Attacker) -> None:
    await attacker.send(on_next(VICTIM, b"x") * 3)
    await attacker.wait_heard("cancel", VICTIM)
    await attacker.send(
        on_next(VICTIM, b"late") * 3 + part(VICTIM, 0, b"late") + on_complete(VICTIM)
    )


async def leave_within_an_element(attacker: Attacker) -> None:
    await attacker.send(on_next(VICTIM, b"x" * 100)[:50])
    await attacker.send_fin()


async def reset_within_an_element(attacker: Attacker) -> None:
    await attacker.send(on_next(VICTIM, b"x" * 100)[:50])
    await attacker.send_rst()


FIRST = {"says_hello": False, "accepts_victim": False}
NO_TLS: dict[str, Any] = {"schemes": ("tls",), "without_tls": True}

PUBLISHERS = [
    fatal("nothing at all", say_nothing, "limit:handshake", within=("handshake_timeout",), **FIRST),
    fatal("HTTP", HTTP, "protocol:hello", **FIRST),
    fatal("the client's hello, from a server", hello(), "protocol:hello", **FIRST),
    fatal("onSubscribe before the hello", on_subscribe(VICTIM), "protocol:hello", **FIRST),
    fatal(
        "a hello of another version",
        server_hello(version=1),
        "version 0",
        stream_error="Rejected",
        **FIRST,
    ),
    fatal(
        "65 extensions in a hello", server_hello(*range(65)), "limit:extensions 65 > 64", **FIRST
    ),
    fatal("no TLS, to a client that wants it", HTTP, SILENCE, **NO_TLS, **FIRST),
    fatal(
        "nothing, to a client that wants TLS",
        say_nothing,
        SILENCE,
        **NO_TLS,
        within=("tls_timeout",),
        **FIRST,
    ),
    fatal("a second hello", server_hello(), "protocol:hello"),
    fatal(
        "bytes that mean nothing",
        b"\xff\xfe\xfd" * 500,
        "protocol:type 0xff",
        schemes=("tcp", "tls"),
    ),
    fatal(
        "onNext before onSubscribe",
        on_next(VICTIM, b"early"),
        f"protocol:stream {VICTIM}",
        accepts_victim=False,
    ),
    fatal("a second onSubscribe", on_subscribe(VICTIM), f"protocol:stream {VICTIM}"),
    fatal("onComplete twice", on_complete(VICTIM) * 2, f"protocol:stream {VICTIM}"),
    fatal(
        "onNext after onComplete",
        on_complete(VICTIM) + on_next(VICTIM, b"late"),
        f"protocol:stream {VICTIM}",
    ),
    fatal(
        "an elementSize of 2^62",
        on_subscribe(VICTIM, HUGE),
        f"limit:frame {HUGE} > {FRAME}",
        accepts_victim=False,
    ),
    fatal(
        "onNextPacked without a fixed size",
        on_next_packed(VICTIM, 1, b"x"),
        "protocol:packed",
        schemes=("tcp", "tls"),
    ),
    fatal("onNextPacked with none", on_next_packed(VICTIM, 0), "protocol:packed", size=4),
    fatal(
        "onNextPacked with 2^62",
        on_next_packed(VICTIM, HUGE),
        f"limit:frame {4 * HUGE} > {FRAME}",
        size=4,
    ),
    fatal(
        "an element of 2^62 bytes announced",
        b"\x21\x01" + varint(HUGE),
        f"limit:frame {HUGE} > {FRAME}",
    ),
    fatal(
        "a part of 2^62 bytes announced",
        b"\x23\x01\x00" + varint(HUGE),
        f"limit:frame {HUGE} > {FRAME}",
    ),
    fatal("an error of 4,097 bytes", on_error(VICTIM, "e" * 4097), "limit:text 4097 > 4096"),
    fatal("tiny parts without end", tiny_parts, "limit:glitches", demand=10**6),
    fatal("empty parts without end", empty_parts, "limit:glitches", demand=10**6),
    fatal("elements without end after our cancel", elements_after_the_cancel, "limit:late"),
    fatal("a thousand goodbyes", goodbye("bye") * 1000, ""),
    fatal(
        "the end (FIN) within an element", leave_within_an_element, SILENCE, schemes=("tcp", "tls")
    ),
    fatal(
        "a reset (RST) within an element", reset_within_an_element, SILENCE, schemes=("tcp", "tls")
    ),
    stream(
        "an element beyond demand", on_next(VICTIM, b"x") * 3, NOT_ASKED, schemes=("tcp", "tls")
    ),
    stream("a thousand elements beyond demand", on_next(VICTIM, b"x") * 1002, NOT_ASKED),
    stream(
        "elements of different lengths beyond demand",
        b"".join(on_next(VICTIM, bytes(each)) for each in MIXED),
        NOT_ASKED,
    ),
    stream(
        "unfinished elements of different lengths beyond `partial_bytes`",
        b"".join(
            part(VICTIM, element, bytes(each))
            for element, each in enumerate((60_000, 20_000, 61_000, 62_000))
        ),
        "unfinished elements hold 203000 bytes",
        demand=10,
        holds=PARTS,
    ),
    stream(
        "packed elements beyond demand", on_next_packed(VICTIM, 3, bytes(12)), NOT_ASKED, size=4
    ),
    stream(
        "a part beyond demand", on_next(VICTIM, b"x") * 2 + part(VICTIM, 0, bytes(64)), NOT_ASKED
    ),
    stream(
        "more parts than `max_parts`, without a last one",
        part(VICTIM, 0, bytes(64)) * 65,
        "an element in 65 parts",
    ),
    stream(
        "parts beyond `max_element`",
        part(VICTIM, 0, bytes(60_000)) * 3,
        "has 180000 bytes so far",
        holds=PARTS,
    ),
    stream(
        "parts beyond the elementSize", part(VICTIM, 0, bytes(64)), "has 64 bytes so far", size=4
    ),
    stream(
        "parts short of the elementSize",
        part(VICTIM, 0, bytes(3), last=True),
        "an element of 3 bytes",
        size=4,
    ),
    stream(
        "more unfinished elements than `max_partials`",
        b"".join(part(VICTIM, element, bytes(64)) for element in range(5)),
        "5 elements of one stream are unfinished",
        demand=10,
    ),
    stream(
        "unfinished elements beyond `partial_bytes`",
        b"".join(part(VICTIM, element, bytes(60_000)) for element in range(4)),
        "unfinished elements hold 240000 bytes",
        demand=10,
        holds=PARTS,
    ),
    stream(
        "an element that is not finished in time",
        part(VICTIM, 0, bytes(64)),
        "was left unfinished",
        within=("partial_age",),
    ),
    stream(
        "onComplete within an element",
        part(VICTIM, 0, bytes(64)) + on_complete(VICTIM),
        "completed within an element",
        cancels=False,
    ),
    stream(
        "an element that the serializer cannot take",
        on_next(VICTIM, b"[" * 60_000),
        "",
        serializer="json",
    ),
    client(
        title="elements and an end, right after our cancel",
        attack=a_few_after_the_cancel,
        answer=I,
        says=NOT_ASKED,
    ),
    client(title="request for a stream that we do not serve", attack=request(7, 5), answer=I),
]
