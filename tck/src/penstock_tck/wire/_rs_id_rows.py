"""ReactiveSocket: ids of streams, and frames for streams that do not exist."""

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import REACTIVESOCKET, Level, Table
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._verdict import verify

IDS = Table(REACTIVESOCKET)

ZERO = "The stream id 0 stands for the connection."
UNIQUE = "The streams of one requester on a connection must have different ids."
UNEXPECTED = (
    "A frame that does not fit the state of its stream is ignored. (The draft asks whether "
    "it should end something instead.)"
)
TWO = "Each side of a connection may be a requester."
LARGEST = 2**63 - 1
MANY = 100


@IDS.row("id-zero", 54, ZERO, level=Level.READING, needs=["publisher", "one"])
async def id_zero(context: CheckContext) -> str:
    """Requests, REQUEST_N and CANCEL with stream id 0 are ignored, and the connection continues."""
    peer = await context.connect_reactivesocket()
    await peer.request(0, 3, context.target.publisher)
    await peer.send_frame(rs.REQUEST_RESPONSE, 0, context.target.one.encode())
    await peer.grant(0, 3)
    await peer.cancel(0)
    await peer.expect_working()
    await peer.settle()
    verify(not peer.of_stream(0), f"a request on stream 0 was answered; {peer.describe_received()}")
    return "ignored"


@IDS.row("id-64-bit", 45, "The stream id of a frame has 64 bits.", needs=["publisher"])
async def id_64_bit(context: CheckContext) -> str:
    """Ids have 64 bits and come back unchanged: odd and even ids, in any order, and ids whose lower
    32 bits are equal.
    """
    peer = await context.connect_reactivesocket()
    ids = (1 << 32 | 7, 7, 2, LARGEST, 1 << 40, 1)
    for stream in ids:
        await peer.request(stream, 2, context.target.publisher)
    for stream in ids:
        await peer.wait_elements(stream, 2)
    await peer.settle()
    strange = {frame.stream for frame in peer.of_type(rs.RESPONSE, rs.ERROR)} - set(ids)
    verify(
        not strange,
        (
            f"answers came for streams {sorted(strange)}, which were not opened; "
            f"{peer.describe_received()}"
        ),
    )
    verify(
        all(len(peer.elements(stream)) == 2 for stream in ids),
        f"two elements were expected on each of {ids}; {peer.describe_received()}",
    )
    return f"{len(ids)} streams, up to {LARGEST}"


@IDS.row("id-live-again", 56, UNIQUE, level=Level.MUST, needs=["publisher", "one"])
async def id_live_again(context: CheckContext) -> str:
    """A second request with the id of an open stream is ignored. The open stream continues: it
    gets its demand, no more, and no end.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 2, context.target.publisher)
    await peer.wait_elements(1, 2)
    await peer.request(1, 5, context.target.publisher)
    await peer.send_frame(rs.REQUEST_RESPONSE, 1, context.target.one.encode())
    await peer.settle()
    verify(
        len(peer.of_stream(1)) == 2,
        (
            "two elements were requested on stream 1 before its id was used again; "
            f"{peer.describe_received()}"
        ),
    )
    await peer.grant(1, 2)
    await peer.expect_exactly(1, 4)
    return "ignored; the stream continues"


@IDS.row("id-two-spaces", 15, TWO, level=Level.READING, needs=["publisher"])
async def id_two_spaces(context: CheckContext) -> str:
    """RESPONSE and ERROR refer to a request of their receiver. Those that the checking side sends
    for id 1 do not touch the stream 1 that it opened.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 2, context.target.publisher)
    await peer.expect_exactly(1, 2)
    await peer.send_frame(rs.RESPONSE, 1, b"for another stream", flags=rs.B | rs.E | rs.C)
    await peer.send_frame(rs.ERROR, 1, b"for another stream")
    await peer.grant(1, 3)
    await peer.expect_exactly(1, 5)
    verify(
        not peer.failed(1),
        (
            "an ERROR from the checking side ended a stream that the checking side had opened; "
            f"{peer.describe_received()}"
        ),
    )
    return "the stream 1 that the checking side opened was not touched"


@IDS.row(
    "many-streams",
    51,
    "The requester chooses the ids of its streams.",
    level=Level.READING,
    needs=["publisher"],
)
async def many_streams(context: CheckContext) -> str:
    """One connection serves a hundred streams at a time, each with the element
    that it requested.
    """
    peer = await context.connect_reactivesocket()
    for stream in range(1, MANY + 1):
        await peer.request(stream, 1, context.target.publisher)
    for stream in range(1, MANY + 1):
        await peer.wait_elements(stream, 1)
    await peer.settle()
    verify(
        not peer.of_type(rs.ERROR),
        f"not all of {MANY} streams at a time were served; {peer.describe_received()}",
    )
    return f"{MANY} at a time"


@IDS.row(
    "request-data",
    161,
    "The data of a request says which service is meant, and with which parameters.",
    level=Level.READING,
)
async def request_data(context: CheckContext) -> str:
    """A request with 4,096 bytes that are not text, and one without data, are each answered on
    their own stream. The connection continues.
    """
    peer = await context.connect_reactivesocket()
    await peer.send_frame(rs.REQUEST_STREAM, 1, rs.encode_demand(1) + b"\xff\x00" * 2048)
    await peer.send_frame(rs.REQUEST_STREAM, 3, rs.encode_demand(1))
    for stream in (1, 3):
        await peer.wait_until(
            lambda stream=stream: peer.of_stream(stream),  # type: ignore[misc]  # bound in the loop
            f"an answer on stream {stream}",
        )
    await peer.settle()
    verify(
        peer.ending is None,
        f"the connection ended because of the data of a request; {peer.describe_received()}",
    )
    return ", ".join(str(peer.of_stream(stream)[0]) for stream in (1, 3))


async def _check_ignored(context: CheckContext, *kinds: int, body: bytes = b"") -> str:
    """Fail unless frames of these types are ignored, for stream 1, which has ended, and for
    stream 555, which never existed.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 5, context.target.three)
    await peer.request(3, 1, context.target.publisher)
    await peer.wait_end(1, well=True)
    for kind in kinds:
        for stream in (1, 555):
            await peer.send_frame(kind, stream, body)
    await _expect_unaffected(peer)
    return "ignored"


async def _expect_unaffected(peer: RsPeer) -> None:
    before = len(peer.of_stream(1))
    await peer.grant(3, 1)
    await peer.expect_exactly(3, 2)
    verify(
        not peer.of_stream(555) and not peer.of_stream(0) and len(peer.of_stream(1)) == before,
        f"frames that must be ignored were answered; {peer.describe_received()}",
    )
    await peer.expect_working()


@IDS.row("unexpected-request-n", 458, UNEXPECTED, level=Level.READING, needs=["publisher", "three"])
async def unexpected_request_n(context: CheckContext) -> str:
    """REQUEST_N for a stream that has ended, or never existed, is ignored:
    it may have crossed the end of the stream.
    """
    return await _check_ignored(context, rs.REQUEST_N, body=rs.encode_demand(5))


@IDS.row("unexpected-cancel", 458, UNEXPECTED, level=Level.READING, needs=["publisher", "three"])
async def unexpected_cancel(context: CheckContext) -> str:
    """CANCEL for a stream that has ended, or never existed, is ignored, also if it is repeated."""
    return await _check_ignored(context, rs.CANCEL, rs.CANCEL)


@IDS.row("unexpected-response", 458, UNEXPECTED, level=Level.READING, needs=["publisher", "three"])
async def unexpected_response(context: CheckContext) -> str:
    """RESPONSE for a request that the target did not make is ignored."""
    return await _check_ignored(context, rs.RESPONSE, body=b"not requested")


@IDS.row(
    "unexpected-error",
    276,
    "With ERROR a responder tells a requester that a stream has failed.",
    level=Level.READING,
    needs=["publisher", "three"],
)
async def unexpected_error(context: CheckContext) -> str:
    """ERROR for a request that the target did not make is ignored:
    it has no meaning if a requester sends it.
    """
    return await _check_ignored(context, rs.ERROR, body=b"not requested")


@IDS.row(
    "error-on-zero",
    274,
    "ERROR has two uses: to reject a SETUP, and to end a stream.",
    level=Level.READING,
)
async def error_on_zero(context: CheckContext) -> str:
    """An ERROR on stream 0 from the client ends the connection. No elements come after it."""
    peer = await context.connect_reactivesocket()
    await peer.send_frame(rs.ERROR, 0, b"goodbye")
    await peer.wait_closed("an ERROR on stream 0 was sent")
    verify(
        not peer.of_type(rs.RESPONSE),
        f"elements came after the ERROR on stream 0; {peer.describe_received()}",
    )
    return str(peer.ending)
