"""RS.io: the target as a subscriber: it subscribes to the publisher ``tck`` of the checking side, and passes on what it hears."""

from penstock_tck.wire import _rsio_messages as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import Level, Table
from penstock_tck.wire._rsio_peer import RsioPeer
from penstock_tck.wire._target import RELAY_SOURCE
from penstock_tck.wire._verdict import verify

RELAY = Table()

BOTH = "The protocol is fully bidirectional; either party can act in the -->"
SPLIT = "Publishers MAY split elements; subscribers MUST support this."
SIZED = "In fixed-size mode, the onNext.element"
PACKED = "<-- onNextPacked(subscriber: Id, count: varint, messages: count * elementSize bytes)"
GUARANTEE = "it MUST guarantee that the publisher will not receive messages meant for the previous subscription with that Id"
REQUEST = "--> request(subscriber: Id, demand: Long)"
SEMANTICS = "The semantics for ordering and asynchronous delivery are the same as in the Reactive Streams specification."


class RelayedStream:
    """A stream of the target's that it has from us: number 1 here, and whatever it chose there."""

    def __init__(self, peer: RsioPeer) -> None:
        self.peer = peer
        self.id = peer.of_type(io.SUBSCRIBE)[0].stream

    @property
    def demand(self) -> int:
        """What the target has asked for."""
        asked = self._sent(io.SUBSCRIBE) + self._sent(io.REQUEST)
        return sum(message.numbers[0] for message in asked)

    def count_cancels(self) -> int:
        """How often the target has cancelled it."""
        return len(self._sent(io.CANCEL))

    def count_sent(self) -> int:
        """How much the target has said of it."""
        return len(self._sent(io.REQUEST, io.CANCEL))

    def _sent(self, *kinds: int) -> list[io.Message]:
        return [message for message in self.peer.messages if message.type in kinds and message.stream == self.id]

    async def wait_demand(self, n: int) -> None:
        """Wait until the target has asked for so many."""
        await self.peer.wait_until(lambda: self.demand >= n, f"demand for element {n}")


async def _open_relay(context: CheckContext, *, size: int | None = 0, demand: int = 100) -> RelayedStream:
    peer = await context.connect_rsio()
    await peer.subscribe(1, demand, context.target.relay)
    await peer.wait_until(lambda: peer.of_type(io.SUBSCRIBE), f"a subscribe of the target's to {RELAY_SOURCE!r}")
    relayed = RelayedStream(peer)
    if size is not None:
        await peer.send(io.numbers(io.ON_SUBSCRIBE, relayed.id, size))
        await relayed.wait_demand(1)
    return relayed


async def _expect_relayed(relayed: RelayedStream, *elements: bytes) -> None:
    peer = relayed.peer
    await peer.wait_until(lambda: len(peer.elements(1)) >= len(elements) or peer.ended(1), f"{len(elements)} elements that are passed on")
    verify(peer.elements(1) == list(elements), f"{list(elements)} were due, {peer.elements(1)} were passed on; {peer.describe_received()}")


async def _expect_cancel(relayed: RelayedStream) -> str:
    await relayed.peer.wait_until(relayed.count_cancels, f"a cancel of the target's stream {relayed.id}")
    await relayed.peer.settle()
    verify(relayed.count_cancels() == 1 and relayed.peer.ending is None, f"one cancel is due; {relayed.peer.describe_received()}")
    return "cancel, and the connection goes on"


@RELAY.row("subscriber", 46, BOTH, needs=["relay"])
async def subscriber(context: CheckContext) -> str:
    """The target subscribes to a publisher of ours on the same connection, by its name, and takes what it asks for."""
    relayed = await _open_relay(context)
    asked = relayed.peer.of_type(io.SUBSCRIBE)[0]
    verify(asked.body == RELAY_SOURCE.encode(), f"a subscribe to {RELAY_SOURCE!r} is due; {asked} came")
    for index in range(20):
        await relayed.wait_demand(index + 1)
        await relayed.peer.send(io.on_next(relayed.id, b"%d" % index))
    await _expect_relayed(relayed, *(b"%d" % index for index in range(20)))
    return str(asked)


@RELAY.row("subscriber-demand", 40, REQUEST, level=Level.READING, needs=["relay"])
async def subscriber_demand(context: CheckContext) -> str:
    """What the target asks for with a request is at least 1."""
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
    """An id of the target's stands for one stream at a time; one that was cancelled is not used again before its end has come."""
    peer = await context.connect_rsio()
    await peer.subscribe(1, 9, context.target.relay)
    await peer.subscribe(2, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(io.SUBSCRIBE)) >= 2, "two subscribes")
    await peer.send(io.cancel(1))
    await peer.wait_until(lambda: peer.of_type(io.CANCEL), "a cancel")
    await peer.subscribe(3, 9, context.target.relay)
    await peer.wait_until(lambda: len(peer.of_type(io.SUBSCRIBE)) >= 3, "a third subscribe")
    ids = [message.stream for message in peer.of_type(io.SUBSCRIBE)]
    verify(len(set(ids)) == 3, f"the ids of three streams are {ids}")
    return f"ids {ids}"


@RELAY.row("subscriber-parts", 71, SPLIT, level=Level.MUST, needs=["relay"])
async def subscriber_parts(context: CheckContext) -> str:
    """An element in three parts, one in a last part alone, one whole, and one with an empty part are four elements."""
    relayed = await _open_relay(context)
    stream = relayed.id
    await relayed.peer.send(io.part(stream, 0, b"one ") + io.part(stream, 0, b"and ") + io.part(stream, 0, b"only", last=True))
    await relayed.wait_demand(2)
    await relayed.peer.send(io.part(stream, 0, b"alone", last=True))
    await relayed.wait_demand(3)
    await relayed.peer.send(io.on_next(stream, b"whole"))
    await relayed.wait_demand(4)
    await relayed.peer.send(io.part(stream, 9, b"") + io.part(stream, 9, b"empty", last=True))
    await _expect_relayed(relayed, b"one and only", b"alone", b"whole", b"empty")
    return "4 elements"


@RELAY.row("subscriber-parts-mixed", 77, "element", level=Level.READING, needs=["relay"])
async def subscriber_parts_mixed(context: CheckContext) -> str:
    """Parts of two elements of one stream may alternate: they are told apart by their number, and delivered in the order of their ends."""
    relayed = await _open_relay(context)
    await relayed.wait_demand(2)
    stream = relayed.id
    await relayed.peer.send(
        io.part(stream, 5, b"a") + io.part(stream, 6, b"b") + io.part(stream, 6, b"B", last=True) + io.part(stream, 5, b"A", last=True)
    )
    await _expect_relayed(relayed, b"bB", b"aA")
    return "2 elements"


@RELAY.row("subscriber-fixed", 52, SIZED, needs=["relay"])
async def subscriber_fixed(context: CheckContext) -> str:
    """With elementSize 4, onNext has no length; packed elements and parts are understood, too."""
    relayed = await _open_relay(context, size=4)
    await relayed.peer.send(io.numbers(io.ON_NEXT, relayed.id) + b"1111")
    await relayed.wait_demand(3)
    await relayed.peer.send(io.numbers(io.ON_NEXT_PACKED, relayed.id, 2) + b"22223333")
    await relayed.wait_demand(4)
    await relayed.peer.send(io.part(relayed.id, 0, b"44") + io.part(relayed.id, 0, b"44", last=True))
    await _expect_relayed(relayed, b"1111", b"2222", b"3333", b"4444")
    return "4 elements of 4 bytes"


@RELAY.row("subscriber-large", 71, SPLIT, level=Level.READING, needs=["relay"])
async def subscriber_large(context: CheckContext) -> str:
    """Taken are: an element of 65,536 bytes in one message, and one of 1 MiB in 16 parts; both are passed on whole."""
    relayed = await _open_relay(context)
    whole, piece = b"w" * 65_536, b"p" * 65_536
    await relayed.peer.send(io.on_next(relayed.id, whole))
    await _expect_relayed(relayed, whole)  # read before more is said: a target may do one thing at a time
    await relayed.wait_demand(2)
    await relayed.peer.send(*(io.part(relayed.id, 0, piece, last=index == 15) for index in range(16)))
    peer = relayed.peer
    await peer.wait_until(lambda: len(peer.elements(1)) >= 2 or peer.ended(1), "two elements that are passed on")
    sizes = [len(element) for element in peer.elements(1)]
    verify(
        peer.elements(1) == [whole, piece * 16],
        f"elements of 65,536 and of 1,048,576 bytes are due, of {sizes} they came; {peer.describe_received()}",
    )
    return "65,536 bytes, and 1 MiB"


@RELAY.row("subscriber-packed-unsized", 68, PACKED, level=Level.READING, needs=["relay"])
async def subscriber_packed_unsized(context: CheckContext) -> str:
    """Packed elements in a stream without a fixed size are refused with a goodbye: nobody can tell where they end."""
    relayed = await _open_relay(context)
    await relayed.peer.send(io.numbers(io.ON_NEXT_PACKED, relayed.id, 1))
    return await relayed.peer.expect_refused("packed elements came in a stream without a fixed size")


@RELAY.row("subscriber-overrun", 40, REQUEST, level=Level.READING, needs=["relay"])
async def subscriber_overrun(context: CheckContext) -> str:
    """More elements than the target asked for break the stream: it cancels. (Where it has asked for 10,000, this cannot be seen.)"""
    relayed = await _open_relay(context, demand=1)
    await relayed.peer.settle()
    if relayed.demand >= 10_000:
        return "demand is too large to be exceeded"
    await relayed.peer.send(io.on_next(relayed.id, b"too much") * (relayed.demand + 64))
    return await _expect_cancel(relayed)


@RELAY.row("subscriber-before", 42, "<-- onSubscribe(subscriber: Id, elementSize: varint = 0)", level=Level.READING, needs=["relay"])
async def subscriber_before(context: CheckContext) -> str:
    """An element before onSubscribe is refused with a goodbye."""
    relayed = await _open_relay(context, size=None)
    await relayed.peer.send(io.on_next(relayed.id, b"early"))
    return await relayed.peer.expect_refused("an element came before onSubscribe")


@RELAY.row("subscriber-complete", 44, "<-- onComplete(subscriber: Id)", needs=["relay"])
async def subscriber_complete(context: CheckContext) -> str:
    """OnComplete ends the target's stream, and it says nothing more of it; a subscribe that is refused with onError at once does, too."""
    relayed = await _open_relay(context)
    await relayed.peer.send(io.on_next(relayed.id, b"last") + io.numbers(io.ON_COMPLETE, relayed.id))
    await _expect_relayed(relayed, b"last")
    await relayed.peer.wait_end(1, io.ON_COMPLETE)
    await relayed.peer.settle()
    verify(not relayed.count_cancels(), f"the target cancelled a stream that was over; {relayed.peer.describe_received()}")
    refused = await _open_relay(context, size=None)
    await refused.peer.send(io.on_error(refused.id, "no such publisher"))
    await refused.peer.wait_end(1, io.ON_ERROR)
    return "ended, without a cancel"


@RELAY.row("subscriber-error", 45, "<-- onError(subscriber: Id, error: String)", needs=["relay"])
async def subscriber_error(context: CheckContext) -> str:
    """OnError of 4,096 bytes, between two parts, ends the target's stream: half an element is not passed on, the failure is."""
    relayed = await _open_relay(context)
    await relayed.peer.send(io.part(relayed.id, 0, b"half") + io.on_error(relayed.id, "e" * 4096))
    await relayed.peer.wait_end(1, io.ON_ERROR)
    verify(not relayed.peer.elements(1), "half an element was passed on")
    await relayed.peer.settle()
    verify(not relayed.count_cancels(), f"the target cancelled a stream that was over; {relayed.peer.describe_received()}")
    return "failed, without a cancel"


@RELAY.row("subscriber-half", 47, SEMANTICS, level=Level.READING, needs=["relay"])
async def subscriber_half(context: CheckContext) -> str:
    """OnComplete between two parts is no good end: what is passed on fails."""
    relayed = await _open_relay(context)
    await relayed.peer.send(io.part(relayed.id, 0, b"half") + io.numbers(io.ON_COMPLETE, relayed.id))
    await relayed.peer.wait_end(1, io.ON_ERROR)
    verify(not relayed.peer.elements(1), "half an element was passed on")
    return str(relayed.peer.ended(1))


@RELAY.row("subscriber-cancels", 41, "--> cancel(subscriber: Id)", needs=["relay"])
async def subscriber_cancels(context: CheckContext) -> str:
    """What the target has from us for a stream that we cancel, it cancels, once; late messages of that stream, ends too, are dropped."""
    relayed = await _open_relay(context)
    await relayed.peer.send(io.cancel(1))
    seen = await _expect_cancel(relayed)
    before = relayed.count_sent()
    await relayed.peer.send(io.on_next(relayed.id, b"late") + io.part(relayed.id, 0, b"late") + io.numbers(io.ON_COMPLETE, relayed.id))
    await relayed.peer.settle()
    verify(
        relayed.count_sent() == before and relayed.peer.ending is None,
        f"late messages were not dropped; {relayed.peer.describe_received()}",
    )
    return seen
