"""Requests with data over RS.io: fields that cannot be read, data that is too long, missing,
or comes twice.
"""

from typing import Any

from penstock_tck.wire import named_request
from penstock_tck.wire.rsio import cancel, more_data, request_data, subscribe, varint

from tests.hostile._attacker import COMPANION, VICTIM, Attacker, companion
from tests.hostile._row import PARTS, C, I, Row, S
from tests.hostile._rows_before_hello import EVERYWHERE

HUGE = 2**62
SIZE = named_request("size", bytes(1000))


def whole(name: str | bytes, payload: bytes = b"") -> bytes:
    data = named_request(name, payload)
    return request_data(VICTIM, len(data), data)


async def request_on_a_live_stream(attacker: Attacker) -> None:
    await attacker.send(companion())
    await attacker.wait_companion()
    await attacker.send(request_data(COMPANION, 1, b"x"))


async def data_again(attacker: Attacker) -> None:
    await attacker.send(whole("size", b"x"))
    await attacker.wait_heard("onComplete", VICTIM)
    await attacker.send(more_data(VICTIM, bytes(100)))


async def too_many_unfinished(attacker: Attacker) -> None:
    """Begin 8 requests, which `max_partials_in_all` permits. The victim is the ninth, so the
    error is recognised by its id.
    """
    await attacker.send(
        b"".join(request_data(stream, 5000, bytes(100)) for stream in range(100, 108))
    )
    await attacker.send(request_data(VICTIM, 5000, bytes(100)))
    await attacker.wait(lambda: any(message[0] == "onError" for message in attacker.heard))
    await attacker.send(b"".join(map(cancel, range(100, 108))))


async def too_much_unfinished(attacker: Attacker) -> None:
    """Leave requests of different lengths unfinished, until their data would be more than
    `partial_bytes`. The victim is the last.
    """
    lengths = {100: 60_000, 101: 1, 102: 50_000, 103: 45_000, 104: 4096, VICTIM: 62_000}
    await attacker.send(
        b"".join(
            request_data(stream, length + 1, bytes(length)) for stream, length in lengths.items()
        )
    )
    await attacker.wait(lambda: any(message[0] == "onError" for message in attacker.heard))
    await attacker.send(b"".join(map(cancel, range(100, 105))))


async def parts_for_nothing(attacker: Attacker) -> None:
    await attacker.send(more_data(VICTIM, bytes(100)) * 200)


async def empty_parts(attacker: Attacker) -> None:
    await attacker.send(request_data(VICTIM, 1000) + more_data(VICTIM, b"") * 200)


def row(title: str, attack: Any, answer: Any, says: str = "", **more: Any) -> Row:
    return Row(title=title, attack=attack, answer=answer, says=says, extensions=(7,), **more)


NO_SUCH = "no such publisher"

DATA = [
    row("a request that ends within its fields", b"\x4c\x01\x05", C, "protocol:request"),
    row("data without a stream", b"\x4d\x00", C, "protocol:request"),
    row(
        "a request with more data than it announces",
        request_data(VICTIM, 1, b"xx"),
        C,
        f"protocol:request {VICTIM}",
    ),
    row(
        "parts with more data than was announced",
        request_data(VICTIM, 100) + more_data(VICTIM, bytes(101)),
        C,
        f"protocol:request {VICTIM}",
        schemes=EVERYWHERE,
    ),
    row(
        "a request with the id of a live stream",
        request_on_a_live_stream,
        C,
        "protocol:subscribe 0",
    ),
    row(
        "a second request while the data of the first is unfinished",
        request_data(VICTIM, 9) * 2,
        C,
        f"protocol:subscribe {VICTIM}",
    ),
    row(
        "subscribe with the id of such a request",
        request_data(VICTIM, 9) + subscribe("one", VICTIM, 1),
        C,
        f"protocol:subscribe {VICTIM}",
    ),
    row(
        "a body of 2^62 bytes announced, of a request",
        b"\x4c" + varint(HUGE),
        C,
        f"limit:frame {HUGE} > 65536",
    ),
    row(
        "a request by a name that is not there",
        whole("nowhere", b"x"),
        S,
        NO_SUCH,
        schemes=EVERYWHERE,
    ),
    row("a request by a name that is no UTF-8", whole(b"\xff\xfe", b"x"), S, NO_SUCH),
    row(
        "a request whose name ends behind its data",
        request_data(VICTIM, 7, b"\xffrq\x00\xff\xffx"),
        S,
        NO_SUCH,
    ),
    row("a request without data", request_data(VICTIM, 0), S, NO_SUCH),
    row(
        "a payload for a publisher",
        whole("one", b"xy"),
        S,
        "one is a publisher and takes no payload, and one of 2 bytes was sent",
    ),
    row(
        "2^62 bytes of data announced",
        request_data(VICTIM, HUGE),
        S,
        f"the data of this request has {HUGE} bytes; 132112 is the most here",
        schemes=EVERYWHERE,
    ),
    row(
        "data that never comes",
        request_data(VICTIM, 1000),
        S,
        "the data of this request did not come in time (Limits.partial_age)",
        within=("partial_age",),
    ),
    row(
        "data that is not finished in time",
        request_data(VICTIM, 1000, bytes(100)),
        S,
        "the data of this request did not come in time (Limits.partial_age)",
        within=("partial_age",),
    ),
    row("more unfinished requests than `max_partials_in_all`", too_many_unfinished, S, "refused"),
    row(
        "data of different lengths beyond `partial_bytes`, unfinished",
        too_much_unfinished,
        S,
        "refused",
        holds=PARTS,
    ),
    row(
        "data in more parts than `max_parts`",
        request_data(VICTIM, 9000) + more_data(VICTIM, bytes(100)) * 65,
        S,
        "refused",
    ),
    row("data for a request that was never opened", more_data(VICTIM, bytes(100)), I),
    row(
        "data behind a cancel",
        request_data(VICTIM, 1000) + cancel(VICTIM) + more_data(VICTIM, bytes(1000)),
        I,
    ),
    row("data a second time, for a request that was answered", data_again, I),
    row("data for nothing, without end", parts_for_nothing, C, "limit:glitches"),
    row("data in empty parts, without end", empty_parts, C, "limit:glitches"),
]
