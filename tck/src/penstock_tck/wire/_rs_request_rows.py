"""ReactiveSocket: the four kinds of request, what may answer each, and how each ends."""

import trio

from penstock_tck.wire import _rs_frames as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import Level, Table
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._verdict import verify

REQUESTS = Table()

CANCELLED = "Upon receiving a CANCEL, the stream is terminated on the Responder."
ENDED = "Upon sending a COMPLETE or ERROR, the stream is terminated on the Responder."


async def _expect_silence(peer: RsPeer, stream: int, before: int) -> None:
    """See that a stream that has ended says nothing more, whatever is asked of it."""
    await peer.grant(stream, 5)
    await peer.cancel(stream)
    await peer.grant(stream, 5)
    await peer.expect_working()
    await peer.settle()
    verify(len(peer.of_stream(stream)) == before, f"a stream that was over said more; {peer.describe_received()}")


@REQUESTS.row("response", 354, "RS -> RQ: RESPONSE with COMPLETE", needs=["one"])
async def response(context: CheckContext) -> str:
    """REQUEST_RESPONSE is answered with one RESPONSE, which has C set and the value in it."""
    peer = await context.connect_reactivesocket()
    await peer.send_frame(rs.REQUEST_RESPONSE, 1, context.target.one.encode())
    await peer.wait_end(1, well=True)
    await peer.settle()
    frames = peer.of_stream(1)
    verify(
        len(peer.elements(1)) == 1 and frames[-1].flags & rs.C and frames[-1].flags & rs.E,
        f"one RESPONSE with COMPLETE is due; {peer.describe_received()}",
    )
    return ", ".join(map(str, frames))


@REQUESTS.row("response-error", 359, "RS -> RQ: ERROR", needs=["failing"])
async def response_error(context: CheckContext) -> str:
    """Where there is no value to answer with, ERROR comes, and nothing else of that stream: for a name that leads to nothing, too."""
    peer = await context.connect_reactivesocket()
    for stream, name in ((1, context.target.failing), (3, context.target.missing)):
        await peer.send_frame(rs.REQUEST_RESPONSE, stream, name.encode())
        await peer.wait_end(stream)
    await peer.settle()
    verify(
        [frame.type for frame in peer.of_stream(3)] == [rs.ERROR],
        f"one ERROR is due for a name that leads to nothing; {peer.describe_received()}",
    )
    verify(len(peer.of_stream(1)) == 1, f"one answer is due; {peer.describe_received()}")
    return str(peer.of_stream(3)[0])


@REQUESTS.row("response-over", 366, "Upon sending a response, the stream is terminated on the Responder.", needs=["publisher"])
async def response_over(context: CheckContext) -> str:
    """After the response nothing comes for that stream: not for a publisher that has more, not for REQUEST_N, not for CANCEL."""
    peer = await context.connect_reactivesocket()
    await peer.send_frame(rs.REQUEST_RESPONSE, 1, context.target.publisher.encode())
    await peer.wait_end(1, well=True)
    await _expect_silence(peer, 1, 1)
    return "one response, and silence"


@REQUESTS.row(
    "response-cancelled",
    368,
    "Upon receiving a CANCEL, the stream is terminated on the Responder and the response should not be sent.",
    level=Level.SHOULD,
    needs=["slow"],
)
async def response_cancelled(context: CheckContext) -> str:
    """A REQUEST_RESPONSE to a slow publisher that is cancelled before the answer is there gets none, no ERROR either."""
    peer = await context.connect_reactivesocket()
    began = trio.current_time()
    await peer.send_frame(rs.REQUEST_RESPONSE, 1, context.target.slow.encode())
    await peer.wait_end(1, well=True)
    took = trio.current_time() - began
    await peer.send_frame(rs.REQUEST_RESPONSE, 3, context.target.slow.encode())
    await peer.cancel(3)
    await peer.expect_working()
    await peer.settle_after(2 * took)
    verify(not peer.of_stream(3), f"a request that was cancelled was answered; {peer.describe_received()}")
    return f"silence for {2 * took:.2f} s, where an answer took {took:.2f} s"


@REQUESTS.row("fire-and-forget", 378, "Upon reception, the stream is terminated by the Responder.", needs=["publisher"])
async def fire_and_forget(context: CheckContext) -> str:
    """REQUEST_FNF is never answered, whether its data leads anywhere or not; REQUEST_N and CANCEL for it are ignored."""
    peer = await context.connect_reactivesocket()
    for stream, name in ((1, context.target.publisher), (3, context.target.missing)):
        await peer.send_frame(rs.REQUEST_FNF, stream, name.encode())
        await peer.grant(stream, 3)
        await peer.cancel(stream)
    await peer.expect_working()
    await peer.settle()
    verify(not peer.of_stream(1) and not peer.of_stream(3), f"what was to be forgotten was answered; {peer.describe_received()}")
    return "two fired, none answered"


@REQUESTS.row("stream-complete", 394, "RS -> RQ: RESPONSE with COMPLETE", needs=["three", "empty"])
async def stream_complete(context: CheckContext) -> str:
    """A stream of three elements gives them and COMPLETE, with the last one or behind it; an empty one gives COMPLETE alone."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 10, context.target.three)
    await peer.request(3, 10, context.target.empty)
    await peer.wait_end(1, well=True)
    await peer.wait_end(3, well=True)
    await peer.settle()
    counts = len(peer.elements(1)), len(peer.elements(3))
    verify(counts == (3, 0), f"{counts} elements came of three and of none; {peer.describe_received()}")
    return "3 and COMPLETE; COMPLETE alone"


@REQUESTS.row("stream-error", 388, "RS -> RQ: ERROR", needs=["failing"])
async def stream_error(context: CheckContext) -> str:
    """A stream that fails ends with ERROR, as does one whose data leads to nothing; the connection goes on."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 20, context.target.failing)
    await peer.request(3, 20, context.target.missing)
    await peer.wait_end(1, well=False)
    await peer.wait_end(3, well=False)
    await peer.settle()
    verify(peer.ending is None, f"the connection ended for a stream's error; {peer.describe_received()}")
    return f"{peer.of_stream(1, rs.ERROR)[0]}; {peer.of_stream(3, rs.ERROR)[0]}"


@REQUESTS.row("stream-over", 410, ENDED, needs=["three", "failing"])
async def stream_over(context: CheckContext) -> str:
    """After COMPLETE, and after ERROR, nothing more comes for the stream, whatever is asked of it."""
    peer = await context.connect_reactivesocket()
    for stream, name in ((1, context.target.three), (3, context.target.failing)):
        await peer.request(stream, 20, name)
        await peer.wait_end(stream)
        await peer.settle()
        last = peer.of_stream(stream)[-1]
        verify(last.type == rs.ERROR or last.flags & rs.C, f"something came after the end of stream {stream}; {peer.describe_received()}")
        await _expect_silence(peer, stream, len(peer.of_stream(stream)))
    return "silence after COMPLETE and after ERROR"


@REQUESTS.row("stream-cancelled", 404, CANCELLED, needs=["publisher", "slow"])
async def stream_cancelled(context: CheckContext) -> str:
    """After CANCEL a stream says nothing more but what was under way: no element for a REQUEST_N, no COMPLETE, no ERROR."""
    return await _check_cancel(context, rs.REQUEST_STREAM)


@REQUESTS.row("sub-responses", 415, "RS -> RQ: RESPONSE*", needs=["three"])
async def sub_responses(context: CheckContext) -> str:
    """A subscription has no COMPLETE: what a publisher of three sends are three RESPONSEs without C; then, at most, ERROR."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 10, context.target.three, kind=rs.REQUEST_SUB)
    await peer.wait_elements(1, 3)
    await peer.settle()
    verify(not peer.completed(1), f"a subscription was completed; {peer.describe_received()}")
    return ", ".join(map(str, peer.of_stream(1)))


@REQUESTS.row("sub-error", 421, "RS -> RQ: ERROR", needs=["failing"])
async def sub_error(context: CheckContext) -> str:
    """A subscription that fails ends with ERROR, and nothing comes behind it."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 20, context.target.failing, kind=rs.REQUEST_SUB)
    await peer.wait_end(1, well=False)
    await _expect_silence(peer, 1, len(peer.of_stream(1)))
    return str(peer.of_stream(1, rs.ERROR)[0])


@REQUESTS.row("sub-cancelled", 431, CANCELLED, needs=["publisher", "slow"])
async def sub_cancelled(context: CheckContext) -> str:
    """The same as for a stream."""
    return await _check_cancel(context, rs.REQUEST_SUB)


async def _check_cancel(context: CheckContext, kind: int) -> str:
    peer = await context.connect_reactivesocket()
    await peer.request(1, 3, context.target.publisher, kind=kind)
    await peer.request(3, 1, context.target.slow, kind=kind)
    await peer.request(5, rs.UNBOUNDED, context.target.publisher, kind=kind)
    await peer.wait_elements(1, 3)
    for stream in (1, 3, 5):
        await peer.cancel(stream)
    await peer.expect_working()
    await peer.settle_after(2 * context.target.quiet)
    before = [len(peer.of_stream(stream)) for stream in (1, 3, 5)]
    ends = [stream for stream in (1, 3, 5) if peer.completed(stream) or peer.failed(stream)]
    verify(not ends, f"streams {ends}, which were cancelled, were ended as well; {peer.describe_received()}")
    verify(before[1] == 0, f"an element came long after the stream was cancelled; {peer.describe_received()}")
    for stream in (1, 3, 5):
        await peer.grant(stream, 2)
    await peer.settle_after(2 * context.target.quiet)
    after = [len(peer.of_stream(stream)) for stream in (1, 3, 5)]
    verify(before == after, f"streams that were cancelled obeyed a REQUEST_N; {peer.describe_received()}")
    return "silence, and REQUEST_N is not obeyed"
