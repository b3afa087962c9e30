"""ReactiveSocket: the header of every frame, its length, version, type and flags, and what becomes of one that is none."""

from penstock_tck.wire import _rs_frames as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import Level, Table
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._verdict import verify

FRAMING = Table()
UNKNOWN = 0x0077
EXTENSION = (0x7FFF1234).to_bytes(4)

LENGTH = "(31 = max 2,147,483,647 bytes) Length of Frame. Including header. Only used for TCP."
VERSION = "(8) Current version is 0."
IGNORE = "(__I__)gnore: Ignore frame if not understood"


async def _connect_and_stream(context: CheckContext) -> RsPeer:
    """A connection on which there was something of every sort: elements, an end, an error."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 3, context.target.publisher)
    await peer.request(3, 9, context.target.missing)
    await peer.wait_elements(1, 3)
    await peer.wait_end(3)
    return peer


async def _check_refusal(context: CheckContext, what: str, data: bytes, *, needs_error: bool = False) -> str:
    """See that a target that serves ends its connection for `data`, while a neighbour's goes on."""
    neighbour = await context.connect_reactivesocket()
    peer = await _connect_and_stream(context)
    await peer.send(data)
    seen = await peer.expect_refused(f"{what} was sent", needs_error=needs_error)
    await neighbour.expect_working()
    return seen


@FRAMING.row(
    "frame-length",
    24,
    "For transports that do not provide framing, such as TCP, the Frame Length MUST be included.",
    level=Level.MUST,
    needs=["publisher"],
)
async def frame_length(context: CheckContext) -> str:
    """Each frame that arrives ends where its length says: header included, the next one begins there, and nothing is left over."""
    peer = await _connect_and_stream(context)
    context.require_byte_stream(peer.connection)
    await peer.settle()
    strange = [frame for frame in peer.frames if frame.type not in rs.NAMES]
    verify(
        not strange and not peer.incomplete_bytes,
        f"the bytes fall into frames that do not exist, or a rest is left over; {peer.describe_received()}",
    )
    return f"{len(peer.frames)} frames, each as long as it says"


@FRAMING.row("frame-length-reserved", 40, LENGTH, level=Level.READING, needs=["publisher"])
async def frame_length_reserved(context: CheckContext) -> str:
    """The bit before the 31 of the length is 0 in what the target sends. With it set the connection is ended: it is no length."""
    peer = await _connect_and_stream(context)
    context.require_byte_stream(peer.connection)
    verify(not any(frame.reserved for frame in peer.frames), f"a frame came with the bit before its length set; {peer.describe_received()}")
    frame = rs.with_length(rs.encode_frame(rs.CANCEL, 77))
    return await _check_refusal(context, "a frame with the bit before its length set", bytes([frame[0] | 0x80]) + frame[1:])


@FRAMING.row("frame-length-short", 40, LENGTH, level=Level.READING, needs=["publisher"])
async def frame_length_short(context: CheckContext) -> str:
    """A length below the header's 16 bytes ends the connection: where the next frame begins is not known."""
    peer = await context.connect_reactivesocket()
    context.require_byte_stream(peer.connection)
    return await _check_refusal(context, "a frame with the length 12", rs.with_length(rs.encode_frame(rs.CANCEL, 77), off=-4))


@FRAMING.row("frame-length-huge", 40, LENGTH, level=Level.READING, needs=["publisher"])
async def frame_length_huge(context: CheckContext) -> str:
    """A frame of 2,147,483,647 bytes is announced: the target refuses it on its length; it does not wait for what nobody can hold."""
    peer = await context.connect_reactivesocket()
    context.require_byte_stream(peer.connection)
    header = rs.encode_frame(rs.REQUEST_STREAM, 77, rs.encode_demand(1))
    return await _check_refusal(context, "a frame of 2,147,483,647 bytes was announced, which", (0x7FFFFFFF).to_bytes(4) + header)


@FRAMING.row(
    "frame-cut", 24, "For transports that do not provide framing, such as TCP, the Frame Length MUST be included.", needs=["publisher"]
)
async def frame_cut(context: CheckContext) -> str:
    """Frames that come a byte at a time are understood as well as whole ones: where a transport cuts means nothing."""
    peer = await context.connect_reactivesocket(setup=False)
    context.require_byte_stream(peer.connection)
    setup = peer.frame_bytes(rs.SETUP, 0, context.target.setup.encode())
    for byte in setup + peer.frame_bytes(rs.REQUEST_STREAM, 1, rs.encode_demand(2) + context.target.publisher.encode()):
        await peer.send(bytes([byte]))
    await peer.expect_exactly(1, 2)
    return "SETUP and REQUEST_STREAM a byte at a time: served"


@FRAMING.row("version-zero", 41, VERSION, needs=["publisher"])
async def version_zero(context: CheckContext) -> str:
    """Every frame of the target's has the version 0."""
    peer = await _connect_and_stream(context)
    wrong = [frame for frame in peer.frames if frame.version]
    verify(not wrong, f"a frame came with version {wrong[0].version if wrong else 0}: {wrong[:1]}")
    return f"version 0 in {len(peer.frames)} frames"


@FRAMING.row("version-later", 41, VERSION, level=Level.READING, needs=["publisher"])
async def version_later(context: CheckContext) -> str:
    """A frame of another version after SETUP ends the connection: how the rest of it is to be read is not known."""
    peer = await context.connect_reactivesocket()
    return await _check_refusal(context, "a CANCEL of version 1", peer.frame_bytes(rs.CANCEL, 77, version=1))


@FRAMING.row("flags-reserved", 236, "|    Version    |I|B|E|C| Resvd |    Frame Type = RESPONSE      |", needs=["publisher"])
async def flags_reserved(context: CheckContext) -> str:
    """The reserved flags are 0 in what the target sends, and those that are set in what it gets mean nothing."""
    peer = await _connect_and_stream(context)
    wrong = [frame for frame in peer.frames if frame.flags & 0x0F or (frame.type == rs.ERROR and frame.flags & 0x7F)]
    verify(not wrong, f"reserved flags came set: {', '.join(f'{frame.flags:#04x} in {frame}' for frame in wrong[:3])}")
    await peer.send_frame(rs.REQUEST_N, 1, rs.encode_demand(2), flags=0x0F)
    await peer.expect_exactly(1, 5)
    return "none was sent, and REQUEST_N with all four of them was obeyed"


@FRAMING.row("type-ignored", 43, IGNORE, needs=["publisher"])
async def type_ignored(context: CheckContext) -> str:
    """A frame of a type that does not exist, with the flag I, is skipped, body and all, and the connection goes on."""
    peer = await _connect_and_stream(context)
    await peer.send_frame(UNKNOWN, 0, b"whatever this may be", flags=rs.I)
    await peer.send_frame(UNKNOWN, 1, b"", flags=rs.I)
    await peer.expect_working()
    await peer.grant(1, 1)
    await peer.expect_exactly(1, 4)
    return "skipped"


@FRAMING.row("type-refused", 43, IGNORE, level=Level.READING, needs=["publisher"])
async def type_refused(context: CheckContext) -> str:
    """The same without I is not to be ignored: the target ends the connection."""
    peer = await context.connect_reactivesocket()
    return await _check_refusal(context, f"a frame of type {UNKNOWN:#06x} without I", peer.frame_bytes(UNKNOWN, 0))


@FRAMING.row("ext-ignored", 297, "(__I__)gnore: Can be ignored.", needs=["publisher"])
async def ext_ignored(context: CheckContext) -> str:
    """An EXT of an extension that nobody knows, with the flag I, is skipped."""
    peer = await _connect_and_stream(context)
    await peer.send_frame(rs.EXT, 0, EXTENSION + b"whatever", flags=rs.I)
    await peer.expect_working()
    return "skipped"


@FRAMING.row("ext-refused", 297, "(__I__)gnore: Can be ignored.", level=Level.READING, needs=["publisher"])
async def ext_refused(context: CheckContext) -> str:
    """The same without I ends the connection."""
    peer = await context.connect_reactivesocket()
    return await _check_refusal(context, "an EXT without I of an unknown extension", peer.frame_bytes(rs.EXT, 0, EXTENSION))


@FRAMING.row(
    "request-short", 160, "__Initial Request N__: initial Request N value. 64-bit integer.", level=Level.READING, needs=["publisher"]
)
async def request_short(context: CheckContext) -> str:
    """A REQUEST_STREAM that ends within its demand is no frame: the connection is ended."""
    peer = await context.connect_reactivesocket()
    return await _check_refusal(context, "a REQUEST_STREAM with 4 bytes of demand", peer.frame_bytes(rs.REQUEST_STREAM, 77, bytes(4)))


@FRAMING.row(
    "types-by-role",
    74,
    "In general Requesters send types 0x0010 to 0x001F and Responders send types 0x0020 to 0x002F.",
    needs=["publisher"],
)
async def types_by_role(context: CheckContext) -> str:
    """What comes for a stream that we requested is RESPONSE or ERROR, and nothing else."""
    peer = await _connect_and_stream(context)
    await peer.settle()
    wrong = [frame for frame in peer.frames if frame.stream in (1, 3) and frame.type not in (rs.RESPONSE, rs.ERROR)]
    verify(not wrong, f"{', '.join(map(str, wrong[:3]))} came from a responder")
    return f"{len(peer.frames)} frames, all RESPONSE or ERROR"
