"""ReactiveSocket: a stream gets as many elements as were requested, and no more."""

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import REACTIVESOCKET, Level, Table
from penstock_tck.wire._verdict import verify

DEMAND = Table(REACTIVESOCKET)

INITIAL = "REQUEST_STREAM and REQUEST_SUB carry their first demand, 64 bits."
MORE = "REQUEST_N carries a number of further elements, 64 bits."
ANY_TIME = "REQUEST_N is permitted at every moment of a stream."


@DEMAND.row("demand-initial", 160, INITIAL, needs=["publisher"])
async def demand_initial(context: CheckContext) -> str:
    """A stream requested with N = 5 gets exactly five elements."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 5, context.target.publisher)
    await peer.expect_exactly(1, 5)
    return "5 requested, 5 received"


@DEMAND.row("demand-initial-sub", 184, INITIAL, needs=["publisher"])
async def demand_initial_sub(context: CheckContext) -> str:
    """A subscription requested with N = 4 gets exactly four elements."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 4, context.target.publisher, kind=rs.REQUEST_SUB)
    await peer.expect_exactly(1, 4)
    return "4 requested, 4 received"


@DEMAND.row("demand-initial-zero", 160, INITIAL, level=Level.READING, needs=["publisher"])
async def demand_initial_zero(context: CheckContext) -> str:
    """N = 0 opens a paused stream: neither an element nor an error comes before a REQUEST_N."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 0, context.target.publisher)
    await peer.settle()
    verify(not peer.of_stream(1), f"nothing was requested, and {peer.describe_received()}")
    await peer.grant(1, 2)
    await peer.expect_exactly(1, 2)
    return "none before a REQUEST_N of 2, then 2"


@DEMAND.row("demand-adds-up", 207, MORE, needs=["publisher"])
async def demand_adds_up(context: CheckContext) -> str:
    """REQUEST_N adds to the demand: 3, then 2, then 4 give 9 elements."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 3, context.target.publisher)
    await peer.expect_exactly(1, 3)
    await peer.grant(1, 2)
    await peer.expect_exactly(1, 5)
    await peer.grant(1, 4)
    await peer.expect_exactly(1, 9)
    return "3, 5, 9"


@DEMAND.row("demand-any-time", 402, ANY_TIME, needs=["publisher"])
async def demand_any_time(context: CheckContext) -> str:
    """Several REQUEST_N directly after a REQUEST_STREAM, before any element has come,
    are all counted.
    """
    peer = await context.connect_reactivesocket()
    grants = [peer.frame_bytes(rs.REQUEST_N, 1, rs.encode_demand(n)) for n in (1, 2, 3)]
    await peer.send(
        peer.frame_bytes(
            rs.REQUEST_STREAM, 1, rs.encode_demand(1) + context.target.publisher.encode()
        ),
        *grants,
    )
    await peer.expect_exactly(1, 7)
    return "1 + 1 + 2 + 3 requested at once, 7 received"


@DEMAND.row("demand-any-time-sub", 429, ANY_TIME, needs=["publisher"])
async def demand_any_time_sub(context: CheckContext) -> str:
    """REQUEST_N also adds to the demand of a subscription."""
    peer = await context.connect_reactivesocket()
    grant = peer.frame_bytes(rs.REQUEST_N, 1, rs.encode_demand(2))
    await peer.send(
        peer.frame_bytes(
            rs.REQUEST_SUB, 1, rs.encode_demand(1) + context.target.publisher.encode()
        ),
        grant,
    )
    await peer.expect_exactly(1, 3)
    return "1 + 2 requested, 3 received"


@DEMAND.row("demand-64-bit", 207, MORE, needs=["publisher"])
async def demand_64_bit(context: CheckContext) -> str:
    """Demand is read as 64 bits: 2^32, whose lower 32 bits are zero,
    brings at least ten elements.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 1 << 32, context.target.publisher)
    await peer.wait_elements(1, 10)
    await peer.cancel(1)
    await peer.request(3, 0, context.target.publisher)
    await peer.grant(3, 1 << 32)
    await peer.wait_elements(3, 10)
    return "2^32 was read correctly in REQUEST_STREAM and in REQUEST_N"


@DEMAND.row("demand-saturates", 207, MORE, level=Level.READING, needs=["publisher"])
async def demand_saturates(context: CheckContext) -> str:
    """Demand adds up to at most 2^63-1:
    requesting 2^63-1 twice is allowed, and elements keep coming.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, rs.UNBOUNDED, context.target.publisher)
    await peer.grant(1, rs.UNBOUNDED)
    await peer.grant(1, 1)
    await peer.wait_elements(1, 50)
    await peer.cancel(1)
    await peer.settle()
    verify(not peer.failed(1), f"demand beyond 2^63-1 was an error; {peer.describe_received()}")
    return "2^63-1 twice: elements keep coming"


@DEMAND.row("demand-of-each-stream", 207, MORE, needs=["publisher"])
async def demand_of_each_stream(context: CheckContext) -> str:
    """Each stream has its own demand: a REQUEST_N for one stream brings no element on another."""
    peer = await context.connect_reactivesocket()
    name = context.target.publisher.encode()
    asked = [
        peer.frame_bytes(rs.REQUEST_STREAM, stream, rs.encode_demand(n) + name)
        for stream, n in ((1, 2), (2, 0), (3, 5))
    ]
    await peer.send(*asked, peer.frame_bytes(rs.REQUEST_N, 1, rs.encode_demand(4)))
    await peer.wait_elements(1, 6)
    await peer.wait_elements(3, 5)
    await peer.settle()
    counts = [len(peer.elements(stream)) for stream in (1, 2, 3)]
    verify(
        counts == [6, 0, 5],
        (
            f"6, 0 and 5 elements were requested on three streams, {counts} came; "
            f"{peer.describe_received()}"
        ),
    )
    return "6, 0 and 5 requested, 6, 0 and 5 received"


@DEMAND.row("demand-zero-refused", 207, MORE, level=Level.READING, needs=["publisher"])
async def demand_zero_refused(context: CheckContext) -> str:
    """A REQUEST_N of 0 is illegal: its stream ends with an ERROR, and other streams continue."""
    return await _check_illegal_demand(context, 0)


@DEMAND.row("demand-bit-63-refused", 207, MORE, level=Level.READING, needs=["publisher"])
async def demand_bit_63_refused(context: CheckContext) -> str:
    """A REQUEST_N above 2^63-1 is illegal: implementations disagree on whether bit 63 is a sign.
    Its stream ends with an ERROR.
    """
    return await _check_illegal_demand(context, 1 << 63)


@DEMAND.row("demand-initial-bit-63-refused", 160, INITIAL, level=Level.READING, needs=["publisher"])
async def demand_initial_bit_63_refused(context: CheckContext) -> str:
    """An initial demand above 2^63-1 is also illegal: the stream ends with an ERROR."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 1 << 63, context.target.publisher)
    await peer.wait_end(1, well=False)
    await peer.expect_working()
    return str(peer.of_stream(1, rs.ERROR)[0])


@DEMAND.row(
    "demand-fragments",
    340,
    "A large element may be sent as several RESPONSEs, its fragments.",
    level=Level.READING,
    needs=["large"],
)
async def demand_fragments(context: CheckContext) -> str:
    """Demand counts elements, not frames: N = 2 brings two whole large elements, in any number
    of fragments, and no third one.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 2, context.target.large)
    await peer.expect_exactly(1, 2)
    return f"2 requested, 2 received in {len(peer.of_stream(1, rs.RESPONSE))} frames"


async def _check_illegal_demand(context: CheckContext, demand: int) -> str:
    peer = await context.connect_reactivesocket()
    await peer.request(1, 1, context.target.publisher)
    await peer.request(3, 1, context.target.publisher)
    await peer.wait_elements(1, 1)
    await peer.grant(1, demand)
    await peer.wait_end(1, well=False)
    await peer.grant(3, 1)
    await peer.expect_exactly(3, 2)
    await peer.expect_working()
    return str(peer.of_stream(1, rs.ERROR)[0])
