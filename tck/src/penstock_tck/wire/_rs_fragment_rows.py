"""ReactiveSocket: large elements, whole or in fragments whose first and last frame are marked."""

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._large_elements import LARGE_BYTES, large_element, verify_large
from penstock_tck.wire._requirement import REACTIVESOCKET, Level, Table
from penstock_tck.wire._verdict import verify

FRAGMENTS = Table(REACTIVESOCKET)

BITS = "The first fragment of an element must have the flag B, and the last one the flag E."
WHOLE = "A RESPONSE with both B and E is a whole element."


@FRAGMENTS.row("fragments-marked", 341, BITS, level=Level.MUST, needs=["large"])
async def fragments_marked(context: CheckContext) -> str:
    """A large element comes in one RESPONSE, or in several: B is set on the first, E on the last,
    neither on those between. Joined, they are the prescribed elements: no fragment is lost,
    repeated or in another's place.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 3, context.target.large)
    await peer.wait_elements(1, 3)
    is_open = False
    for frame in peer.of_stream(1, rs.RESPONSE):
        begin, end = bool(frame.flags & rs.B), bool(frame.flags & rs.E)
        if not begin and not end and not is_open and len(frame.body) < LARGE_BYTES:
            verify(
                frame.flags & rs.C and not frame.body,
                f"a fragment came before any frame with B; {peer.describe_received()}",
            )
            continue
        verify(
            begin is not is_open or (not begin and not end),
            f"frames with B and E do not alternate; {peer.describe_received()}",
        )
        is_open = (is_open or begin) and not end
    verify_large(peer.elements(1)[:3])
    return f"3 elements of {LARGE_BYTES} bytes in {len(peer.of_stream(1, rs.RESPONSE))} frames"


@FRAGMENTS.row("whole-marked", 341, WHOLE, needs=["publisher"])
async def whole_marked(context: CheckContext) -> str:
    """A small element comes in one RESPONSE with B and E set."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 3, context.target.publisher)
    await peer.expect_exactly(1, 3)
    bare = [
        frame
        for frame in peer.of_stream(1, rs.RESPONSE)
        if frame.flags & (rs.B | rs.E) != rs.B | rs.E
    ]
    verify(not bare, f"a whole element came without B or E: {', '.join(map(str, bare[:3]))}")
    return "B and E on each of 3"


@FRAGMENTS.row(
    "fragments-complete",
    247,
    "The flag C stands for COMPLETE.",
    level=Level.READING,
    needs=["large", "three", "one"],
)
async def fragments_complete(context: CheckContext) -> str:
    """C is set on a whole element, on the last fragment of an element, or on a RESPONSE without an
    element. It is never set on another fragment.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 9, context.target.three)
    await peer.send_frame(rs.REQUEST_RESPONSE, 3, context.target.one.encode())
    await peer.send_frame(rs.REQUEST_RESPONSE, 5, context.target.large.encode())
    for stream in (1, 3, 5):
        await peer.wait_until(
            lambda stream=stream: peer.completed(stream),  # type: ignore[misc]  # bound in the loop
            f"COMPLETE on stream {stream}",
        )
    await peer.settle()
    wrong = [
        frame
        for frame in peer.of_type(rs.RESPONSE)
        if frame.flags & rs.C and not frame.flags & rs.E and (frame.body or frame.flags & rs.B)
    ]
    verify(
        not wrong, f"C stands on a fragment that is not the last: {', '.join(map(str, wrong[:3]))}"
    )
    verify(
        peer.elements(5) == [large_element(0)],
        f"the first large element was expected on stream 5; {peer.describe_received()}",
    )
    return "C was set only where an element or the stream ends"


@FRAGMENTS.row(
    "fragments-cancelled",
    404,
    "A stream is over for the responder when CANCEL has arrived.",
    level=Level.READING,
    needs=["large", "publisher"],
)
async def fragments_cancelled(context: CheckContext) -> str:
    """A CANCEL while fragments of a large element arrive ends the stream: no more frames of it
    come, and other streams continue.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 2, context.target.large)
    await peer.wait_until(lambda: peer.of_stream(1), "a fragment")
    await peer.cancel(1)
    await peer.settle()
    before = len(peer.of_stream(1))
    await peer.grant(1, 1)
    await peer.expect_working()
    await peer.settle()
    verify(
        len(peer.of_stream(1)) == before,
        f"frames came on a cancelled stream; {peer.describe_received()}",
    )
    verify(
        not peer.completed(1) and not peer.failed(1),
        f"COMPLETE or ERROR came on a cancelled stream; {peer.describe_received()}",
    )
    return "no frame after CANCEL"


@FRAGMENTS.row(
    "fragments-share",
    340,
    "A large element may be sent as several RESPONSEs, its fragments.",
    level=Level.READING,
    needs=["large", "publisher"],
)
async def fragments_share(context: CheckContext) -> str:
    """Fragments of an element are not mixed with other elements of the same stream. Other streams
    are served in between, and all arrive whole.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 2, context.target.large)
    await peer.request(3, 5, context.target.publisher)
    await peer.wait_elements(1, 2)
    await peer.expect_exactly(3, 5)
    verify_large(peer.elements(1))
    return f"2 of {LARGE_BYTES} bytes, beside 5 small ones"
