"""Rules of the mapping about HTTP itself: conditions, ranges, validators, trailers, codings,
redirects.
"""

from typing import Final

from penstock_tck.wire import CheckContext, Level, Table, verify

from penstock_http.checks._http_peer import Answer
from penstock_http.checks._mapping_client import (
    BATCH,
    DRAFT,
    SINGLE,
    MappedStream,
    MappingClient,
    with_argument,
)

HTTP = Table(DRAFT)

REDIRECT: Final = "Authentication and redirects SHOULD happen at the subscribe, and not later."
CODED: Final = "A message MAY have any coding that both sides support; RS.io does not notice it."
STANDARD: Final = (
    "Headers that HTTP demands are there, although the examples of the draft do not show them."
)
NO_NEGOTIATION: Final = "The type of the content MUST NOT be negotiated."
NO_VALIDATORS: Final = "An answer SHOULD have neither ETag nor Last-Modified."
CONDITION: Final = "A request with a condition MUST be answered with 412."
RANGE: Final = "A server MUST answer a request with `Range` like one without it."
TWO_CONNECTIONS: Final = (
    "The messages are requests and answers of HTTP/1.1, over ordinary connections."
)
NO_TRAILERS: Final = "Trailers MUST NOT change the meaning or the data of a message."

CONDITIONS: Final = (
    ("If-Match", "*"),
    ("If-None-Match", '"x"'),
    ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("If-Range", '"x"'),
)


async def _life(
    client: MappingClient, *headers: tuple[str, str], chunked: bool = False
) -> list[Answer]:
    """Return the answers of a life of a stream:
    subscribe, an element, no element, more demand, cancel, a poll after it.
    """
    path = with_argument(client.publisher(client.target.publisher), "request", 1)
    created = await client.ask(path, *headers, chunked=chunked)
    verify(created.status == 201, f"{created}; 201 was due")
    stream = MappedStream(client, client.location(created, path))
    await stream.let_elements_come()
    suffixes = ("", "", "/requestMore=1", "/cancel", "")
    return [
        created,
        *[await client.ask(stream.at(suffix), *headers, chunked=chunked) for suffix in suffixes],
    ]


async def _every_answer(context: CheckContext) -> list[Answer]:
    """Return answers of every kind that a target can be made to send: those of a life, of a batch,
    of a stream's end and failure, and of refusals.
    """
    client = MappingClient(context)
    answers = await _life(client)
    stream = await client.subscribe(client.target.publisher, 20)
    await stream.let_elements_come()
    answers += [
        await stream.first(BATCH),
        await client.ask(client.missing()),
        await client.ask(stream.path, CONDITIONS[0]),
        await client.ask(stream.path, method="DELETE"),
        await client.ask(stream.at("/requestMore=x")),
    ]
    for name in (client.target.three, client.target.failing):
        if not name:
            continue
        path = with_argument(client.publisher(name), "request", 20)
        created = await client.ask(path)
        answers.append(created)
        if created.status == 201:
            _, last = await MappedStream(client, client.location(created, path)).end()
            answers.append(last)
    return answers


LIFE: Final = [201, 200, 204, 200, 200, 404]


@HTTP.row("not-redirected", 171, REDIRECT, level=Level.SHOULD, needs=["publisher"])
async def not_redirected(context: CheckContext) -> str:
    """A poll, a requestMore and a cancel are answered neither with a redirect nor with 401."""
    _, *answers = await _life(MappingClient(context))
    for answer in answers:
        verify(not 300 <= answer.status < 400 and answer.status != 401, str(answer))
    return "none"


@HTTP.row("chunked-request", 173, CODED, needs=["publisher"])
async def chunked_request(context: CheckContext) -> str:
    """Requests whose empty body has `Transfer-Encoding: chunked` are answered like those with
    `Content-Length: 0`.
    """
    statuses = [answer.status for answer in await _life(MappingClient(context), chunked=True)]
    verify(
        statuses == LIFE, f"the requests of a stream were answered with {statuses}; {LIFE} were due"
    )
    return "the same statuses"


@HTTP.row("standard-headers", 175, STANDARD, needs=["publisher"])
async def standard_headers(context: CheckContext) -> str:
    """Each answer has a Date, and says where its body ends:
    Content-Length or chunked, neither of both in a 204. No byte comes after that.
    """
    for answer in await _every_answer(context):
        length, coding = answer.header("content-length"), answer.header("transfer-encoding")
        verify(answer.header("date") is not None, f"{answer}, without a Date")
        has_length = (
            (length is not None) != (coding is not None)
            if answer.status != 204
            else length is None and coding is None
        )
        verify(
            has_length, f"{answer}, with Content-Length: {length} and Transfer-Encoding: {coding}"
        )
    return "Date, and a length"


@HTTP.row("no-negotiation", 177, NO_NEGOTIATION, level=Level.MUST, needs=["publisher"])
async def no_negotiation(context: CheckContext) -> str:
    """Requests with `Accept: image/png` are answered like those without it."""
    statuses = [
        answer.status for answer in await _life(MappingClient(context), ("Accept", "image/png"))
    ]
    verify(
        statuses == LIFE,
        (
            f"with Accept: image/png the requests of a stream were answered with {statuses}; "
            f"{LIFE} were due"
        ),
    )
    return "the same statuses"


@HTTP.row("no-validators", 179, NO_VALIDATORS, level=Level.SHOULD, needs=["publisher"])
async def no_validators(context: CheckContext) -> str:
    """No answer has an ETag or a Last-Modified."""
    for answer in await _every_answer(context):
        verify(
            answer.header("etag") is None and answer.header("last-modified") is None,
            f"{answer}, with a validator",
        )
    return "none"


@HTTP.row("condition", 181, CONDITION, level=Level.MUST, needs=["publisher"])
async def condition(context: CheckContext) -> str:
    """A subscribe, a poll, a requestMore and a cancel with an If-* header are answered with 412."""
    client = MappingClient(context)
    stream = await client.subscribe(client.target.publisher)
    for header in CONDITIONS:
        paths = (
            client.publisher(client.target.publisher),
            stream.path,
            stream.at("/requestMore=1"),
            stream.at("/cancel"),
        )
        for path in paths:
            answer = await client.ask(path, header)
            verify(answer.status == 412, f"{answer}, with {header[0]}; 412 was due")
    return "412"


@HTTP.row("condition-no-effect", 181, CONDITION, level=Level.READING, needs=["publisher"])
async def condition_no_effect(context: CheckContext) -> str:
    """Such a request has no effect:
    its demand is not added, its cancel cancels nothing, and the 412 has no X-Rsio-Error.
    """
    client = MappingClient(context)
    stream = await client.subscribe(client.target.publisher)
    for path in (
        with_argument(stream.path, "request", 3),
        stream.at("/requestMore=3"),
        stream.at("/cancel"),
    ):
        answer = await client.ask(path, CONDITIONS[0])
        verify(answer.header("x-rsio-error") is None, f"{answer}; the stream goes on")
    await stream.expect_nothing("only requests with If-Match have requested elements")
    await stream.take(1, demand=1)
    return "none"


@HTTP.row("range", 183, RANGE, level=Level.MUST, needs=["three"])
async def range_ignored(context: CheckContext) -> str:
    """A poll with a Range gets its element whole, with 200, and so does one that reads batches."""
    client = MappingClient(context)
    for count, coding in ((1, SINGLE), (3, BATCH)):
        elements = []
        for headers in ((coding,), (coding, ("Range", "bytes=0-0"))):
            stream = await client.subscribe(client.target.three, count)
            await stream.let_elements_come()
            elements.append(await stream.take(count, *headers))
        plain, ranged = elements
        verify(ranged == plain, f"with a Range the elements are {ranged}, without a Range {plain}")
    return "the whole elements"


@HTTP.row("no-trailers", 185, NO_TRAILERS, level=Level.MUST, needs=["publisher"])
async def no_trailers(context: CheckContext) -> str:
    """No answer has trailers."""
    for answer in await _every_answer(context):
        verify(not answer.trailers, f"{answer}, with the trailers {answer.trailers}")
    return "none"


@HTTP.row("pipelined", 16, TWO_CONNECTIONS, level=Level.READING, needs=["slow"])
async def pipelined(context: CheckContext) -> str:
    """A poll of a slow publisher and a request for a publisher that does not exist, sent at once
    over one connection, are answered in this order. The server may close the connection after the
    first answer.
    """
    client = MappingClient(context)
    stream = await client.subscribe(client.target.slow, 1)
    answers = await (await client.connected()).pipeline(stream.path, client.missing())
    statuses = [answer.status for answer in answers]
    verify(
        statuses[0] in (200, 204) and statuses[1:] in ([404], []),
        f"a poll and a subscribe to a missing publisher were answered with {statuses}, in this "
        "order; 200 or 204, and then 404, were due",
    )
    return " and ".join(map(str, statuses))


@HTTP.row("head", 16, TWO_CONNECTIONS, level=Level.READING, needs=["publisher"])
async def head(context: CheckContext) -> str:
    """The answer to HEAD has no body, whatever its headers say, for a publisher as for a
    subscription. HEAD has no effect.
    """
    client = MappingClient(context)
    stream = await client.subscribe(client.target.publisher, 1)
    statuses = []
    for path in (
        client.publisher(client.target.publisher),
        with_argument(stream.path, "request", 1),
    ):
        peer = await client.begin(path, method="HEAD")
        answer = await peer.finish()
        statuses.append(str(answer.status))
        await peer.settle()
        verify(not peer.excess, f"{answer}, and a body of at least {len(peer.excess)} bytes")
    await stream.expect_exactly(1)
    return " and ".join(statuses)
