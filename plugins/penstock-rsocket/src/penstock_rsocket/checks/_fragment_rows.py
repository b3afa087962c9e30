"""Fragments: of what the target sends, and of requests."""

from typing import Final

from penstock_tck.wire import LARGE_BYTES, CheckContext, Level, Table, large_element, verify

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._peer import RSOCKET, RsocketPeer, connect

FRAGMENTS = Table(RSOCKET)

SECTION: Final = "Fragmentation And Reassembly"
SENT: Final = "A large PAYLOAD may go in several, each but the last with FOLLOWS."
REQUEST: Final = "A large request goes as its own frame with FOLLOWS, and PAYLOADs after it."
FIRST_METADATA: Final = "In fragments the metadata MUST come whole before the data."
CANCELLED: Final = "A CANCEL may end fragments that are not complete."
BIG: Final = 1 << 20
PIECE: Final = 16_000
PART: Final = 100
"""Bytes of a fragment that no server finds too small."""


@FRAGMENTS.row("fragments-sent", SECTION, SENT, needs=["large"])
async def fragments_sent(context: CheckContext) -> str:
    """Three large elements come, each in one PAYLOAD or in several. Joined, they are the
    prescribed ones: no fragment is lost, repeated or in another's place.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.large, 3)
    await peer.wait_elements(stream, 3)
    for number, element in enumerate(peer.elements(stream)[:3]):
        due = large_element(number)
        at = next((at for at in range(len(due)) if element[at : at + 1] != due[at : at + 1]), None)
        verify(
            element == due,
            f"large element {number} has {len(element)} of {len(due)} bytes, wrong from {at} on",
        )
    return f"3 elements of {LARGE_BYTES} bytes in {len(peer.of_stream(stream))} frames"


@FRAGMENTS.row(
    "fragments-next",
    "PAYLOAD Frame",
    "A PAYLOAD MUST have NEXT or COMPLETE, or both.",
    level=Level.MUST,
    needs=["large"],
)
async def fragments_next(context: CheckContext) -> str:
    """Each PAYLOAD of a large element has one of the two flags, fragments as well."""
    peer = await connect(context)
    stream = await peer.stream(context.target.large, 1)
    await peer.wait_elements(stream, 1)
    bare = [
        frame for frame in peer.of_stream(stream, rs.PAYLOAD) if not frame.flags & (rs.N | rs.C)
    ]
    verify(not bare, f"{len(bare)} PAYLOADs have neither, the first: {bare[:1]}")
    return f"{len(peer.of_stream(stream, rs.PAYLOAD))} frames"


@FRAGMENTS.row("fragments-response", SECTION, SENT, needs=["echo"])
async def fragments_response(context: CheckContext) -> str:
    """1 MiB in frames of 16,000 bytes as the data of one request, whose answer is the same."""
    peer = await connect(context)
    data = b"".join(map(large_element, range(6)))[:BIG]
    stream = await peer.request(rs.REQUEST_RESPONSE, context.target.echo, data[:PIECE], flags=rs.F)
    for at in range(PIECE, BIG, PIECE):
        more = rs.F if at + PIECE < BIG else 0
        await peer.send_frame(rs.PAYLOAD, stream, data[at : at + PIECE], flags=rs.N | more)
    await peer.wait_end(stream, well=True)
    verify(
        peer.elements(stream) == [data],
        f"{BIG} bytes were due; {list(map(len, peer.elements(stream)))} came",
    )
    return f"{BIG} bytes"


def _long_metadata(name: str) -> bytes:
    """Return metadata whose first entry has an unknown type, and whose second is a route."""
    kind = b"a/type/of/nobody"
    entry = bytes([len(kind) - 1]) + kind + (2 * PART).to_bytes(3) + bytes(2 * PART)
    return entry + rs.route(name)


async def _parts(
    peer: RsocketPeer, name: str, *parts: bytes, kind: int = rs.REQUEST_RESPONSE
) -> int:
    stream = await peer.request(kind, name, parts[0], flags=rs.F)
    for index, part in enumerate(parts[1:], 2):
        more = rs.F if index < len(parts) else 0
        await peer.send_frame(rs.PAYLOAD, stream, part, flags=rs.N | more)
    return stream


async def _expect_echo(peer: RsocketPeer, stream: int, due: bytes) -> None:
    await peer.wait_end(stream, well=True)
    verify(
        peer.elements(stream) == [due],
        f"{due!r} was due on stream {stream}; {peer.elements(stream)!r} came",
    )


@FRAGMENTS.row("fragments-request", SECTION, REQUEST, needs=["echo"])
async def fragments_request(context: CheckContext) -> str:
    """A request in three frames of 100 bytes and more is answered once, with all data."""
    peer = await connect(context)
    parts = [bytes([letter]) * PART for letter in b"abc"]
    stream = await _parts(peer, context.target.echo, *parts)
    await _expect_echo(peer, stream, b"".join(parts))
    return "1 answer"


@FRAGMENTS.row("fragments-small", SECTION, REQUEST, level=Level.READING, needs=["echo"])
async def fragments_small(context: CheckContext) -> str:
    """No least size of a fragment is named: a request in four frames of few bytes, one of them
    without any, is answered once, with all data.
    """
    peer = await connect(context)
    stream = await _parts(peer, context.target.echo, b"one ", b"and", b"", b" only")
    await _expect_echo(peer, stream, b"one and only")
    return "1 answer"


@FRAGMENTS.row("fragments-metadata", SECTION, FIRST_METADATA, level=Level.MUST, needs=["echo"])
async def fragments_metadata(context: CheckContext) -> str:
    """Metadata that is split over three frames, the last of which has data as well, is joined: the
    route, the last of its entries, is found.
    """
    peer = await connect(context)
    metadata, stream = _long_metadata(context.target.echo), peer.next_id()
    await peer.send_frame(
        rs.REQUEST_RESPONSE, stream, rs.with_metadata(metadata[:PART]), flags=rs.M | rs.F
    )
    middle = rs.with_metadata(metadata[PART:-2])
    await peer.send_frame(rs.PAYLOAD, stream, middle, flags=rs.N | rs.M | rs.F)
    last, data = rs.with_metadata(metadata[-2:], b"a" * PART), b"b" * PART
    await peer.send_frame(rs.PAYLOAD, stream, last, flags=rs.N | rs.M | rs.F)
    await peer.send_frame(rs.PAYLOAD, stream, data, flags=rs.N)
    await _expect_echo(peer, stream, b"a" * PART + data)
    return "1 answer"


@FRAGMENTS.row("fragments-mixed", SECTION, REQUEST, needs=["echo"])
async def fragments_mixed(context: CheckContext) -> str:
    """Fragments of two requests in turns, and a whole request between them: each is answered with
    its own data.
    """
    peer = await connect(context)
    name = context.target.echo
    first = await peer.request(rs.REQUEST_RESPONSE, name, b"a" * PART, flags=rs.F)
    second = await peer.request(rs.REQUEST_RESPONSE, name, b"b" * PART, flags=rs.F)
    await peer.send_frame(rs.PAYLOAD, first, b"A" * PART, flags=rs.N | rs.F)
    between = await peer.request(rs.REQUEST_RESPONSE, name, b"c")
    await peer.send_frame(rs.PAYLOAD, second, b"B" * PART, flags=rs.N | rs.F)
    await peer.send_frame(rs.PAYLOAD, first, b"1", flags=rs.N)
    await peer.send_frame(rs.PAYLOAD, second, b"2", flags=rs.N)
    await _expect_echo(peer, first, b"a" * PART + b"A" * PART + b"1")
    await _expect_echo(peer, second, b"b" * PART + b"B" * PART + b"2")
    await _expect_echo(peer, between, b"c")
    return "3 answers"


@FRAGMENTS.row("fragments-wait", SECTION, REQUEST, needs=["echo"])
async def fragments_wait(context: CheckContext) -> str:
    """A request whose last fragment has not come is not answered. A KEEPALIVE between its
    fragments is.
    """
    peer = await connect(context)
    stream = await peer.request(
        rs.REQUEST_RESPONSE, context.target.echo, b"not " * PART, flags=rs.F
    )
    await peer.send_frame(rs.KEEPALIVE, 0, bytes(8), flags=rs.R)
    await peer.wait_until(lambda: peer.of_type(rs.KEEPALIVE), "the answer to a KEEPALIVE")
    await peer.settle()
    verify(not peer.of_stream(stream), f"half a request was answered; {peer.describe_received()}")
    await peer.send_frame(rs.PAYLOAD, stream, b"yet", flags=rs.N)
    await _expect_echo(peer, stream, b"not " * PART + b"yet")
    return "answered when it was whole"


@FRAGMENTS.row("fragments-cancelled", SECTION, CANCELLED, needs=["echo", "publisher"])
async def fragments_cancelled(context: CheckContext) -> str:
    """A CANCEL between two fragments of a request: no answer, also if the last fragment comes, and
    the connection continues.
    """
    peer = await connect(context)
    stream = await peer.request(
        rs.REQUEST_RESPONSE, context.target.echo, b"not " * PART, flags=rs.F
    )
    await peer.cancel(stream)
    await peer.send_frame(rs.PAYLOAD, stream, b"wanted", flags=rs.N)
    await peer.settle()
    verify(not peer.of_stream(stream), f"it was answered; {peer.describe_received()}")
    await peer.expect_working()
    return "no answer"


@FRAGMENTS.row("fragments-stream", SECTION, REQUEST, needs=["publisher"])
async def fragments_stream(context: CheckContext) -> str:
    """A REQUEST_STREAM whose metadata goes in two frames gets the demand of the first one, once."""
    peer = await connect(context)
    metadata, stream = _long_metadata(context.target.publisher), peer.next_id()
    first = rs.number(3) + rs.with_metadata(metadata[:PART])
    await peer.send_frame(rs.REQUEST_STREAM, stream, first, flags=rs.M | rs.F)
    last = rs.with_metadata(metadata[PART:])
    await peer.send_frame(rs.PAYLOAD, stream, last, flags=rs.N | rs.M)
    await peer.expect_exactly(stream, 3)
    return "3 elements"


@FRAGMENTS.row("fragments-forget", SECTION, REQUEST, needs=["echo", "publisher"])
async def fragments_forget(context: CheckContext) -> str:
    """A REQUEST_FNF in two frames is not answered, and the connection continues."""
    peer = await connect(context)
    stream = await _parts(peer, context.target.echo, b"a" * PART, b"b", kind=rs.REQUEST_FNF)
    await peer.expect_nothing(stream, "a REQUEST_FNF was sent")
    await peer.expect_working()
    return "no answer"


@FRAGMENTS.row(
    "fragments-cancel-sent",
    "Request Stream",
    "A CANCEL that has arrived ends the stream for the responder.",
    needs=["large", "publisher"],
)
async def fragments_cancel_sent(context: CheckContext) -> str:
    """A CANCEL while large elements arrive stops them: the connection works, and no end comes."""
    peer = await connect(context)
    stream = await peer.stream(context.target.large, 2)
    await peer.wait_until(lambda: peer.of_stream(stream), "a fragment")
    await peer.cancel(stream)
    await peer.settle()
    await peer.grant(stream, 5)
    await peer.expect_nothing(stream, "the stream was cancelled")
    verify(
        not peer.completed(stream) and not peer.failed(stream),
        f"an end came after CANCEL; {peer.describe_received()}",
    )
    await peer.expect_working()
    return "stopped"
