"""RS.io: a stream from its subscribe to its end, demand, and ids."""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import RSIO, Level, Table
from penstock_tck.wire._rsio_peer import RsioPeer
from penstock_tck.wire._target import SLOW_ATTEMPTS
from penstock_tck.wire._verdict import Failed, verify

STREAMS = Table(RSIO)

INITIAL = (
    "subscribe names a publisher, gives the stream an id, and may request elements; if it "
    "has no demand, it requests 0."
)
REQUEST = "request adds a demand, a Long, to the stream of a subscriber."
CANCEL = "cancel ends the stream of a subscriber."
ON_SUBSCRIBE = (
    "onSubscribe tells a subscriber that its stream is accepted, and the size of the "
    "elements (0 if they have no fixed size)."
)
COMPLETE = "onComplete tells a subscriber that its stream is complete."
ERROR = "onError tells a subscriber that its stream has failed, and gives the error as text."
REUSE = "The id of a stream that is over may be given to a new stream."
SEMANTICS = "Signals keep the order of Reactive Streams, and may be delivered later, as there."
BOTH = "Both sides may subscribe and publish over one connection."
MANY = 100


@STREAMS.row("on-subscribe", 42, ON_SUBSCRIBE, needs=["publisher", "three"])
async def on_subscribe(context: CheckContext) -> str:
    """OnSubscribe comes once for each of four streams, before its first element, with
    or without demand.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 0, context.target.publisher)
    for stream in (2, 3, 4):
        await peer.subscribe(stream, 3, context.target.three)
    await peer.wait_until(
        lambda: peer.of_stream(1) and len(peer.elements(4)) == 3,
        "onSubscribe of four streams, and three elements of the last,",
    )
    await peer.settle()
    first = [peer.of_stream(stream)[0].type for stream in (1, 2, 3, 4)]
    count = [len(peer.of_stream(stream, io.ON_SUBSCRIBE)) for stream in (1, 2, 3, 4)]
    verify(
        first == [io.ON_SUBSCRIBE] * 4 and count == [1] * 4,
        (
            "one onSubscribe was expected for each stream, before its elements; "
            f"{peer.describe_received()}"
        ),
    )
    return str(peer.of_stream(1)[0])


@STREAMS.row("complete", 44, COMPLETE, needs=["three", "empty"])
async def complete(context: CheckContext) -> str:
    """A stream of three elements sends them, in order, and then onComplete. An empty stream sends
    only onComplete. Each of four streams gets one.
    """
    peer = await context.connect_rsio()
    for stream in (1, 3):
        await peer.subscribe(stream, 9, context.target.three)
        await peer.subscribe(stream + 1, 1, context.target.empty)
    for stream in (1, 2, 3, 4):
        await peer.wait_end(stream, well=True)
    await peer.settle()
    counts = [len(peer.elements(stream)) for stream in (1, 2, 3, 4)]
    verify(
        counts == [3, 0, 3, 0],
        f"3 and 0 elements were expected, twice, and {counts} came; {peer.describe_received()}",
    )
    await _expect_nothing_after_end(peer, 1, 2, 3, 4)
    return "3 and onComplete; onComplete; both twice"


@STREAMS.row("error", 45, ERROR, needs=["failing"])
async def error(context: CheckContext) -> str:
    """A publisher that fails, a name without a publisher, and a name that is not UTF-8 give
    onError. The connection continues.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 20, context.target.failing)
    await peer.send(io.subscribe(context.target.missing, 2, 1) + io.subscribe(b"\xff\xfe", 3, 1))
    for stream in (1, 2, 3):
        await peer.wait_end(stream, well=False)
    await peer.settle()
    verify(
        peer.ending is None and not peer.of_type(io.GOODBYE),
        f"the connection ended because of an error of one stream; {peer.describe_received()}",
    )
    await _expect_nothing_after_end(peer, 1, 2, 3)
    return ", ".join(str(peer.ended(stream)) for stream in (1, 2, 3))


@STREAMS.row("end-is-last", 47, SEMANTICS, needs=["three", "failing", "publisher"])
async def end_is_last(context: CheckContext) -> str:
    """After onComplete and after onError nothing comes for the stream;
    requests and cancels for it are ignored.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 20, context.target.three)
    await peer.subscribe(2, 20, context.target.failing)
    for stream in (1, 2):
        await peer.wait_until(
            lambda stream=stream: peer.ended(stream),  # type: ignore[misc]  # bound in the loop
            f"the end of stream {stream}",
        )
        await peer.send(io.request(stream, 5) + io.cancel(stream) + io.request(stream, 5))
    await _expect_nothing_after_end(peer, 1, 2)
    await peer.expect_working()
    return "no message after the end"


@STREAMS.row("cancel", 41, CANCEL, needs=["publisher", "slow"])
async def cancelled(context: CheckContext) -> str:
    """After a cancel only elements that were already in transit come: requests have no effect, the
    element of a slow publisher does not come, and no stream gets an end. Its publisher has not
    ended, and the id may belong to another stream already.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 3, context.target.publisher)
    await peer.subscribe(3, io.UNBOUNDED, context.target.publisher)
    await peer.wait_elements(1, 3)
    await peer.send(io.cancel(1) + io.cancel(3))
    slow = await _cancel_slow(context, peer)
    await peer.settle_after(2 * context.target.quiet)
    streams = 1, 3, slow
    before = [len(peer.elements(stream)) for stream in streams]
    verify(
        not peer.elements(slow),
        f"an element came after its stream was cancelled; {peer.describe_received()}",
    )
    for stream in streams:
        await peer.send(io.request(stream, 2))
    await peer.expect_working()
    await peer.settle()
    after = [len(peer.elements(stream)) for stream in streams]
    verify(
        before == after,
        f"elements came for a request on cancelled streams; {peer.describe_received()}",
    )
    ended = [stream for stream in streams if peer.ended(stream)]
    verify(
        not ended,
        f"onComplete or onError came on the cancelled streams {ended}; {peer.describe_received()}",
    )
    return "no message, and requests have no effect"


async def _cancel_slow(context: CheckContext, peer: RsioPeer) -> int:
    """Cancel a stream of the slow publisher while the target waits for its element,
    and return its id.
    """
    for stream in range(4, 4 + SLOW_ATTEMPTS):
        await peer.subscribe(stream, 1, context.target.slow)
        await peer.expect_working()  # the publisher has begun
        await peer.send(io.cancel(stream))
        await peer.expect_working()  # the target has read the cancel
        if not peer.elements(stream):
            return stream
        # The element may have been in transit before the cancel was read. On a busy machine two
        # answers may take longer than the publisher.
    text = (
        f"the element of the slow publisher came {SLOW_ATTEMPTS} times before the target had read "
        "its cancel"
    )
    raise Failed(f"{text}; {peer.describe_received()}")


@STREAMS.row("demand-initial", 39, INITIAL, needs=["publisher"])
async def demand_initial(context: CheckContext) -> str:
    """An initial demand of 5 brings exactly five elements; 0, the default, brings none."""
    peer = await context.connect_rsio()
    await peer.subscribe(1, 5, context.target.publisher)
    await peer.subscribe(2, 0, context.target.publisher)
    await peer.expect_exactly(1, 5)
    verify(not peer.elements(2), f"nothing was requested on stream 2; {peer.describe_received()}")
    await peer.send(io.request(2, 2))
    await peer.expect_exactly(2, 2)
    return "5 of 5, 0 of 0, then 2 of 2"


@STREAMS.row("demand-adds-up", 40, REQUEST, needs=["publisher"])
async def demand_adds_up(context: CheckContext) -> str:
    """Demand adds up, whether it is requested at once or one after the other."""
    peer = await context.connect_rsio()
    await peer.send(
        io.subscribe(context.target.publisher, 1, 1) + io.request(1, 2) + io.request(1, 4)
    )
    await peer.expect_exactly(1, 7)
    await peer.send(io.request(1, 3))
    await peer.expect_exactly(1, 10)
    return "1 + 2 + 4, then 3: 10 came"


@STREAMS.row("demand-of-each-stream", 40, REQUEST, needs=["publisher"])
async def demand_of_each_stream(context: CheckContext) -> str:
    """Each stream has its own demand: a request for one stream brings no element on another."""
    peer = await context.connect_rsio()
    name = context.target.publisher
    await peer.send(
        io.subscribe(name, 1, 2)
        + io.subscribe(name, 2, 0)
        + io.subscribe(name, 3, 5)
        + io.request(1, 4)
    )
    await peer.wait_elements(1, 6)
    await peer.expect_exactly(3, 5)
    counts = [len(peer.elements(stream)) for stream in (1, 2, 3)]
    verify(
        counts == [6, 0, 5],
        f"6, 0 and 5 elements were requested, {counts} came; {peer.describe_received()}",
    )
    return "6, 0 and 5"


@STREAMS.row("demand-64-bit", 40, REQUEST, needs=["publisher"])
async def demand_64_bit(context: CheckContext) -> str:
    """Demand is read as 64 bits: 2^32, whose lower 32 bits are zero, brings at least ten elements,
    in subscribe and in request. Requesting 2^63-1 twice is allowed.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 1 << 32, context.target.publisher)
    await peer.wait_elements(1, 10)
    await peer.send(
        io.cancel(1) + io.subscribe(context.target.publisher, 3, 0) + io.request(3, 1 << 32)
    )
    await peer.wait_elements(3, 10)
    await peer.send(
        io.cancel(3)
        + io.subscribe(context.target.publisher, 2, io.UNBOUNDED)
        + io.request(2, io.UNBOUNDED)
    )
    await peer.wait_elements(2, 50)
    await peer.send(io.cancel(2))
    await peer.settle()
    verify(
        not peer.of_stream(2, io.ON_ERROR),
        f"demand beyond 2^63-1 was an error; {peer.describe_received()}",
    )
    return "2^32 was read correctly in subscribe and in request, 2^63-1 twice was accepted"


@STREAMS.row("demand-zero", 40, REQUEST, level=Level.READING, needs=["publisher"])
async def demand_zero(context: CheckContext) -> str:
    """A request of 0 is illegal: its stream gets an onError, and other streams continue."""
    peer = await context.connect_rsio()
    await peer.subscribe(1, 1, context.target.publisher)
    await peer.subscribe(2, 1, context.target.publisher)
    await peer.wait_elements(1, 1)
    await peer.send(io.request(1, 0))
    await peer.wait_end(1, well=False)
    await peer.send(io.request(2, 1))
    await peer.expect_exactly(2, 2)
    return str(peer.ended(1))


@STREAMS.row("id-reuse-ended", 54, REUSE, needs=["three", "publisher"])
async def id_reuse_ended(context: CheckContext) -> str:
    """The id of a completed stream can be used at once for another one."""
    peer = await context.connect_rsio()
    await peer.subscribe(7, 9, context.target.three)
    await peer.wait_end(7, well=True)
    before = len(peer.elements(7))
    await peer.subscribe(7, 4, context.target.publisher)
    await peer.wait_until(
        lambda: len(peer.elements(7)) >= before + 4, "four elements of the second stream 7"
    )
    await peer.settle()
    verify(
        len(peer.elements(7)) == before + 4,
        f"four elements were requested on the second stream 7; {peer.describe_received()}",
    )
    return "reused after onComplete"


@STREAMS.row(
    "id-reuse-cancelled",
    55,
    (
        "A subscriber may use an id again when it has sent cancel, or has received the end of "
        "the stream."
    ),
    level=Level.READING,
    needs=["slow", "publisher"],
)
async def id_reuse_cancelled(context: CheckContext) -> str:
    """The id of a cancelled stream is free as soon as the target has read the cancel. The
    cancelled stream sends nothing on it.
    """
    peer = await context.connect_rsio()
    await peer.send(
        io.subscribe(context.target.slow, 7, 1)
        + io.cancel(7)
        + io.subscribe(context.target.publisher, 7, 3)
    )
    await peer.wait_until(
        lambda: len(peer.elements(7)) >= 3, "three elements of the second stream 7"
    )
    await peer.settle_after(2 * context.target.quiet)
    verify(
        len(peer.elements(7)) == 3,
        f"three elements were requested on the second stream 7; {peer.describe_received()}",
    )
    verify(
        not peer.ended(7),
        f"an end of the cancelled stream came on the second stream 7; {peer.describe_received()}",
    )
    return "reused after cancel"


@STREAMS.row(
    "id-live-again",
    48,
    "The subscriber chooses the id of a stream, and tells it in subscribe.",
    level=Level.READING,
    needs=["publisher"],
)
async def id_live_again(context: CheckContext) -> str:
    """A subscribe with the id of an open stream is refused with a goodbye: the two sides would
    not agree on what the id means.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 1, context.target.publisher)
    await peer.wait_elements(1, 1)
    await peer.subscribe(1, 1, context.target.publisher)
    return await peer.expect_refused("a subscribe was sent for an open stream")


@STREAMS.row(
    "id-any",
    16,
    "An id is a varint that stands for one thing.",
    needs=["publisher"],
)
async def id_any(context: CheckContext) -> str:
    """Ids are any varints, in any order, and come back unchanged."""
    peer = await context.connect_rsio()
    ids = (300, 0, 1 << 32, 127, 128, io.UNBOUNDED)
    for stream in ids:
        await peer.subscribe(stream, 2, context.target.publisher)
    for stream in ids:
        await peer.wait_elements(stream, 2)
    strange = {message.stream for message in peer.received if message.stream >= 0} - set(ids)
    verify(
        not strange,
        (
            f"answers came for streams {sorted(strange)}, which were not opened; "
            f"{peer.describe_received()}"
        ),
    )
    return f"{len(ids)} ids, up to 2^63-1"


@STREAMS.row("ignored", 47, SEMANTICS, level=Level.READING, needs=["publisher"])
async def ignored(context: CheckContext) -> str:
    """A request (also of 0) and a cancel for a stream that never existed are ignored."""
    peer = await context.connect_rsio()
    await peer.send(io.request(555, 3) + io.request(555, 0) + io.cancel(555))
    await peer.expect_working()
    await peer.settle()
    verify(
        not peer.of_stream(555),
        f"messages that must be ignored were answered; {peer.describe_received()}",
    )
    return "ignored"


@STREAMS.row("id-two-spaces", 46, BOTH, level=Level.READING, needs=["publisher", "relay"])
async def id_two_spaces(context: CheckContext) -> str:
    """OnComplete refers to a stream of its receiver: it ends the target's stream with that id, not
    the stream of the checking side with the same id.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(777, 5, context.target.relay)
    await peer.wait_until(lambda: peer.of_type(io.SUBSCRIBE), "a subscribe of the target")
    theirs = peer.of_type(io.SUBSCRIBE)[0].stream
    await peer.subscribe(theirs, 1, context.target.publisher)
    await peer.wait_elements(theirs, 1)
    await peer.send(io.on_subscribe(theirs) + io.on_complete(theirs))
    await peer.wait_end(777, well=True)
    await peer.send(io.request(theirs, 2))
    await peer.expect_exactly(theirs, 3)
    return f"two streams {theirs}, one in each direction"


async def _expect_nothing_after_end(peer: RsioPeer, *streams: int) -> None:
    await peer.settle()
    late = [stream for stream in streams if peer.of_stream(stream)[-1] is not peer.ended(stream)]
    verify(
        not late, f"messages came after the end of the streams {late}; {peer.describe_received()}"
    )
