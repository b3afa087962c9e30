"""The attacks whose cost is measured: the bytes that each connection sends, and the most bytes that
the server may hold for them.

No attacker reads. Bytes are made without code of penstock, by the encoders of the hostile tests.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from penstock_tck.wire import named_request, rsio
from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire.rsio import UNBOUNDED

KIB: Final = 1024
MIB: Final = 1024 * KIB

STREAMS: Final = 1024
"""`Limits.max_subscriptions`."""

ROWS_AT_ONCE: Final = 8
"""The first demand of a stage."""

CONNECTION: Final = 128 * KIB
"""Bytes that a hostile connection may cost, its streams and elements aside."""

IDLE_CONNECTION: Final = 28 * KIB
"""Bytes of a connection that does nothing, at its largest: while it is accepted."""


class Row(NamedTuple):
    """One attack."""

    title: str
    attack: Callable[[], bytes]
    """Returns the bytes that each connection sends."""
    at_most: int
    """Bytes of one connection."""
    why: str = ""
    """What `at_most` consists of, beside CONNECTION."""
    connections: int = 1
    scheme: str = "tcp"
    """Of the URL that the server listens at."""
    then: Callable[[bytes], bytes] | None = None
    """Returns what each connection sends after the answers to `attack`. It reads these, and those
    that follow. None: it reads nothing.
    """


def _hello(*parts: bytes) -> bytes:
    return rsio.hello(1, 7) + b"".join(parts)


def _streams(name: str, demand: int, count: int = STREAMS) -> bytes:
    return _hello(*(rsio.subscribe(name, stream, demand) for stream in range(count)))


def _setup(*parts: bytes) -> bytes:
    return rs.setup() + b"".join(parts)


def _unread(size: int) -> Callable[[], bytes]:
    return lambda: _streams(f"sized/{size}", UNBOUNDED)


def _late(size: int, milliseconds: int) -> Callable[[], bytes]:
    return lambda: _streams(f"late/{size}/{milliseconds}", UNBOUNDED)


def _asked(payload: bytes) -> Callable[[], bytes]:
    data = named_request("answer", payload)
    return lambda: _hello(
        *(rsio.request_data(stream, len(data), data) for stream in range(STREAMS))
    )


def _large_requests() -> bytes:
    data = named_request("keep", bytes(MIB - 100))
    parts = [data[at : at + 65_000] for at in range(0, len(data), 65_000)]
    requests = (
        rsio.request_data(stream, len(data))
        + b"".join(rsio.more_data(stream, part) for part in parts)
        for stream in range(64)
    )
    return _hello(*requests)


def _requests(*targets: str, header: str = "") -> bytes:
    more = f"HTTP/1.1\r\nHost: localhost\r\n{header}\r\n"
    return "".join(f"PUT {target} {more}" for target in targets).encode()


def _subscribes() -> bytes:
    return _requests(*[f"/p/sized/{MIB}?request={UNBOUNDED}"] * STREAMS)


def _polls(answers: bytes) -> bytes:
    """Return a poll of each subscription in `answers`. It is answered before an element is there,
    and no other poll takes that.
    """
    found = re.findall(rb"Location: ../../(\S+)\r\n", answers)
    return _requests(*[f"/{path.decode()}" for path in found], header="Prefer: wait=0\r\n")


def _stages(into: str, count: int) -> bytes:
    names = (
        f"{into}/stage?query=q&batch=0&run=r&partition={number}&attempt=a"
        for number in range(count)
    )
    return _hello(*(rsio.subscribe(name, stream, 1) for stream, name in enumerate(names)))


def _rows(answers: bytes) -> bytes:
    """Return as many rows of one byte as the receiver asks for at once, of each stage."""
    # Its streams have the ids 0, 1, 2, ... The last row and the end never come.
    count = answers.count(b"rows")
    each = (
        rsio.on_subscribe(number) + rsio.on_next(number, b"x") * ROWS_AT_ONCE
        for number in range(count)
    )
    return b"".join(each)


def _nothing(_answers: bytes) -> bytes:
    return b""


TASKS: Final = CONNECTION + STREAMS * 6 * KIB
BUSY: Final = CONNECTION + STREAMS * 8 * KIB
IDLE: Final = CONNECTION + STREAMS * 512
UNREAD: Final = 4 * CONNECTION + STREAMS * KIB
BUDGET: Final = CONNECTION + 85 * MIB

ROWS: Final = (
    Row(
        "a connection that says nothing", lambda: b"", IDLE_CONNECTION, "two tasks", connections=50
    ),
    Row("a connection that says hello", _hello, IDLE_CONNECTION, "two tasks", connections=50),
    Row(
        "zeros behind a bad first byte",
        lambda: bytes([0x7F]) + bytes(8 * MIB),
        2 * CONNECTION,
        "two chunks",
    ),
    Row("1,024 streams without demand", lambda: _streams("sized/1", 0), IDLE, "512 bytes a stream"),
    Row(
        "1,024 streams without demand, with long names",
        lambda: _streams("text/" + "x" * 1000, 0),
        IDLE + STREAMS * 1200,
        "the names",
    ),
    Row(
        "1,024 streams whose publishers wait",
        lambda: _streams("waits", UNBOUNDED),
        TASKS,
        "6 KiB a task",
    ),
    Row(
        "1,024 streams of a log, of which each asks for one element of 1,000 bytes",
        lambda: _streams("log", 1),
        TASKS + STREAMS * 2 * KIB,
        "8 KiB a task that waits for its turn to read",
    ),
    Row(
        "1,024 streams of a log, unread",
        lambda: _streams("log", UNBOUNDED),
        UNREAD + TASKS + STREAMS * 2 * KIB + 33 * MIB,
        "8 KiB a task, and what the streams of a log may read ahead together",
    ),
    *(
        Row(f"1,024 streams of elements of {text}, unread", _unread(size), bar, why)
        for text, size, bar, why in (
            ("1 byte", 1, UNREAD + 2 * MIB, "1 KiB a stream, the objects"),
            ("1 KiB", KIB, UNREAD, "1 KiB a stream"),
            ("16 KiB", 16 * KIB, UNREAD, "1 KiB a stream"),
            ("1 MiB", MIB, UNREAD + 2 * MIB, "1 KiB a stream, two elements"),
            ("4 MiB", 4 * MIB, UNREAD + 8 * MIB, "1 KiB a stream, two elements"),
        )
    ),
    Row(
        "1,024 streams of elements of 1 MiB that take 10 ms, unread",
        _late(MIB, 10),
        BUDGET,
        "a quarter of the budget, and the growth between two counts",
    ),
    Row(
        "1,024 streams of elements of 1 MiB that take 300 ms, unread",
        _late(MIB, 300),
        BUDGET,
        "a quarter of the budget, and the growth between two counts",
    ),
    Row(
        "1,024 requests answered with 1 MiB, unread",
        _asked(b"1048576"),
        UNREAD + 2 * MIB,
        "1 KiB a request, two answers",
    ),
    Row(
        "1,024 waits for the end of a log, with a named reader",
        lambda: _streams("log?positions&reader=nightly&after=99999", UNBOUNDED),
        BUSY,
        "8 KiB a task that waits in a log",
    ),
    Row(
        "1,024 acknowledgements of a named reader",
        lambda: _streams("log?reader=nightly&acknowledge=4000", UNBOUNDED),
        TASKS,
        "6 KiB a task",
    ),
    Row(
        "1,024 stages of `receive` whose rows never come",
        lambda: _stages("orders", STREAMS),
        BUSY,
        "8 KiB a stage",
    ),
    *(
        Row(
            f"1,024 stages of `receive` in {place}, of 8 rows of a byte each, unfinished",
            lambda into=into: _stages(into, STREAMS),  # type: ignore[misc]  # mypy infers no type
            BUSY,
            "8 KiB a stage",
            then=_rows,
        )
        for place, into in (("a file", "orders"), ("memory", "kept"))
    ),
    Row(
        "half a ping of 1 MiB",
        lambda: _hello(b"\x40" + rsio.varint(MIB) + bytes(MIB - 10)),
        3 * CONNECTION,
        "chunks",
    ),
    Row(
        "half a message of no extension",
        lambda: _hello(b"\x60" + rsio.varint(MIB) + bytes(MIB - 10)),
        3 * CONNECTION,
        "chunks",
    ),
    Row(
        "ReactiveSocket: half an EXT frame of 1 MiB",
        lambda: _setup(
            rs.sized_frame(
                rs.EXT, 0, (99).to_bytes(4) + bytes(MIB - 100), flags=rs.I, length=MIB + 16
            )
        ),
        2 * CONNECTION,
        "two chunks",
    ),
    Row(
        "ReactiveSocket: half a request of 1 MiB",
        lambda: _setup(rs.request_response(bytes(MIB), 1)[:-10]),
        CONNECTION + MIB,
        "the frame",
    ),
    Row(
        "ReactiveSocket: 300 requests of 1 MiB whose handlers wait",
        lambda: _setup(
            *(
                rs.request_response(named_request("keep", bytes(MIB - 100)), stream)
                for stream in range(1, 601, 2)
            )
        ),
        BUDGET,
        "a quarter of the budget, and the growth between two counts",
    ),
    Row(
        "64 requests of 1 MiB whose handlers wait",
        _large_requests,
        CONNECTION + 18 * MIB,
        "twice partial_bytes",
    ),
    Row(
        "data of a request in parts of 64 bytes, unfinished",
        lambda: _hello(
            rsio.request_data(1, 512 * KIB), *(rsio.more_data(1, bytes(64)) for _ in range(8000))
        ),
        CONNECTION + MIB,
        "twice the data",
    ),
    Row(
        "HTTP: 1,024 subscribes to elements of 1 MiB",
        _subscribes,
        CONNECTION + STREAMS * 6 * KIB,
        "6 KiB a subscription",
        scheme="http",
        then=_nothing,
    ),
    Row(
        "HTTP: the same, and a poll of each",
        _subscribes,
        BUDGET,
        "a quarter of the budget, and the growth between two counts",
        scheme="http",
        then=_polls,
    ),
)
