"""ReactiveSocket: the four kinds of request, the answers to each, and how each ends."""

from collections.abc import Awaitable, Callable

import trio

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import REACTIVESOCKET, Level, Table
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._target import SLOW_ATTEMPTS
from penstock_tck.wire._verdict import Failed, verify

REQUESTS = Table(REACTIVESOCKET)

CANCELLED = "A stream is over for the responder when CANCEL has arrived."
ENDED = "A stream is over for the responder when it has sent COMPLETE or ERROR."


async def _expect_silence(peer: RsPeer, stream: int, before: int) -> None:
    """Fail if a stream that has ended sends more frames in answer to REQUEST_N and CANCEL."""
    await peer.grant(stream, 5)
    await peer.cancel(stream)
    await peer.grant(stream, 5)
    await peer.expect_working()
    await peer.settle()
    verify(
        len(peer.of_stream(stream)) == before,
        f"a frame came on a stream that had ended; {peer.describe_received()}",
    )


@REQUESTS.row(
    "response",
    354,
    "REQUEST_RESPONSE is answered with one RESPONSE that has COMPLETE.",
    needs=["one"],
)
async def response(context: CheckContext) -> str:
    """REQUEST_RESPONSE is answered with one RESPONSE that has C set and holds the value."""
    peer = await context.connect_reactivesocket()
    await peer.send_frame(rs.REQUEST_RESPONSE, 1, context.target.one.encode())
    await peer.wait_end(1, well=True)
    await peer.settle()
    frames = peer.of_stream(1)
    verify(
        len(peer.elements(1)) == 1 and frames[-1].flags & rs.C and frames[-1].flags & rs.E,
        f"one RESPONSE with COMPLETE was expected; {peer.describe_received()}",
    )
    return ", ".join(map(str, frames))


@REQUESTS.row(
    "response-error", 359, "ERROR may be the answer to a REQUEST_RESPONSE.", needs=["failing"]
)
async def response_error(context: CheckContext) -> str:
    """If the target has no value, ERROR is its only answer.
    This includes a name that no publisher has.
    """
    peer = await context.connect_reactivesocket()
    for stream, name in ((1, context.target.failing), (3, context.target.missing)):
        await peer.send_frame(rs.REQUEST_RESPONSE, stream, name.encode())
        await peer.wait_end(stream)
    await peer.settle()
    verify(
        [frame.type for frame in peer.of_stream(3)] == [rs.ERROR],
        f"one ERROR was expected for an unknown publisher; {peer.describe_received()}",
    )
    verify(len(peer.of_stream(1)) == 1, f"one answer was expected; {peer.describe_received()}")
    return str(peer.of_stream(3)[0])


@REQUESTS.row(
    "response-over",
    366,
    "The stream of a REQUEST_RESPONSE is over for the responder when it has answered.",
    needs=["publisher"],
)
async def response_over(context: CheckContext) -> str:
    """After the response nothing more comes for the stream: not from a publisher with more
    elements, not for REQUEST_N, not for CANCEL.
    """
    peer = await context.connect_reactivesocket()
    await peer.send_frame(rs.REQUEST_RESPONSE, 1, context.target.publisher.encode())
    await peer.wait_end(1, well=True)
    await _expect_silence(peer, 1, 1)
    return "one response, and nothing after it"


@REQUESTS.row(
    "response-cancelled",
    368,
    ("CANCEL ends the stream for the responder, which should not send its response any more."),
    level=Level.SHOULD,
    needs=["slow", "publisher"],
)
async def response_cancelled(context: CheckContext) -> str:
    """A REQUEST_RESPONSE to a slow publisher that is cancelled before the answer gets neither a
    RESPONSE nor an ERROR.
    """
    peer = await context.connect_reactivesocket()
    began = trio.current_time()
    await peer.send_frame(rs.REQUEST_RESPONSE, 1, context.target.slow.encode())
    await peer.wait_end(1, well=True)
    took = trio.current_time() - began

    async def ask(stream: int) -> None:
        await peer.send_frame(rs.REQUEST_RESPONSE, stream, context.target.slow.encode())

    slow = await _cancel_slow(peer, ask, 3)
    await peer.settle_after(2 * took)
    verify(
        not peer.of_stream(slow), f"a cancelled request was answered; {peer.describe_received()}"
    )
    return f"no frame within {2 * took:.2f} s; an answer takes {took:.2f} s"


@REQUESTS.row(
    "fire-and-forget",
    378,
    "The stream of a REQUEST_FNF is over for the responder when the request has arrived.",
    needs=["publisher"],
)
async def fire_and_forget(context: CheckContext) -> str:
    """REQUEST_FNF is never answered, whether a publisher has that name or not.
    REQUEST_N and CANCEL for it are ignored.
    """
    peer = await context.connect_reactivesocket()
    for stream, name in ((1, context.target.publisher), (3, context.target.missing)):
        await peer.send_frame(rs.REQUEST_FNF, stream, name.encode())
        await peer.grant(stream, 3)
        await peer.cancel(stream)
    await peer.expect_working()
    await peer.settle()
    verify(
        not peer.of_stream(1) and not peer.of_stream(3),
        f"a REQUEST_FNF was answered; {peer.describe_received()}",
    )
    return "two REQUEST_FNF, no answer"


@REQUESTS.row(
    "stream-complete",
    394,
    "A stream may end with a RESPONSE that has COMPLETE.",
    needs=["three", "empty"],
)
async def stream_complete(context: CheckContext) -> str:
    """A stream of three elements sends them and COMPLETE, with or after the last one. An empty
    stream sends only COMPLETE.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 10, context.target.three)
    await peer.request(3, 10, context.target.empty)
    await peer.wait_end(1, well=True)
    await peer.wait_end(3, well=True)
    await peer.settle()
    counts = len(peer.elements(1)), len(peer.elements(3))
    verify(
        counts == (3, 0),
        f"3 and 0 elements were expected, {counts} came; {peer.describe_received()}",
    )
    return "3 and COMPLETE; COMPLETE alone"


@REQUESTS.row("stream-error", 388, "A stream may end with ERROR.", needs=["failing"])
async def stream_error(context: CheckContext) -> str:
    """A stream that fails ends with ERROR, and so does a request for an unknown publisher.
    The connection continues.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 20, context.target.failing)
    await peer.request(3, 20, context.target.missing)
    await peer.wait_end(1, well=False)
    await peer.wait_end(3, well=False)
    await peer.settle()
    verify(
        peer.ending is None,
        f"the connection ended because of an error of one stream; {peer.describe_received()}",
    )
    return f"{peer.of_stream(1, rs.ERROR)[0]}; {peer.of_stream(3, rs.ERROR)[0]}"


@REQUESTS.row("stream-over", 410, ENDED, needs=["three", "failing", "publisher"])
async def stream_over(context: CheckContext) -> str:
    """After COMPLETE and after ERROR nothing more comes for the stream."""
    peer = await context.connect_reactivesocket()
    for stream, name in ((1, context.target.three), (3, context.target.failing)):
        await peer.request(stream, 20, name)
        await peer.wait_end(stream)
        await peer.settle()
        last = peer.of_stream(stream)[-1]
        verify(
            last.type == rs.ERROR or last.flags & rs.C,
            f"a frame came after the end of stream {stream}; {peer.describe_received()}",
        )
        await _expect_silence(peer, stream, len(peer.of_stream(stream)))
    return "no frame after COMPLETE and after ERROR"


@REQUESTS.row("stream-cancelled", 404, CANCELLED, needs=["publisher", "slow"])
async def stream_cancelled(context: CheckContext) -> str:
    """After CANCEL a stream sends only what was already in transit:
    no element for a REQUEST_N, no COMPLETE, no ERROR.
    """
    return await _check_cancel(context, rs.REQUEST_STREAM)


@REQUESTS.row(
    "sub-responses",
    415,
    "A subscription is answered with any number of RESPONSEs.",
    needs=["three"],
)
async def sub_responses(context: CheckContext) -> str:
    """A subscription has no COMPLETE: a publisher of three elements sends three RESPONSEs
    without C, and at most an ERROR after them.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 10, context.target.three, kind=rs.REQUEST_SUB)
    await peer.wait_elements(1, 3)
    await peer.settle()
    verify(not peer.completed(1), f"COMPLETE came on a subscription; {peer.describe_received()}")
    return ", ".join(map(str, peer.of_stream(1)))


@REQUESTS.row(
    "sub-error", 421, "A subscription may end with ERROR.", needs=["failing", "publisher"]
)
async def sub_error(context: CheckContext) -> str:
    """A subscription that fails ends with ERROR, and nothing follows it."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 20, context.target.failing, kind=rs.REQUEST_SUB)
    await peer.wait_end(1, well=False)
    await _expect_silence(peer, 1, len(peer.of_stream(1)))
    return str(peer.of_stream(1, rs.ERROR)[0])


@REQUESTS.row("sub-cancelled", 431, CANCELLED, needs=["publisher", "slow"])
async def sub_cancelled(context: CheckContext) -> str:
    """After CANCEL a subscription sends only what was already in transit, as a stream does."""
    return await _check_cancel(context, rs.REQUEST_SUB)


async def _check_cancel(context: CheckContext, kind: int) -> str:
    peer = await context.connect_reactivesocket()
    await peer.request(1, 3, context.target.publisher, kind=kind)
    await peer.request(3, rs.UNBOUNDED, context.target.publisher, kind=kind)
    await peer.wait_elements(1, 3)
    for stream in (1, 3):
        await peer.cancel(stream)

    async def ask(stream: int) -> None:
        await peer.request(stream, 1, context.target.slow, kind=kind)

    slow = await _cancel_slow(peer, ask, 5)
    await peer.settle_after(2 * context.target.quiet)
    streams = 1, 3, slow
    before = [len(peer.of_stream(stream)) for stream in streams]
    ends = [stream for stream in streams if peer.completed(stream) or peer.failed(stream)]
    verify(
        not ends,
        f"COMPLETE or ERROR came on the cancelled streams {ends}; {peer.describe_received()}",
    )
    verify(
        not peer.of_stream(slow),
        f"an element came after its stream was cancelled; {peer.describe_received()}",
    )
    for stream in streams:
        await peer.grant(stream, 2)
    await peer.settle_after(2 * context.target.quiet)
    after = [len(peer.of_stream(stream)) for stream in streams]
    verify(
        before == after,
        f"elements came for a REQUEST_N on cancelled streams; {peer.describe_received()}",
    )
    return "no frame, and REQUEST_N has no effect"


async def _cancel_slow(peer: RsPeer, ask: Callable[[int], Awaitable[None]], first: int) -> int:
    """Cancel a request to the slow publisher while the target waits for its element, and return
    its id. `ask` makes the request.
    """
    for stream in range(first, first + 2 * SLOW_ATTEMPTS, 2):
        await ask(stream)
        await peer.expect_working()  # the publisher has begun
        await peer.cancel(stream)
        await peer.expect_working()  # the target has read the CANCEL
        if not peer.of_stream(stream):
            return stream
        # The element may have been in transit before the CANCEL was read. On a busy machine two
        # answers may take longer than the publisher.
    text = (
        f"the element of the slow publisher came {SLOW_ATTEMPTS} times before the target had read "
        "its CANCEL"
    )
    raise Failed(f"{text}; {peer.describe_received()}")
