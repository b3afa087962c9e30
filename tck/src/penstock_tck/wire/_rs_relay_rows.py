"""ReactiveSocket: the target as a requester. It requests the publisher ``tck`` of the checking
side and passes on elements and the end.
"""

from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._large_elements import SPLIT_BYTES, large_element
from penstock_tck.wire._requirement import REACTIVESOCKET, Level, Table
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._target import RELAY_SOURCE
from penstock_tck.wire._verdict import verify
from penstock_tck.wire.reactivesocket import Frame

RELAY = Table(REACTIVESOCKET)

WHOLE = rs.B | rs.E
CANCELLED = "A stream is over for the requester when it has sent CANCEL."
ENDED = "A stream is over for the requester when COMPLETE or ERROR has arrived."
FAILED = "A stream may end with ERROR."
JOINED = "A RESPONSE with both B and E is a whole element."
HEADER = "The stream id of a frame has 64 bits."
STREAM_REQUESTS = (rs.REQUEST_STREAM, rs.REQUEST_SUB)
REQUESTER_TYPES = (*STREAM_REQUESTS, rs.REQUEST_N, rs.CANCEL)


class RelayedRequest:
    """A stream that the target requested from the checking side,
    to pass it on as stream 1 (or another number).
    """

    def __init__(self, peer: RsPeer, request: Frame) -> None:
        self.peer = peer
        self.id = request.stream
        self.request = request

    @property
    def demand(self) -> int:
        """The sum of all that the target has requested."""
        return self.request.demand + sum(
            frame.demand for frame in self.peer.of_stream(self.id, rs.REQUEST_N)
        )

    async def answer(self, body: bytes, flags: int = WHOLE) -> None:
        """Send a RESPONSE on the stream."""
        await self.peer.send_frame(rs.RESPONSE, self.id, body, flags=flags)

    async def wait_cancel(self) -> None:
        """Wait until the target cancels the stream."""
        await self.peer.wait_until(
            lambda: self.peer.of_stream(self.id, rs.CANCEL),
            f"a CANCEL of the target's stream {self.id}",
        )


async def _open_relay(context: CheckContext, stream: int = 1, demand: int = 100) -> RelayedRequest:
    peer = await context.connect_reactivesocket()
    await peer.request(stream, demand, context.target.relay)
    await peer.wait_until(
        lambda: peer.of_type(*STREAM_REQUESTS), f"a request of the target for {RELAY_SOURCE!r}"
    )
    relayed = RelayedRequest(peer, peer.of_type(*STREAM_REQUESTS)[0])
    await peer.wait_until(lambda: relayed.demand >= 1, f"demand for {RELAY_SOURCE!r}")
    return relayed


async def _expect_relayed(relayed: RelayedRequest, *elements: bytes, stream: int = 1) -> None:
    peer = relayed.peer
    await peer.wait_until(
        lambda: len(peer.elements(stream)) >= len(elements),
        f"{len(elements)} elements passed on by the target",
    )
    verify(
        peer.elements(stream) == list(elements),
        f"{list(elements)} were expected, {peer.elements(stream)} were passed on",
    )


@RELAY.row(
    "requester",
    308,
    ("A server may make requests of its own as soon as it has accepted a SETUP."),
    needs=["relay"],
)
async def requester(context: CheckContext) -> str:
    """The target requests a stream on the same connection, with an id other than 0, and passes
    on the element that it gets.
    """
    relayed = await _open_relay(context)
    verify(relayed.id, "the target opened a stream with the id 0")
    verify(
        relayed.request.body[8:] == RELAY_SOURCE.encode(),
        (
            f"a request for {RELAY_SOURCE!r} was expected; the target requested "
            f"{relayed.request.body[8:]!r}"
        ),
    )
    await relayed.answer(b"hello")
    await _expect_relayed(relayed, b"hello")
    return str(relayed.request)


@RELAY.row(
    "requester-ids",
    56,
    "The streams of one requester on a connection must have different ids.",
    level=Level.MUST,
    needs=["relay"],
)
async def requester_ids(context: CheckContext) -> str:
    """Three requests of the target, two at a time and one after the end of another,
    have three different ids.
    """
    peer = await context.connect_reactivesocket()
    await peer.request(1, 9, context.target.relay)
    await peer.request(3, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(*STREAM_REQUESTS)) >= 2, "two requests")
    await peer.send_frame(rs.RESPONSE, peer.of_type(*STREAM_REQUESTS)[0].stream, b"", flags=rs.C)
    await peer.wait_until(lambda: peer.completed(1) or peer.completed(3), "the end of the first")
    await peer.request(5, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(*STREAM_REQUESTS)) >= 3, "a third request")
    # The others are also ended: a frame with another id would leave its stream open.
    for request in peer.of_type(*STREAM_REQUESTS)[1:]:
        await peer.send_frame(rs.RESPONSE, request.stream, b"", flags=rs.C)
    for stream in (1, 3, 5):
        await peer.wait_until(
            lambda stream=stream: peer.completed(stream),  # type: ignore[misc]  # bound in the loop
            f"the end of stream {stream}",
        )
    await peer.settle()
    ids = [frame.stream for frame in peer.of_type(*STREAM_REQUESTS)]
    verify(len(set(ids)) == len(ids) == 3 and 0 not in ids, f"the ids are {ids}")
    return f"ids {ids}"


@RELAY.row("requester-frames", 45, HEADER, level=Level.READING, needs=["relay"])
async def requester_frames(context: CheckContext) -> str:
    """Three requests of the target, of which one completes, one fails and one is cancelled. Each of
    its frames has the version 0, its exact length, no bit that its type does not have, the name and
    the id of one of the three requests, and is sent once if it ends one.
    """
    peer = await context.connect_reactivesocket()
    for stream in (1, 3, 5):
        await peer.request(stream, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(*STREAM_REQUESTS)) >= 3, "three requests")
    requests = peer.of_type(*STREAM_REQUESTS)
    for number, request in enumerate(requests[:3]):
        relayed = RelayedRequest(peer, request)
        for index in range(6):
            await peer.wait_until(
                lambda relayed=relayed, index=index: relayed.demand > index,  # type: ignore[misc]  # bound in the loop
                f"demand for element {index + 1}",
            )
            await relayed.answer(b"%d" % number)
    for kind, request, flags in ((rs.RESPONSE, requests[0], rs.C), (rs.ERROR, requests[1], 0)):
        await peer.send_frame(kind, request.stream, b"", flags=flags)
    await peer.settle()
    await _cancel_what_runs(peer)
    _verify_requester_frames(peer)
    return f"{len(peer.of_type(*REQUESTER_TYPES))} frames"


async def _cancel_what_runs(peer: RsPeer) -> None:
    for stream in (1, 3, 5):
        if not peer.completed(stream) and not peer.failed(stream):
            await peer.cancel(stream)
    await peer.settle()


def _verify_requester_frames(peer: RsPeer) -> None:
    asked = peer.of_type(*STREAM_REQUESTS)
    ids = [frame.stream for frame in asked]
    verify(
        len(ids) == len(set(ids)) == 3, f"requests with three ids were expected, the ids are {ids}"
    )
    verify(
        {frame.body[8:] for frame in asked} == {RELAY_SOURCE.encode()},
        f"not every request is for {RELAY_SOURCE!r}; {asked}",
    )
    lengths = {rs.REQUEST_N: 8, rs.CANCEL: 0}
    wrong = [
        frame
        for frame in peer.of_type(*REQUESTER_TYPES)
        if frame.version
        or frame.reserved
        or frame.flags & ~rs.I
        or frame.stream not in ids
        or len(frame.body) != lengths.get(frame.type, len(frame.body))
    ]
    verify(
        not wrong,
        f"frames with another version, length, bit or id came: {', '.join(map(str, wrong[:3]))}",
    )
    strange = [
        frame for frame in peer.of_type(rs.RESPONSE, rs.ERROR) if frame.stream not in (1, 3, 5)
    ]
    verify(not strange, f"answers came that no request is for: {', '.join(map(str, strange[:3]))}")
    verify(
        not peer.incomplete_bytes,
        f"{peer.incomplete_bytes} bytes came behind the last frame; {peer.describe_received()}",
    )
    cancelled = [frame.stream for frame in peer.of_type(rs.CANCEL)]
    verify(len(cancelled) == 1, f"one of three streams was cancelled; CANCELs came for {cancelled}")


@RELAY.row(
    "requester-demand",
    160,
    "REQUEST_STREAM and REQUEST_SUB carry their first demand, 64 bits.",
    level=Level.READING,
    needs=["relay"],
)
async def requester_demand(context: CheckContext) -> str:
    """The target requests between 1 and 2^63-1 elements at a time. It takes what it requested, and
    requests more when it has passed elements on.
    """
    relayed = await _open_relay(context)
    peer, sent = relayed.peer, []
    for index in range(20):
        await peer.wait_until(
            lambda index=index: relayed.demand > index,  # type: ignore[misc]  # bound in the loop
            f"demand for element {index + 1}",
        )
        sent.append(b"%d" % index)
        await relayed.answer(sent[-1])
    await _expect_relayed(relayed, *sent)
    amounts = [
        relayed.request.demand,
        *(frame.demand for frame in peer.of_stream(relayed.id, rs.REQUEST_N)),
    ]
    wrong = [n for n in amounts[1:] if not 1 <= n <= rs.UNBOUNDED] + [
        n for n in amounts[:1] if n > rs.UNBOUNDED
    ]
    verify(not wrong, f"demand of {wrong} was sent")
    return f"20 elements, requested in portions of {amounts[:5]}"


@RELAY.row(
    "requester-two-spaces",
    15,
    "Each side of a connection may be a requester.",
    level=Level.READING,
    needs=["relay", "publisher"],
)
async def requester_two_spaces(context: CheckContext) -> str:
    """A stream of the checking side may have the same id as a stream of the target: a CANCEL of
    the first does not end the second.
    """
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
    """A RESPONSE in three fragments, one with B and E set, and one with neither (older peers
    send whole elements so) are three elements.
    """
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


@RELAY.row("requester-large", 341, JOINED, level=Level.READING, needs=["relay"])
async def requester_large(context: CheckContext) -> str:
    """An element of 1 MiB in 16 fragments, with the demand of 1, is passed on unchanged."""
    relayed = await _open_relay(context)
    due = b"".join(map(large_element, range(6)))[: 1 << 20]
    for index in range(16):
        flags = (rs.B if index == 0 else 0) | (rs.E if index == 15 else 0)
        await relayed.answer(due[index << 16 :][: 1 << 16], flags)
    peer = relayed.peer
    await peer.wait_until(
        lambda: peer.elements(1) or peer.failed(1), "an element passed on by the target"
    )
    sizes = [len(element) for element in peer.elements(1)]
    verify(
        peer.elements(1) == [due],
        (
            f"an element of 1,048,576 bytes was sent; other elements, of {sizes} bytes, came; "
            f"{peer.describe_received()}"
        ),
    )
    return "1 MiB"


@RELAY.row(
    "requester-begin-twice",
    341,
    "The first fragment of an element must have the flag B, and the last one the flag E.",
    level=Level.READING,
    needs=["relay"],
)
async def requester_begin_twice(context: CheckContext) -> str:
    """A fragment with B inside another element is an error of the stream: the target cancels it,
    and the connection continues.
    """
    relayed = await _open_relay(context)
    await relayed.answer(b"one", rs.B)
    await relayed.answer(b"two", rs.B)
    return await _expect_cancel(relayed)


@RELAY.row(
    "requester-end-alone",
    341,
    "The first fragment of an element must have the flag B, and the last one the flag E.",
    level=Level.READING,
    needs=["relay"],
)
async def requester_end_alone(context: CheckContext) -> str:
    """A fragment with E but without a fragment with B before it is an error of the stream:
    the target cancels it.
    """
    relayed = await _open_relay(context)
    await relayed.answer(b"end", rs.E)
    return await _expect_cancel(relayed)


@RELAY.row(
    "requester-overrun",
    207,
    "REQUEST_N carries a number of further elements, 64 bits.",
    level=Level.READING,
    needs=["relay"],
)
async def requester_overrun(context: CheckContext) -> str:
    """More elements than the target requested are an error of the stream: the target cancels it. (A
    target that has requested 10,000 cannot be checked.)
    """
    relayed = await _open_relay(context, demand=1)
    peer, sent = relayed.peer, 0
    await peer.settle()
    while sent <= relayed.demand and sent < 10_000:
        await relayed.answer(b"%d" % sent)
        sent += 1
    for _ in range(64):  # more than the target requests while these are sent
        await relayed.answer(b"too much")
    return (
        "the demand is too large to be exceeded"
        if relayed.demand >= 10_000
        else await _expect_cancel(relayed)
    )


@RELAY.row("requester-complete", 372, ENDED, needs=["relay"])
async def requester_complete(context: CheckContext) -> str:
    """COMPLETE ends the stream of the target. An element in the same frame is passed on. Neither
    CANCEL nor REQUEST_N follows.
    """
    relayed = await _open_relay(context)
    await relayed.answer(b"last", WHOLE | rs.C)
    await _expect_relayed(relayed, b"last")
    await relayed.peer.wait_end(1, well=True)
    return await _expect_no_cancel(relayed)


@RELAY.row("requester-error", 408, ENDED, needs=["relay"])
async def requester_error(context: CheckContext) -> str:
    """ERROR ends the stream of the target, even between two fragments.
    The stream that it passes on fails as well.
    """
    relayed = await _open_relay(context)
    await relayed.answer(b"half", rs.B)
    await relayed.peer.send_frame(rs.ERROR, relayed.id, b"boom")
    await relayed.peer.wait_end(1, well=False)
    verify(not relayed.peer.elements(1), "half an element was passed on")
    return await _expect_no_cancel(relayed)


@RELAY.row("requester-error-last", 388, FAILED, level=Level.READING, needs=["relay"])
async def requester_error_last(context: CheckContext) -> str:
    """An ERROR comes right after elements of 20,000 bytes, as many as the target has requested,
    four at most. The target passes all of them on before the error.
    """
    relayed = await _open_relay(context)
    peer = relayed.peer
    await peer.settle()
    due = [large_element(number)[:SPLIT_BYTES] for number in range(min(relayed.demand, 4))]
    await peer.send(
        *(peer.frame_bytes(rs.RESPONSE, relayed.id, element, flags=WHOLE) for element in due),
        peer.frame_bytes(rs.ERROR, relayed.id, b"boom"),
    )
    await peer.wait_end(1, well=False)
    passed_on = peer.elements(1)
    verify(
        passed_on == due,
        (
            f"{len(due)} elements came before the error, and {len(passed_on)} were passed on; "
            f"{peer.describe_received()}"
        ),
    )
    return f"{len(due)} elements, then the error"


@RELAY.row("requester-cancels", 406, CANCELLED, needs=["relay"])
async def requester_cancels(context: CheckContext) -> str:
    """If the stream that the target passes on is cancelled, the target cancels its own stream,
    once. Late RESPONSEs are ignored, and no REQUEST_N follows.
    """
    relayed = await _open_relay(context)
    await relayed.peer.cancel(1)
    seen = await _expect_cancel(relayed)
    before = len(relayed.peer.of_stream(relayed.id, rs.REQUEST_N, rs.CANCEL))
    for flags in (WHOLE, rs.B, rs.E, rs.C):
        await relayed.answer(b"late", flags)
    await relayed.peer.settle()
    verify(
        len(relayed.peer.of_stream(relayed.id, rs.REQUEST_N, rs.CANCEL)) == before,
        (
            "the target sent REQUEST_N or CANCEL for a stream that it had cancelled; "
            f"{relayed.peer.describe_received()}"
        ),
    )
    verify(
        relayed.peer.ending is None,
        f"late RESPONSEs ended the connection; {relayed.peer.describe_received()}",
    )
    return seen


async def _expect_cancel(relayed: RelayedRequest) -> str:
    await relayed.wait_cancel()
    await relayed.peer.settle()
    cancels = len(relayed.peer.of_stream(relayed.id, rs.CANCEL))
    verify(
        cancels == 1 and relayed.peer.ending is None,
        f"{cancels} CANCELs came; {relayed.peer.describe_received()}",
    )
    return "CANCEL, and the connection continues"


async def _expect_no_cancel(relayed: RelayedRequest) -> str:
    await relayed.peer.settle()
    before = len(relayed.peer.of_stream(relayed.id, rs.REQUEST_N, rs.CANCEL))
    await relayed.peer.settle_after(relayed.peer.quiet)
    verify(
        len(relayed.peer.of_stream(relayed.id, rs.REQUEST_N, rs.CANCEL)) == before,
        (
            "the target sent REQUEST_N or CANCEL for a stream that had ended; "
            f"{relayed.peer.describe_received()}"
        ),
    )
    verify(
        not relayed.peer.of_stream(relayed.id, rs.CANCEL),
        f"the target cancelled a stream that had ended; {relayed.peer.describe_received()}",
    )
    return "ended, without a CANCEL"
