"""Requests and their ends; ids, and frames for streams that do not exist."""

from collections.abc import Sequence
from typing import Final

from penstock_tck.wire import SLOW_ATTEMPTS, CheckContext, Level, Table, fail, verify

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._peer import RSOCKET, RsocketPeer, connect

STREAMS = Table(RSOCKET)

RESPONSE: Final = "Request Response"
STREAM: Final = "Request Stream"
FORGET: Final = "Request Fire-n-Forget"
CODES: Final = "Error Codes"
PUSH: Final = "METADATA_PUSH Frame"
IDS: Final = "Stream Identifiers"
UNEXPECTED: Final = "Handling the Unexpected"

ANSWERED: Final = "A request for a response is answered with one PAYLOAD that completes it."
COMPLETED: Final = "A stream is PAYLOADs, and then COMPLETE or an ERROR. It is over then."
CANCELLED: Final = "A CANCEL that has arrived ends the stream for the responder."
UNKNOWN: Final = "A frame for an unknown stream MUST be ignored."
MANY: Final = 50
UNUSED: Final = 771
"""An id of the client that no check uses otherwise."""


def is_legal_code(code: int) -> bool:
    """Return whether an ERROR of a stream may have this code."""
    return rs.APPLICATION_ERROR <= code <= rs.INVALID or 0x301 <= code <= 0xFFFFFFFE


@STREAMS.row("response", RESPONSE, ANSWERED, needs=["echo"])
async def response(context: CheckContext) -> str:
    """The answer of `echo` comes in one PAYLOAD with NEXT and COMPLETE, and nothing after it. A
    payload without bytes is one as well.
    """
    peer = await connect(context)
    for data in (b"a payload", b"\xff\x00 no text", b""):
        stream = await peer.request(rs.REQUEST_RESPONSE, context.target.echo, data)
        await peer.wait_end(stream, well=True)
        await peer.settle()
        frames = peer.of_stream(stream)
        verify(
            peer.elements(stream) == [data] and len(frames) == 1,
            f"one PAYLOAD with {data!r} was due; {peer.describe_received()}",
        )
    return "3 answers"


@STREAMS.row("response-error", RESPONSE, "A request that fails is answered with an ERROR.")
async def response_error(context: CheckContext) -> str:
    """A request for a route that does not exist gets one ERROR, and the connection continues."""
    peer = await connect(context)
    stream = await peer.request(rs.REQUEST_RESPONSE, context.target.missing)
    await peer.expect_ended(stream)
    verify(peer.ending is None, f"the connection ended; {peer.describe_received()}")
    return str(peer.of_stream(stream, rs.ERROR)[0])


@STREAMS.row("stream-complete", STREAM, COMPLETED, needs=["three"])
async def stream_complete(context: CheckContext) -> str:
    """Three elements come, and COMPLETE once, with the last element or after it."""
    peer = await connect(context)
    stream = await peer.stream(context.target.three, 10)
    await peer.wait_end(stream, well=True)
    await peer.settle()
    ends = [frame for frame in peer.of_stream(stream, rs.PAYLOAD) if frame.flags & rs.C]
    verify(
        len(peer.elements(stream)) == 3
        and len(ends) == 1
        and peer.of_stream(stream)[-1] is ends[0],
        f"three elements and one COMPLETE were due; {peer.describe_received()}",
    )
    return "3 elements and COMPLETE"


@STREAMS.row("stream-empty", STREAM, COMPLETED, needs=["empty"])
async def stream_empty(context: CheckContext) -> str:
    """A stream without elements is one PAYLOAD with COMPLETE, without NEXT and without data."""
    peer = await connect(context)
    stream = await peer.stream(context.target.empty, 3)
    await peer.wait_end(stream, well=True)
    await peer.settle()
    frames = peer.of_stream(stream)
    verify(
        len(frames) == 1 and not frames[0].flags & rs.N and not frames[0].body,
        f"COMPLETE alone was due; {peer.describe_received()}",
    )
    return "COMPLETE"


@STREAMS.row("stream-error", STREAM, COMPLETED, needs=["failing", "publisher"])
async def stream_error(context: CheckContext) -> str:
    """A stream that fails ends with one ERROR. Other streams continue."""
    peer = await connect(context)
    other = await peer.stream(context.target.publisher, 1)
    stream = await peer.stream(context.target.failing, 100)
    await peer.expect_ended(stream)
    await peer.grant(other, 1)
    await peer.expect_exactly(other, 2)
    return str(peer.of_stream(stream, rs.ERROR)[0])


@STREAMS.row(
    "stream-error-code",
    CODES,
    (
        "APPLICATION_ERROR, REJECTED, CANCELED, INVALID and codes from 0x301 on are for streams, "
        "and those below for stream 0."
    ),
    level=Level.MUST,
    needs=["failing"],
)
async def stream_error_code(context: CheckContext) -> str:
    """The errors of a stream that fails, and of a route that does not exist, have such a code."""
    peer = await connect(context)
    codes = []
    for name in (context.target.failing, context.target.missing):
        stream = await peer.stream(name, 100)
        await peer.wait_end(stream, well=False)
        codes.append(peer.of_stream(stream, rs.ERROR)[0].number)
    verify(all(map(is_legal_code, codes)), f"the codes {[f'{code:#05x}' for code in codes]}")
    return ", ".join(f"{code:#05x}" for code in codes)


@STREAMS.row(
    "stream-error-text",
    "ERROR Frame",
    "The text of an ERROR SHOULD be UTF-8. It MUST NOT end with a zero byte.",
    level=Level.MUST,
    needs=["failing"],
)
async def stream_error_text(context: CheckContext) -> str:
    """The text of a stream that fails is UTF-8, without a zero byte at its end."""
    peer = await connect(context)
    stream = await peer.stream(context.target.failing, 100)
    await peer.wait_end(stream, well=False)
    text = peer.of_stream(stream, rs.ERROR)[0].body[4:]
    try:
        shown = text.decode()
    except UnicodeDecodeError:
        fail(f"the text {text[:40]!r} is not UTF-8")
    verify(not text.endswith(b"\0"), f"the text {shown[-40:]!r} ends with a zero byte")
    return shown[:60]


async def _expect_over(peer: RsocketPeer, stream: int) -> None:
    """Send everything that a requester can send for a stream, and fail if something comes."""
    await peer.send(
        peer.frame(rs.REQUEST_N, stream, rs.number(5)),
        peer.frame(rs.PAYLOAD, stream, b"late", flags=rs.N),
        peer.frame(rs.CANCEL, stream),
        peer.frame(rs.REQUEST_N, stream, rs.number(rs.UNBOUNDED)),
    )
    await peer.expect_nothing(stream, "the stream was over")
    await peer.expect_working()


@STREAMS.row("stream-over", STREAM, COMPLETED, needs=["three", "publisher"])
async def stream_over(context: CheckContext) -> str:
    """REQUEST_N, PAYLOAD and CANCEL for a stream that has completed bring nothing, and the
    connection continues.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.three, 5)
    await peer.wait_end(stream, well=True)
    await _expect_over(peer, stream)
    return "nothing"


@STREAMS.row("response-over", RESPONSE, ANSWERED, needs=["echo", "publisher"])
async def response_over(context: CheckContext) -> str:
    """REQUEST_N, PAYLOAD and CANCEL for a request that was answered bring nothing, and the
    connection continues.
    """
    peer = await connect(context)
    stream = await peer.request(rs.REQUEST_RESPONSE, context.target.echo, b"x")
    await peer.wait_end(stream, well=True)
    await _expect_over(peer, stream)
    return "nothing"


@STREAMS.row("stream-cancelled", STREAM, CANCELLED, needs=["publisher"])
async def stream_cancelled(context: CheckContext) -> str:
    """After a CANCEL of a stream that waits for demand, more demand brings nothing: no element,
    no end.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, 2)
    await peer.expect_exactly(stream, 2)
    await peer.cancel(stream)
    await peer.grant(stream, 5)
    await peer.expect_nothing(stream, "the stream was cancelled")
    await peer.expect_working()
    return "nothing after CANCEL"


@STREAMS.row("stream-cancelled-flow", STREAM, CANCELLED, needs=["publisher"])
async def stream_cancelled_flow(context: CheckContext) -> str:
    """A CANCEL while elements flow without bound stops them; no end follows."""
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, rs.UNBOUNDED)
    await peer.wait_elements(stream, 20)
    await peer.cancel(stream)
    await peer.settle()
    verify(
        not peer.completed(stream) and not peer.failed(stream),
        f"an end came after CANCEL; {peer.describe_received()}",
    )
    await peer.expect_nothing(stream, "the stream was cancelled")
    await peer.expect_working()
    return "stopped"


@STREAMS.row("stream-cancelled-first", STREAM, CANCELLED, needs=["slow", "publisher"])
async def stream_cancelled_first(context: CheckContext) -> str:
    """A stream that is cancelled before its first element gets none: neither an element nor an
    end.
    """
    seen = ""
    for _ in range(SLOW_ATTEMPTS):
        peer = await connect(context)
        stream = peer.next_id()
        await peer.send(
            peer.request_frame(rs.REQUEST_STREAM, stream, context.target.slow, demand=1),
            peer.frame(rs.CANCEL, stream),
        )
        await peer.settle_after(0.5)
        if not peer.of_stream(stream):
            await peer.expect_working()
            return "nothing"
        seen = peer.describe_received()
    return fail(f"a cancelled stream went on; {seen}")


@STREAMS.row(
    "fire-and-forget",
    FORGET,
    "A REQUEST_FNF ends its stream: nothing answers it.",
    needs=["echo", "publisher"],
)
async def fire_and_forget(context: CheckContext) -> str:
    """No frame comes for it, also not for a route that does not exist, and the connection
    continues.
    """
    peer = await connect(context)
    ids = [
        await peer.request(rs.REQUEST_FNF, name, b"x")
        for name in (context.target.echo, context.target.missing)
    ]
    await peer.settle()
    verify(not any(map(peer.of_stream, ids)), f"it was answered; {peer.describe_received()}")
    await peer.expect_working()
    return "no answer"


@STREAMS.row(
    "metadata-push",
    PUSH,
    "A METADATA_PUSH on stream 0 brings metadata about the connection. Nothing answers it.",
    needs=["publisher"],
)
async def metadata_push(context: CheckContext) -> str:
    """It has metadata without a length. No frame comes, and the connection continues."""
    peer = await connect(context)
    await peer.send_frame(rs.METADATA_PUSH, 0, rs.route("news"), flags=rs.M)
    await peer.settle()
    verify(
        not [frame for frame in peer.received if frame.type not in (rs.KEEPALIVE, rs.LEASE)]
        and peer.ending is None,
        f"after METADATA_PUSH {peer.describe_received()}",
    )
    await peer.expect_working()
    return "no answer"


# --- ids


@STREAMS.row("many-streams", IDS, "Each request has its own stream.", needs=["publisher"])
async def many_streams(context: CheckContext) -> str:
    """Fifty streams at once get two elements each."""
    peer = await connect(context)
    ids = [peer.next_id() for _ in range(MANY)]
    name = context.target.publisher
    await peer.send(
        *(peer.request_frame(rs.REQUEST_STREAM, stream, name, demand=2) for stream in ids)
    )
    for stream in ids:
        await peer.wait_elements(stream, 2)
    await peer.settle()
    counts = {len(peer.elements(stream)) for stream in ids}
    strange = {frame.stream for frame in peer.of_type(rs.PAYLOAD, rs.ERROR)} - set(ids)
    verify(
        counts == {2} and not strange,
        f"two elements on each of {MANY} streams were due; {peer.describe_received()}",
    )
    return f"{MANY} streams"


@STREAMS.row(
    "id-reused",
    IDS,
    "After 2^31-1 ids begin again with 1: a responder MUST assume that they are used again.",
    level=Level.MUST,
    needs=["three"],
)
async def id_reused(context: CheckContext) -> str:
    """The ids 1, 2^31-1, and then 1 once more, each after the stream before has ended, are
    served.
    """
    peer = await connect(context)
    for turn, stream in enumerate((1, rs.UNBOUNDED, 1)):
        before = len(peer.elements(stream))
        await peer.send(
            peer.request_frame(rs.REQUEST_STREAM, stream, context.target.three, demand=5)
        )
        await peer.wait_until(
            lambda stream=stream, due=before + 3: (  # type: ignore[misc]  # bound in the loop
                len(peer.elements(stream)) == due and peer.of_stream(stream)[-1].flags & rs.C
            ),
            f"three elements and COMPLETE on stream {stream}, request {turn + 1},",
        )
    return "3 streams"


@STREAMS.row(
    "id-live-again",
    UNEXPECTED,
    "A request with an id in use MUST be ignored. (Another section permits to reject it.)",
    level=Level.MUST,
    needs=["publisher"],
)
async def id_live_again(context: CheckContext) -> str:
    """A second request with the id of an open stream is not served. The stream gets its demand, or
    ERROR[REJECTED]; the connection continues.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, 2)
    await peer.expect_exactly(stream, 2)
    await peer.send(
        peer.request_frame(rs.REQUEST_STREAM, stream, context.target.publisher, demand=5)
    )
    await peer.settle()
    if peer.failed(stream):
        code = peer.of_stream(stream, rs.ERROR)[0].number
        verify(code == rs.REJECTED, f"the code was {code:#05x}; {peer.describe_received()}")
    else:
        await peer.grant(stream, 1)
        await peer.expect_exactly(stream, 3)
    verify(len(peer.elements(stream)) <= 3, f"the second was served; {peer.describe_received()}")
    await peer.expect_working()
    return "rejected" if peer.failed(stream) else "ignored"


@STREAMS.row(
    "id-zero",
    IDS,
    "The id 0 is reserved for the connection.",
    level=Level.READING,
    needs=["publisher"],
)
async def id_zero(context: CheckContext) -> str:
    """A request on stream 0 is not served. The server ignores it, or ends the connection; an
    ERROR for that is CONNECTION_ERROR.
    """
    peer = await connect(context)
    await peer.send(peer.request_frame(rs.REQUEST_STREAM, 0, context.target.publisher, demand=3))
    seen = await peer.refused_or_working(
        "a request came on stream 0", [rs.CONNECTION_ERROR], silent=True
    )
    verify(not peer.of_stream(0, rs.PAYLOAD), f"it was served; {peer.describe_received()}")
    return seen


@STREAMS.row(
    "id-of-server",
    IDS,
    "A client MUST use odd ids, and a server even ones.",
    level=Level.READING,
    needs=["publisher"],
)
async def id_of_server(context: CheckContext) -> str:
    """A request of the client on stream 2, which belongs to the server, is not served. The server
    ignores it, rejects it, or ends the connection; an ERROR for that is CONNECTION_ERROR.
    """
    peer = await connect(context)
    await peer.send(peer.request_frame(rs.REQUEST_STREAM, 2, context.target.publisher, demand=3))
    seen = await peer.refused_or_working(
        "a request came on stream 2", [rs.CONNECTION_ERROR], silent=True
    )
    verify(not peer.elements(2), f"it was served; {peer.describe_received()}")
    return seen


# --- frames for unknown streams


async def _ignored(context: CheckContext, *frames: tuple[int, int, bytes, int]) -> str:
    """Send frames, each as type, stream, body and flags; fail unless they are ignored, and an
    open stream continues.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, 1)
    await peer.wait_elements(stream, 1)
    for kind, of, body, flags in frames:
        await peer.send_frame(kind, of, body, flags=flags)
    await peer.settle()
    strange = [
        frame
        for frame in peer.received
        if frame.stream != stream and frame.type not in (rs.KEEPALIVE, rs.LEASE, *rs.REQUESTS)
    ]
    verify(
        not strange and peer.ending is None,
        f"a frame that must be ignored was not; {peer.describe_received()}",
    )
    await peer.grant(stream, 1)
    await peer.expect_exactly(stream, 2)
    await peer.expect_working()
    return "ignored"


def _everywhere(
    kind: int, body: bytes, flags: int, ids: Sequence[int] = (UNUSED, 772)
) -> list[tuple[int, int, bytes, int]]:
    return [(kind, stream, body, flags) for stream in ids]


@STREAMS.row("unknown-cancel", UNEXPECTED, UNKNOWN, level=Level.MUST, needs=["publisher"])
async def unknown_cancel(context: CheckContext) -> str:
    """CANCEL for stream 0, an odd and an even id that no request had."""
    return await _ignored(context, *_everywhere(rs.CANCEL, b"", 0, (0, UNUSED, 772)))


@STREAMS.row("unknown-request-n", UNEXPECTED, UNKNOWN, level=Level.MUST, needs=["publisher"])
async def unknown_request_n(context: CheckContext) -> str:
    """REQUEST_N for stream 0, an odd and an even id that no request had."""
    return await _ignored(context, *_everywhere(rs.REQUEST_N, rs.number(3), 0, (0, UNUSED, 772)))


@STREAMS.row("unknown-payload", UNEXPECTED, UNKNOWN, level=Level.MUST, needs=["publisher"])
async def unknown_payload(context: CheckContext) -> str:
    """PAYLOAD for stream 0, an odd and an even id that no request had."""
    return await _ignored(context, *_everywhere(rs.PAYLOAD, b"x", rs.N, (0, UNUSED, 772)))


@STREAMS.row("unknown-error", UNEXPECTED, UNKNOWN, level=Level.MUST, needs=["publisher"])
async def unknown_error(context: CheckContext) -> str:
    """ERROR for an odd and an even id that no request had."""
    body = rs.number(rs.APPLICATION_ERROR) + b"of nothing"
    return await _ignored(context, *_everywhere(rs.ERROR, body, 0))


@STREAMS.row("unknown-fragment", UNEXPECTED, UNKNOWN, level=Level.MUST, needs=["publisher"])
async def unknown_fragment(context: CheckContext) -> str:
    """Fragments, the last one with COMPLETE, for an id that no request had."""
    return await _ignored(
        context,
        (rs.PAYLOAD, UNUSED, b"a", rs.N | rs.F),
        (rs.PAYLOAD, UNUSED, b"b", rs.N | rs.F),
        (rs.PAYLOAD, UNUSED, b"c", rs.N | rs.C),
    )


@STREAMS.row(
    "metadata-push-stream",
    UNEXPECTED,
    "A METADATA_PUSH on another stream than 0 MUST be ignored.",
    level=Level.MUST,
    needs=["publisher"],
)
async def metadata_push_stream(context: CheckContext) -> str:
    """It comes for an odd id that no request had."""
    return await _ignored(context, (rs.METADATA_PUSH, UNUSED, rs.route("news"), rs.M))


@STREAMS.row(
    "setup-error-ignored",
    UNEXPECTED,
    "A server MUST ignore an ERROR with one of the codes that refuse a SETUP or a RESUME.",
    level=Level.MUST,
    needs=["publisher"],
)
async def setup_error_ignored(context: CheckContext) -> str:
    """An ERROR with each of the four codes on stream 0."""
    return await _ignored(
        context,
        *(
            (rs.ERROR, 0, rs.number(code) + b"refused", 0)
            for code in (*rs.SETUP_REFUSED, rs.REJECTED_RESUME)
        ),
    )


@STREAMS.row(
    "connection-close",
    CODES,
    (
        "After ERROR[CONNECTION_CLOSE] the receiver MUST wait for open streams to end before it "
        "closes."
    ),
    level=Level.MUST,
    needs=["three"],
)
async def connection_close(context: CheckContext) -> str:
    """A stream of three elements, of which one was requested, gets the other two and COMPLETE
    after this ERROR.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.three, 1)
    await peer.expect_exactly(stream, 1)
    await peer.send_frame(rs.ERROR, 0, rs.number(rs.CONNECTION_CLOSE) + b"going")
    await peer.grant(stream, 5)
    await peer.wait_end(stream, well=True)
    verify(
        len(peer.elements(stream)) == 3,
        f"three elements were due; {peer.describe_received()}",
    )
    return "the open stream was served"
