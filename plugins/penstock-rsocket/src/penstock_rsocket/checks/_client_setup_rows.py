"""Clients: SETUP, KEEPALIVE, and frames about the connection."""

from collections.abc import Iterable
from typing import Final

from penstock_tck.wire import CheckContext, Level, NotSupported, Table, verify

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._client_under_test import ClientUnderTest, accept, begin
from penstock_rsocket.checks._frames import Frame
from penstock_rsocket.checks._peer import RSOCKET

CLIENT_SETUPS = Table(RSOCKET)

ESTABLISHMENT: Final = "Connection Establishment"
SETUP: Final = "SETUP Frame"
KEEPALIVE: Final = "KEEPALIVE Frame"
CODES: Final = "Error Codes"
HEADER: Final = "Frame Header Format"
METADATA: Final = "Metadata Optional Header"
IGNORE: Final = "Handling Ignore Flag"
UNEXPECTED: Final = "Handling the Unexpected"

ANSWERED: Final = (
    "A KEEPALIVE with the flag RESPOND MUST be answered, with its data and without the flag."
)
UNKNOWN: Final = "A frame for an unknown stream MUST be ignored."
NOT_UNDERSTOOD: Final = "A frame with the ignore flag can be ignored."
TIMES: Final = slice(4, 12)
UNUSED: Final = (1001, 1002)
"""Unused ids, one of each side."""
STREAM: Final = [b"a", b"b", b"c"]
STREAMED: Final = "elements a,b,c complete"


@CLIENT_SETUPS.row(
    "setup-first", ESTABLISHMENT, "A client MUST send SETUP first, on stream 0.", level=Level.MUST
)
async def setup_first(context: CheckContext) -> str:
    """The first frame of the client is a SETUP on stream 0. Nothing was sent to it."""
    client = await accept(context)
    await client.wait_until(lambda: client.received, "a SETUP")
    first = client.received[0]
    verify(first.type == rs.SETUP and not first.stream, f"the first frame is {first}")
    return str(first)


@CLIENT_SETUPS.row("setup-version", SETUP, "SETUP has the version of the protocol, 1.0.")
async def setup_version(context: CheckContext) -> str:
    """The two numbers are 1 and 0."""
    setup = await (await accept(context)).setup()
    version = int.from_bytes(setup.body[:2]), int.from_bytes(setup.body[2:4])
    verify(version == (1, 0), f"the version is {version[0]}.{version[1]}")
    return "1.0"


@CLIENT_SETUPS.row(
    "setup-times",
    SETUP,
    "The two times of SETUP MUST be above 0. They have 31 bits.",
    level=Level.MUST,
)
async def setup_times(context: CheckContext) -> str:
    """The time between two KEEPALIVE frames, and the lifetime."""
    setup = await (await accept(context)).setup()
    times = _times(setup)
    verify(all(0 < each < 1 << 31 for each in times), f"the times are {times} ms")
    return f"{times[0]} ms and {times[1]} ms"


def _times(setup: Frame) -> tuple[int, int]:
    times = setup.body[TIMES]
    return int.from_bytes(times[:4]), int.from_bytes(times[4:])


@CLIENT_SETUPS.row(
    "setup-types", SETUP, "SETUP has two MIME types, each after its length, in ASCII."
)
async def setup_types(context: CheckContext) -> str:
    """Both can be read, and are not empty. If there is metadata, it fits into the frame."""
    setup = await (await accept(context)).setup()
    left = setup.body[12:]
    if setup.flags & rs.R:
        left = left[2 + int.from_bytes(left[:2]) :]
    types = []
    for _ in range(2):
        size = left[0] if left else 0
        types.append(left[1 : 1 + size])
        verify(
            len(types[-1]) == size > 0, f"a MIME type of {size} bytes; the SETUP is {setup.body!r}"
        )
        left = left[1 + size :]
    verify(all(each.isascii() for each in types), f"the types are {types}")
    if setup.flags & rs.M:
        size = int.from_bytes(left[:3])
        verify(len(left) >= 3 + size, f"metadata of {size} bytes, and {len(left)} bytes are left")
    return ", ".join(each.decode() for each in types)


@CLIENT_SETUPS.row(
    "setup-once", ESTABLISHMENT, "SETUP is the first frame of a connection, and comes once."
)
async def setup_once(context: CheckContext) -> str:
    """A request, its answer and the outcome, and no second SETUP."""
    client = await begin(context, "request hello")
    await client.answer(await client.request(rs.REQUEST_RESPONSE, "echo"), b"x")
    await client.outcome()
    verify(len(client.of_type(rs.SETUP)) == 1, f"more than one SETUP; {client.describe_received()}")
    return "one SETUP"


@CLIENT_SETUPS.row(
    "setup-refused",
    ESTABLISHMENT,
    "An ERROR that refuses the SETUP ends the connection.",
    level=Level.READING,
)
async def setup_refused(context: CheckContext) -> str:
    """After ERROR[REJECTED_SETUP], and what was under way, the client sends no frame. It may close
    the connection.
    """
    client = await accept(context)
    await client.setup()
    await client.error(0, rs.REJECTED_SETUP, b"no")
    await client.settle()
    before = len(client.received)
    await client.settle_after(4 * client.quiet)
    later = [each for each in client.received[before:] if each.type != rs.KEEPALIVE]
    verify(not later, f"the client went on: {', '.join(map(str, later[:3]))}")
    return client.ending or "silent"


# --- KEEPALIVE


@CLIENT_SETUPS.row("keepalive-sent", KEEPALIVE, "A client sends a KEEPALIVE in each interval.")
async def keepalive_sent(context: CheckContext) -> str:
    """Two come with the flag RESPOND, on stream 0, within twice the time of the SETUP and a second
    more for each. An interval above a quarter of the patience is not waited for.
    """
    client = await begin(context, "nothing")
    interval = _times(await client.setup())[0] / 1000
    if interval > client.patience / 4:
        raise NotSupported(f"the interval of the SETUP is {interval:g} s, which is not waited for")
    await client.outcome()

    def asking() -> list[Frame]:
        return [each for each in client.of_type(rs.KEEPALIVE) if each.flags & rs.R]

    await client.settle_after(4 * interval)
    seen = asking()
    verify(len(seen) >= 2, f"{len(seen)} came in 4 intervals; {client.describe_received()}")
    verify(not any(each.stream for each in seen), f"one is on a stream: {seen}")
    return f"{len(seen)} in 4 intervals of {interval:g} s"


@CLIENT_SETUPS.row("keepalive-answered", KEEPALIVE, ANSWERED, level=Level.MUST)
async def keepalive_answered(context: CheckContext) -> str:
    """Two with RESPOND, with data that is no text and without data, are answered in turn."""
    client = await begin(context, "nothing")
    await client.outcome()
    due = [b"\xff\x00 tick", b""]
    for data in due:
        await client.send_frame(rs.KEEPALIVE, 0, bytes(8) + data, flags=rs.R)

    def answers() -> list[Frame]:
        return [each for each in client.of_type(rs.KEEPALIVE) if not each.flags & rs.R]

    await client.wait_until(lambda: len(answers()) >= len(due), "two answers")
    await client.settle()
    seen = [each.body[8:] for each in answers()]
    verify(
        seen == due and not any(each.stream for each in answers()),
        f"answers with {due} are due on stream 0; {client.describe_received()}",
    )
    return "2 answers"


@CLIENT_SETUPS.row("keepalive-silent", KEEPALIVE, ANSWERED)
async def keepalive_silent(context: CheckContext) -> str:
    """One without RESPOND is not answered."""
    client = await begin(context, "nothing")
    await client.outcome()
    await client.send_frame(rs.KEEPALIVE, 0, bytes(8) + b"silent")
    await client.settle()
    seen = [each for each in client.of_type(rs.KEEPALIVE) if each.body[8:] == b"silent"]
    verify(not seen, f"it was answered; {client.describe_received()}")
    await client.expect_alive("after a KEEPALIVE without RESPOND the connection continues")
    return "not answered"


# --- frames that must be ignored


async def _ignored(
    context: CheckContext, frames: Iterable[tuple[int, int, bytes, int]], *, on_stream: bool = False
) -> str:
    """Send frames while a stream is open; the stream must go on to its end. With `on_stream` the id
    0 of a frame is that of the stream.
    """
    client = await begin(context, "stream 2")
    request = await client.request(rs.REQUEST_STREAM, "numbers")
    await client.serve(request, STREAM[:1])
    for kind, stream, body, flags in frames:
        of = request.stream if on_stream else stream
        await client.send_frame(kind, of, body, flags=flags)
    await client.serve(request, STREAM[1:], sent=1)
    await client.element(request.stream, b"", rs.C)
    await client.expect_outcome(STREAMED)
    verify(not client.of_type(rs.ERROR), f"an ERROR came; {client.describe_received()}")
    return "ignored"


@CLIENT_SETUPS.row("unknown-payload", UNEXPECTED, UNKNOWN, level=Level.MUST)
async def unknown_payload(context: CheckContext) -> str:
    """PAYLOAD with NEXT, and with COMPLETE, for an odd and an even id that were not used."""
    return await _ignored(
        context,
        [(rs.PAYLOAD, stream, b"late", flag) for stream in UNUSED for flag in (rs.N, rs.C)],
    )


@CLIENT_SETUPS.row("unknown-error", UNEXPECTED, UNKNOWN, level=Level.MUST)
async def unknown_error(context: CheckContext) -> str:
    """ERROR for an odd and an even id that were not used."""
    body = rs.number(rs.APPLICATION_ERROR) + b"boom"
    return await _ignored(context, [(rs.ERROR, stream, body, 0) for stream in UNUSED])


@CLIENT_SETUPS.row("unknown-cancel", UNEXPECTED, UNKNOWN, level=Level.MUST)
async def unknown_cancel(context: CheckContext) -> str:
    """CANCEL for an odd and an even id that were not used."""
    return await _ignored(context, [(rs.CANCEL, stream, b"", 0) for stream in UNUSED])


@CLIENT_SETUPS.row("unknown-request-n", UNEXPECTED, UNKNOWN, level=Level.MUST)
async def unknown_request_n(context: CheckContext) -> str:
    """REQUEST_N for an odd and an even id that were not used."""
    return await _ignored(context, [(rs.REQUEST_N, stream, rs.number(3), 0) for stream in UNUSED])


@CLIENT_SETUPS.row("ext-ignored", IGNORE, NOT_UNDERSTOOD)
async def ext_ignored(context: CheckContext) -> str:
    """An EXT of an unknown type with the ignore flag, on stream 0."""
    return await _ignored(context, [(rs.EXT, 0, rs.number(0x7FFF) + b"news", rs.I)])


@CLIENT_SETUPS.row("type-ignored", IGNORE, NOT_UNDERSTOOD)
async def type_ignored(context: CheckContext) -> str:
    """A frame of a type that does not exist, with the ignore flag."""
    return await _ignored(context, [(0x2A, 0, b"news", rs.I)])


@CLIENT_SETUPS.row(
    "flags-ignored",
    UNEXPECTED,
    "Flags that a type of frame does not have MUST be ignored.",
    level=Level.MUST,
)
async def flags_ignored(context: CheckContext) -> str:
    """All flags without a meaning are set in the PAYLOADs of a stream and in a KEEPALIVE."""
    client = await begin(context, "stream 2")
    request = await client.request(rs.REQUEST_STREAM, "numbers")
    await client.send_frame(rs.KEEPALIVE, 0, bytes(8) + b"k", flags=0x17F & ~rs.R)
    for index, element in enumerate(STREAM):
        await client.wait_until(
            lambda index=index: client.demand(request) > index,  # type: ignore[misc]  # bound in the loop
            f"demand for element {index + 1}",
        )
        await client.element(request.stream, element, rs.N | 0x1F)
    await client.element(request.stream, b"", rs.C | 0x1F)
    return await client.expect_outcome(STREAMED)


@CLIENT_SETUPS.row(
    "metadata-length",
    METADATA,
    (
        "Metadata that does not fit into its frame MUST be answered with ERROR[CONNECTION_ERROR], "
        "and the connection closed, unless the frame has the ignore flag."
    ),
    level=Level.MUST,
)
async def metadata_length(context: CheckContext) -> str:
    """The PAYLOAD of an open stream says that it has 1 MiB of metadata."""
    client = await begin(context, "stream 2")
    request = await client.request(rs.REQUEST_STREAM, "numbers")
    body = (1 << 20).to_bytes(3) + b"x"
    await client.element(request.stream, body, rs.N | rs.M)
    return await client.expect_refused(
        "metadata longer than its frame was sent", [rs.CONNECTION_ERROR]
    )


# --- the end of the connection


@CLIENT_SETUPS.row(
    "connection-error",
    CODES,
    "ERROR[CONNECTION_ERROR] ends the streams. Both sides may close at once.",
    level=Level.READING,
)
async def connection_error(context: CheckContext) -> str:
    """The client closes the connection. Or it goes on without the stream: it requests no more of it
    for elements that follow, and begins no request.
    """
    client = await begin(context, "stream 2")
    request = await client.request(rs.REQUEST_STREAM, "numbers")
    await client.error(0, rs.CONNECTION_ERROR)
    await client.settle()
    before = len(client.received)
    for element in STREAM[:2]:
        await client.element(request.stream, element)
    await client.settle_after(4 * client.quiet)
    later = [each for each in client.received[before:] if each.type != rs.KEEPALIVE]
    requests = [each for each in later if each.type in (*rs.REQUESTS, rs.REQUEST_N)]
    verify(not requests, f"the client went on: {', '.join(map(str, requests[:3]))}")
    return client.ending or "silent"


@CLIENT_SETUPS.row(
    "connection-close",
    CODES,
    (
        "After ERROR[CONNECTION_CLOSE] the receiver MUST wait for open streams to end before it "
        "closes."
    ),
    level=Level.MUST,
)
async def connection_close(context: CheckContext) -> str:
    """After this ERROR a stream goes on: the client requests more, and sends no CANCEL."""
    client = await begin(context, "stream 2")
    request = await client.request(rs.REQUEST_STREAM, "numbers")
    await client.error(0, rs.CONNECTION_CLOSE, b"going")
    await client.serve(request, STREAM + STREAM)
    verify(
        not client.of_stream(request.stream, rs.CANCEL),
        f"the stream was cancelled; {client.describe_received()}",
    )
    return f"demand for {client.demand(request)} elements"


@CLIENT_SETUPS.row(
    "frame-cut",
    "Framing Format",
    "A frame has its length before it, on a transport that does not delimit messages.",
)
async def frame_cut(context: CheckContext) -> str:
    """An answer that comes byte by byte is read."""
    client = await begin(context, "request hello")
    context.require_byte_stream(client.connection)
    request = await client.request(rs.REQUEST_RESPONSE, "echo")
    for byte in client.frame(rs.PAYLOAD, request.stream, b"in bytes", flags=rs.N | rs.C):
        await client.send(bytes([byte]))
    return await client.expect_outcome("value in bytes")


@CLIENT_SETUPS.row(
    "sent-legal",
    HEADER,
    (
        "A flag that a type of frame does not have should be sent as 0; an id has 31 bits; frames "
        "about the connection MUST be on stream 0."
    ),
    level=Level.MUST,
)
async def sent_legal(context: CheckContext) -> str:
    """A channel, whose frames and those around it are looked at."""
    client = await begin(context, "channel")
    request = await client.request(rs.REQUEST_CHANNEL, "channel")
    await client.grant(request.stream, 10)
    await client.serve(request, STREAM)
    await client.element(request.stream, b"", rs.C)
    await client.outcome()
    verify_legal(client)
    return f"{len(client.received)} frames"


def verify_legal(client: ClientUnderTest) -> None:
    """Fail if a frame has a type, a flag or an id that it may not have."""
    wrong = [
        each
        for each in client.received
        if each.type not in rs.NAMES
        or each.flags & ~rs.LEGAL_FLAGS[each.type]
        or each.stream >> 31
        or bool(each.stream) is (each.type in rs.OF_CONNECTION)
    ]
    verify(not wrong, f"not legal: {', '.join(map(str, wrong[:3]))}")
