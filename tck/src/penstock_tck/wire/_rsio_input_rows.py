"""RS.io: the input that a server must accept, and the input that it must refuse."""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import RSIO, Level, Table
from penstock_tck.wire._verdict import verify

INPUT = Table(RSIO)

TYPE = "A message is one byte with its type, and then its fields."
FIELDS = "A field is a varint, or has a fixed size, or is a string or bytes after their length."
NAME = "The receiver interprets the name of a publisher; the draft leaves its form open."
SUBSCRIBER = "The id in a message of a publisher says for which subscriber the message is."


async def _check_refusal(context: CheckContext, what: str, data: bytes) -> str:
    """Send `data` to a target that serves streams. Fail unless it refuses them with a goodbye,
    and keeps another connection open.
    """
    neighbour, peer = await context.connect_rsio(), await context.connect_rsio()
    await peer.subscribe(1, 1, context.target.publisher)
    await peer.wait_elements(1, 1)
    await peer.send(data)
    seen = await peer.expect_refused(what)
    await neighbour.expect_working()
    return seen


@INPUT.row("type-reserved", 18, TYPE, level=Level.READING, needs=["publisher"])
async def type_reserved(context: CheckContext) -> str:
    """A message of an unknown type is refused with a goodbye:
    the target cannot know where the message ends.
    """
    for kind in (0x00, 0x05, 0x13, 0x27):
        await _check_refusal(context, f"type {kind:#04x} was sent", bytes((kind, 0, 0)))
    return await _check_refusal(context, "type 0xff was sent", b"\xff\0\0")


@INPUT.row("encoding-switched", 18, TYPE, level=Level.READING, needs=["publisher"])
async def encoding_switched(context: CheckContext) -> str:
    """A switch to an encoding that was not agreed on (type 0x04) is refused with a goodbye."""
    return await _check_refusal(
        context, "a switch to an encoding that was not agreed on was sent", b"\x04\x10"
    )


@INPUT.row("varint-long", 18, FIELDS, level=Level.READING, needs=["publisher"])
async def varint_long(context: CheckContext) -> str:
    """A varint of more than nine bytes is refused with a goodbye."""
    context.require_compact()
    return await _check_refusal(
        context, "a varint of ten bytes was sent", bytes((io.CANCEL,)) + b"\xff" * 9 + b"\x01"
    )


@INPUT.row("varint-padded", 18, FIELDS, level=Level.READING, needs=["publisher"])
async def varint_padded(context: CheckContext) -> str:
    """A varint that is longer than necessary is refused with a goodbye."""
    context.require_compact()
    return await _check_refusal(
        context, "a varint of two bytes for the number 1 was sent", bytes((io.CANCEL, 0x81, 0x00))
    )


@INPUT.row("length-huge", 18, FIELDS, level=Level.READING, needs=["publisher"])
async def length_huge(context: CheckContext) -> str:
    """A name announced with 2^62 bytes (msgpack: 4 GiB) is refused when its length arrives."""
    huge = (
        bytes((io.SUBSCRIBE,)) + io.varint(1 << 62)
        if context.form is None
        else context.form.huge_name
    )
    return await _check_refusal(context, "a name of 4 GiB or more was announced", huge)


@INPUT.row("stream-unknown", 48, SUBSCRIBER, level=Level.READING, needs=["publisher"])
async def stream_unknown(context: CheckContext) -> str:
    """A publisher's message for a stream that the target did not open is refused with a goodbye."""
    for data in (
        io.on_next(7, b"x"),
        io.part(7, 0, b"x"),
        io.on_complete(7),
        io.on_error(7, "x"),
    ):
        await _check_refusal(
            context, "a message was sent for a stream that the target did not open", data
        )
    return await _check_refusal(
        context,
        "an onSubscribe was sent for a stream that the target did not open",
        io.on_subscribe(7),
    )


@INPUT.row("name-taken", 50, NAME, level=Level.READING, needs=["publisher"])
async def name_taken(context: CheckContext) -> str:
    """A name of 255 bytes and an empty name are read.
    No publisher has them, and only their own streams get an onError.
    """
    peer = await context.connect_rsio()
    await peer.send(io.subscribe("n" * 255, 1, 1) + io.subscribe("", 2, 1))
    for stream in (1, 2):
        await peer.wait_until(
            lambda stream=stream: peer.of_stream(stream),  # type: ignore[misc]  # bound in the loop
            f"an answer on stream {stream}",
        )
    await peer.expect_working()
    return f"{peer.of_stream(1)[0]}; {peer.of_stream(2)[0]}"


@INPUT.row("many-streams", 48, SUBSCRIBER, level=Level.READING, needs=["publisher"])
async def many_streams(context: CheckContext) -> str:
    """A hundred streams at a time are served, each with the element that it requested."""
    peer = await context.connect_rsio()
    await peer.send(
        b"".join(io.subscribe(context.target.publisher, stream, 1) for stream in range(100))
    )
    await peer.wait_until(
        lambda: len({message.stream for message in peer.of_type(io.ON_NEXT)}) == 100,
        "an element on each of 100 streams",
    )
    await peer.settle()
    verify(
        not peer.of_type(io.ON_ERROR),
        f"not all of 100 streams at a time were served; {peer.describe_received()}",
    )
    return "100 at a time"


@INPUT.row("reason-taken", 84, "goodbye carries a reason, a string.", level=Level.READING)
async def reason_taken(context: CheckContext) -> str:
    """A goodbye with a reason of 255 bytes is accepted, and answered as usual."""
    peer = await context.connect_rsio()
    await peer.wait_until(lambda: peer.received, "a serverHello")
    await peer.send(io.goodbye("r" * 255))
    return await peer.expect_refused("a goodbye was sent")
