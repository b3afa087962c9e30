"""ReactiveSocket: the header of every frame (length, version, type, flags), and frames
that are not valid.
"""

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import REACTIVESOCKET, Level, Table
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._verdict import verify

FRAMING = Table(REACTIVESOCKET)
UNKNOWN = 0x0077
EXTENSION = (0x7FFF1234).to_bytes(4)

LENGTH = "The length of a frame has 31 bits, and includes the header."
VERSION = "The version has 8 bits, and is 0."
IGNORE = "A receiver may skip a frame that it does not know if the flag I is set."


async def _connect_and_stream(context: CheckContext) -> RsPeer:
    """Connect, and let the target send elements on stream 1 and an ERROR on stream 3."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 3, context.target.publisher)
    await peer.request(3, 9, context.target.missing)
    await peer.wait_elements(1, 3)
    await peer.wait_end(3)
    return peer


async def _check_refusal(
    context: CheckContext, what: str, data: bytes, *, needs_error: bool = False
) -> str:
    """Send `data` to a target that serves streams.
    Fail unless it ends the connection, and keeps another connection open.
    """
    neighbour = await context.connect_reactivesocket()
    peer = await _connect_and_stream(context)
    await peer.send(data)
    seen = await peer.expect_refused(f"{what} was sent", needs_error=needs_error)
    await neighbour.expect_working()
    return seen


@FRAMING.row(
    "frame-length",
    24,
    "Over a transport that has no frames, such as TCP, each frame MUST begin with its length.",
    level=Level.MUST,
    needs=["publisher"],
)
async def frame_length(context: CheckContext) -> str:
    """Each frame ends where its length says. The length includes the header, the next frame
    begins there, and no bytes are left over.
    """
    peer = await _connect_and_stream(context)
    context.require_byte_stream(peer.connection)
    await peer.settle()
    strange = [frame for frame in peer.received if frame.type not in rs.NAMES]
    verify(
        not strange and not peer.incomplete_bytes,
        f"a frame of an unknown type came, or bytes were left over; {peer.describe_received()}",
    )
    return f"{len(peer.received)} frames, each of the length in its header"


@FRAMING.row("frame-length-reserved", 40, LENGTH, level=Level.READING, needs=["publisher"])
async def frame_length_reserved(context: CheckContext) -> str:
    """The bit before the 31 bits of the length is 0 in frames from the target. If it is set in a
    frame to the target, the target ends the connection.
    """
    peer = await _connect_and_stream(context)
    context.require_byte_stream(peer.connection)
    verify(
        not any(frame.reserved for frame in peer.received),
        f"a frame came with the bit before its length set; {peer.describe_received()}",
    )
    frame = rs.with_length(rs.encode_frame(rs.CANCEL, 77))
    return await _check_refusal(
        context, "a frame with the bit before its length set", bytes([frame[0] | 0x80]) + frame[1:]
    )


@FRAMING.row("frame-length-short", 40, LENGTH, level=Level.READING, needs=["publisher"])
async def frame_length_short(context: CheckContext) -> str:
    """A length below the header's 16 bytes ends the connection:
    the target cannot know where the next frame begins.
    """
    peer = await context.connect_reactivesocket()
    context.require_byte_stream(peer.connection)
    return await _check_refusal(
        context,
        "a frame with the length 12",
        rs.with_length(rs.encode_frame(rs.CANCEL, 77), off=-4),
    )


@FRAMING.row("frame-length-huge", 40, LENGTH, level=Level.READING, needs=["publisher"])
async def frame_length_huge(context: CheckContext) -> str:
    """A frame announced with 2,147,483,647 bytes is refused when its length arrives; the target
    does not wait for the rest.
    """
    peer = await context.connect_reactivesocket()
    context.require_byte_stream(peer.connection)
    header = rs.encode_frame(rs.REQUEST_STREAM, 77, rs.encode_demand(1))
    return await _check_refusal(
        context,
        "a frame of 2,147,483,647 bytes was announced, which",
        (0x7FFFFFFF).to_bytes(4) + header,
    )


@FRAMING.row(
    "frame-cut",
    24,
    "Over a transport that has no frames, such as TCP, each frame MUST begin with its length.",
    needs=["publisher"],
)
async def frame_cut(context: CheckContext) -> str:
    """Frames that arrive one byte at a time are read like whole ones."""
    peer = await context.connect_reactivesocket(setup=False)
    context.require_byte_stream(peer.connection)
    setup = peer.frame_bytes(rs.SETUP, 0, context.target.setup.encode())
    for byte in setup + peer.frame_bytes(
        rs.REQUEST_STREAM, 1, rs.encode_demand(2) + context.target.publisher.encode()
    ):
        await peer.send(bytes([byte]))
    await peer.expect_exactly(1, 2)
    return "SETUP and REQUEST_STREAM a byte at a time: served"


@FRAMING.row("version-zero", 41, VERSION, needs=["publisher"])
async def version_zero(context: CheckContext) -> str:
    """Every frame from the target has version 0."""
    peer = await _connect_and_stream(context)
    wrong = [frame for frame in peer.received if frame.version]
    verify(not wrong, f"a frame came with version {wrong[0].version if wrong else 0}: {wrong[:1]}")
    return f"version 0 in {len(peer.received)} frames"


@FRAMING.row("version-later", 41, VERSION, level=Level.READING, needs=["publisher"])
async def version_later(context: CheckContext) -> str:
    """A frame of version 1 after SETUP ends the connection:
    the target cannot know how to read it.
    """
    peer = await context.connect_reactivesocket()
    return await _check_refusal(
        context, "a CANCEL of version 1", peer.frame_bytes(rs.CANCEL, 77, version=1)
    )


@FRAMING.row(
    "flags-reserved",
    236,
    "RESPONSE has the flags I, B, E and C; the other bits of the flags are reserved.",
    needs=["publisher"],
)
async def flags_reserved(context: CheckContext) -> str:
    """The reserved flags are 0 in frames from the target.
    In frames to the target they are ignored.
    """
    peer = await _connect_and_stream(context)
    wrong = [
        frame
        for frame in peer.received
        if frame.flags & 0x0F or (frame.type == rs.ERROR and frame.flags & 0x7F)
    ]
    verify(
        not wrong,
        (
            "reserved flags came set: "
            f"{', '.join(f'{frame.flags:#04x} in {frame}' for frame in wrong[:3])}"
        ),
    )
    await peer.send_frame(rs.REQUEST_N, 1, rs.encode_demand(2), flags=0x0F)
    await peer.expect_exactly(1, 5)
    return "none was set, and REQUEST_N with all four of them was served"


@FRAMING.row("type-ignored", 43, IGNORE, needs=["publisher"])
async def type_ignored(context: CheckContext) -> str:
    """A frame of an unknown type with the flag I is skipped, with its body.
    The connection continues.
    """
    peer = await _connect_and_stream(context)
    await peer.send_frame(UNKNOWN, 0, b"the body of an unknown type", flags=rs.I)
    await peer.send_frame(UNKNOWN, 1, b"", flags=rs.I)
    await peer.expect_working()
    await peer.grant(1, 1)
    await peer.expect_exactly(1, 4)
    return "skipped"


@FRAMING.row("type-refused", 43, IGNORE, level=Level.READING, needs=["publisher"])
async def type_refused(context: CheckContext) -> str:
    """A frame of an unknown type without the flag I ends the connection."""
    peer = await context.connect_reactivesocket()
    return await _check_refusal(
        context, f"a frame of type {UNKNOWN:#06x} without I", peer.frame_bytes(UNKNOWN, 0)
    )


@FRAMING.row(
    "ext-ignored",
    297,
    ("A receiver may skip an EXT that it does not know if the flag I is set."),
    needs=["publisher"],
)
async def ext_ignored(context: CheckContext) -> str:
    """An EXT of an unknown extension with the flag I is skipped."""
    peer = await _connect_and_stream(context)
    await peer.send_frame(rs.EXT, 0, EXTENSION + b"data", flags=rs.I)
    await peer.expect_working()
    return "skipped"


@FRAMING.row(
    "ext-refused",
    297,
    "A receiver may skip an EXT that it does not know if the flag I is set.",
    level=Level.READING,
    needs=["publisher"],
)
async def ext_refused(context: CheckContext) -> str:
    """An EXT of an unknown extension without the flag I ends the connection."""
    peer = await context.connect_reactivesocket()
    return await _check_refusal(
        context, "an EXT without I of an unknown extension", peer.frame_bytes(rs.EXT, 0, EXTENSION)
    )


@FRAMING.row(
    "request-short",
    160,
    "REQUEST_STREAM and REQUEST_SUB carry their first demand, 64 bits.",
    level=Level.READING,
    needs=["publisher"],
)
async def request_short(context: CheckContext) -> str:
    """A REQUEST_STREAM that is too short to hold its demand ends the connection."""
    peer = await context.connect_reactivesocket()
    return await _check_refusal(
        context,
        "a REQUEST_STREAM with 4 bytes of demand",
        peer.frame_bytes(rs.REQUEST_STREAM, 77, bytes(4)),
    )


@FRAMING.row(
    "types-by-role",
    74,
    (
        "The types from 0x0010 are those of requesters, and the types from 0x0020 those of "
        "responders."
    ),
    needs=["publisher"],
)
async def types_by_role(context: CheckContext) -> str:
    """All frames of a stream that the checking side requested are RESPONSE or ERROR."""
    peer = await _connect_and_stream(context)
    await peer.settle()
    wrong = [
        frame
        for frame in peer.received
        if frame.stream in (1, 3) and frame.type not in (rs.RESPONSE, rs.ERROR)
    ]
    verify(
        not wrong,
        f"{', '.join(map(str, wrong[:3]))} came for a stream that the checking side requested",
    )
    return f"{len(peer.received)} frames, all RESPONSE or ERROR"
