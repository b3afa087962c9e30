"""ReactiveSocket: extensions in EXT frames, credentials in a SETUP, and *drain* (id 6),
if the target has them.
"""

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import REACTIVESOCKET, Level, Table
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._verdict import NotSupported, verify
from penstock_tck.wire.rsio import length_prefixed, varint

EXTENSIONS = Table(REACTIVESOCKET)

ANNOUNCED = "A server that also has the extension answers with the same frame."
REFUSED = "A refusal is ERROR on stream 0 `auth`, 250 ms after the SETUP arrived."
UNREADABLE = "Data that cannot be read is refused in the same way."
GOES_ON = "A client may also send it: streams that run go on."
NO_NUMBER = "Data that is not a varint is answered with ERROR `protocol:drain`."

KEEPALIVE, DRAIN, UNKNOWN = 1, 6, 200
DRAIN_MESSAGE = 0x45

AUTH_SECONDS = 0.5
"""A refusal of credentials comes within this time."""

WRONG = length_prefixed("bearer") + length_prefixed("penstock tck: no such token")
"""Credentials that no target accepts."""


def _extended(extension: int, code: int = 0) -> bytes:
    return (extension << 8 | code).to_bytes(4)


async def _announce(context: CheckContext, *extensions: int) -> RsPeer:
    """Open a connection and announce extensions on it.
    Fail the check as not supported if the target confirms none.
    """
    peer = await context.connect_reactivesocket()
    for extension in extensions:
        await peer.send_frame(rs.EXT, 0, _extended(extension), flags=rs.I)
    await peer.settle()
    if not any(
        frame.body == _extended(extension)
        for frame in peer.of_type(rs.EXT)
        for extension in extensions
    ):
        raise NotSupported(
            f"the target does not confirm the extension {' or '.join(map(str, extensions))}"
        )
    return peer


async def _show(context: CheckContext, credentials: bytes) -> str:
    """Send a SETUP with `credentials` and a request, and fail unless both are refused."""
    peer = await context.connect_reactivesocket(setup=False)
    body = rs.encode_demand(1) + context.target.publisher.encode()
    await peer.send(
        peer.frame_bytes(rs.SETUP, 0, credentials), peer.frame_bytes(rs.REQUEST_STREAM, 1, body)
    )
    await peer.settle_after(AUTH_SECONDS)
    errors = peer.of_stream(0, rs.ERROR)
    if not errors or errors[0].body != b"auth":
        raise NotSupported(
            "the target does not refuse a SETUP with unknown credentials with ERROR `auth`: it "
            "examines none"
        )
    seen = await peer.expect_refused("unknown credentials were shown", needs_error=True)
    verify(
        not peer.of_type(rs.RESPONSE),
        f"a request of a client that was not let in was served; {peer.describe_received()}",
    )
    return seen


@EXTENSIONS.row("ext-announced", 0, ANNOUNCED, level=Level.OWN)
async def ext_announced(context: CheckContext) -> str:
    """The keepalive, drain and an unknown extension are announced. The target confirms an extension
    at most once, and not the unknown one.
    """
    peer = await _announce(context, KEEPALIVE, DRAIN, UNKNOWN)
    confirmed = [frame.body for frame in peer.of_type(rs.EXT)]
    known = {_extended(KEEPALIVE), _extended(DRAIN)}
    verify(
        len(set(confirmed)) == len(confirmed) and set(confirmed) <= known,
        f"one EXT is due for each known extension; {peer.describe_received()}",
    )
    return ", ".join(body.hex() for body in confirmed)


@EXTENSIONS.row("auth-setup", 0, REFUSED, level=Level.OWN, needs=["publisher"])
async def auth_setup(context: CheckContext) -> str:
    """A SETUP with an unknown token is refused with ERROR `auth`, its last frame. A request
    behind the SETUP is not served.
    """
    return await _show(context, WRONG)


@EXTENSIONS.row("auth-setup-unreadable", 0, UNREADABLE, level=Level.OWN, needs=["publisher"])
async def auth_setup_unreadable(context: CheckContext) -> str:
    """A SETUP whose credentials are cut is refused as one with an unknown token is."""
    await _show(context, WRONG)
    peer = await context.connect_reactivesocket(setup=False)
    await peer.send_frame(rs.SETUP, 0, WRONG[:-1])
    seen = await peer.expect_refused("cut credentials were shown", needs_error=True)
    verify(peer.received[-1].body == b"auth", f"ERROR `auth` is due; {peer.describe_received()}")
    return seen


@EXTENSIONS.row("ext-drain-goes-on", 0, GOES_ON, level=Level.OWN, needs=["publisher"])
async def ext_drain_goes_on(context: CheckContext) -> str:
    """A client says twice that it drains:
    a stream that it reads goes on, and so does the connection.
    """
    peer = await _announce(context, DRAIN)
    await peer.request(1, 2, context.target.publisher)
    await peer.wait_elements(1, 2)
    for milliseconds in (25_000, 0):
        await peer.send_frame(
            rs.EXT, 0, _extended(DRAIN, DRAIN_MESSAGE) + varint(milliseconds), flags=rs.I
        )
    await peer.grant(1, 3)
    await peer.expect_exactly(1, 5)
    return "2 elements, a drain, 3 elements"


@EXTENSIONS.row("ext-drain-unreadable", 0, NO_NUMBER, level=Level.OWN)
async def ext_drain_unreadable(context: CheckContext) -> str:
    """A drain without data is refused with ERROR `protocol:drain`."""
    peer = await _announce(context, DRAIN)
    await peer.send_frame(rs.EXT, 0, _extended(DRAIN, DRAIN_MESSAGE), flags=rs.I)
    seen = await peer.expect_refused("a drain without a number was sent", needs_error=True)
    verify(
        peer.received[-1].body == b"protocol:drain",
        f"ERROR `protocol:drain` is due; {peer.describe_received()}",
    )
    return seen
