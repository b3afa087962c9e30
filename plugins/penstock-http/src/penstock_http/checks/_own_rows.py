"""Additions to the draft: positions, demand that may be repeated, streamed batches, events. A
target may lack them.
"""

import base64
from typing import Final

from penstock_tck.wire import CheckContext, Level, NotSupported, Table, verify

from penstock_http.checks._http_peer import Answer
from penstock_http.checks._mapping_client import (
    BATCH,
    DRAFT,
    LENGTH_PREFIXED,
    SINGLE,
    MappedStream,
    MappingClient,
    elements_of,
)

OWN = Table(DRAFT)

POSITION_HEADER: Final = "X-Rsio-Position"
REQUESTED_HEADER: Final = "X-Rsio-Requested"
STREAM: Final = ("X-Rsio-Delivery", "stream")

NO_STORE: Final = "Every answer has `Cache-Control: no-store`."
POSITION: Final = (
    "An answer with elements has the position of its first element, a 204 and a 410 that of the "
    "next one."
)
GOES_ON: Final = (
    "A request with a position is answered from there: the client has all elements below it."
)
FORGOTTEN: Final = (
    "The elements below a position are forgotten: a later request for one of them is answered "
    "with 409."
)
AHEAD: Final = "A position that was not reached is answered with 400."
IN_ALL: Final = "With `X-Rsio-Requested` a request that is repeated adds nothing to the demand."
STREAMED: Final = "A streamed batch ends when the demand is used up."
EVENT: Final = (
    "An event has the position of its element as `id`, and the element in base64 as `data`"
)
RESUMED: Final = "A page resumes with `Last-Event-ID`, or with `?last_event_id=` in the URL."
PREFERRED: Final = "`Prefer: wait=N` shortens the wait of a poll."


async def _with_positions(context: CheckContext, demand: int) -> tuple[MappedStream, Answer]:
    """Return a stream, and the answer with its first element.
    Not supported if that has no position.
    """
    stream = await MappingClient(context).subscribe(context.target.publisher, demand)
    answer = await stream.first(SINGLE)
    if answer.header(POSITION_HEADER) is None:
        raise NotSupported(f"the answers of the target have no {POSITION_HEADER}")
    return stream, answer


@OWN.row("no-store", 0, NO_STORE, level=Level.OWN, needs=["publisher"])
async def no_store(context: CheckContext) -> str:
    """A subscribe, a poll with and without an element, a cancel and a 404:
    no cache may keep their answers.
    """
    client = MappingClient(context)
    created = await client.ask(client.publisher(client.target.publisher))
    stream = await client.subscribe(client.target.publisher, 1)
    for answer in (
        created,
        await stream.first(),
        await stream.poll(),
        await stream.cancel(),
        await stream.poll(),
    ):
        verify(
            "no-store" in (answer.header("cache-control") or ""),
            f"{answer}, without Cache-Control: no-store",
        )
    return "no-store"


@OWN.row("position", 0, POSITION, level=Level.OWN, needs=["publisher"])
async def position(context: CheckContext) -> str:
    """The answers to three elements one by one have the positions 0, 1 and 2,
    and the 204 after them has 3.
    """
    stream, first = await _with_positions(context, 3)
    answers = [first, await stream.first(SINGLE), await stream.first(SINGLE), await stream.poll()]
    seen = [answer.header(POSITION_HEADER) for answer in answers]
    verify(seen == ["0", "1", "2", "3"], f"the answers have the positions {seen}")
    return "0, 1, 2, 3"


@OWN.row("position-goes-on", 0, GOES_ON, level=Level.OWN, needs=["three"])
async def position_goes_on(context: CheckContext) -> str:
    """An element is sent again for its position, and costs no demand:
    three elements, the second one twice.
    """
    client = MappingClient(context)
    stream = await client.subscribe(client.target.three, 3)
    first = await stream.first(SINGLE)
    if first.header(POSITION_HEADER) is None:
        raise NotSupported(f"the answers of the target have no {POSITION_HEADER}")
    second = await stream.first(SINGLE, (POSITION_HEADER, "1"))
    again = await stream.first(SINGLE, (POSITION_HEADER, "1"))
    verify(again.body == second.body, "the element of a position differs when it is sent again")
    third = await stream.first(SINGLE, (POSITION_HEADER, "2"))
    verify(
        third.header(POSITION_HEADER) == "2",
        f"{third}, with the position {third.header(POSITION_HEADER)}; 2 was due",
    )
    return "the same element"


@OWN.row("position-forgotten", 0, FORGOTTEN, level=Level.OWN, needs=["publisher"])
async def position_forgotten(context: CheckContext) -> str:
    """After a poll with the position 2, one with the position 0 is answered with 409
    and X-Rsio-Error.
    """
    stream, _ = await _with_positions(context, 5)
    await stream.first(SINGLE)
    await stream.first(SINGLE, (POSITION_HEADER, "2"))
    answer = await stream.poll(None, (POSITION_HEADER, "0"))
    verify(answer.status == 409 and answer.is_error, f"{answer}; 409 with X-Rsio-Error was due")
    return "409"


@OWN.row("position-ahead", 0, AHEAD, level=Level.OWN, needs=["publisher"])
async def position_ahead(context: CheckContext) -> str:
    """After one element, a poll with the position 7 is answered with 400 and X-Rsio-Error."""
    stream, _ = await _with_positions(context, 1)
    answer = await stream.poll(None, (POSITION_HEADER, "7"))
    verify(answer.status == 400 and answer.is_error, f"{answer}; 400 with X-Rsio-Error was due")
    return "400"


@OWN.row("requested", 0, IN_ALL, level=Level.OWN, needs=["publisher"])
async def requested(context: CheckContext) -> str:
    """requestMore=2 with X-Rsio-Requested: 3, twice, after a demand of 1:
    three elements come in all.
    """
    stream, _ = await _with_positions(context, 1)
    for _ in range(2):
        answer = await stream.client.ask(stream.at("/requestMore=2"), (REQUESTED_HEADER, "3"))
        verify(answer.status == 200, f"{answer}; 200 was due")
    await stream.expect_exactly(2)
    return "3 elements"


@OWN.row("streamed", 0, STREAMED, level=Level.OWN, needs=["slow", "publisher"])
async def streamed(context: CheckContext) -> str:
    """A poll with `X-Rsio-Delivery: stream` for 5 elements gets them in one batch,
    which ends after them.
    """
    stream = await MappingClient(context).subscribe(context.target.publisher)
    answer = await stream.poll(5, STREAM, BATCH)
    if (answer.header("content-encoding") or "").lower() != LENGTH_PREFIXED.lower() or len(
        elements_of(answer)
    ) == 1:
        raise NotSupported("the target sends no streamed batch")
    verify(
        len(elements_of(answer)) == 5,
        f"a streamed batch of {len(elements_of(answer))} elements, where 5 were requested",
    )
    await stream.expect_nothing("5 elements were requested, and have come")
    return "5 elements in one answer"


@OWN.row("events", 0, EVENT, level=Level.OWN, needs=["three"])
async def events(context: CheckContext) -> str:
    """The events of a stream of three elements have the ids 0, 1 and 2 and the elements, and
    `rsio-complete` is the last one.
    """
    client = MappingClient(context)
    elements = await (await client.subscribe(client.target.three, 3)).take(3, SINGLE)
    # One more than there are: a publisher that is a generator sees its end only
    # when it is asked again.
    stream = await client.subscribe(client.target.three, 4)
    answer = await _read_events(stream)
    if answer.status in (404, 405):
        raise NotSupported("the target sends no events")
    verify(
        answer.header("content-type") == "text/event-stream",
        f"{answer}, with Content-Type: {answer.header('content-type')}",
    )
    seen = [_fields(event) for event in bytes(answer.body).split(b"\n\n")]
    wanted = [
        (b"%d" % number, base64.b64encode(element)) for number, element in enumerate(elements)
    ]
    verify(
        [event for event in seen if event[0]] == wanted, f"the events are {seen}; {wanted} were due"
    )
    verify(b"rsio-complete" in answer.body, "the events have ended without rsio-complete")
    return "3 events, rsio-complete"


@OWN.row("events-resumed", 0, RESUMED, level=Level.OWN, needs=["three"])
async def events_resumed(context: CheckContext) -> str:
    """After the three events and the end, a request for the events with `Last-Event-ID: 0` gets
    those with the ids 1 and 2.
    """
    stream = await MappingClient(context).subscribe(context.target.three, 4)
    first = await _read_events(stream)
    if first.status in (404, 405):
        raise NotSupported("the target sends no events")
    ids = [_ids(answer) for answer in (first, await _read_events(stream, ("Last-Event-ID", "0")))]
    verify(
        ids == [[b"0", b"1", b"2"], [b"1", b"2"]],
        f"the events have the ids {ids[0]}, and with Last-Event-ID: 0 {ids[1]}",
    )
    return "the events 1 and 2"


async def _read_events(stream: MappedStream, *headers: tuple[str, str]) -> Answer:
    """Return the events of a stream, to its end. The connection is not used again."""
    peer = await stream.client.begin(stream.at("/events"), *headers, method="GET")
    await peer.wait_until(
        lambda: b"rsio-complete" in peer.answer.body or peer.answer.is_complete or peer.ending,
        "the event rsio-complete",
    )
    return peer.answer


def _ids(answer: Answer) -> list[bytes]:
    return [name for name, _ in map(_fields, bytes(answer.body).split(b"\n\n")) if name]


def _fields(event: bytes) -> tuple[bytes, bytes]:
    """Return the id and the data of an event."""
    fields = dict(
        line.split(b": ", 1)
        for line in event.split(b"\n")
        if b": " in line and not line.startswith(b":")
    )
    return fields.get(b"id", b""), fields.get(b"data", b"")


@OWN.row("prefer-wait", 0, PREFERRED, level=Level.OWN, needs=["slow"])
async def prefer_wait(context: CheckContext) -> str:
    """A poll of a slow publisher with `Prefer: wait=0` is answered with 204 at once;
    the next one gets the element.
    """
    stream = await MappingClient(context).subscribe(context.target.slow, 1)
    answer = await stream.poll(None, ("Prefer", "wait=0"))
    verify(answer.status == 204, f"{answer}; 204 was due")
    await stream.take(1)
    return "204, then the element"
