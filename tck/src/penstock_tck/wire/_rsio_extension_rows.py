"""RS.io: the extensions *keepalive* (id 1), *auth* (id 2), *content* (id 3) and *drain* (id 6),
if the target has them.
"""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import RSIO, Level, Table
from penstock_tck.wire._rsio_peer import RsioPeer
from penstock_tck.wire._verdict import NotSupported, verify

EXTENSIONS = Table(RSIO)

KEEPALIVE, PING, PONG = 1, 0x40, 0x41
AUTH, CREDENTIALS, VERDICT = 2, 0x42, 0x43
CONTENT, CONTENT_MESSAGE = 3, 0x44
DRAIN, DRAIN_MESSAGE = 6, 0x45

ANSWERED = "Each ping is answered at once by a pong with the same body."
LONG = "The body of both is up to 125 bytes that the sender chooses."
REFUSED = "**A refusal is the goodbye `auth`**, and no verdict"
UNREADABLE = (
    "A body that cannot be read, credentials twice, and a verdict that nothing had asked for are "
    "`protocol:auth`."
)
ANNOUNCED = (
    "A side that has it sends one message for each stream that it accepts, right before the "
    "onSubscribe"
)
NOT_REFUSED = "Nothing is sent before a refusal"
MISPLACED = (
    "For one that was never opened, was accepted, or was announced before, and if it cannot be "
    "read, the goodbye is `protocol:content N`."
)
GOES_ON = "Streams that run go on until then."
NO_NUMBER = "A body that is not a varint is `protocol:drain`."

WRONG = io.length_prefixed("bearer") + io.length_prefixed("penstock tck: no such token")
"""Credentials that no target accepts."""


async def _connect(context: CheckContext, extension: int, name: str) -> RsioPeer:
    """Open a connection on which both sides have the extension."""
    peer = await context.connect_rsio(hello=False)
    await peer.send(io.hello(extension))
    await peer.wait_until(lambda: peer.of_type(io.SERVER_HELLO) or peer.ending, "a serverHello")
    hello = peer.of_type(io.SERVER_HELLO)
    if not hello or extension not in hello[0].numbers[1:]:
        raise NotSupported(f"the target does not confirm the extension {name} (id {extension})")
    return peer


def _message(code: int, body: bytes) -> bytes:
    return bytes((code,)) + io.length_prefixed(body)


@EXTENSIONS.row("keepalive-answered", 0, ANSWERED, level=Level.OWN)
async def keepalive_answered(context: CheckContext) -> str:
    """Pings without a body, and of 125 bytes, are answered with the same bytes, in order."""
    peer = await _connect(context, KEEPALIVE, "keepalive")
    bodies = [b"", bytes(range(125))]
    await peer.send(*(_message(PING, body) for body in bodies))
    await peer.wait_until(lambda: len(peer.of_type(PONG)) >= len(bodies), "two pongs")
    verify(
        [pong.body for pong in peer.of_type(PONG)] == bodies,
        f"two pongs with the bodies of the pings are due; {peer.describe_received()}",
    )
    return "2 pongs"


@EXTENSIONS.row("keepalive-long", 0, LONG, level=Level.OWN)
async def keepalive_long(context: CheckContext) -> str:
    """A ping of 126 bytes is refused with a goodbye."""
    peer = await _connect(context, KEEPALIVE, "keepalive")
    await peer.send(_message(PING, bytes(126)))
    return await peer.expect_refused("a ping of 126 bytes was sent")


@EXTENSIONS.row("auth-refused", 0, REFUSED, level=Level.OWN)
async def auth_refused(context: CheckContext) -> str:
    """Credentials that are wrong are answered with the goodbye `auth`,
    and a subscribe before them is not served.
    """
    peer = await _connect(context, AUTH, "auth")
    await peer.send(io.subscribe(context.target.publisher, 1, 2), _message(CREDENTIALS, WRONG))
    seen = await peer.expect_refused("wrong credentials were sent")
    verify(
        not peer.of_type(VERDICT) and not peer.of_stream(1),
        f"a refused client got an answer; {peer.describe_received()}",
    )
    verify(
        peer.received[-1].body == b"auth", f"the goodbye `auth` is due; {peer.describe_received()}"
    )
    return seen


@EXTENSIONS.row("auth-unreadable", 0, UNREADABLE, level=Level.OWN)
async def auth_unreadable(context: CheckContext) -> str:
    """Credentials whose last field is cut, and a verdict from a client,
    are refused with the goodbye `protocol:auth`.
    """
    seen = ""
    for message, why in (
        (_message(CREDENTIALS, WRONG[:-1]), "cut credentials were sent"),
        (_message(VERDICT, b"\x01"), "a verdict was sent"),
    ):
        peer = await _connect(context, AUTH, "auth")
        await peer.send(message)
        seen = await peer.expect_refused(why)
        verify(
            peer.received[-1].body == b"protocol:auth",
            f"the goodbye `protocol:auth` is due; {peer.describe_received()}",
        )
    return seen


@EXTENSIONS.row("content-announced", 0, ANNOUNCED, level=Level.OWN, needs=["publisher", "three"])
async def content_announced(context: CheckContext) -> str:
    """Two streams: before each onSubscribe comes one message 44, with the id of that stream and the
    name of a serializer.
    """
    peer = await _connect(context, CONTENT, "content")
    await peer.subscribe(1, 2, context.target.publisher)
    await peer.subscribe(300, 9, context.target.three)
    await peer.wait_end(300, well=True)
    await peer.wait_elements(1, 2)
    for stream in (1, 300):
        began = [
            at
            for at, message in enumerate(peer.received)
            if message.type == io.ON_SUBSCRIBE and message.stream == stream
        ]
        verify(began, f"onSubscribe is due for stream {stream}; {peer.describe_received()}")
        before = peer.received[began[0] - 1]
        body = before.body if before.type == CONTENT_MESSAGE else b""
        verify(
            body.startswith(io.varint(stream)) and len(body) > len(io.varint(stream)) + 2,
            (
                f"message 44 for stream {stream} is due right before its onSubscribe; "
                f"{peer.describe_received()}"
            ),
        )
    announced = peer.of_type(CONTENT_MESSAGE)
    verify(
        len(announced) == 2,
        (
            f"two streams were accepted, and {len(announced)} messages 44 came; "
            f"{peer.describe_received()}"
        ),
    )
    return "one before each onSubscribe"


@EXTENSIONS.row("content-not-refused", 0, NOT_REFUSED, level=Level.OWN, needs=["publisher"])
async def content_not_refused(context: CheckContext) -> str:
    """A stream that is refused is not announced."""
    peer = await _connect(context, CONTENT, "content")
    await peer.subscribe(1, 2, context.target.missing)
    await peer.wait_end(1, well=False)
    await peer.settle()
    verify(
        not peer.of_type(CONTENT_MESSAGE),
        f"a refused stream was announced; {peer.describe_received()}",
    )
    return "none"


@EXTENSIONS.row("content-misplaced", 0, MISPLACED, level=Level.OWN)
async def content_misplaced(context: CheckContext) -> str:
    """A message 44 for a stream that the target has not opened is refused with the goodbye
    `protocol:content 7`.
    """
    peer = await _connect(context, CONTENT, "content")
    await peer.send(
        _message(
            CONTENT_MESSAGE, io.varint(7) + io.length_prefixed("json") + io.length_prefixed("")
        )
    )
    seen = await peer.expect_refused("a stream that was not opened was announced")
    verify(
        peer.received[-1].body == b"protocol:content 7",
        f"the goodbye `protocol:content 7` is due; {peer.describe_received()}",
    )
    return seen


@EXTENSIONS.row("drain-goes-on", 0, GOES_ON, level=Level.OWN, needs=["publisher"])
async def drain_goes_on(context: CheckContext) -> str:
    """A client says that it drains: a stream that it reads goes on, and so does the connection.
    The message may be repeated.
    """
    peer = await _connect(context, DRAIN, "drain")
    await peer.subscribe(1, 2, context.target.publisher)
    await peer.wait_elements(1, 2)
    await peer.send(
        _message(DRAIN_MESSAGE, io.varint(25_000)),
        _message(DRAIN_MESSAGE, io.varint(0)),
        io.request(1, 3),
    )
    await peer.expect_exactly(1, 5)
    return "2 elements, a drain, 3 elements"


@EXTENSIONS.row("drain-unreadable", 0, NO_NUMBER, level=Level.OWN)
async def drain_unreadable(context: CheckContext) -> str:
    """A message 45 without a body is refused with the goodbye `protocol:drain`."""
    peer = await _connect(context, DRAIN, "drain")
    await peer.send(_message(DRAIN_MESSAGE, b""))
    seen = await peer.expect_refused("a drain without a number was sent")
    verify(
        peer.received[-1].body == b"protocol:drain",
        f"the goodbye `protocol:drain` is due; {peer.describe_received()}",
    )
    return seen
