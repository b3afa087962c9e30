"""Delivery: answers that are lost, polls that find no element, and demand without a poll."""

from typing import Final

import trio
from penstock_tck.wire import CheckContext, Level, NotSupported, Table, large_element, verify

from penstock_http.checks._mapping_client import (
    BATCH,
    DRAFT,
    SINGLE,
    MappedStream,
    MappingClient,
    elements_of,
    with_argument,
)

DELIVERY = Table(DRAFT)

RESEND: Final = (
    "If the transport fails during a batch, its elements MUST NOT be taken off the demand, "
    "and the server MUST send them again."
)
DIFFERENT: Final = "Requests are not idempotent: each poll is answered with another element."
STALLS: Final = "A poll waits while the server has no element."
NO_DISCONNECT: Final = (
    "Neither side SHOULD take a lost connection as the sign that there is no element."
)
NO_CONTENT: Final = "A poll for which the server has no element is answered with 204."
MORE: Final = "A requestMore is a PUT below the subscription's URL, with a number above 0."
MORE_ANSWER: Final = "A requestMore MUST be answered with 200."

LOST: Final = 3


@DELIVERY.row("lost-batch", 94, RESEND, level=Level.MUST, needs=["large"])
async def lost_batch(context: CheckContext) -> str:
    """A connection that breaks inside an answer costs neither elements nor demand: all three
    large elements come over the next one.
    """
    client = MappingClient(context)
    stream = await client.subscribe(client.target.large, LOST)
    await stream.let_elements_come()
    peer = await client.begin(stream.path, BATCH)
    await peer.wait_until(
        lambda: peer.answer.body or peer.answer.is_complete,
        f"the body of the answer to {peer.answer.request}",
    )
    verify(peer.answer.status == 200, f"{peer.answer}; elements were due")
    await client.abort()
    await trio.sleep(client.target.quiet)  # for the break of the connection to reach the target
    elements = await stream.expect_exactly(LOST)
    wrong = [number for number, element in enumerate(elements) if element != large_element(number)]
    verify(not wrong, f"the elements {wrong} that were sent again are not those of the publisher")
    return f"{LOST} elements"


@DELIVERY.row("nothing-yet", 106, NO_CONTENT, needs=["publisher"])
async def nothing_yet(context: CheckContext) -> str:
    """A poll without demand is answered with 204, without a body, and at once."""
    stream = await MappingClient(context).subscribe(context.target.publisher)
    answer = await stream.poll()
    verify(
        answer.status == 204 and not answer.body,
        f"{answer} and a body of {len(answer.body)} bytes; 204 without a body was due",
    )
    return "204"


@DELIVERY.row("stalls", 100, STALLS, needs=["slow"])
async def stalls(context: CheckContext) -> str:
    """Polls of a slow publisher wait, or are answered with 204, until its element is there.
    It comes once.
    """
    stream = await MappingClient(context).subscribe(context.target.slow, 1)
    await stream.expect_exactly(1)
    return "1 element"


@DELIVERY.row("no-disconnect", 102, NO_DISCONNECT, level=Level.SHOULD, needs=["slow"])
async def no_disconnect(context: CheckContext) -> str:
    """The first poll of a slow publisher gets an answer: the connection does not end instead."""
    client = MappingClient(context)
    stream = await client.subscribe(client.target.slow, 1)
    peer = await client.begin(stream.path)
    await peer.wait_until(lambda: peer.answer.is_complete or peer.ending, "an answer to the poll")
    verify(peer.answer.is_complete, "the connection ended, and the poll got no answer")
    return str(peer.answer.status)


@DELIVERY.row("poll-twice", 100, STALLS, level=Level.READING, needs=["slow"])
async def poll_twice(context: CheckContext) -> str:
    """Of two polls of a subscription at a time, one gets the element, and the other one a 204.
    No element comes twice. The demand of a poll is that of the subscription: the other poll, or a
    later one, gets the element that it has requested.
    """
    client, other = MappingClient(context), MappingClient(context)
    seen = []
    for initial, demand in ((1, None), (None, 1)):
        stream = await client.subscribe(client.target.slow, initial)
        older = await client.begin(with_argument(stream.path, "request", demand))
        # The target reads the older one first, although it comes over another connection.
        await trio.sleep(client.target.quiet / 5)
        newer = await other.begin(stream.path)
        answers = [await older.finish(), await newer.finish()]
        elements = [element for answer in answers for element in elements_of(answer)]
        verify(
            all(answer.status in (200, 204) for answer in answers),
            f"{answers[0]}; {answers[1]}; 200 and 204 were due",
        )
        elements += [] if elements else await stream.take(1)
        verify(len(elements) == 1, f"{len(elements)} elements came, where 1 was requested")
        seen += [str(answer.status) for answer in answers]
    return ", ".join(seen)


@DELIVERY.row("polls-at-once", 64, DIFFERENT, needs=["three"])
async def polls_at_once(context: CheckContext) -> str:
    """Two polls at a time of a publisher that has its elements ready: each gets another element,
    or waits, or gets a 204. The three elements come once each. Not supported if they are equal.
    """
    clients = [MappingClient(context) for _ in range(3)]
    plain = await (await clients[0].subscribe(context.target.three, 3)).take(3, SINGLE)
    if len(set(plain)) < 3:
        raise NotSupported(f"the elements of the publisher are equal: {plain}")
    stream = await clients[0].subscribe(context.target.three, 3)
    await stream.let_elements_come()
    peers = [await client.begin(stream.path, SINGLE) for client in clients[:2]]
    for peer in peers:
        await peer.settle()
    elements = [element for peer in peers for element in elements_of(peer.answer)]
    # A third connection: a poll may still wait, until this one comes.
    rest = MappedStream(clients[2], stream.path)
    for _ in range(len(elements), 3):
        elements += await rest.take(1, SINGLE)
    for peer in peers:
        if not peer.answer.is_complete:
            await peer.settle()
            elements += elements_of(peer.answer)
    verify(
        sorted(elements) == sorted(plain),
        f"the elements {elements} came for polls at a time, and one by one {plain}",
    )
    return " and ".join(str(peer.answer.status or "no answer yet") for peer in peers)


@DELIVERY.row("request-more", 116, MORE_ANSWER, level=Level.MUST, needs=["publisher"])
async def request_more(context: CheckContext) -> str:
    """requestMore=2 is answered with 200 and an empty body;
    then polls bring two elements, and no more.
    """
    stream = await MappingClient(context).subscribe(context.target.publisher)
    answer = await stream.request_more(2)
    verify(
        answer.status == 200 and not answer.body,
        f"{answer} and a body of {len(answer.body)} bytes; 200 without a body was due",
    )
    await stream.expect_exactly(2)
    return "200, then 2 elements"


@DELIVERY.row("request-more-malformed", 114, MORE, level=Level.READING, needs=["publisher"])
async def request_more_malformed(context: CheckContext) -> str:
    """RequestMore with 0, a negative number or no number ends the stream: 400 with X-Rsio-Error."""
    client = MappingClient(context)
    for demand in ("0", "-1", "x", ""):
        stream = await client.subscribe(client.target.publisher)
        answer = await client.ask(stream.at(f"/requestMore={demand}"))
        verify(answer.status == 400 and answer.is_error, f"{answer}; 400 with X-Rsio-Error was due")
        after = await stream.poll(1)
        verify(after.is_error, f"{after}, after requestMore={demand}")
    return "4 refused"
