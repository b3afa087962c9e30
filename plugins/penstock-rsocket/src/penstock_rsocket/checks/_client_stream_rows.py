"""Clients: requests, streams, channels and messages, and the requests of a server to its client."""

from typing import Final

from penstock_tck.wire import CheckContext, Level, Table, verify

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._client_under_test import ClientUnderTest, begin
from penstock_rsocket.checks._frames import Frame
from penstock_rsocket.checks._peer import RSOCKET

CLIENT_STREAMS = Table(RSOCKET)

RESPONSE: Final = "Request Response"
STREAM: Final = "Request Stream"
CHANNEL: Final = "Request Channel"
FORGET: Final = "Request Fire-n-Forget"
FRAGMENTS: Final = "Fragmentation And Reassembly"
IDS: Final = "Stream Identifiers"
DEMAND: Final = "Reactive Streams Semantics"
GRANTS: Final = "REQUEST_N Frame"

ANSWERED: Final = "A request for a response is answered with one PAYLOAD that completes it."
ENDED: Final = "A stream is PAYLOADs, and then COMPLETE or an ERROR. It is over then."
JOINED: Final = "A large PAYLOAD may go in several, each but the last with FOLLOWS."
BOTH: Final = "Both sides MUST respect the demand of the other."
SENT: Final = [b"one", b"two", b"three", b"four", b"five"]
"""The elements of the channel of a client."""
MANY: Final = 300
LARGE: Final = bytes(index % 251 for index in range(200_000))
"""The data of the task ``large``."""


async def _asked(
    context: CheckContext, task: str = "request hello"
) -> tuple[ClientUnderTest, Frame]:
    client = await begin(context, task)
    return client, await client.request(rs.REQUEST_RESPONSE, "echo")


async def _streamed(context: CheckContext, task: str = "stream 2") -> tuple[ClientUnderTest, Frame]:
    client = await begin(context, task)
    return client, await client.request(rs.REQUEST_STREAM, "numbers")


async def _opened(context: CheckContext) -> tuple[ClientUnderTest, Frame]:
    client = await begin(context, "channel")
    return client, await client.request(rs.REQUEST_CHANNEL, "channel")


# --- ids


@CLIENT_STREAMS.row(
    "ids", IDS, "The ids of a client MUST begin with 1 and go up by 2.", level=Level.MUST
)
async def ids(context: CheckContext) -> str:
    """Those of the three requests for the task, for a response, and with the outcome."""
    client, request = await _asked(context)
    await client.answer(request, b"x")
    await client.outcome()
    seen = [each.stream for each in client.of_type(*rs.REQUESTS)]
    verify(seen == [1, 3, 5], f"the ids are {seen}")
    return "1, 3, 5"


# --- requests for one value


@CLIENT_STREAMS.row("response", RESPONSE, ANSWERED)
async def response(context: CheckContext) -> str:
    """The request has its route and its data, and goes in one frame. A PAYLOAD with NEXT and
    COMPLETE is the value, and no frame follows for the stream.
    """
    client, request = await _asked(context)
    verify(request.data == b"hello", f"the data is {request.data!r}, and b'hello' is due")
    await client.answer(request, b"a value")
    seen = await client.expect_outcome("value a value")
    verify(
        client.of_stream(request.stream) == [request],
        f"more frames came for the stream; {client.describe_received()}",
    )
    return seen


@CLIENT_STREAMS.row("response-next", RESPONSE, ANSWERED, level=Level.READING)
async def response_next(context: CheckContext) -> str:
    """A PAYLOAD with NEXT alone is the value as well: no other one can come."""
    client, request = await _asked(context)
    await client.element(request.stream, b"a value")
    return await client.expect_outcome("value a value")


@CLIENT_STREAMS.row("response-empty", RESPONSE, ANSWERED)
async def response_empty(context: CheckContext) -> str:
    """A PAYLOAD with COMPLETE alone is an end without a value."""
    client, request = await _asked(context)
    await client.element(request.stream, b"", rs.C)
    return await client.expect_outcome("empty")


@CLIENT_STREAMS.row("response-error", RESPONSE, "A request that fails is answered with an ERROR.")
async def response_error(context: CheckContext) -> str:
    """The text of ERROR[APPLICATION_ERROR] gets to the program."""
    client, request = await _asked(context)
    await client.error(request.stream, rs.APPLICATION_ERROR)
    seen = await client.outcome()
    verify(seen.startswith("error") and "boom" in seen, f"the outcome is {seen!r}, an error is due")
    await client.expect_nothing(request.stream, "the stream was over")
    return seen[:60]


@CLIENT_STREAMS.row(
    "response-metadata", "PAYLOAD Frame", "A PAYLOAD may have metadata before its data."
)
async def response_metadata(context: CheckContext) -> str:
    """The value is the data alone."""
    client, request = await _asked(context)
    body = rs.with_metadata(rs.route("m"), b"data")
    await client.element(request.stream, body, rs.N | rs.C | rs.M)
    return await client.expect_outcome("value data")


@CLIENT_STREAMS.row("response-fragments", FRAGMENTS, JOINED)
async def response_fragments(context: CheckContext) -> str:
    """A value in three fragments of 100 bytes, and a KEEPALIVE between them."""
    client, request = await _asked(context)
    parts = [bytes([letter]) * 100 for letter in b"abc"]
    await client.element(request.stream, parts[0], rs.N | rs.F)
    await client.expect_alive("between two fragments")
    await client.element(request.stream, parts[1], rs.N | rs.F)
    await client.element(request.stream, parts[2], rs.N | rs.C)
    return await client.expect_outcome(f"value {b''.join(parts).decode()}")


@CLIENT_STREAMS.row(
    "response-fragments-metadata",
    FRAGMENTS,
    "In fragments the metadata MUST come whole before the data.",
    level=Level.MUST,
)
async def response_fragments_metadata(context: CheckContext) -> str:
    """Metadata in two fragments, the second of which has data as well, is no part of the value."""
    client, request = await _asked(context)
    content = rs.route("m" * 200)
    first, second = content[:100], content[100:]
    await client.element(request.stream, rs.with_metadata(first), rs.N | rs.F | rs.M)
    body = rs.with_metadata(second, b"the ")
    await client.element(request.stream, body, rs.N | rs.F | rs.M)
    await client.element(request.stream, b"data", rs.N | rs.C)
    return await client.expect_outcome("value the data")


@CLIENT_STREAMS.row(
    "request-large", FRAGMENTS, "A large request goes whole, or in fragments with FOLLOWS."
)
async def request_large(context: CheckContext) -> str:
    """The data of 200,000 bytes comes in one frame, or in several: each but the last has FOLLOWS,
    and those after the first are PAYLOADs with NEXT. Joined it is unchanged.
    """
    client, request = await _asked(context, "large")
    data = await client.wait_whole(request)
    verify(data == LARGE, f"other data of {len(data)} bytes came; {client.describe_received()}")
    parts = client.of_stream(request.stream, rs.PAYLOAD)
    wrong = [each for each in parts if not each.flags & rs.N or each.flags & rs.C]
    verify(not wrong, f"fragments have the flags {[f'{each.flags:03x}' for each in wrong[:3]]}")
    await client.answer(request, b"ok")
    await client.expect_outcome("value ok")
    return f"{1 + len(parts)} frames"


# --- streams


@CLIENT_STREAMS.row(
    "stream-demand", DEMAND, "REQUEST_STREAM has the first demand, a number of 31 bits above 0."
)
async def stream_demand(context: CheckContext) -> str:
    """It is that of the subscriber, 3, and nothing more is requested before an element has come."""
    client, request = await _streamed(context, "stream 3")
    await client.settle()
    verify(
        client.demand(request) == 3,
        f"{client.demand(request)} elements were requested, and 3 are due",
    )
    return "3"


@CLIENT_STREAMS.row(
    "stream-grants",
    GRANTS,
    "The number of a REQUEST_N MUST be above 0. It has 31 bits.",
    level=Level.MUST,
)
async def stream_grants(context: CheckContext) -> str:
    """Twenty elements, each sent when it was requested; they are taken in order."""
    client, request = await _streamed(context, "stream 3")
    due = [b"%d" % index for index in range(20)]
    await client.serve(request, due)
    await client.element(request.stream, b"", rs.C)
    _verify_grants(client, request)
    await client.expect_outcome(f"elements {b','.join(due).decode()} complete")
    return f"{[each.number for each in client.of_stream(request.stream, rs.REQUEST_N)][:8]}"


def _verify_grants(client: ClientUnderTest, request: Frame) -> None:
    numbers = [request, *client.of_stream(request.stream, rs.REQUEST_N)]
    wrong = [each.number for each in numbers if not 0 < each.number <= rs.UNBOUNDED]
    verify(not wrong, f"demands of {wrong[:5]} came")


@CLIENT_STREAMS.row(
    "stream-unbounded",
    GRANTS,
    "The number of a REQUEST_N MUST be above 0. It has 31 bits.",
    level=Level.MUST,
)
async def stream_unbounded(context: CheckContext) -> str:
    """A subscriber without a bound: each demand is legal, and 300 elements get to it."""
    client, request = await _streamed(context, "unbounded")
    due = [b"%d" % index for index in range(MANY)]
    await client.serve(request, due)
    await client.element(request.stream, b"", rs.C)
    _verify_grants(client, request)
    await client.expect_outcome(f"elements {b','.join(due).decode()} complete")
    return f"a first demand of {request.number}"


@CLIENT_STREAMS.row("stream-complete", STREAM, ENDED)
async def stream_complete(context: CheckContext) -> str:
    """COMPLETE in the frame of the last element; no frame for the stream follows."""
    client, request = await _streamed(context)
    await client.element(request.stream, b"a")
    await client.element(request.stream, b"b", rs.N | rs.C)
    await client.expect_outcome("elements a,b complete")
    return await _expect_over(client, request)


@CLIENT_STREAMS.row("stream-empty", STREAM, ENDED)
async def stream_empty(context: CheckContext) -> str:
    """COMPLETE alone, before any element."""
    client, request = await _streamed(context)
    await client.element(request.stream, b"", rs.C)
    return await client.expect_outcome("elements  complete")


@CLIENT_STREAMS.row("stream-error", STREAM, ENDED)
async def stream_error(context: CheckContext) -> str:
    """An ERROR after an element: the element, and then the error with its text. No frame for the
    stream follows.
    """
    client, request = await _streamed(context)
    await client.element(request.stream, b"a")
    await client.error(request.stream, rs.APPLICATION_ERROR)
    seen = await client.outcome()
    verify(
        seen.startswith("elements a error") and "boom" in seen,
        f"the outcome is {seen!r}; 'a' and the error 'boom' are due",
    )
    return await _expect_over(client, request)


async def _expect_over(client: ClientUnderTest, request: Frame) -> str:
    await client.settle()
    late = client.of_stream(request.stream, rs.CANCEL)
    verify(not late, f"a CANCEL came for a stream that had ended; {client.describe_received()}")
    await client.expect_nothing(request.stream, "the stream was over")
    return "over"


@CLIENT_STREAMS.row(
    "stream-fragments", FRAGMENTS, "An element in fragments takes one of the demand."
)
async def stream_fragments(context: CheckContext) -> str:
    """An element in three fragments, a whole one, and one whose last fragment has COMPLETE."""
    client, request = await _streamed(context, "stream 3")
    for data, flags in (
        (b"a" * 64, rs.N | rs.F),
        (b"b" * 64, rs.N | rs.F),
        (b"c" * 64, rs.N),
        (b"whole", rs.N),
        (b"d" * 64, rs.N | rs.F),
        (b"e" * 64, rs.N | rs.C),
    ):
        await client.element(request.stream, data, flags)
    letters = ["".join(letter * 64 for letter in word) for word in ("abc", "de")]
    await client.expect_outcome(f"elements {letters[0]},whole,{letters[1]} complete")
    return "3 elements in 6 frames"


@CLIENT_STREAMS.row("stream-over", STREAM, ENDED, level=Level.READING)
async def stream_over(context: CheckContext) -> str:
    """PAYLOAD and ERROR for a stream that has completed are ignored."""
    client, request = await _streamed(context)
    await client.element(request.stream, b"a", rs.N | rs.C)
    await client.element(request.stream, b"late")
    await client.element(request.stream, b"", rs.C)
    await client.error(request.stream, rs.APPLICATION_ERROR)
    await client.expect_outcome("elements a complete")
    await client.expect_alive("after late frames the connection continues")
    return "ignored"


@CLIENT_STREAMS.row("stream-cancelled", STREAM, "A CANCEL of the requester ends the stream.")
async def stream_cancelled(context: CheckContext) -> str:
    """After two elements the program cancels: one CANCEL comes, and nothing after it. Late elements
    are ignored.
    """
    client, request = await _streamed(context, "cancel 2")
    await client.serve(request, [b"a", b"b"])
    await client.wait_until(lambda: client.of_stream(request.stream, rs.CANCEL), "a CANCEL")
    for flags in (rs.N, rs.N, rs.C):
        await client.element(request.stream, b"late" if flags & rs.N else b"", flags)
    await client.expect_outcome("elements a,b cancelled")
    await client.settle()
    frames = client.of_stream(request.stream)
    verify(
        len(client.of_stream(request.stream, rs.CANCEL)) == 1 and frames[-1].type == rs.CANCEL,
        f"one CANCEL is due as the last frame; {client.describe_received()}",
    )
    await client.expect_alive("after late elements the connection continues")
    return "one CANCEL"


# --- channels


@CLIENT_STREAMS.row(
    "channel-first",
    CHANNEL,
    "The REQUEST_CHANNEL has the first element of the requester, and its first demand.",
)
async def channel_first(context: CheckContext) -> str:
    """It has the first of five elements, and no other one comes without demand."""
    client, request = await _opened(context)
    await client.settle()
    verify(
        request.data == SENT[0] and 0 < request.number <= rs.UNBOUNDED and not request.flags & rs.C,
        f"the data is {request.data!r}, the demand {request.number}",
    )
    verify(not client.elements(request.stream), f"more came; {client.describe_received()}")
    return f"{request.data!r}, and a demand of {request.number}"


@CLIENT_STREAMS.row("channel-demand", DEMAND, BOTH, level=Level.MUST)
async def channel_demand(context: CheckContext) -> str:
    """A REQUEST_N of 2, one of 1, and one of 10 bring two elements, one, and the last one."""
    client, request = await _opened(context)
    for grant, due in ((2, 2), (1, 3)):
        await client.grant(request.stream, grant)
        await client.expect_exactly(request.stream, due)
    await client.grant(request.stream, 10)
    await client.expect_exactly(request.stream, 4)
    verify(
        client.elements(request.stream) == SENT[1:],
        f"the elements are {client.elements(request.stream)}",
    )
    return "2, 1 and 1 elements"


@CLIENT_STREAMS.row(
    "channel-complete", CHANNEL, "A channel is over when both sides have completed."
)
async def channel_complete(context: CheckContext) -> str:
    """The client completes after its last element, once, without demand for more. Answers that come
    after that get to the program.
    """
    client, request = await _opened(context)
    await client.grant(request.stream, 4)
    await client.wait_elements(request.stream, 4)
    await client.wait_until(lambda: client.completed(request.stream), "COMPLETE")
    await client.serve(request, [b"x", b"y", b"z"])
    await client.element(request.stream, b"", rs.C)
    await client.expect_outcome("elements x,y,z complete")
    ends = [each for each in client.of_stream(request.stream, rs.PAYLOAD) if each.flags & rs.C]
    verify(len(ends) == 1, f"{len(ends)} frames with COMPLETE; {client.describe_received()}")
    return "one COMPLETE, 3 answers"


@CLIENT_STREAMS.row("channel-answers", CHANNEL, "Both sides send PAYLOADs.")
async def channel_answers(context: CheckContext) -> str:
    """Answers get to the program, and are requested, while none of its own elements is."""
    client, request = await _opened(context)
    await client.serve(request, [b"x", b"y", b"z", b"u", b"v"])
    _verify_grants(client, request)
    await client.grant(request.stream, 10)
    await client.element(request.stream, b"", rs.C)
    await client.expect_outcome("elements x,y,z,u,v complete")
    return "5 answers"


@CLIENT_STREAMS.row(
    "channel-cancelled",
    CHANNEL,
    "A CANCEL of the responder ends the elements of the requester, and not those of the responder.",
)
async def channel_cancelled(context: CheckContext) -> str:
    """After the CANCEL no element comes for a demand that follows, and answers go on."""
    client, request = await _opened(context)
    await client.grant(request.stream, 1)
    await client.wait_elements(request.stream, 1)
    await client.cancel(request.stream)
    await client.settle()
    before = len(client.elements(request.stream))
    await client.grant(request.stream, 3)
    await client.settle()
    verify(
        len(client.elements(request.stream)) == before,
        f"elements came after a CANCEL; {client.describe_received()}",
    )
    await client.serve(request, [b"x", b"y"])
    await client.element(request.stream, b"", rs.C)
    return await client.expect_outcome("elements x,y complete")


@CLIENT_STREAMS.row("channel-error", CHANNEL, "An ERROR of the responder ends both directions.")
async def channel_error(context: CheckContext) -> str:
    """The program gets the error, and no frame for the channel comes, for demand that follows."""
    client, request = await _opened(context)
    await client.element(request.stream, b"x")
    await client.error(request.stream, rs.APPLICATION_ERROR)
    seen = await client.outcome()
    verify(
        seen.startswith("elements x error") and "boom" in seen,
        f"the outcome is {seen!r}; 'x' and the error 'boom' are due",
    )
    await client.settle()
    before = len(client.of_stream(request.stream))
    await client.grant(request.stream, 3)
    await client.settle()
    verify(
        len(client.of_stream(request.stream)) == before,
        f"the channel was over, and {client.describe_received()}",
    )
    return seen[:60]


# --- messages


@CLIENT_STREAMS.row("fire-and-forget", FORGET, "REQUEST_FNF is a request without an answer.")
async def fire_and_forget(context: CheckContext) -> str:
    """It has its route and its data, and no frame for its stream follows."""
    client = await begin(context, "forget hello")
    request = await client.request(rs.REQUEST_FNF, "echo")
    data = await client.wait_whole(request)
    verify(data == b"hello", f"the data is {data!r}")
    await client.expect_outcome("done")
    await client.settle()
    more = [each for each in client.of_stream(request.stream) if each.type != rs.PAYLOAD]
    verify(
        more == [request],
        f"more frames came for the stream of the REQUEST_FNF; {client.describe_received()}",
    )
    return str(request)


@CLIENT_STREAMS.row(
    "metadata-push",
    "METADATA_PUSH Frame",
    "A METADATA_PUSH MUST be on stream 0, and has the flag METADATA.",
    level=Level.MUST,
)
async def metadata_push(context: CheckContext) -> str:
    """Its body is the metadata, without a length."""
    client = await begin(context, "push hello")
    await client.expect_outcome("done")
    await client.wait_until(lambda: client.of_type(rs.METADATA_PUSH), "a METADATA_PUSH")
    push = client.of_type(rs.METADATA_PUSH)[0]
    verify(
        not push.stream and push.flags == rs.M and push.body == b"hello",
        f"{push} came, with {push.body!r}",
    )
    return str(push)


# --- the client answers


@CLIENT_STREAMS.row(
    "serves-request",
    IDS,
    "A server opens streams with even ids, and its client answers.",
    level=Level.READING,
)
async def serves_request(context: CheckContext) -> str:
    """A REQUEST_RESPONSE with the route `echo` on stream 2 is answered once, with its data."""
    client = await begin(context, "serve")
    await client.outcome()
    await _ask(client, rs.REQUEST_RESPONSE, 2, "echo", data=b"a payload")
    await client.wait_end(2, well=True)
    await client.settle()
    verify(
        client.elements(2) == [b"a payload"] and len(client.of_stream(2)) == 1,
        f"one PAYLOAD is due; {client.describe_received()}",
    )
    return str(client.of_stream(2)[0])


@CLIENT_STREAMS.row("serves-stream", DEMAND, BOTH, level=Level.MUST)
async def serves_stream(context: CheckContext) -> str:
    """A REQUEST_STREAM with the route `numbers` on stream 2 gets two elements for a demand of 2,
    one for a REQUEST_N of 1, and none after a CANCEL.
    """
    client = await begin(context, "serve")
    await client.outcome()
    await _ask(client, rs.REQUEST_STREAM, 2, "numbers", demand=2)
    await client.expect_exactly(2, 2)
    await client.grant(2, 1)
    await client.expect_exactly(2, 3)
    await client.cancel(2)
    await client.settle()
    before = len(client.of_stream(2))
    await client.grant(2, 3)
    await client.settle()
    verify(
        len(client.of_stream(2)) == before,
        f"frames came after a CANCEL; {client.describe_received()}",
    )
    return "2 elements, and 1"


async def _ask(
    client: ClientUnderTest,
    kind: int,
    stream: int,
    name: str,
    *,
    data: bytes = b"",
    demand: int = 1,
) -> None:
    body = rs.with_metadata(rs.route(name), data)
    if kind in rs.WITH_DEMAND:
        body = rs.number(demand) + body
    await client.send_frame(kind, stream, body, flags=rs.M)
