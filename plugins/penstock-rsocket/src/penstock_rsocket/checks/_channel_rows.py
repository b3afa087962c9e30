"""Channels: demand and an end in each direction."""

from typing import Final

from penstock_tck.wire import CheckContext, Level, Table, verify

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._peer import RSOCKET, RsocketPeer, connect

CHANNELS = Table(RSOCKET)

CHANNEL: Final = "Request Channel"
FRAME: Final = "REQUEST_CHANNEL Frame"
FLOW: Final = "Reactive Streams Semantics"
RESPECTED: Final = "Both sides MUST respect the demand of the other."
HALVES: Final = "A channel is over when both sides have sent COMPLETE."
PART: Final = 100
"""Bytes of a fragment that no server finds too small."""
GREEDY_MORE: Final = 5
"""How many elements a greedy channel gets in its check, if it requests them."""


class Channel:
    """A channel of the checking side: it sends elements as the target requests them."""

    def __init__(self, peer: RsocketPeer, stream: int) -> None:
        self.peer = peer
        self.id = stream
        self.sent = 1

    async def send(self, *elements: bytes, flags: int = 0) -> None:
        """Send elements, each when the target has requested it. The flags are for the last."""
        for index, element in enumerate(elements):
            await self.peer.wait_until(
                lambda: self.peer.granted(self.id) >= self.sent or self.peer.failed(self.id),
                f"a REQUEST_N for element {self.sent + 1} of the requester",
            )
            more = flags if index == len(elements) - 1 else 0
            await self.peer.send_frame(rs.PAYLOAD, self.id, element, flags=rs.N | more)
            self.sent += 1

    def answers(self) -> list[bytes]:
        """Return the elements of the target."""
        return self.peer.elements(self.id)

    def expect(self, *due: bytes) -> None:
        """Fail unless exactly these elements have come."""
        verify(
            self.answers() == list(due),
            f"the elements {list(due)} were due; {self.peer.describe_received()}",
        )


async def _open(
    context: CheckContext, name: str, first: bytes = b"0", *, demand: int = 100, flags: int = 0
) -> Channel:
    peer = await connect(context)
    stream = await peer.request(rs.REQUEST_CHANNEL, name, first, demand=demand, flags=flags)
    return Channel(peer, stream)


@CHANNELS.row(
    "channel-first",
    CHANNEL,
    (
        "The REQUEST_CHANNEL has the first element of the requester. A responder MUST answer it "
        "with a REQUEST_N."
    ),
    level=Level.MUST,
    needs=["channel"],
)
async def channel_first(context: CheckContext) -> str:
    """The first element is answered, and a REQUEST_N comes."""
    channel = await _open(context, context.target.channel)
    await channel.peer.wait_elements(channel.id, 1)
    await channel.peer.wait_until(lambda: channel.peer.granted(channel.id), "a REQUEST_N")
    channel.expect(b"0")
    return f"REQUEST_N of {channel.peer.granted(channel.id)}"


@CHANNELS.row("channel-elements", CHANNEL, "Both sides send PAYLOADs.", needs=["channel"])
async def channel_elements(context: CheckContext) -> str:
    """Twenty elements, each sent when it was requested, are answered in order. The target
    requests more as it takes them.
    """
    channel = await _open(context, context.target.channel)
    due = [b"%d" % number for number in range(20)]
    await channel.send(*due[1:])
    await channel.peer.wait_elements(channel.id, 20)
    await channel.peer.settle()
    channel.expect(*due)
    return f"20 elements, {channel.peer.granted(channel.id)} requested"


@CHANNELS.row("channel-demand", FLOW, RESPECTED, level=Level.MUST, needs=["channel"])
async def channel_demand(context: CheckContext) -> str:
    """A channel opened with N = 1 brings one answer, though the target has more elements; a
    REQUEST_N of 1 one more.
    """
    channel = await _open(context, context.target.channel, demand=1)
    await channel.peer.wait_elements(channel.id, 1)
    await channel.peer.settle()
    for element in (b"1", b"2"):
        if channel.peer.granted(channel.id) >= channel.sent:
            await channel.send(element)
    await channel.peer.expect_exactly(channel.id, 1)
    await channel.peer.grant(channel.id, 1)
    await channel.send(*[b"%d" % number for number in range(channel.sent, 3)])
    await channel.peer.expect_exactly(channel.id, 2)
    channel.expect(b"0", b"1")
    return "1, then 2"


@CHANNELS.row(
    "channel-grants",
    "REQUEST_N Frame",
    "The number of a REQUEST_N MUST be above 0. It has 31 bits.",
    level=Level.MUST,
    needs=["channel"],
)
async def channel_grants(context: CheckContext) -> str:
    """Each REQUEST_N of the target for ten elements is legal."""
    channel = await _open(context, context.target.channel)
    await channel.send(*[b"%d" % number for number in range(1, 10)])
    await channel.peer.wait_elements(channel.id, 10)
    found = [frame.number for frame in channel.peer.of_stream(channel.id, rs.REQUEST_N)]
    verify(
        found and all(1 <= number <= rs.UNBOUNDED for number in found),
        f"the numbers {found} came",
    )
    return f"{found}"


@CHANNELS.row("channel-first-counts", FLOW, RESPECTED, level=Level.MUST, needs=["pair"])
async def channel_first_counts(context: CheckContext) -> str:
    """The first element, which the REQUEST_CHANNEL brings, takes one of the demand of the
    subscriber: a channel that requests two elements in all sends a REQUEST_N of 1, and no more.
    """
    channel = await _open(context, context.target.pair)
    await channel.peer.wait_until(lambda: channel.peer.granted(channel.id), "a REQUEST_N")
    await channel.peer.settle()
    granted = channel.peer.granted(channel.id)
    verify(
        granted == 1,
        (
            f"two elements were wanted and one had come; REQUEST_N of {granted} came; "
            f"{channel.peer.describe_received()}"
        ),
    )
    return "REQUEST_N of 1"


@CHANNELS.row("channel-goes-on", FLOW, RESPECTED, level=Level.MUST, needs=["greedy"])
async def channel_goes_on(context: CheckContext) -> str:
    """A subscriber that requests 2^30 elements at first, and 2^30 after each one, has requested
    more than 2^31-1 in sum after six elements, in numbers of 31 bits. A sum that stops at 2^31-1
    would stop the stream after as many elements.
    """
    channel = await _open(context, context.target.greedy)
    await channel.send(*[b"%d" % number for number in range(1, 1 + GREEDY_MORE)])
    await channel.peer.settle()
    found = [frame.number for frame in channel.peer.of_stream(channel.id, rs.REQUEST_N)]
    verify(
        sum(found) > rs.UNBOUNDED and all(1 <= number <= rs.UNBOUNDED for number in found),
        (
            f"after {1 + GREEDY_MORE} elements {2 + GREEDY_MORE}·2^30 were wanted; REQUEST_N "
            f"frames with {found} came, {sum(found)} in sum, and more than 2^31-1 was due"
        ),
    )
    return f"{sum(found)} requested"


@CHANNELS.row("channel-complete", CHANNEL, HALVES, needs=["channel"])
async def channel_complete(context: CheckContext) -> str:
    """A PAYLOAD with COMPLETE alone ends the elements of the requester. All answers come, and
    then the COMPLETE of the target, once.
    """
    channel = await _open(context, context.target.channel)
    await channel.send(b"1")
    await channel.peer.send_frame(rs.PAYLOAD, channel.id, flags=rs.C)
    await channel.peer.wait_end(channel.id, well=True)
    await channel.peer.settle()
    channel.expect(b"0", b"1")
    return "both halves are complete"


@CHANNELS.row("channel-half", CHANNEL, HALVES, needs=["channel"])
async def channel_half(context: CheckContext) -> str:
    """The COMPLETE of the requester does not end the other direction: answers that had no demand
    come when they are requested, and COMPLETE after them.
    """
    channel = await _open(context, context.target.channel, demand=1)
    await channel.peer.wait_elements(channel.id, 1)
    await channel.send(b"1", flags=rs.C)
    await channel.peer.expect_exactly(channel.id, 1)
    verify(
        not channel.peer.completed(channel.id) and not channel.peer.failed(channel.id),
        f"an answer was left out; {channel.peer.describe_received()}",
    )
    await channel.peer.grant(channel.id, 3)
    await channel.peer.wait_end(channel.id, well=True)
    channel.expect(b"0", b"1")
    return "the last answer came after COMPLETE"


@CHANNELS.row(
    "channel-complete-first",
    FRAME,
    "REQUEST_CHANNEL may have COMPLETE: its element is the only one.",
    needs=["channel"],
)
async def channel_complete_first(context: CheckContext) -> str:
    """The element is answered, and COMPLETE follows."""
    channel = await _open(context, context.target.channel, flags=rs.C)
    await channel.peer.wait_end(channel.id, well=True)
    channel.expect(b"0")
    return "1 element and COMPLETE"


@CHANNELS.row(
    "channel-cancelled",
    CHANNEL,
    "A CANCEL of the requester ends the channel for the responder.",
    needs=["channel", "publisher"],
)
async def channel_cancelled(context: CheckContext) -> str:
    """After CANCEL no answer comes, and no end, for elements and demand that follow."""
    channel = await _open(context, context.target.channel)
    await channel.peer.wait_elements(channel.id, 1)
    await channel.peer.settle()
    await channel.peer.cancel(channel.id)
    await channel.peer.settle()
    before = len(channel.peer.of_stream(channel.id, rs.PAYLOAD, rs.ERROR))
    await channel.peer.send_frame(rs.PAYLOAD, channel.id, b"late", flags=rs.N)
    await channel.peer.grant(channel.id, 3)
    await channel.peer.settle()
    found = channel.peer.of_stream(channel.id, rs.PAYLOAD, rs.ERROR)
    verify(
        len(found) == before == 1,
        f"the channel was cancelled; {channel.peer.describe_received()}",
    )
    await channel.peer.expect_working()
    return "nothing after CANCEL"


@CHANNELS.row(
    "channel-error",
    CHANNEL,
    "An ERROR of the requester ends both directions.",
    needs=["channel", "publisher"],
)
async def channel_error(context: CheckContext) -> str:
    """After an ERROR of the requester no element comes, for elements and demand that follow. The
    connection continues.
    """
    channel = await _open(context, context.target.channel)
    await channel.peer.wait_elements(channel.id, 1)
    await channel.peer.settle()
    body = rs.number(rs.APPLICATION_ERROR) + b"out of elements"
    await channel.peer.send_frame(rs.ERROR, channel.id, body)
    await channel.peer.send_frame(rs.PAYLOAD, channel.id, b"late", flags=rs.N)
    await channel.peer.grant(channel.id, 3)
    await channel.peer.settle()
    channel.expect(b"0")
    verify(
        not channel.peer.completed(channel.id),
        f"the channel failed, and COMPLETE came; {channel.peer.describe_received()}",
    )
    await channel.peer.expect_working()
    return "nothing after ERROR"


@CHANNELS.row(
    "channel-fragments",
    "Fragmentation And Reassembly",
    "REQUEST_CHANNEL and PAYLOAD may go in fragments; an element takes one of the demand.",
    needs=["channel"],
)
async def channel_fragments(context: CheckContext) -> str:
    """The first element in three frames, and the second in two, are two elements."""
    one, two = b"1" * PART, b"2" * PART
    channel = await _open(context, context.target.channel, one, flags=rs.F)
    peer = channel.peer
    await peer.send_frame(rs.PAYLOAD, channel.id, one, flags=rs.N | rs.F)
    await peer.send_frame(rs.PAYLOAD, channel.id, one, flags=rs.N)
    await peer.wait_elements(channel.id, 1)
    await peer.wait_until(lambda: peer.granted(channel.id), "a REQUEST_N")
    await peer.send_frame(rs.PAYLOAD, channel.id, two, flags=rs.N | rs.F)
    await peer.send_frame(rs.PAYLOAD, channel.id, two, flags=rs.N)
    await peer.wait_elements(channel.id, 2)
    await peer.settle()
    channel.expect(one * 3, two * 2)
    return "2 elements"


ONLY: Final = "COMPLETE on the last fragment of a REQUEST_CHANNEL: its element is the only one."


async def _only_element(context: CheckContext, flags: int) -> str:
    """Send the first element in three frames, the last with `flags`; the channel must complete."""
    one = b"1" * PART
    channel = await _open(context, context.target.channel, one, flags=rs.F)
    await channel.peer.send_frame(rs.PAYLOAD, channel.id, one, flags=rs.N | rs.F)
    await channel.peer.send_frame(rs.PAYLOAD, channel.id, b"end", flags=flags)
    await channel.peer.wait_end(channel.id, well=True)
    channel.expect(one * 2 + b"end")
    return "1 element and COMPLETE"


@CHANNELS.row("channel-fragments-complete", FRAME, ONLY, needs=["channel"])
async def channel_fragments_complete(context: CheckContext) -> str:
    """The first element in three frames, the last with NEXT and COMPLETE, is answered once, and
    COMPLETE follows.
    """
    return await _only_element(context, rs.N | rs.C)


@CHANNELS.row(
    "channel-fragments-complete-alone", FRAME, ONLY, level=Level.READING, needs=["channel"]
)
async def channel_fragments_complete_alone(context: CheckContext) -> str:
    """The same with COMPLETE and without NEXT on the last frame, which has data: it is a fragment,
    because the element is not whole.
    """
    return await _only_element(context, rs.C)


@CHANNELS.row(
    "channel-follows-complete",
    "Handling the Unexpected",
    "A PAYLOAD with FOLLOWS and COMPLETE is a last one: FOLLOWS is ignored.",
    needs=["channel"],
)
async def channel_follows_complete(context: CheckContext) -> str:
    """An element whose last fragment has both flags is answered, and the channel completes."""
    channel = await _open(context, context.target.channel)
    peer = channel.peer
    await peer.wait_until(lambda: peer.granted(channel.id), "a REQUEST_N")
    await peer.send_frame(rs.PAYLOAD, channel.id, b"2" * PART, flags=rs.N | rs.F)
    await peer.send_frame(rs.PAYLOAD, channel.id, b"end", flags=rs.N | rs.F | rs.C)
    await peer.wait_end(channel.id, well=True)
    channel.expect(b"0", b"2" * PART + b"end")
    return "complete"
