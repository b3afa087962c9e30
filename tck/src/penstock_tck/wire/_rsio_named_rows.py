"""RS.io: requests by name with a payload, which need the extension *requests* (id 7)."""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._named_request import PAYLOADS, named_request
from penstock_tck.wire._requirement import RSIO, Level, Table
from penstock_tck.wire._rsio_peer import RsioPeer
from penstock_tck.wire._verdict import NotSupported, verify

NAMED = Table(RSIO)

EXTENSION = 7
ANSWERED = (
    "then the other side answers as to a subscribe: with onSubscribe, one element and onComplete, "
    "or with onError."
)
COMPLETE = "The data is complete when `length` bytes have come"
TOO_MUCH = "more data than the announced length"


def request_data(stream: int, data: bytes, length: int) -> bytes:
    """Return the message that opens a request of `length` bytes with the first of them."""
    return bytes((io.REQUEST_DATA,)) + io.length_prefixed(
        io.varint(stream) + io.varint(length) + data
    )


def _goes_on(stream: int, data: bytes) -> bytes:
    return bytes((io.MORE_DATA,)) + io.length_prefixed(io.varint(stream) + data)


async def connect_for_requests(context: CheckContext) -> RsioPeer:
    """Open a connection on which both sides have the extension.
    Without it a server has no such requests.
    """
    peer = await context.connect_rsio(hello=False)
    await peer.send(io.hello(EXTENSION))
    await peer.wait_until(lambda: peer.of_type(io.SERVER_HELLO) or peer.ending, "a serverHello")
    hello = peer.of_type(io.SERVER_HELLO)
    if not hello or EXTENSION not in hello[0].numbers[1:]:
        raise NotSupported("the target does not confirm the extension requests (id 7)")
    return peer


@NAMED.row("named-request", 0, ANSWERED, level=Level.OWN, needs=["echo"])
async def named_request_answered(context: CheckContext) -> str:
    """A name with a payload is answered as a subscription of one element. The payload arrives
    unchanged, also if it is empty.
    """
    peer = await connect_for_requests(context)
    for stream, payload in enumerate(PAYLOADS, 1):
        data = named_request(context.target.echo, payload)
        await peer.send(request_data(stream, data, len(data)))
        await peer.wait_end(stream, well=True)
        await peer.settle()
        answers = peer.elements(stream)
        verify(
            answers == [payload],
            f"{payload!r} was sent to an echo, and {answers!r} came; {peer.describe_received()}",
        )
        verify(
            peer.of_stream(stream)[0].type == io.ON_SUBSCRIBE,
            f"onSubscribe must come first; {peer.describe_received()}",
        )
    return f"{len(PAYLOADS)} payloads came back"


@NAMED.row("named-parts", 0, COMPLETE, level=Level.OWN, needs=["echo"])
async def named_parts(context: CheckContext) -> str:
    """Data in three messages is joined.
    The request is answered when all of it has come, and not before.
    """
    peer = await connect_for_requests(context)
    data = named_request(context.target.echo, b"in three parts")
    await peer.send(request_data(1, data[:3], len(data)))
    await peer.send(_goes_on(1, data[3:9]))
    await peer.settle()
    verify(
        not peer.elements(1) and not peer.ended(1),
        f"a request was answered before its data had come; {peer.describe_received()}",
    )
    await peer.send(_goes_on(1, data[9:]))
    await peer.wait_end(1, well=True)
    verify(
        peer.elements(1) == [b"in three parts"],
        f"an echo of the joined payload was expected; {peer.describe_received()}",
    )
    return str(peer.of_stream(1)[-1])


@NAMED.row("named-unknown", 0, ANSWERED, level=Level.OWN, needs=["echo", "publisher"])
async def named_unknown(context: CheckContext) -> str:
    """A name that leads nowhere, and a payload for a publisher, get onError and no element.
    The connection continues.
    """
    peer = await connect_for_requests(context)
    for stream, name in ((1, context.target.missing), (2, context.target.publisher)):
        data = named_request(name, b"a payload")
        await peer.send(request_data(stream, data, len(data)))
        await peer.wait_end(stream, well=False)
    await peer.expect_working()
    verify(
        not peer.elements(1) and not peer.elements(2),
        f"an element came; {peer.describe_received()}",
    )
    return f"{peer.ended(1)}; {peer.ended(2)}"


@NAMED.row("named-too-much", 0, TOO_MUCH, level=Level.OWN, needs=["echo"])
async def named_too_much(context: CheckContext) -> str:
    """More data than was announced is refused with a goodbye:
    the two sides do not agree on where the request ends.
    """
    peer = await connect_for_requests(context)
    data = named_request(context.target.echo, b"too much")
    await peer.send(request_data(1, data, len(data) - 1))
    return await peer.expect_refused("a request had more data than it announced")
