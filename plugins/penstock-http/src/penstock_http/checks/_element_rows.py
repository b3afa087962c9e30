"""Elements: their demand, and the codings of several in one body."""

from typing import Final

from penstock_tck.wire import CheckContext, Level, Table, verify

from penstock_http.checks._mapping_client import (
    BATCH,
    CODINGS,
    DRAFT,
    FIXED_SIZE,
    LENGTH_PREFIXED,
    SINGLE,
    MappingClient,
)
from penstock_http.checks._subscribe_rows import WRONG_DEMANDS

ELEMENTS = Table(DRAFT)

SINGLE_ELEMENT: Final = "An answer with one element is an `onNext` for the client."
ENTITY: Final = "The body of an answer with an element is the element."
POLL: Final = "A poll is a PUT of the subscription's URL; its argument `request` is a whole number."
DEMAND: Final = "A poll whose `request` is above 0 requests that many elements."
ABSENT: Final = "A poll without `request` requests 0 elements."
NO_TYPE: Final = (
    "An answer with an element SHOULD NOT have a Content-Type, because a batch cannot have "
    "one for each element."
)
UP_TO: Final = "One answer may have several elements, at most as many as the demand."
PREFIXED: Final = "In X-Rsio-LengthPrefixedElements each element stands after its length."
FIXED: Final = (
    "In X-Rsio-FixedSizeElements one size, given at the beginning, holds for all elements."
)
NO_BATCH_TYPE: Final = (
    "Content-Type and Content-Encoding of an answer with several elements MUST NOT describe "
    "a single one of them."
)
NEGOTIATED: Final = (
    "A message MAY have any coding that both sides support and that HTTP has negotiated; "
    "RS.io does not notice it."
)


@ELEMENTS.row("single-element", 66, SINGLE_ELEMENT, needs=["three"])
async def single_element(context: CheckContext) -> str:
    """A client that reads no coding gets the elements of a stream one by one: each is a body,
    with no Content-Encoding of the mapping.
    """
    stream = await MappingClient(context).subscribe(context.target.three, 3)
    for number in range(3):
        [element] = await stream.take(1, SINGLE)
        verify(element, f"element {number} has an empty body")
    return "3 bodies"


@ELEMENTS.row("element-empty", 70, ENTITY, needs=["blank"])
async def element_empty(context: CheckContext) -> str:
    """An empty element comes as 200 with an empty body, or in a batch, before the end of its
    stream: a 204 would be no element.
    """
    stream = await MappingClient(context).subscribe(context.target.blank, 2)
    elements, answer = await stream.end()
    verify(
        elements == [b""] and answer.status == 410,
        f"the elements {elements} and then {answer}; an empty element and 410 were due",
    )
    return "an empty element"


@ELEMENTS.row("poll-demand", 62, DEMAND, needs=["publisher"])
async def poll_demand(context: CheckContext) -> str:
    """A subscribe with request=2, and polls with request=3 and request=1, bring six elements in
    all, and no more.
    """
    stream = await MappingClient(context).subscribe(context.target.publisher, 2)
    await stream.take(5, demand=3)
    await stream.take(1, demand=1)
    await stream.expect_nothing("6 elements were requested, and have come")
    return "6 elements"


@ELEMENTS.row("poll-demand-absent", 62, ABSENT, needs=["publisher"])
async def poll_demand_absent(context: CheckContext) -> str:
    """Polls without `request`, and with request=0, add nothing to the demand."""
    stream = await MappingClient(context).subscribe(context.target.publisher, 1)
    await stream.take(1, demand=0)
    await stream.expect_nothing("1 element was requested, and has come")
    await stream.expect_nothing("1 element was requested, and has come")
    return "1 element"


@ELEMENTS.row("poll-demand-malformed", 60, POLL, level=Level.READING, needs=["publisher"])
async def poll_demand_malformed(context: CheckContext) -> str:
    """An illegal demand ends the stream (rule 3.9):
    400 with X-Rsio-Error, and no element after that.
    """
    client = MappingClient(context)
    for demand in WRONG_DEMANDS:
        stream = await client.subscribe(client.target.publisher, 5)
        answer = await client.ask(
            f"{stream.path}{'&' if '?' in stream.path else '?'}request={demand}"
        )
        verify(
            answer.status == 400 and answer.is_error,
            f"request={demand}: {answer}; 400 with X-Rsio-Error was due",
        )
        after = await stream.poll(1)
        verify(after.is_error, f"{after}, after request={demand}")
    return f"{len(WRONG_DEMANDS)} refused"


@ELEMENTS.row("demand-saturates", 60, POLL, level=Level.READING, needs=["publisher"])
async def demand_saturates(context: CheckContext) -> str:
    """Demand adds up to at most 2^63-1: requesting 2^63-1 twice is allowed, and elements come."""
    stream = await MappingClient(context).subscribe(context.target.publisher, 2**63 - 1)
    answer = await stream.poll(2**63 - 1, SINGLE)
    verify(answer.status in (200, 204), f"{answer}; elements were due")
    await stream.take(3, SINGLE)
    await stream.cancel()
    return "elements"


@ELEMENTS.row("batch-within-demand", 76, UP_TO, needs=["publisher"])
async def batch_within_demand(context: CheckContext) -> str:
    """A client that reads batches gets the 20 elements that it has requested, in batches
    or one by one, and no more.
    """
    stream = await MappingClient(context).subscribe(context.target.publisher, 20)
    await stream.take(20, BATCH)
    await stream.expect_nothing("20 elements were requested, and have come")
    return "20 elements"


@ELEMENTS.row("batch-length-prefixed", 90, PREFIXED, needs=["publisher", "three"])
async def batch_length_prefixed(context: CheckContext) -> str:
    """A batch has whole elements, each after its length in four bytes, big-endian. The elements
    are those that come one by one.
    """
    client = MappingClient(context)
    stream = await client.subscribe(client.target.publisher, 50)
    elements, _ = await stream.take_batch(LENGTH_PREFIXED)
    single = await (await client.subscribe(client.target.three, 3)).take(3, SINGLE)
    batched = await (await client.subscribe(client.target.three, 3)).take(3, BATCH)
    verify(single == batched, f"one by one the elements are {single}, and in batches {batched}")
    await stream.cancel()
    return f"a batch of {len(elements)}"


@ELEMENTS.row("batch-fixed-size", 90, FIXED, needs=["fixed"])
async def batch_fixed_size(context: CheckContext) -> str:
    """A batch of elements of one size begins with that size in four bytes, big-endian, at
    least 1. The rest is a multiple of it.
    """
    stream = await MappingClient(context).subscribe(context.target.fixed, 50)
    elements, _ = await stream.take_batch(FIXED_SIZE)
    [single] = await stream.take(1, SINGLE, demand=1)
    verify(
        len(single) == len(elements[0]),
        f"a single element has {len(single)} bytes, and those of a batch {len(elements[0])}",
    )
    await stream.cancel()
    return f"a batch of {len(elements)}"


@ELEMENTS.row("batch-one-size", 90, FIXED, needs=["three"])
async def batch_one_size(context: CheckContext) -> str:
    """The three elements are the same one by one and for a client that reads this coding: if
    their sizes differ, they do not come in such a batch.
    """
    client = MappingClient(context)
    plain = await (await client.subscribe(client.target.three, 3)).take(3, SINGLE)
    stream = await client.subscribe(client.target.three, 3)
    await stream.let_elements_come()
    coded = await stream.take(3, ("Accept-Encoding", FIXED_SIZE))
    verify(plain == coded, f"one by one the elements are {plain}, and in batches {coded}")
    return "3 elements"


@ELEMENTS.row("batch-not-accepted", 173, NEGOTIATED, level=Level.READING, needs=["publisher"])
async def batch_not_accepted(context: CheckContext) -> str:
    """A client whose Accept-Encoding excludes the codings, or permits `identity` alone,
    gets no batch.
    """
    client = MappingClient(context)
    excluded = ("Accept-Encoding", ", ".join(f"{coding};q=0" for coding in CODINGS))
    for header in (SINGLE, excluded):
        stream = await client.subscribe(client.target.publisher, 10)
        await stream.let_elements_come()
        answer = await stream.poll(None, header)
        coding = (answer.header("content-encoding") or "").lower()
        verify(
            answer.status == 200 and coding not in CODINGS,
            f"{answer} in the coding {coding!r}, with {': '.join(header)}",
        )
        await stream.cancel()
    return "single elements"


@ELEMENTS.row("element-type", 72, NO_TYPE, level=Level.SHOULD, needs=["three"])
async def element_type(context: CheckContext) -> str:
    """The answer with a single element has no Content-Type."""
    stream = await MappingClient(context).subscribe(context.target.three, 3)
    answer = await stream.first(SINGLE)
    verify(
        answer.header("content-type") is None,
        f"{answer}, and has Content-Type: {answer.header('content-type')}",
    )
    return "none"


@ELEMENTS.row("batch-type", 92, NO_BATCH_TYPE, level=Level.MUST, needs=["publisher"])
async def batch_type(context: CheckContext) -> str:
    """The answer with a batch has no Content-Type, and one coding of the mapping. Not supported
    if the target sends no batch.
    """
    stream = await MappingClient(context).subscribe(context.target.publisher, 50)
    _, answer = await stream.take_batch(LENGTH_PREFIXED)
    verify(
        answer.header("content-type") is None,
        f"{answer}, and has Content-Type: {answer.header('content-type')}",
    )
    await stream.cancel()
    return "none"
