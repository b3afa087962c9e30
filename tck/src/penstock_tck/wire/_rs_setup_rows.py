"""ReactiveSocket: SETUP comes first, once and on stream 0; a server accepts it in silence, or refuses it in words."""

from penstock_tck.wire import _rs_frames as rs
from penstock_tck.wire._lab import Lab
from penstock_tck.wire._requirement import Level, Table
from penstock_tck.wire._verdict import verify

SETUPS = Table()

FIRST = "Immediately upon successful connection, the client MUST send a SETUP frame with Stream ID of 0."
REFUSED = (
    "If the server does NOT accept the contents of the SETUP frame, the server MUST send back an ERROR on Stream ID 0 "
    "and then close the connection."
)


@SETUPS.row("setup-first", 304, FIRST, level=Level.MUST, needs=["publisher"])
async def setup_first(lab: Lab) -> str:
    """A server holds its clients to that: a request without a SETUP before it is not served, and the connection is ended."""
    peer = await lab.reactivesocket(introduced=False)
    await peer.request(1, 2, lab.target.publisher)
    seen = await peer.refused("a request came before any SETUP")
    verify(not peer.of(rs.RESPONSE), f"a request before SETUP was served; {peer.story()}")
    return seen


@SETUPS.row("setup-stream-zero", 78, "Setup headers must always use Stream ID 0 as they pertain to the connection.", level=Level.MUST)
async def setup_stream_zero(lab: Lab) -> str:
    """A SETUP on stream 1 is refused: ERROR on stream 0, and the end."""
    peer = await lab.reactivesocket(introduced=False)
    await peer.say(rs.SETUP, 1, lab.target.setup.encode())
    return await peer.refused("a SETUP came on stream 1", told=True)


@SETUPS.row("setup-version", 311, REFUSED, level=Level.MUST)
async def setup_version(lab: Lab) -> str:
    """A SETUP of version 1, which is not the current one, is refused like this."""
    peer = await lab.reactivesocket(introduced=False)
    await peer.say(rs.SETUP, 0, lab.target.setup.encode(), version=1)
    return await peer.refused("a SETUP of version 1 was sent", told=True)


@SETUPS.row("setup-refused", 311, REFUSED, level=Level.MUST, needs=["refused"])
async def setup_refused(lab: Lab) -> str:
    """A SETUP whose data the target does not accept is refused like this: the ERROR is the last frame, and the end follows."""
    peer = await lab.reactivesocket(introduced=False)
    await peer.say(rs.SETUP, 0, lab.target.refused.encode())
    return await peer.refused("a SETUP with data that is not accepted was sent", told=True)


@SETUPS.row(
    "setup-refused-requests", 330, "Server rejects SETUP, sends back ERROR stream ID 0, closes connection", needs=["refused", "publisher"]
)
async def setup_refused_requests(lab: Lab) -> str:
    """Requests right behind a SETUP that is refused are not served: nothing but the ERROR comes."""
    peer = await lab.reactivesocket(introduced=False)
    await peer.send(
        peer.bytes_of(rs.SETUP, 0, lab.target.refused.encode()),
        peer.bytes_of(rs.REQUEST_STREAM, 1, rs.number(5) + lab.target.publisher.encode()),
        peer.bytes_of(rs.REQUEST_RESPONSE, 3, lab.target.one.encode()),
    )
    seen = await peer.refused("a SETUP with data that is not accepted was sent", told=True)
    verify(not peer.of(rs.RESPONSE), f"a request behind a refused SETUP was served; {peer.story()}")
    return seen


@SETUPS.row(
    "setup-false-start",
    305,
    "The client-side Requester may send requests immediately if it so desires without waiting for a response from the server.",
    needs=["publisher"],
)
async def setup_false_start(lab: Lab) -> str:
    """SETUP, two requests and more demand in one piece, before the server had a chance to say anything, are served."""
    peer = await lab.reactivesocket(introduced=False)
    body = lab.target.publisher.encode()
    await peer.send(
        peer.bytes_of(rs.SETUP, 0, lab.target.setup.encode()),
        peer.bytes_of(rs.REQUEST_STREAM, 1, rs.number(1) + body),
        peer.bytes_of(rs.REQUEST_STREAM, 3, rs.number(2) + body),
        peer.bytes_of(rs.REQUEST_N, 1, rs.number(2)),
    )
    await peer.wait_elements(1, 3)
    await peer.exactly(3, 2)
    return "all were served"


@SETUPS.row("server-waits", 308, "The server-side Requester may send requests immediately upon receiving a SETUP frame that it accepts.")
async def server_waits(lab: Lab) -> str:
    """So not earlier: before a SETUP the server says nothing at all."""
    peer = await lab.reactivesocket(introduced=False)
    await peer.settle()
    verify(not peer.frames and peer.over is None, f"before any SETUP {peer.story()}")
    return "silent before SETUP"


@SETUPS.row("setup-accepted", 308, "If the server accepts the contents of the SETUP frame, it does nothing special.")
async def setup_accepted(lab: Lab) -> str:
    """After a SETUP there comes nothing but, perhaps, requests of the server's own and EXT frames that may be ignored."""
    peer = await lab.reactivesocket()
    await peer.settle()
    strange = [frame for frame in peer.frames if frame.type not in rs.REQUESTS and not (frame.type == rs.EXT and frame.flags & rs.I)]
    verify(not strange and peer.over is None, f"after a SETUP that is to be accepted {peer.story()}")
    return "nothing special" if not peer.frames else peer.story()


@SETUPS.row(
    "setup-once",
    458,
    "Recieving a header in a state that is not specified means it is ignored (or causes termination?)",
    level=Level.READING,
    needs=["publisher"],
)
async def setup_once(lab: Lab) -> str:
    """A second SETUP is ignored, whatever its data: the connection and its streams go on."""
    peer = await lab.reactivesocket()
    await peer.request(1, 1, lab.target.publisher)
    await peer.wait_elements(1, 1)
    await peer.say(rs.SETUP, 0, lab.target.refused.encode())
    await peer.grant(1, 2)
    await peer.exactly(1, 3)
    await peer.works()
    return "ignored"
