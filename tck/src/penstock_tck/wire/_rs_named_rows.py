"""ReactiveSocket: requests by name, whose data holds a name and a payload."""

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._named_request import PAYLOADS, named_request
from penstock_tck.wire._requirement import REACTIVESOCKET, Level, Table
from penstock_tck.wire._verdict import verify

NAMED = Table(REACTIVESOCKET)

LAYOUT = "To send a payload with the name, the data of a REQUEST_RESPONSE has this layout"
NOWHERE = "A name that leads nowhere gets ERROR"
BEYOND = (
    "Data with the mark in which the name goes beyond the end, or is not UTF-8, is data like any "
    "other."
)


@NAMED.row("named-request", 0, LAYOUT, level=Level.OWN, needs=["echo"])
async def named_request_answered(context: CheckContext) -> str:
    """A name with a payload is answered with one RESPONSE that has C set. The payload arrives
    unchanged, also if it is empty.
    """
    peer = await context.connect_reactivesocket()
    for stream, payload in zip((1, 3, 5), PAYLOADS, strict=True):
        await peer.send_frame(
            rs.REQUEST_RESPONSE, stream, named_request(context.target.echo, payload)
        )
        await peer.wait_end(stream, well=True)
        await peer.settle()
        answers = [frame.body for frame in peer.of_stream(stream)]
        verify(
            answers == [payload],
            f"{payload!r} was sent to an echo, and {answers!r} came; {peer.describe_received()}",
        )
    return f"{len(PAYLOADS)} payloads came back"


@NAMED.row("named-unknown", 0, NOWHERE, level=Level.OWN, needs=["echo", "publisher"])
async def named_unknown(context: CheckContext) -> str:
    """A name that leads nowhere, and a payload for a publisher, get ERROR alone.
    The connection continues.
    """
    peer = await context.connect_reactivesocket()
    for stream, name in ((1, context.target.missing), (3, context.target.publisher)):
        await peer.send_frame(rs.REQUEST_RESPONSE, stream, named_request(name, b"a payload"))
        await peer.wait_end(stream, well=False)
    await peer.expect_working()
    kinds = [[frame.type for frame in peer.of_stream(stream)] for stream in (1, 3)]
    verify(
        kinds == [[rs.ERROR]] * 2, f"one ERROR was expected for each; {peer.describe_received()}"
    )
    return f"{peer.of_stream(1)[0]}; {peer.of_stream(3)[0]}"


@NAMED.row("named-cut", 0, BEYOND, level=Level.OWN, needs=["echo"])
async def named_cut(context: CheckContext) -> str:
    """Data with the mark whose name would be longer than the data is not answered as a request
    by name. The connection continues.
    """
    peer = await context.connect_reactivesocket()
    await peer.send_frame(
        rs.REQUEST_RESPONSE, 1, named_request(context.target.echo, b"", missing=9)
    )
    await peer.send_frame(rs.REQUEST_RESPONSE, 3, named_request(context.target.echo, b"whole"))
    await peer.wait_end(3, well=True)
    await peer.settle()
    verify(
        [frame.body for frame in peer.of_stream(3)] == [b"whole"],
        f"an echo of b'whole' was expected; {peer.describe_received()}",
    )
    verify(not peer.completed(1), f"data that is cut off was answered; {peer.describe_received()}")
    return ", ".join(map(str, peer.of_stream(1))) or "no answer"
