"""RS.io: the target as a subscriber. It subscribes to the publisher ``tck`` of the checking side
and passes on the elements and the end.
"""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._large_elements import SPLIT_BYTES, large_element
from penstock_tck.wire._requirement import RSIO, Level, Table
from penstock_tck.wire._rsio_peer import RsioPeer
from penstock_tck.wire._target import RELAY_SOURCE
from penstock_tck.wire._verdict import NotSupported, verify

RELAY = Table(RSIO)

BOTH = "Both sides may subscribe and publish over one connection."
SPLIT = "A publisher MAY send an element in parts, and every subscriber MUST be able to join them."
SIZED = "If the elements have a fixed size, onNext carries an element without its length."
PACKED = "onNextPacked carries a count, and that many elements of the declared size."
GUARANTEE = (
    "A subscriber that uses an id again MUST ensure that no message about the old stream "
    "reaches the publisher after the new subscribe."
)
REQUEST = "request adds a demand, a Long, to the stream of a subscriber."
SEMANTICS = "Signals keep the order of Reactive Streams, and may be delivered later, as there."


class RelayedSubscription:
    """A stream to which the target subscribed at the checking side, to pass it on as stream 1."""

    def __init__(self, peer: RsioPeer, stream: int | None = None) -> None:
        """Of all streams the first one, or the one with the id `stream`."""
        self.peer = peer
        self.id = peer.of_type(io.SUBSCRIBE)[0].stream if stream is None else stream

    @property
    def demand(self) -> int:
        """The sum of all that the target has requested."""
        asked = self._sent(io.SUBSCRIBE) + self._sent(io.REQUEST)
        return sum(message.numbers[0] for message in asked)

    def count_cancels(self) -> int:
        """Return how many cancels the target has sent for the stream."""
        return len(self._sent(io.CANCEL))

    def count_sent(self) -> int:
        """Return how many requests and cancels the target has sent for the stream."""
        return len(self._sent(io.REQUEST, io.CANCEL))

    def _sent(self, *kinds: int) -> list[io.Message]:
        return [
            message
            for message in self.peer.received
            if message.type in kinds and message.stream == self.id
        ]

    async def wait_demand(self, n: int) -> None:
        """Wait until the target has requested `n` elements."""
        await self.peer.wait_until(lambda: self.demand >= n, f"demand for element {n}")

    async def wait_demand_of_two(self, n: int) -> None:
        """Wait until the target has requested `n` elements, two more than were sent.
        A target may request one at a time.
        """
        if self.demand < n:
            await self.peer.settle()
        if self.demand == n - 1:
            raise NotSupported(
                "the target requests one element at a time, and the sentence is about two"
            )
        await self.wait_demand(n)


async def _open_relay(
    context: CheckContext, *, size: int | None = 0, demand: int = 100
) -> RelayedSubscription:
    peer = await context.connect_rsio()
    await peer.subscribe(1, demand, context.target.relay)
    await peer.wait_until(
        lambda: peer.of_type(io.SUBSCRIBE), f"a subscribe of the target to {RELAY_SOURCE!r}"
    )
    relayed = RelayedSubscription(peer)
    if size is not None:
        await peer.send(io.on_subscribe(relayed.id, size))
        await relayed.wait_demand(1)
    return relayed


async def _expect_relayed(relayed: RelayedSubscription, *elements: bytes) -> None:
    peer = relayed.peer
    await peer.wait_until(
        lambda: len(peer.elements(1)) >= len(elements) or peer.ended(1),
        f"{len(elements)} elements passed on by the target",
    )
    verify(
        peer.elements(1) == list(elements),
        (
            f"{list(elements)} were expected, {peer.elements(1)} were passed on; "
            f"{peer.describe_received()}"
        ),
    )


async def _expect_cancel(relayed: RelayedSubscription) -> str:
    await relayed.peer.wait_until(
        relayed.count_cancels, f"a cancel of stream {relayed.id} by the target"
    )
    await relayed.peer.settle()
    verify(
        relayed.count_cancels() == 1 and relayed.peer.ending is None,
        f"one cancel was expected; {relayed.peer.describe_received()}",
    )
    return "cancel, and the connection continues"


@RELAY.row("subscriber", 46, BOTH, needs=["relay"])
async def subscriber(context: CheckContext) -> str:
    """The target subscribes to a publisher of the checking side on the same connection, by its
    name, and takes the elements that it requests.
    """
    relayed = await _open_relay(context)
    asked = relayed.peer.of_type(io.SUBSCRIBE)[0]
    verify(
        asked.body == RELAY_SOURCE.encode(),
        f"a subscribe to {RELAY_SOURCE!r} was expected, {asked} came",
    )
    for index in range(20):
        await relayed.wait_demand(index + 1)
        await relayed.peer.send(io.on_next(relayed.id, b"%d" % index))
    await _expect_relayed(relayed, *(b"%d" % index for index in range(20)))
    return str(asked)


@RELAY.row("subscriber-demand", 40, REQUEST, level=Level.READING, needs=["relay"])
async def subscriber_demand(context: CheckContext) -> str:
    """Each request of the target is for at least 1 element."""
    relayed = await _open_relay(context)
    for index in range(20):
        await relayed.wait_demand(index + 1)
        await relayed.peer.send(io.on_next(relayed.id, b"x"))
    await relayed.peer.settle()
    amounts = [message.numbers[0] for message in relayed.peer.of_type(io.REQUEST)]
    verify(0 not in amounts, f"a request of 0 came; {relayed.peer.describe_received()}")
    return f"in portions of {amounts[:5]}"


@RELAY.row("subscriber-ids", 58, GUARANTEE, level=Level.MUST, needs=["relay"])
async def subscriber_ids(context: CheckContext) -> str:
    """An id of the target belongs to one stream at a time. After a cancel it is not reused
    before the end of that stream has come.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 9, context.target.relay)
    await peer.subscribe(2, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(io.SUBSCRIBE)) >= 2, "two subscribes")
    await peer.send(io.cancel(1))
    await peer.wait_until(lambda: peer.of_type(io.CANCEL), "a cancel")
    await peer.subscribe(3, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(io.SUBSCRIBE)) >= 3, "a third subscribe")
    await peer.settle()
    ids = [message.stream for message in peer.of_type(io.SUBSCRIBE)]
    verify(len(ids) == len(set(ids)) == 3, f"the ids of three streams are {ids}")
    return f"ids {ids}"


@RELAY.row("subscriber-messages", 46, BOTH, level=Level.READING, needs=["relay"])
async def subscriber_messages(context: CheckContext) -> str:
    """The target subscribes three times, to the publisher that it should, and one stream completes,
    one fails and one is cancelled. All its requests and its only cancel have the id of one of the
    three, and nothing comes for a stream that the checking side has not opened.
    """
    peer = await context.connect_rsio()
    for stream in (1, 2, 3):
        await peer.subscribe(stream, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(io.SUBSCRIBE)) >= 3, "three subscribes")
    ids = [message.stream for message in peer.of_type(io.SUBSCRIBE)]
    for stream in ids[:3]:
        await peer.send(io.on_subscribe(stream))
        relayed = RelayedSubscription(peer, stream)
        for index in range(6):
            await relayed.wait_demand(index + 1)
            await peer.send(io.on_next(stream, b"x"))
    await peer.send(io.on_complete(ids[0]) + io.on_error(ids[1], "failed"))
    await peer.settle()
    for stream in (1, 2, 3):
        if not peer.ended(stream):
            await peer.send(io.cancel(stream))
    await peer.settle()
    _verify_subscriber_messages(peer)
    return f"{len(peer.of_type(io.SUBSCRIBE, io.REQUEST, io.CANCEL))} messages"


def _verify_subscriber_messages(peer: RsioPeer) -> None:
    subscribed = peer.of_type(io.SUBSCRIBE)
    ids = [message.stream for message in subscribed]
    verify(
        len(ids) == len(set(ids)) == 3,
        f"three subscribes with three ids were expected, the ids are {ids}",
    )
    verify(
        {message.body for message in subscribed} == {RELAY_SOURCE.encode()},
        f"not every subscribe is to {RELAY_SOURCE!r}",
    )
    strange = [
        message for message in peer.of_type(io.REQUEST, io.CANCEL) if message.stream not in ids
    ]
    strange += [
        message
        for message in peer.received
        if io.ON_SUBSCRIBE <= message.type <= io.ON_ERROR and message.stream not in (1, 2, 3)
    ]
    verify(
        not strange,
        f"messages for streams that do not exist came: {', '.join(map(str, strange[:3]))}",
    )
    cancelled = [message.stream for message in peer.of_type(io.CANCEL)]
    verify(len(cancelled) == 1, f"one of three streams was cancelled; cancels came for {cancelled}")


@RELAY.row("subscriber-parts", 71, SPLIT, level=Level.MUST, needs=["relay"])
async def subscriber_parts(context: CheckContext) -> str:
    """Four elements are read: one in three parts, one in a single last part, one whole,
    and one with an empty part.
    """
    relayed = await _open_relay(context)
    stream = relayed.id
    await relayed.peer.send(
        io.part(stream, 0, b"one ")
        + io.part(stream, 0, b"and ")
        + io.part(stream, 0, b"only", last=True)
    )
    await relayed.wait_demand(2)
    await relayed.peer.send(io.part(stream, 0, b"alone", last=True))
    await relayed.wait_demand(3)
    await relayed.peer.send(io.on_next(stream, b"whole"))
    await relayed.wait_demand(4)
    await relayed.peer.send(io.part(stream, 9, b"") + io.part(stream, 9, b"empty", last=True))
    await _expect_relayed(relayed, b"one and only", b"alone", b"whole", b"empty")
    return "4 elements"


@RELAY.row(
    "subscriber-parts-mixed",
    77,
    (
        "The publisher gives each split element an id; the parts of a stream that have the same "
        "id are joined."
    ),
    level=Level.READING,
    needs=["relay"],
)
async def subscriber_parts_mixed(context: CheckContext) -> str:
    """Parts of two elements of one stream may alternate. They are told apart by their number, and
    delivered in the order of their last parts.
    """
    relayed = await _open_relay(context)
    await relayed.wait_demand_of_two(2)
    stream = relayed.id
    await relayed.peer.send(
        io.part(stream, 5, b"a")
        + io.part(stream, 6, b"b")
        + io.part(stream, 6, b"B", last=True)
        + io.part(stream, 5, b"A", last=True)
    )
    await _expect_relayed(relayed, b"bB", b"aA")
    return "2 elements"


@RELAY.row("subscriber-fixed", 52, SIZED, needs=["relay"])
async def subscriber_fixed(context: CheckContext) -> str:
    """With elementSize 4, onNext has no length. The target also reads onNextPacked and parts."""
    relayed = await _open_relay(context, size=4)
    await relayed.peer.send(io.numbers(io.ON_NEXT, relayed.id) + b"1111")
    await relayed.wait_demand_of_two(3)
    await relayed.peer.send(io.numbers(io.ON_NEXT_PACKED, relayed.id, 2) + b"22223333")
    await relayed.wait_demand(4)
    await relayed.peer.send(
        io.part(relayed.id, 0, b"44") + io.part(relayed.id, 0, b"44", last=True)
    )
    await _expect_relayed(relayed, b"1111", b"2222", b"3333", b"4444")
    return "4 elements of 4 bytes"


@RELAY.row("subscriber-large", 71, SPLIT, level=Level.READING, needs=["relay"])
async def subscriber_large(context: CheckContext) -> str:
    """An element of 65,536 bytes in one message, and one of 1 MiB in 16 parts, are accepted and
    passed on unchanged.
    """
    relayed = await _open_relay(context)
    whole, split = large_element(0)[:65_536], b"".join(map(large_element, range(1, 7)))[: 1 << 20]
    await relayed.peer.send(io.on_next(relayed.id, whole))
    # Before more is sent: a target may send or receive, not both at a time.
    await _expect_relayed(relayed, whole)
    await relayed.wait_demand(2)
    await relayed.peer.send(
        *(
            io.part(relayed.id, 0, split[index << 16 :][: 1 << 16], last=index == 15)
            for index in range(16)
        )
    )
    peer = relayed.peer
    await peer.wait_until(
        lambda: len(peer.elements(1)) >= 2 or peer.ended(1), "two elements passed on by the target"
    )
    sizes = [len(element) for element in peer.elements(1)]
    verify(
        peer.elements(1) == [whole, split],
        (
            f"two elements of 65,536 and 1,048,576 bytes were sent; other elements, of {sizes} "
            f"bytes, came; {peer.describe_received()}"
        ),
    )
    return "65,536 bytes, and 1 MiB"


@RELAY.row("subscriber-packed-unsized", 68, PACKED, level=Level.READING, needs=["relay"])
async def subscriber_packed_unsized(context: CheckContext) -> str:
    """OnNextPacked in a stream without a fixed size is refused with a goodbye:
    its receiver cannot know where it ends.
    """
    relayed = await _open_relay(context)
    await relayed.peer.send(io.numbers(io.ON_NEXT_PACKED, relayed.id, 1))
    return await relayed.peer.expect_refused(
        "packed elements were sent in a stream without a fixed size"
    )


@RELAY.row("subscriber-overrun", 40, REQUEST, level=Level.READING, needs=["relay"])
async def subscriber_overrun(context: CheckContext) -> str:
    """More elements than the target requested are an error of the stream: the target cancels it. (A
    target that has requested 10,000 cannot be checked.)
    """
    relayed = await _open_relay(context, demand=1)
    await relayed.peer.settle()
    if relayed.demand >= 10_000:
        return "the demand is too large to be exceeded"
    await relayed.peer.send(io.on_next(relayed.id, b"too much") * (relayed.demand + 64))
    return await _expect_cancel(relayed)


@RELAY.row(
    "subscriber-before",
    42,
    (
        "onSubscribe tells a subscriber that its stream is accepted, and the size of the "
        "elements (0 if they have no fixed size)."
    ),
    level=Level.READING,
    needs=["relay"],
)
async def subscriber_before(context: CheckContext) -> str:
    """An element before onSubscribe is refused with a goodbye."""
    relayed = await _open_relay(context, size=None)
    await relayed.peer.send(io.on_next(relayed.id, b"early"))
    return await relayed.peer.expect_refused("an element was sent before onSubscribe")


@RELAY.row(
    "subscriber-complete",
    44,
    "onComplete tells a subscriber that its stream is complete.",
    needs=["relay"],
)
async def subscriber_complete(context: CheckContext) -> str:
    """OnComplete ends the stream of the target, and no cancel follows.
    An onError in place of onSubscribe also ends it.
    """
    relayed = await _open_relay(context)
    await relayed.peer.send(io.on_next(relayed.id, b"last") + io.on_complete(relayed.id))
    await _expect_relayed(relayed, b"last")
    await relayed.peer.wait_end(1, well=True)
    await relayed.peer.settle()
    verify(
        not relayed.count_cancels(),
        f"the target cancelled a stream that had ended; {relayed.peer.describe_received()}",
    )
    refused = await _open_relay(context, size=None)
    await refused.peer.send(io.on_error(refused.id, "no such publisher"))
    await refused.peer.wait_end(1, well=False)
    return "ended, without a cancel"


@RELAY.row(
    "subscriber-error",
    45,
    ("onError tells a subscriber that its stream has failed, and gives the error as text."),
    needs=["relay"],
)
async def subscriber_error(context: CheckContext) -> str:
    """An onError of 4,096 bytes, between two parts, ends the stream of the target. The incomplete
    element is not passed on, the error is.
    """
    relayed = await _open_relay(context)
    await relayed.peer.send(io.part(relayed.id, 0, b"half") + io.on_error(relayed.id, "e" * 4096))
    await relayed.peer.wait_end(1, well=False)
    verify(not relayed.peer.elements(1), "an incomplete element was passed on")
    await relayed.peer.settle()
    verify(
        not relayed.count_cancels(),
        f"the target cancelled a stream that had ended; {relayed.peer.describe_received()}",
    )
    return "failed, without a cancel"


@RELAY.row("subscriber-error-last", 47, SEMANTICS, level=Level.READING, needs=["relay"])
async def subscriber_error_last(context: CheckContext) -> str:
    """An onError comes right after elements of 20,000 bytes, as many as the target has requested,
    four at most. The target passes all of them on before the error.
    """
    relayed = await _open_relay(context)
    peer = relayed.peer
    await peer.settle()
    due = [large_element(number)[:SPLIT_BYTES] for number in range(min(relayed.demand, 4))]
    await peer.send(
        *(io.on_next(relayed.id, element) for element in due), io.on_error(relayed.id, "failed")
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


@RELAY.row("subscriber-half", 47, SEMANTICS, level=Level.READING, needs=["relay"])
async def subscriber_half(context: CheckContext) -> str:
    """OnComplete between two parts is an error: the stream that the target passes on fails."""
    relayed = await _open_relay(context)
    await relayed.peer.send(io.part(relayed.id, 0, b"half") + io.on_complete(relayed.id))
    await relayed.peer.wait_end(1, well=False)
    verify(not relayed.peer.elements(1), "an incomplete element was passed on")
    return str(relayed.peer.ended(1))


@RELAY.row("subscriber-cancels", 41, "cancel ends the stream of a subscriber.", needs=["relay"])
async def subscriber_cancels(context: CheckContext) -> str:
    """If the stream that the target passes on is cancelled, the target cancels its own stream,
    once. Late messages of that stream are dropped, also its end.
    """
    relayed = await _open_relay(context)
    await relayed.peer.send(io.cancel(1))
    seen = await _expect_cancel(relayed)
    before = relayed.count_sent()
    await relayed.peer.send(
        io.on_next(relayed.id, b"late")
        + io.part(relayed.id, 0, b"late")
        + io.on_complete(relayed.id)
    )
    await relayed.peer.settle()
    verify(
        relayed.count_sent() == before and relayed.peer.ending is None,
        f"late messages were not dropped; {relayed.peer.describe_received()}",
    )
    return seen
