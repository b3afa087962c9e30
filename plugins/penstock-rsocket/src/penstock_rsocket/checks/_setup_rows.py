"""SETUP and RESUME: the first frame of a connection, and how a server refuses it; leases."""

import secrets
from typing import Final

import trio
from penstock_tck.wire import CheckContext, Level, NotSupported, Table, verify

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._peer import RSOCKET, RsocketPeer, connect

SETUPS = Table(RSOCKET)

ESTABLISHMENT: Final = "Connection Establishment"
SETUP: Final = "SETUP Frame"
RESUME: Final = "Resume Operation"
LEASE: Final = "Lease Semantics"
UNEXPECTED: Final = "Handling the Unexpected"

FIRST: Final = (
    "A server MUST answer a first frame other than SETUP and RESUME, or one on another stream than "
    "0, with ERROR[INVALID_SETUP], and close."
)
REFUSED: Final = (
    "A server that does not accept a SETUP MUST send an ERROR that says so, and then close."
)
MANY_REQUESTS: Final = 1000
"""A lease of more requests is not used up."""


async def _refused_setup(context: CheckContext, why: str, body: bytes, *, flags: int = 0) -> str:
    peer = await connect(context, setup=False)
    await peer.send_frame(rs.SETUP, 0, body, flags=flags)
    return await peer.expect_refused(why, rs.SETUP_REFUSED)


@SETUPS.row("setup-first", ESTABLISHMENT, FIRST, level=Level.MUST, needs=["publisher"])
async def setup_first(context: CheckContext) -> str:
    """A REQUEST_STREAM before any SETUP gets no element: ERROR[INVALID_SETUP] on stream 0, then
    the end of the connection.
    """
    peer = await connect(context, setup=False)
    await peer.stream(context.target.publisher, 2)
    seen = await peer.expect_refused("a request came before any SETUP", [rs.INVALID_SETUP])
    verify(
        not peer.of_type(rs.PAYLOAD),
        f"a request before SETUP was served; {peer.describe_received()}",
    )
    return seen


@SETUPS.row("setup-first-keepalive", ESTABLISHMENT, FIRST, level=Level.MUST)
async def setup_first_keepalive(context: CheckContext) -> str:
    """A KEEPALIVE, which is about stream 0, is no first frame either."""
    peer = await connect(context, setup=False)
    await peer.send_frame(rs.KEEPALIVE, 0, bytes(8), flags=rs.R)
    seen = await peer.expect_refused("a KEEPALIVE came before any SETUP", [rs.INVALID_SETUP])
    verify(
        not peer.of_type(rs.KEEPALIVE),
        f"a KEEPALIVE before SETUP was answered; {peer.describe_received()}",
    )
    return seen


@SETUPS.row("setup-stream-zero", ESTABLISHMENT, FIRST, level=Level.MUST)
async def setup_stream_zero(context: CheckContext) -> str:
    """A SETUP on stream 1 is refused with ERROR[INVALID_SETUP] on stream 0."""
    peer = await connect(context, setup=False)
    await peer.send_frame(rs.SETUP, 1, rs.setup_body(context.target.setup.encode()))
    return await peer.expect_refused("a SETUP came on stream 1", [rs.INVALID_SETUP])


@SETUPS.row("setup-version", ESTABLISHMENT, REFUSED, level=Level.MUST)
async def setup_version(context: CheckContext) -> str:
    """A SETUP of version 99.0 is refused: every change of a version is incompatible. The code is
    INVALID_SETUP, UNSUPPORTED_SETUP or REJECTED_SETUP.
    """
    return await _refused_setup(
        context, "a SETUP of version 99.0 was sent", rs.setup_body(major=99)
    )


@SETUPS.row("setup-cut", ESTABLISHMENT, REFUSED, level=Level.MUST)
async def setup_cut(context: CheckContext) -> str:
    """A SETUP that ends within its first MIME type is refused, with one of the three codes."""
    return await _refused_setup(
        context, "a SETUP that ends within a MIME type was sent", rs.setup_body()[:20]
    )


@SETUPS.row("setup-refused", ESTABLISHMENT, REFUSED, level=Level.MUST, needs=["refused"])
async def setup_refused(context: CheckContext) -> str:
    """A SETUP with data that the target does not accept is refused, with one of the three codes:
    the ERROR is the last frame.
    """
    return await _refused_setup(
        context,
        "a SETUP with data that is not accepted was sent",
        rs.setup_body(context.target.refused.encode()),
    )


@SETUPS.row(
    "setup-refused-requests",
    "Sequences without LEASE",
    "After a refused SETUP an ERROR comes, and the connection closes, whatever was requested.",
    needs=["refused", "publisher"],
)
async def setup_refused_requests(context: CheckContext) -> str:
    """Requests directly after a refused SETUP are not served: only the ERROR comes."""
    peer = await connect(context, setup=False)
    name = context.target.publisher
    await peer.send(
        peer.frame(rs.SETUP, 0, rs.setup_body(context.target.refused.encode())),
        peer.request_frame(rs.REQUEST_STREAM, 1, name, demand=5),
        peer.request_frame(rs.REQUEST_STREAM, 3, name, demand=5),
    )
    seen = await peer.expect_refused(
        "a SETUP with data that is not accepted was sent", rs.SETUP_REFUSED
    )
    verify(
        not peer.of_type(rs.PAYLOAD),
        f"a request after a refused SETUP was served; {peer.describe_received()}",
    )
    return seen


@SETUPS.row(
    "setup-false-start",
    ESTABLISHMENT,
    "A client without the lease flag may send requests at once after its SETUP.",
    needs=["publisher"],
)
async def setup_false_start(context: CheckContext) -> str:
    """SETUP, two requests and more demand, sent at once, are served."""
    peer = await connect(context, setup=False)
    name = context.target.publisher
    await peer.send(
        peer.setup(),
        peer.request_frame(rs.REQUEST_STREAM, 1, name, demand=1),
        peer.request_frame(rs.REQUEST_STREAM, 3, name, demand=2),
        peer.frame(rs.REQUEST_N, 1, rs.number(2)),
    )
    await peer.wait_elements(1, 3)
    await peer.expect_exactly(3, 2)
    return "all requests were served"


@SETUPS.row(
    "server-waits",
    ESTABLISHMENT,
    "Until the connection is established, requests MUST NOT be sent, nor PAYLOADs.",
    level=Level.MUST,
)
async def server_waits(context: CheckContext) -> str:
    """Before a SETUP the server sends no request, no PAYLOAD, and does not close."""
    peer = await connect(context, setup=False)
    await peer.settle()
    verify(
        not peer.of_type(*rs.REQUESTS, rs.PAYLOAD) and peer.ending is None,
        f"before any SETUP {peer.describe_received()}",
    )
    return "nothing before SETUP"


@SETUPS.row(
    "setup-accepted",
    ESTABLISHMENT,
    "A SETUP is refused with an ERROR; no frame says that it was accepted.",
)
async def setup_accepted(context: CheckContext) -> str:
    """After a SETUP without the lease flag the server sends no ERROR, PAYLOAD, SETUP or RESUME_OK.
    Requests of its own, KEEPALIVE, LEASE and METADATA_PUSH may come.
    """
    peer = await connect(context)
    await peer.settle()
    strange = peer.of_type(rs.ERROR, rs.PAYLOAD, rs.SETUP, rs.RESUME, rs.RESUME_OK)
    verify(
        not strange and peer.ending is None, f"after an acceptable SETUP {peer.describe_received()}"
    )
    return peer.describe_received()


@SETUPS.row(
    "setup-once",
    UNEXPECTED,
    "A server MUST ignore a SETUP after one that it has accepted.",
    level=Level.MUST,
    needs=["publisher"],
)
async def setup_once(context: CheckContext) -> str:
    """A second SETUP, even of another version, is ignored: the connection and its streams
    continue.
    """
    peer = await connect(context)
    stream = await peer.stream(context.target.publisher, 1)
    await peer.wait_elements(stream, 1)
    await peer.send(peer.setup(), peer.frame(rs.SETUP, 0, rs.setup_body(major=99)))
    await peer.grant(stream, 2)
    await peer.expect_exactly(stream, 3)
    await peer.expect_working()
    verify(not peer.of_stream(0, rs.ERROR), f"an ERROR came; {peer.describe_received()}")
    return "ignored"


async def _zero_time(context: CheckContext, body: bytes) -> str:
    peer = await connect(context, setup=False)
    await peer.send_frame(rs.SETUP, 0, body)
    return await peer.refused_or_working("a time of 0 was sent in SETUP", rs.SETUP_REFUSED)


TIMES: Final = "The two times of a SETUP MUST be above 0."


@SETUPS.row("setup-interval-zero", SETUP, TIMES, level=Level.READING, needs=["publisher"])
async def setup_interval_zero(context: CheckContext) -> str:
    """The demand binds the client. A server refuses an interval of 0 as any other SETUP, or goes
    on: nothing else.
    """
    return await _zero_time(context, rs.setup_body(context.target.setup.encode(), interval=0))


@SETUPS.row("setup-lifetime-zero", SETUP, TIMES, level=Level.READING, needs=["publisher"])
async def setup_lifetime_zero(context: CheckContext) -> str:
    """The demand binds the client. A server refuses a lifetime of 0 as any other SETUP, or goes
    on: nothing else.
    """
    return await _zero_time(context, rs.setup_body(context.target.setup.encode(), lifetime=0))


@SETUPS.row(
    "setup-resume",
    SETUP,
    (
        "A server without resuming MUST refuse a SETUP with the resume flag, with "
        "ERROR[REJECTED_SETUP]."
    ),
    level=Level.MUST,
    needs=["publisher"],
)
async def setup_resume(context: CheckContext) -> str:
    """A SETUP with a token is refused in this way, or the connection works."""
    peer = await connect(context, setup=False)
    await peer.send(peer.setup(flags=rs.R, token=b"a token of the check"))
    return await peer.refused_or_working(
        "a SETUP with the resume flag was sent", [rs.REJECTED_SETUP]
    )


@SETUPS.row(
    "resume-goes-on",
    RESUME,
    (
        "A RESUME with a token that the server has accepted, and with positions that it can serve, "
        "gets RESUME_OK with the position of the server; then the frames that the client lacks."
    ),
    needs=["publisher"],
)
async def resume_goes_on(context: CheckContext) -> str:
    """A connection whose SETUP had a token, and was not refused, is cut after three elements. A
    RESUME that names the position after the first one gets RESUME_OK with the position after the
    request, and the other two once more; the stream goes on. A target that refuses the SETUP is not
    asked. (The check settles before it cuts, so that all positions are known.)
    """
    # Of this run alone: a server may hold a connection of the run before.
    token = secrets.token_hex(16).encode()
    lost = await connect(context, setup=False)
    await lost.send(lost.setup(flags=rs.R, token=token))
    stream = lost.next_id()
    request = lost.request_frame(rs.REQUEST_STREAM, stream, context.target.publisher, demand=3)
    await lost.send(request)
    await lost.wait_until(
        lambda: len(lost.elements(stream)) == 3 or lost.of_stream(0, rs.ERROR) or lost.ending,
        "three elements, or an ERROR that refuses the SETUP,",
    )
    await lost.settle()
    if lost.ending or lost.of_stream(0, rs.ERROR):
        raise NotSupported(f"the target does not resume; {lost.describe_received()}")
    received = _position_after_first(lost, stream)
    sent = len(request) - (0 if lost.connection.framed else 3)
    await lost.connection.abort()
    await trio.sleep(context.target.quiet)  # until the target has noticed the loss
    back = await connect(context, setup=False)
    await back.send_frame(rs.RESUME, 0, rs.resume_body(token, received=received))
    await back.wait_until(lambda: back.of_stream(0, rs.RESUME_OK, rs.ERROR), "RESUME_OK")
    answer = back.of_stream(0, rs.RESUME_OK, rs.ERROR)[0]
    verify(
        answer.type == rs.RESUME_OK,
        f"the SETUP with this token was accepted, and {back.describe_received()}",
    )
    position = int.from_bytes(answer.body[:8])
    verify(position == sent, f"{sent} bytes of frames were sent, and the position is {position}")
    await back.expect_exactly(stream, 2)
    await back.grant(stream, 1)
    await back.expect_exactly(stream, 3)
    return "2 elements came once more, and the stream went on"


def _position_after_first(peer: RsocketPeer, stream: int) -> int:
    """Return the position up to which a client has received if only one element has come."""
    position = 0
    for frame in peer.received:
        if frame.stream:
            position += rs.HEADER + len(frame.body)
        if frame.stream == stream:
            break
    return position


@SETUPS.row(
    "resume-unknown",
    RESUME,
    (
        "A server that does not know the token of a RESUME, or does not resume at all, MUST send "
        "ERROR[REJECTED_RESUME]."
    ),
    level=Level.MUST,
)
async def resume_unknown(context: CheckContext) -> str:
    """A RESUME with a token that no connection had is refused with this code. It is the last
    frame.
    """
    peer = await connect(context, setup=False)
    await peer.send_frame(rs.RESUME, 0, rs.resume_body(b"no such token"))
    await peer.wait_until(lambda: peer.of_stream(0, rs.ERROR), "an ERROR")
    await peer.settle()
    last = peer.received[-1]
    verify(
        last.type == rs.ERROR and last.number == rs.REJECTED_RESUME,
        f"ERROR[REJECTED_RESUME] was due as the last frame; {peer.describe_received()}",
    )
    return str(last)


@SETUPS.row(
    "resume-after-setup",
    RESUME,
    "A server that gets a RESUME after a SETUP SHOULD send ERROR[CONNECTION_ERROR].",
    level=Level.SHOULD,
)
async def resume_after_setup(context: CheckContext) -> str:
    """A RESUME on a connection that is established gets an ERROR with this code on stream 0."""
    peer = await connect(context)
    await peer.send_frame(rs.RESUME, 0, rs.resume_body(b"no such token"))
    await peer.wait_until(lambda: peer.of_stream(0, rs.ERROR), "an ERROR on stream 0")
    error = peer.of_stream(0, rs.ERROR)[0]
    verify(
        error.number == rs.CONNECTION_ERROR,
        f"the code {rs.CONNECTION_ERROR:#05x} was due; {peer.describe_received()}",
    )
    return str(error)


# --- leases


async def _leased(context: CheckContext) -> tuple[RsocketPeer, int]:
    """Return a client with a LEASE, and its number of requests."""
    peer = await connect(context, setup=False)
    await peer.send(peer.setup(flags=rs.L))
    await peer.wait_until(
        lambda: peer.of_type(rs.LEASE) or peer.of_stream(0, rs.ERROR) or peer.ending,
        "a LEASE, or an ERROR that refuses the SETUP,",
    )
    if not peer.of_type(rs.LEASE):
        seen = await peer.expect_refused("a SETUP with the lease flag was sent", rs.SETUP_REFUSED)
        raise NotSupported(f"the target has no leases: {seen}")
    frame = peer.of_type(rs.LEASE)[-1]
    return peer, int.from_bytes(frame.body[4:8])


@SETUPS.row(
    "lease-granted",
    ESTABLISHMENT,
    "A server that accepts a SETUP with the lease flag MUST send a LEASE.",
    level=Level.MUST,
)
async def lease_granted(context: CheckContext) -> str:
    """A LEASE comes on stream 0. Its time and its number of requests have 31 bits."""
    peer, allowed = await _leased(context)
    frame = peer.of_type(rs.LEASE)[0]
    verify(
        frame.stream == 0
        and len(frame.body) >= 8
        and 0 <= frame.number <= rs.UNBOUNDED
        and allowed <= rs.UNBOUNDED,
        f"a LEASE that cannot be read; {peer.describe_received()}",
    )
    return f"{allowed} requests for {frame.number} ms"


@SETUPS.row(
    "lease-exceeded",
    LEASE,
    "A request above the lease MUST get ERROR[REJECTED].",
    level=Level.MUST,
    needs=["publisher"],
)
async def lease_exceeded(context: CheckContext) -> str:
    """As many requests as the LEASE allows are served, and two more get ERROR[REJECTED], unless
    another LEASE has come. (A lease of more than 1,000 requests is not used up.)
    """
    peer, allowed = await _leased(context)
    if allowed > MANY_REQUESTS:
        raise NotSupported(f"the lease has {allowed} requests, too many to be used up")
    name = context.target.publisher
    ids = [peer.next_id() for _ in range(allowed + 2)]
    await peer.send(
        *(peer.request_frame(rs.REQUEST_STREAM, stream, name, demand=1) for stream in ids)
    )
    await peer.wait_until(lambda: all(peer.of_stream(stream) for stream in ids), "all answers")
    if len(peer.of_type(rs.LEASE)) > 1:
        raise NotSupported("another lease came before the first was used up")
    served = [stream for stream in ids if peer.elements(stream)]
    refused = [
        frame.number for stream in ids[allowed:] for frame in peer.of_stream(stream, rs.ERROR)
    ]
    verify(
        served == ids[:allowed] and refused == [rs.REJECTED] * 2,
        (
            f"the lease had {allowed} requests; of {len(ids)} {len(served)} were served; "
            f"{peer.describe_received()}"
        ),
    )
    return f"{allowed} served, 2 rejected"
