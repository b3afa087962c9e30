"""ReactiveSocket: the target as a requester: it asks the checking side for the publisher ``tck``, and passes on what it hears."""

from penstock_tck.wire import _rs_frames as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import Level, Table
from penstock_tck.wire._rs_frames import Frame
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._target import RELAY_SOURCE
from penstock_tck.wire._verdict import verify

RELAY = Table()

WHOLE = rs.B | rs.E
CANCELLED = "Upon sending a CANCEL, the stream is terminated on the Requester."
ENDED = "Upon receiving a COMPLETE or ERROR, the stream is terminated on the Requester."
JOINED = "Or, when both bits set, the contents represent a reassembled RESPONSE."
STREAM_REQUESTS = (rs.REQUEST_STREAM, rs.REQUEST_SUB)


class RelayedStream:
    """A stream of the target's that it has from us: number 1 here, and whatever it chose there."""

    def __init__(self, peer: RsPeer, asked: Frame) -> None:
        self.peer = peer
        self.id = asked.stream
        self.request = asked

    @property
    def demand(self) -> int:
        """What the target has asked for."""
        return self.request.demand + sum(frame.demand for frame in self.peer.of_stream(self.id, rs.REQUEST_N))

    async def answer(self, body: bytes, flags: int = WHOLE) -> None:
        """Send it a RESPONSE."""
        await self.peer.send_frame(rs.RESPONSE, self.id, body, flags=flags)

    async def wait_cancel(self) -> None:
        """Wait until it cancels."""
        await self.peer.wait_until(lambda: self.peer.of_stream(self.id, rs.CANCEL), f"a CANCEL of the target's stream {self.id}")


async def _open_relay(context: CheckContext, stream: int = 1, demand: int = 100) -> RelayedStream:
    peer = await context.connect_reactivesocket()
    await peer.request(stream, demand, context.target.relay)
    await peer.wait_until(lambda: peer.of_type(*STREAM_REQUESTS), f"a request of the target's for {RELAY_SOURCE!r}")
    relayed = RelayedStream(peer, peer.of_type(*STREAM_REQUESTS)[0])
    await peer.wait_until(lambda: relayed.demand >= 1, f"demand for {RELAY_SOURCE!r}")
    return relayed


async def _expect_relayed(relayed: RelayedStream, *elements: bytes, stream: int = 1) -> None:
    peer = relayed.peer
    await peer.wait_until(lambda: len(peer.elements(stream)) >= len(elements), f"{len(elements)} elements that are passed on")
    verify(peer.elements(stream) == list(elements), f"{list(elements)} were due, {peer.elements(stream)} were passed on")


@RELAY.row(
    "requester",
    308,
    "The server-side Requester may send requests immediately upon receiving a SETUP frame that it accepts.",
    needs=["relay"],
)
async def requester(context: CheckContext) -> str:
    """The target requests a stream of ours on the same connection, with an id that is not 0, and takes what is sent for it."""
    relayed = await _open_relay(context)
    verify(relayed.id, "the target opened a stream with the id 0")
    verify(
        relayed.request.body[8:] == RELAY_SOURCE.encode(),
        f"a request for {RELAY_SOURCE!r} is due; it asked for {relayed.request.body[8:]!r}",
    )
    await relayed.answer(b"hello")
    await _expect_relayed(relayed, b"hello")
    return str(relayed.request)


@RELAY.row("requester-ids", 56, "A stream ID must be locally unique for a Requester in a connection.", level=Level.MUST, needs=["relay"])
async def requester_ids(context: CheckContext) -> str:
    """Three requests of the target's, at a time and one after the other's end, have three ids."""
    peer = await context.connect_reactivesocket()
    await peer.request(1, 9, context.target.relay)
    await peer.request(3, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(*STREAM_REQUESTS)) >= 2, "two requests")
    await peer.send_frame(rs.RESPONSE, peer.of_type(*STREAM_REQUESTS)[0].stream, b"", flags=rs.C)
    await peer.wait_until(lambda: peer.completed(1) or peer.completed(3), "the end of the first")
    await peer.request(5, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(*STREAM_REQUESTS)) >= 3, "a third request")
    ids = [frame.stream for frame in peer.of_type(*STREAM_REQUESTS)]
    verify(len(set(ids)) == len(ids) and 0 not in ids, f"the ids are {ids}")
    return f"ids {ids}"


@RELAY.row("requester-demand", 160, "__Initial Request N__: initial Request N value. 64-bit integer.", level=Level.READING, needs=["relay"])
async def requester_demand(context: CheckContext) -> str:
    """The target asks for 1 to 2^63-1, as often as it likes; what it asked for it takes, and asks for more once it is passed on."""
    relayed = await _open_relay(context)
    peer, sent = relayed.peer, []
    for index in range(20):
        await peer.wait_until(lambda index=index: relayed.demand > index, f"demand for element {index + 1}")  # type: ignore[misc]  # bound in the loop
        sent.append(b"%d" % index)
        await relayed.answer(sent[-1])
    await _expect_relayed(relayed, *sent)
    amounts = [relayed.request.demand, *(frame.demand for frame in peer.of_stream(relayed.id, rs.REQUEST_N))]
    wrong = [n for n in amounts[1:] if not 1 <= n <= rs.UNBOUNDED] + [n for n in amounts[:1] if n > rs.UNBOUNDED]
    verify(not wrong, f"demand of {wrong} was sent")
    return f"20 elements, asked for in portions of {amounts[:5]}"


@RELAY.row(
    "requester-two-spaces",
    15,
    "A connection has at most 2 Requesters. One in each direction.",
    level=Level.READING,
    needs=["relay", "publisher"],
)
async def requester_two_spaces(context: CheckContext) -> str:
    """A stream of ours with the id that the target has chosen for its own is another one: our CANCEL of it does not end the target's."""
    relayed = await _open_relay(context, stream=777)
    peer = relayed.peer
    await peer.request(relayed.id, 2, context.target.publisher)
    await peer.expect_exactly(relayed.id, 2)
    await peer.cancel(relayed.id)
    await relayed.answer(b"still here")
    await _expect_relayed(relayed, b"still here", stream=777)
    return f"two streams {relayed.id}, one in each direction"


@RELAY.row("requester-fragments", 341, JOINED, needs=["relay"])
async def requester_fragments(context: CheckContext) -> str:
    """A RESPONSE in three fragments, one with both bits set, and one with none, as peers of the time sent it, are three elements."""
    relayed = await _open_relay(context)
    await relayed.answer(b"one ", rs.B)
    await relayed.answer(b"and ", 0)
    await relayed.answer(b"only", rs.E)
    await relayed.peer.wait_until(lambda: relayed.demand >= 2, "demand for a second element")
    await relayed.answer(b"whole", WHOLE)
    await relayed.peer.wait_until(lambda: relayed.demand >= 3, "demand for a third element")
    await relayed.answer(b"bare", 0)
    await _expect_relayed(relayed, b"one and only", b"whole", b"bare")
    return "3 elements"


@RELAY.row("requester-begin-twice", 341, "the RESPONSE Begin and End bits must be used", level=Level.READING, needs=["relay"])
async def requester_begin_twice(context: CheckContext) -> str:
    """A fragment that begins within another element breaks the stream: the target cancels it, and the connection goes on."""
    relayed = await _open_relay(context)
    await relayed.answer(b"one", rs.B)
    await relayed.answer(b"two", rs.B)
    return await _expect_cancel(relayed)


@RELAY.row("requester-end-alone", 341, "the RESPONSE Begin and End bits must be used", level=Level.READING, needs=["relay"])
async def requester_end_alone(context: CheckContext) -> str:
    """So does a last fragment that had no first."""
    relayed = await _open_relay(context)
    await relayed.answer(b"end", rs.E)
    return await _expect_cancel(relayed)


@RELAY.row("requester-overrun", 207, "__Request N__: 64-bit integer value of items to request.", level=Level.READING, needs=["relay"])
async def requester_overrun(context: CheckContext) -> str:
    """More elements than the target asked for break the stream: it cancels. (Where it has asked for 10,000, this cannot be seen.)"""
    relayed = await _open_relay(context, demand=1)
    peer, sent = relayed.peer, 0
    await peer.settle()
    while sent <= relayed.demand and sent < 10_000:
        await relayed.answer(b"%d" % sent)
        sent += 1
    for _ in range(64):  # what the target asks for meanwhile is less than this
        await relayed.answer(b"too much")
    return "demand is too large to be exceeded" if relayed.demand >= 10_000 else await _expect_cancel(relayed)


@RELAY.row("requester-complete", 372, ENDED, needs=["relay"])
async def requester_complete(context: CheckContext) -> str:
    """COMPLETE ends the target's stream: with an element in it, that is passed on; CANCEL and REQUEST_N do not follow."""
    relayed = await _open_relay(context)
    await relayed.answer(b"last", WHOLE | rs.C)
    await _expect_relayed(relayed, b"last")
    await relayed.peer.wait_end(1, well=True)
    return await _expect_no_cancel(relayed)


@RELAY.row("requester-error", 408, ENDED, needs=["relay"])
async def requester_error(context: CheckContext) -> str:
    """ERROR ends the target's stream, even between two fragments; what it passes on fails, too."""
    relayed = await _open_relay(context)
    await relayed.answer(b"half", rs.B)
    await relayed.peer.send_frame(rs.ERROR, relayed.id, b"boom")
    await relayed.peer.wait_end(1, well=False)
    verify(not relayed.peer.elements(1), "half an element was passed on")
    return await _expect_no_cancel(relayed)


@RELAY.row("requester-cancels", 406, CANCELLED, needs=["relay"])
async def requester_cancels(context: CheckContext) -> str:
    """What the target has from us for a stream that we cancel, it cancels, once; late RESPONSEs are ignored, and no REQUEST_N comes."""
    relayed = await _open_relay(context)
    await relayed.peer.cancel(1)
    seen = await _expect_cancel(relayed)
    before = len(relayed.peer.of_stream(relayed.id, rs.REQUEST_N, rs.CANCEL))
    for flags in (WHOLE, rs.B, rs.E, rs.C):
        await relayed.answer(b"late", flags)
    await relayed.peer.settle()
    verify(
        len(relayed.peer.of_stream(relayed.id, rs.REQUEST_N, rs.CANCEL)) == before,
        f"the target spoke of a stream that it had ended; {relayed.peer.describe_received()}",
    )
    verify(relayed.peer.ending is None, f"late RESPONSEs ended the connection; {relayed.peer.describe_received()}")
    return seen


async def _expect_cancel(relayed: RelayedStream) -> str:
    await relayed.wait_cancel()
    await relayed.peer.settle()
    cancels = len(relayed.peer.of_stream(relayed.id, rs.CANCEL))
    verify(cancels == 1 and relayed.peer.ending is None, f"{cancels} CANCELs came; {relayed.peer.describe_received()}")
    return "CANCEL, and the connection goes on"


async def _expect_no_cancel(relayed: RelayedStream) -> str:
    await relayed.peer.settle()
    before = len(relayed.peer.of_stream(relayed.id, rs.REQUEST_N, rs.CANCEL))
    await relayed.peer.settle_after(relayed.peer.quiet)
    verify(
        len(relayed.peer.of_stream(relayed.id, rs.REQUEST_N, rs.CANCEL)) == before,
        f"the target spoke of a stream that was over; {relayed.peer.describe_received()}",
    )
    verify(
        not relayed.peer.of_stream(relayed.id, rs.CANCEL),
        f"the target cancelled a stream that was over; {relayed.peer.describe_received()}",
    )
    return "ended, without a CANCEL"
