"""ReactiveSocket: SETUP is the first frame, sent once, on stream 0. A server accepts it without
an answer or refuses it with an ERROR.
"""

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import REACTIVESOCKET, Level, Table
from penstock_tck.wire._verdict import verify

SETUPS = Table(REACTIVESOCKET)

FIRST = "A client MUST send SETUP on stream 0 as soon as it is connected."
REFUSED = "A server that rejects a SETUP MUST send ERROR on stream 0, and then close."


@SETUPS.row("setup-first", 304, FIRST, level=Level.MUST, needs=["publisher"])
async def setup_first(context: CheckContext) -> str:
    """The server refuses a client that does not do so:
    a request before SETUP is not served, and the connection is ended.
    """
    peer = await context.connect_reactivesocket(setup=False)
    await peer.request(1, 2, context.target.publisher)
    seen = await peer.expect_refused("a request came before any SETUP")
    verify(
        not peer.of_type(rs.RESPONSE),
        f"a request before SETUP was served; {peer.describe_received()}",
    )
    return seen


@SETUPS.row(
    "setup-stream-zero",
    78,
    "SETUP is about the connection, so its stream id must be 0.",
    level=Level.MUST,
)
async def setup_stream_zero(context: CheckContext) -> str:
    """A SETUP on stream 1 is refused: ERROR on stream 0, then the end of the connection."""
    peer = await context.connect_reactivesocket(setup=False)
    await peer.send_frame(rs.SETUP, 1, context.target.setup.encode())
    return await peer.expect_refused("a SETUP came on stream 1", needs_error=True)


@SETUPS.row("setup-version", 311, REFUSED, level=Level.MUST)
async def setup_version(context: CheckContext) -> str:
    """A SETUP of version 1 is refused: ERROR on stream 0, then the end of the connection."""
    peer = await context.connect_reactivesocket(setup=False)
    await peer.send_frame(rs.SETUP, 0, context.target.setup.encode(), version=1)
    return await peer.expect_refused("a SETUP of version 1 was sent", needs_error=True)


@SETUPS.row("setup-refused", 311, REFUSED, level=Level.MUST, needs=["refused"])
async def setup_refused(context: CheckContext) -> str:
    """A SETUP with data that the target does not accept is refused:
    the ERROR is the last frame, then the connection ends.
    """
    peer = await context.connect_reactivesocket(setup=False)
    await peer.send_frame(rs.SETUP, 0, context.target.refused.encode())
    return await peer.expect_refused(
        "a SETUP with data that is not accepted was sent", needs_error=True
    )


@SETUPS.row(
    "setup-refused-requests",
    330,
    (
        "A server that rejects the SETUP of a client with requests answers with ERROR on stream "
        "0, and closes."
    ),
    needs=["refused", "publisher"],
)
async def setup_refused_requests(context: CheckContext) -> str:
    """Requests directly after a refused SETUP are not served: only the ERROR comes."""
    peer = await context.connect_reactivesocket(setup=False)
    await peer.send(
        peer.frame_bytes(rs.SETUP, 0, context.target.refused.encode()),
        peer.frame_bytes(
            rs.REQUEST_STREAM, 1, rs.encode_demand(5) + context.target.publisher.encode()
        ),
        peer.frame_bytes(rs.REQUEST_RESPONSE, 3, context.target.one.encode()),
    )
    seen = await peer.expect_refused(
        "a SETUP with data that is not accepted was sent", needs_error=True
    )
    verify(
        not peer.of_type(rs.RESPONSE),
        f"a request after a refused SETUP was served; {peer.describe_received()}",
    )
    return seen


@SETUPS.row(
    "setup-false-start",
    305,
    ("A client may send its first requests before the server has answered anything."),
    needs=["publisher"],
)
async def setup_false_start(context: CheckContext) -> str:
    """SETUP, two requests and more demand, sent at once,
    before the server has answered anything, are served.
    """
    peer = await context.connect_reactivesocket(setup=False)
    body = context.target.publisher.encode()
    await peer.send(
        peer.frame_bytes(rs.SETUP, 0, context.target.setup.encode()),
        peer.frame_bytes(rs.REQUEST_STREAM, 1, rs.encode_demand(1) + body),
        peer.frame_bytes(rs.REQUEST_STREAM, 3, rs.encode_demand(2) + body),
        peer.frame_bytes(rs.REQUEST_N, 1, rs.encode_demand(2)),
    )
    await peer.wait_elements(1, 3)
    await peer.expect_exactly(3, 2)
    return "all requests were served"


@SETUPS.row(
    "server-waits",
    308,
    ("A server may make requests of its own as soon as it has accepted a SETUP."),
)
async def server_waits(context: CheckContext) -> str:
    """Before a SETUP the server sends nothing."""
    peer = await context.connect_reactivesocket(setup=False)
    await peer.settle()
    verify(
        not peer.received and peer.ending is None, f"before any SETUP {peer.describe_received()}"
    )
    return "no frame before SETUP"


@SETUPS.row(
    "setup-accepted",
    308,
    "A server does not answer a SETUP that it accepts.",
)
async def setup_accepted(context: CheckContext) -> str:
    """After a SETUP the server sends at most its own requests, and EXT frames with the flag I."""
    peer = await context.connect_reactivesocket()
    await peer.settle()
    strange = [
        frame
        for frame in peer.received
        if frame.type not in rs.REQUESTS and not (frame.type == rs.EXT and frame.flags & rs.I)
    ]
    verify(
        not strange and peer.ending is None, f"after an acceptable SETUP {peer.describe_received()}"
    )
    return "no frame after SETUP" if not peer.received else peer.describe_received()


@SETUPS.row(
    "setup-once",
    458,
    (
        "A frame that does not fit the state of its stream is ignored. (The draft asks whether "
        "it should end something instead.)"
    ),
    level=Level.READING,
    needs=["publisher"],
)
async def setup_once(context: CheckContext) -> str:
    """A second SETUP is ignored, with any data: the connection and its streams continue."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 1, context.target.publisher)
    await peer.wait_elements(1, 1)
    await peer.send_frame(rs.SETUP, 0, context.target.refused.encode())
    await peer.grant(1, 2)
    await peer.expect_exactly(1, 3)
    await peer.expect_working()
    return "ignored"
