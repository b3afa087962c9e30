"""A stream gets as many elements as were requested, and no more."""

from typing import Final

from penstock_tck.wire import CheckContext, Level, Table, verify

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._peer import RSOCKET, connect

DEMAND = Table(RSOCKET)

STREAM: Final = "REQUEST_STREAM Frame"
REQUEST_N: Final = "REQUEST_N Frame"
FLOW: Final = "Reactive Streams Semantics"
INITIAL: Final = "REQUEST_STREAM has the first demand, a number of 31 bits above 0."
WITHIN: Final = "REQUEST_STREAM has the first demand. Elements MUST NOT come without demand."
SUM: Final = "Demands add up, and are not taken back. Elements MUST NOT come without demand."


async def _initial(context: CheckContext, demand: int) -> str:
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, demand)
    await peer.expect_exactly(stream, demand)
    return f"{demand} requested, {demand} received"


@DEMAND.row("demand-one", STREAM, WITHIN, level=Level.MUST, needs=["publisher"])
async def demand_one(context: CheckContext) -> str:
    """A stream requested with N = 1 gets exactly one element."""
    return await _initial(context, 1)


@DEMAND.row("demand-initial", STREAM, WITHIN, level=Level.MUST, needs=["publisher"])
async def demand_initial(context: CheckContext) -> str:
    """A stream requested with N = 5 gets exactly five elements."""
    return await _initial(context, 5)


@DEMAND.row("demand-31-bit", STREAM, INITIAL, needs=["publisher"])
async def demand_31_bit(context: CheckContext) -> str:
    """The demand is read as 31 bits: 2^31-1, and 2^30, whose lower bits are 0, bring at least 50
    elements.
    """
    peer = await connect(context)
    for demand in (rs.UNBOUNDED, 1 << 30):
        stream = await peer.stream(context.target.publisher, demand)
        await peer.wait_elements(stream, 50)
        await peer.cancel(stream)
        await peer.settle()
    return "50 elements, twice"


@DEMAND.row("demand-zero", STREAM, INITIAL, level=Level.READING, needs=["publisher"])
async def demand_zero(context: CheckContext) -> str:
    """A stream requested with N = 0 gets no element. The server may fail it, ignore it, or end
    the connection; an ERROR for that is CONNECTION_ERROR.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, 0)
    seen = await peer.refused_or_working("N = 0 was requested", [rs.CONNECTION_ERROR], silent=True)
    verify(not peer.elements(stream), f"an element came; {peer.describe_received()}")
    return f"{peer.of_stream(stream, rs.ERROR)[0]}" if peer.failed(stream) else seen


@DEMAND.row("demand-adds-up", FLOW, SUM, level=Level.MUST, needs=["publisher"])
async def demand_adds_up(context: CheckContext) -> str:
    """REQUEST_N adds to the demand: 3, then 2, then 4 give 9 elements."""
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, 3)
    await peer.expect_exactly(stream, 3)
    await peer.grant(stream, 2)
    await peer.expect_exactly(stream, 5)
    await peer.grant(stream, 4)
    await peer.expect_exactly(stream, 9)
    return "3, 5, 9"


@DEMAND.row("demand-at-once", FLOW, SUM, level=Level.MUST, needs=["publisher"])
async def demand_at_once(context: CheckContext) -> str:
    """Several REQUEST_N directly after the request, before any element has come, all count."""
    peer = await connect(context)
    stream = peer.next_id()
    await peer.send(
        peer.request_frame(rs.REQUEST_STREAM, stream, context.target.publisher, demand=1),
        *(peer.frame(rs.REQUEST_N, stream, rs.number(n)) for n in (1, 2, 3)),
    )
    await peer.expect_exactly(stream, 7)
    return "1 + 1 + 2 + 3 requested at once, 7 received"


@DEMAND.row("demand-of-each-stream", FLOW, SUM, level=Level.MUST, needs=["publisher"])
async def demand_of_each_stream(context: CheckContext) -> str:
    """Each stream has its own demand: a REQUEST_N for one brings no element on another."""
    peer = await connect(context)
    name = context.target.publisher
    ids = [peer.next_id() for _ in range(3)]
    await peer.send(
        *(
            peer.request_frame(rs.REQUEST_STREAM, stream, name, demand=n)
            for stream, n in zip(ids, (2, 1, 5), strict=True)
        ),
        peer.frame(rs.REQUEST_N, ids[0], rs.number(4)),
    )
    await peer.wait_elements(ids[0], 6)
    await peer.wait_elements(ids[2], 5)
    await peer.settle()
    counts = [len(peer.elements(stream)) for stream in ids]
    verify(
        counts == [6, 1, 5],
        f"6, 1 and 5 were requested, {counts} came; {peer.describe_received()}",
    )
    return "6, 1 and 5 requested, 6, 1 and 5 received"


@DEMAND.row("demand-sums", FLOW, SUM, level=Level.MUST, needs=["publisher"])
async def demand_sums(context: CheckContext) -> str:
    """A sum above 2^31-1 is no error, and does not stop the stream: 2^31-1 twice, and 1 more."""
    peer = await connect(context)
    stream = peer.next_id()
    await peer.send(
        peer.request_frame(rs.REQUEST_STREAM, stream, context.target.publisher, demand=1),
        peer.frame(rs.REQUEST_N, stream, rs.number(rs.UNBOUNDED)),
        peer.frame(rs.REQUEST_N, stream, rs.number(rs.UNBOUNDED)),
        peer.frame(rs.REQUEST_N, stream, rs.number(1)),
    )
    await peer.wait_elements(stream, 50)
    await peer.cancel(stream)
    await peer.settle()
    verify(not peer.failed(stream), f"the stream failed; {peer.describe_received()}")
    await peer.expect_working()
    return "50 elements"


@DEMAND.row(
    "request-n-zero",
    REQUEST_N,
    "The number of a REQUEST_N MUST be above 0.",
    level=Level.READING,
    needs=["publisher"],
)
async def request_n_zero(context: CheckContext) -> str:
    """The demand binds the requester. A responder fails the stream, ignores the frame, or ends
    the connection; an ERROR for that is CONNECTION_ERROR. It sends no element for it.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, 1)
    await peer.expect_exactly(stream, 1)
    await peer.grant(stream, 0)
    seen = await peer.refused_or_working(
        "a REQUEST_N of 0 was sent", [rs.CONNECTION_ERROR], silent=True
    )
    verify(len(peer.elements(stream)) == 1, f"an element came; {peer.describe_received()}")
    return str(peer.of_stream(stream, rs.ERROR)[0]) if peer.failed(stream) else seen


@DEMAND.row("demand-completes", FLOW, SUM, needs=["three"])
async def demand_completes(context: CheckContext) -> str:
    """COMPLETE needs no demand: three elements are requested of a stream that has three, and it
    completes.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.three, 3)
    await peer.wait_end(stream, well=True)
    return "completed"


@DEMAND.row(
    "demand-fragments",
    "Fragmentation And Reassembly",
    "An element in fragments takes one of the demand.",
    needs=["large"],
)
async def demand_fragments(context: CheckContext) -> str:
    """N = 2 brings two whole large elements, in any number of frames, and no third one."""
    peer = await connect(context)
    stream = await peer.stream(context.target.large, 2)
    await peer.expect_exactly(stream, 2)
    return f"2 elements in {len(peer.of_stream(stream, rs.PAYLOAD))} frames"
