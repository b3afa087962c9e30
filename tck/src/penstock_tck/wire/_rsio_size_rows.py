"""RS.io: elements of a fixed size, single or packed, and large elements in parts."""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._large_elements import LARGE_BYTES, verify_large
from penstock_tck.wire._requirement import RSIO, Level, Table
from penstock_tck.wire._verdict import verify

SIZES = Table(RSIO)

FIXED = "An elementSize above 0 is the size of every element of the stream."
PACKED = "onNextPacked carries a count, and that many elements of the declared size."
SPLIT = "An element that is split comes as at least one onNextPart and then an onNextLastPart."


@SIZES.row("fixed-size", 52, FIXED, needs=["fixed"])
async def fixed_size(context: CheckContext) -> str:
    """OnSubscribe declares a size above zero. The elements that follow have this size, and as
    many come as were requested.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 7, context.target.fixed)
    await peer.expect_exactly(1, 7)
    size = peer.of_stream(1, io.ON_SUBSCRIBE)[0].numbers[0]
    verify(
        size > 0 and {len(element) for element in peer.elements(1)} == {size},
        f"7 elements of {size} bytes were expected; {peer.describe_received()}",
    )
    return f"7 elements of {size} bytes in {len(peer.of_stream(1)) - 1} messages"


@SIZES.row("packed-demand", 68, PACKED, needs=["fixed"])
async def packed_demand(context: CheckContext) -> str:
    """Each packed element uses one of the demand: 5 and 100 more bring exactly 105 elements.
    No onNextPacked is empty.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 5, context.target.fixed)
    await peer.expect_exactly(1, 5)
    await peer.send(io.request(1, 100))
    await peer.expect_exactly(1, 105)
    counts = [message.numbers[0] for message in peer.of_stream(1, io.ON_NEXT_PACKED)]
    verify(0 not in counts, f"an onNextPacked without an element came; {peer.describe_received()}")
    return f"105 of 105; packed: {counts or 'none'}"


@SIZES.row(
    "packed-only-fixed",
    65,
    ("A publisher may pack elements into onNextPacked if it has declared their size."),
    needs=["publisher"],
)
async def packed_only_fixed(context: CheckContext) -> str:
    """In a stream whose elementSize is 0 no onNextPacked comes:
    its receiver could not know where it ends.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 50, context.target.publisher)
    await peer.expect_exactly(1, 50)
    verify(
        not peer.of_stream(1, io.ON_NEXT_PACKED)
        or peer.of_stream(1, io.ON_SUBSCRIBE)[0].numbers[0],
        f"packed elements came; {peer.describe_received()}",
    )
    return "50 elements, none packed"


@SIZES.row("split", 72, SPLIT, needs=["large"])
async def split(context: CheckContext) -> str:
    """Three large elements come in parts of at most 65,536 bytes. A demand of 2 brings two of them.
    Joined, they are the prescribed ones: no part is lost, repeated or in another's place.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 2, context.target.large)
    await peer.expect_exactly(1, 2)
    await peer.send(io.request(1, 1))
    await peer.wait_elements(1, 3)
    verify_large(peer.elements(1))
    sizes = {len(message.body) for message in peer.of_stream(1)}
    verify(
        max(sizes) <= 65_536,
        (
            f"a message of {max(sizes)} bytes came; a peer need not accept more than 65,536 bytes "
            "in one message"
        ),
    )
    return (
        f"3 elements of {LARGE_BYTES} bytes in "
        f"{len(peer.of_stream(1, io.ON_NEXT_PART, io.ON_NEXT_LAST_PART))} parts"
    )


@SIZES.row(
    "split-shared",
    70,
    ("A publisher may split a large element, so that it does not hold up other streams."),
    level=Level.READING,
    needs=["large", "publisher"],
)
async def split_shared(context: CheckContext) -> str:
    """While parts of large elements are sent, other streams are served. All elements arrive whole,
    and the large ones are the prescribed ones.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 2, context.target.large)
    await peer.subscribe(2, 5, context.target.publisher)
    await peer.wait_elements(1, 2)
    await peer.expect_exactly(2, 5)
    verify_large(peer.elements(1))
    return f"2 of {LARGE_BYTES} bytes, beside 5 small ones"


@SIZES.row(
    "split-cancelled",
    41,
    "cancel ends the stream of a subscriber.",
    level=Level.READING,
    needs=["large", "publisher"],
)
async def split_cancelled(context: CheckContext) -> str:
    """A cancel between parts of a large element ends the stream: only parts that were already in
    transit may come, and requests have no effect.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 1, context.target.large)
    await peer.wait_until(lambda: len(peer.of_stream(1)) > 1, "a part")
    await peer.send(io.cancel(1))
    await peer.settle()
    before = len(peer.of_stream(1))
    await peer.send(io.request(1, 1))
    await peer.expect_working()
    await peer.settle()
    verify(
        len(peer.of_stream(1)) == before and not peer.ended(1),
        f"messages came on a cancelled stream, or its end; {peer.describe_received()}",
    )
    return "no message after cancel"
