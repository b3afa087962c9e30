"""Frames: lengths, flags, unknown types and extensions; and whether the target's own are legal."""

from typing import Final

import trio
from penstock_tck.wire import CheckContext, Level, Table, verify

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._peer import RSOCKET, connect
from penstock_rsocket.checks._stream_rows import is_legal_code

FRAMES = Table(RSOCKET)

FORMAT: Final = "Framing Format"
HEADER: Final = "Frame Header Format"
METADATA: Final = "Metadata Optional Header"
IGNORE: Final = "Handling Ignore Flag"
UNEXPECTED: Final = "Handling the Unexpected"

WRONG_LENGTH: Final = (
    "Metadata that does not fit into its frame MUST be answered with ERROR[CONNECTION_ERROR], and "
    "the connection closed, unless the frame has the ignore flag."
)
NOT_UNDERSTOOD: Final = (
    "A frame with the ignore flag can be ignored. For another one that it does not understand an "
    "implementation MAY send ERROR[CONNECTION_ERROR] and close."
)
FLAGS: Final = "Flags that a type of frame does not have MUST be ignored."
UNKNOWN_TYPE: Final = 0x30
MUCH: Final = 1 << 20


@FRAMES.row(
    "frame-cut",
    FORMAT,
    "A frame has its length before it, on a transport that does not delimit messages.",
    needs=["publisher"],
)
async def frame_cut(context: CheckContext) -> str:
    """SETUP and a request that come byte by byte are read."""
    peer = await connect(context, setup=False)
    context.require_byte_stream(peer.connection)
    stream = peer.next_id()
    request = peer.request_frame(rs.REQUEST_STREAM, stream, context.target.publisher, demand=2)
    for byte in peer.setup() + request:
        await peer.send(bytes([byte]))
        await trio.lowlevel.checkpoint()
    await peer.expect_exactly(stream, 2)
    return "2 elements"


@FRAMES.row(
    "frame-short",
    HEADER,
    "A frame has a header of 6 bytes.",
    level=Level.READING,
    needs=["publisher"],
)
async def frame_short(context: CheckContext) -> str:
    """A frame of 3 bytes is ignored, or the connection ends, with ERROR[CONNECTION_ERROR] or
    without. The server does not wait for more bytes.
    """
    peer = await connect(context)
    await peer.send(b"\0\0\0" if peer.connection.framed else b"\0\0\x03\0\0\0")
    await peer.settle()
    if peer.ending is None and not peer.of_stream(0, rs.ERROR):
        await peer.expect_working()
        return "ignored"
    await peer.wait_closed("a frame of 3 bytes was sent")
    return peer.describe_received()


@FRAMES.row("metadata-length", METADATA, WRONG_LENGTH, level=Level.MUST, needs=["publisher"])
async def metadata_length(context: CheckContext) -> str:
    """A REQUEST_STREAM whose metadata says 1 MiB, in a frame of some 20 bytes."""
    peer = await connect(context)
    body = rs.number(3) + MUCH.to_bytes(3) + rs.route(context.target.publisher)
    await peer.send_frame(rs.REQUEST_STREAM, peer.next_id(), body, flags=rs.M)
    return await peer.expect_refused(
        "metadata longer than its frame was sent", [rs.CONNECTION_ERROR]
    )


@FRAMES.row("metadata-length-ignored", METADATA, WRONG_LENGTH, needs=["publisher"])
async def metadata_length_ignored(context: CheckContext) -> str:
    """The same in a PAYLOAD with the ignore flag, for no stream: the connection continues."""
    peer = await connect(context)
    await peer.send_frame(rs.PAYLOAD, 771, MUCH.to_bytes(3), flags=rs.I | rs.M | rs.N)
    await peer.expect_working()
    verify(not peer.of_stream(0, rs.ERROR), f"an ERROR came; {peer.describe_received()}")
    return "ignored"


@FRAMES.row("ext-ignored", IGNORE, NOT_UNDERSTOOD, needs=["publisher"])
async def ext_ignored(context: CheckContext) -> str:
    """EXT frames of an unknown type with the ignore flag, on stream 0 and on an open stream."""
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, 1)
    await peer.wait_elements(stream, 1)
    for of in (0, stream):
        await peer.send_frame(rs.EXT, of, rs.number(0x7FFF) + b"news", flags=rs.I)
    await peer.grant(stream, 1)
    await peer.expect_exactly(stream, 2)
    verify(not peer.of_type(rs.ERROR), f"an ERROR came; {peer.describe_received()}")
    return "ignored"


@FRAMES.row("ext-refused", IGNORE, NOT_UNDERSTOOD, level=Level.READING, needs=["publisher"])
async def ext_refused(context: CheckContext) -> str:
    """An EXT of an unknown type without the ignore flag is refused in this way, or ignored, or
    the connection is closed: nothing else.
    """
    peer = await connect(context)
    await peer.send_frame(rs.EXT, 0, rs.number(0x7FFF))
    return await peer.refused_or_working(
        "an unknown EXT was sent", [rs.CONNECTION_ERROR], silent=True
    )


@FRAMES.row("type-ignored", IGNORE, NOT_UNDERSTOOD, needs=["publisher"])
async def type_ignored(context: CheckContext) -> str:
    """A frame of a type that does not exist, with the ignore flag."""
    peer = await connect(context)
    await peer.send_frame(UNKNOWN_TYPE, 0, b"news", flags=rs.I)
    await peer.expect_working()
    verify(not peer.of_type(rs.ERROR), f"an ERROR came; {peer.describe_received()}")
    return "ignored"


@FRAMES.row("type-refused", IGNORE, NOT_UNDERSTOOD, level=Level.READING, needs=["publisher"])
async def type_refused(context: CheckContext) -> str:
    """A frame of a type that does not exist, without the ignore flag, is refused in this way, or
    ignored, or the connection is closed: nothing else.
    """
    peer = await connect(context)
    await peer.send_frame(UNKNOWN_TYPE, 0, b"news")
    return await peer.refused_or_working(
        "an unknown type was sent", [rs.CONNECTION_ERROR], silent=True
    )


@FRAMES.row("flags-ignored", UNEXPECTED, FLAGS, level=Level.MUST, needs=["publisher"])
async def flags_ignored(context: CheckContext) -> str:
    """All flags without a meaning are set in REQUEST_STREAM, REQUEST_N, KEEPALIVE and CANCEL, which
    work as without them.
    """
    peer = await connect(context)
    stream = peer.next_id()
    name = context.target.publisher
    await peer.send(
        peer.request_frame(rs.REQUEST_STREAM, stream, name, demand=2, flags=0x07F),
        peer.frame(rs.REQUEST_N, stream, rs.number(1), flags=0x0FF),
        peer.frame(rs.KEEPALIVE, 0, bytes(8), flags=rs.R | 0x07F),
    )
    await peer.expect_exactly(stream, 3)
    await peer.wait_until(lambda: peer.of_type(rs.KEEPALIVE), "the answer to a KEEPALIVE")
    await peer.send_frame(rs.CANCEL, stream, flags=0x0FF)
    await peer.grant(stream, 3)
    await peer.expect_nothing(stream, "the stream was cancelled")
    return "ignored"


@FRAMES.row(
    "sent-legal",
    HEADER,
    (
        "A flag that a type of frame does not have should be sent as 0; an id has 31 bits; frames "
        "about the connection MUST be on stream 0, and codes of errors where they belong."
    ),
    level=Level.MUST,
    needs=["publisher", "three", "echo", "failing"],
)
async def sent_legal(context: CheckContext) -> str:
    """A stream, a response, a failure, an unknown route and a KEEPALIVE: each frame of the target
    keeps this, and names a stream that was opened.
    """
    peer = await connect(context)
    streams = [
        await peer.stream(context.target.publisher, 3),
        await peer.stream(context.target.three, 3),
        await peer.stream(context.target.failing, 100),
        await peer.stream(context.target.missing, 1),
        await peer.request(rs.REQUEST_RESPONSE, context.target.echo, b"x"),
    ]
    await peer.send_frame(rs.KEEPALIVE, 0, bytes(8), flags=rs.R)
    await peer.wait_elements(streams[0], 3)
    for stream in streams[1:]:
        await peer.wait_end(stream)
    await peer.wait_until(lambda: peer.of_type(rs.KEEPALIVE), "the answer to a KEEPALIVE")
    await peer.settle()
    for frame in peer.received:
        wrong = _complaint(frame, {0, *streams})
        verify(not wrong, f"{frame} {wrong}; {peer.describe_received()}")
    return f"{len(peer.received)} frames"


def _complaint(frame: rs.Frame, known: set[int]) -> str:
    """Return what is wrong with a frame of the target, "" for nothing."""
    if frame.type not in rs.LEGAL_FLAGS:
        return "has a type that does not exist"
    of_connection, is_request = frame.type in rs.OF_CONNECTION, frame.type in rs.REQUESTS
    complaints = {
        "has a flag that its type does not have": frame.flags
        & ~(rs.LEGAL_FLAGS[frame.type] | rs.I),
        "has an id of the client": is_request and frame.stream % 2,
        "is for a stream that was not opened": not is_request and frame.stream not in known,
        "is about the connection, and not on stream 0": of_connection and frame.stream,
        "has a code that does not belong there": frame.type == rs.ERROR
        and bool(frame.stream) is not is_legal_code(frame.number),
        "has neither NEXT nor COMPLETE": frame.type == rs.PAYLOAD
        and not frame.flags & (rs.N | rs.C),
    }
    return next((text for text, holds in complaints.items() if holds), "")
