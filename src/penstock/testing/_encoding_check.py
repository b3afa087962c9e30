"""A check for encodings of RS.io messages:
a message that was written is read again, however the bytes are cut.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from penstock.api import ProtocolError
from penstock.protocols import rsio
from penstock.testing._message_list import MessageList

LARGEST: Final = (1 << 63) - 1
MANY: Final = (
    0,
    1,
    23,
    24,
    127,
    128,
    255,
    256,
    300,
    16_383,
    16_384,
    65_535,
    65_536,
    1 << 32,
    1 << 62,
    LARGEST,
)

FIXED: Final = 3
"""A stream whose elements have four bytes. All others have no fixed size."""

IDS: Final = (0, 1, 127, 128, 300, LARGEST)

SAMPLES: Final[tuple[rsio.Message, ...]] = (
    rsio.ClientHello(extensions=MANY),
    rsio.Goodbye(reason=""),
    rsio.Goodbye(reason="bye é"),
    rsio.SwitchEncoding(extension=16),
    rsio.SwitchEncoding(extension=LARGEST),
    *(rsio.Subscribe(publisher="ticks" * (n % 7), subscriber=n, demand=LARGEST - n) for n in MANY),
    rsio.Subscribe(publisher="é" * 200, subscriber=1, demand=0),
    *(rsio.Request(subscriber=n, demand=m) for n, m in zip(MANY, reversed(MANY), strict=True)),
    *(rsio.Cancel(subscriber=n) for n in MANY),
    *(rsio.OnSubscribe(subscriber=n) for n in IDS),
    rsio.OnSubscribe(subscriber=FIXED, element_size=4),
    *(
        rsio.OnNext(subscriber=n, element=bytes([size % 251]) * size)
        for n in IDS
        for size in (0, 1, 31, 127, 128, 255, 256)
    ),
    rsio.OnNextPacked(subscriber=FIXED, count=3, elements=b"aaaabbbbcccc"),
    *(
        rsio.OnNextPart(subscriber=n, element=m, data=b"part" * 50)
        for n, m in zip(IDS, reversed(IDS), strict=True)
    ),
    rsio.OnNextPart(subscriber=0, element=0, data=b""),
    rsio.OnNextLastPart(subscriber=LARGEST, element=LARGEST, data=b"last"),
    rsio.OnNextLastPart(subscriber=0, element=0, data=b""),
    *(rsio.OnComplete(subscriber=n) for n in IDS),
    rsio.OnError(subscriber=0, error=""),
    rsio.OnError(subscriber=1, error="boom é"),
    rsio.ExtensionMessage(type=0x40, body=bytes(8)),
    rsio.ExtensionMessage(type=0x7E, body=b""),
)
"""Messages of every kind, in an order in which one side could send them."""

LARGE: Final[tuple[rsio.Message, ...]] = tuple(
    rsio.OnNext(subscriber=1, element=bytes(size))
    for size in (16_383, 16_384, 65_535, 65_536, 70_000)
)


def check_encoding(encoding: rsio.Encoding) -> None:
    """Check an encoding of RS.io messages. Raises AssertionError that says what differs.

    Every kind of message is encoded and decoded: whole, cut in two at each byte, and from single
    bytes. Runs of elements must have the bytes of the single messages, and the functions for single
    fields those of `Encoding.encode`. It does not try bad input.
    """
    for message in (*SAMPLES, rsio.ServerHello(extensions=(1, 200))):
        _check_message(encoding, message)
    data = b"".join(encoding.encode(message) for message in SAMPLES)
    _check_equal(decoded(encoding, data), SAMPLES, "decoded as a whole")
    _check_equal(
        decoded(encoding, *(data[at : at + 1] for at in range(len(data)))),
        SAMPLES,
        "decoded from single bytes",
    )
    begin = (rsio.OnSubscribe(subscriber=1),)
    _check_equal(
        decoded(encoding, b"".join(map(encoding.encode, (*begin, *LARGE)))),
        (*begin, *LARGE),
        "large elements",
    )
    for message in SAMPLES:
        _check_cuts(encoding, message)
    for stream_id in IDS:
        _check_runs(encoding, stream_id)


def decoded(encoding: rsio.Encoding, *chunks: bytes) -> list[rsio.Message]:
    """Return the messages in `chunks`."""
    sink = MessageList()
    decoder = encoding.decoder(sink, sink.streams, rsio.WireLimits())
    try:
        for chunk in chunks:
            decoder.feed(chunk)
    except ProtocolError as error:
        raise AssertionError(
            f"{encoding.name}: its decoder refuses what it has written, behind "
            f"{sink.messages[-1:]}: {error}"
        ) from error
    _require(
        not decoder.held,
        f"{encoding.name}: {decoder.held} bytes were not decoded, behind {sink.messages[-1:]}",
    )
    return sink.messages


def _check_message(encoding: rsio.Encoding, message: rsio.Message) -> None:
    """Compare the function for one kind of message with `Encoding.encode`."""
    data = encoding.encode(message)
    compact = rsio.encode(message)
    _require(
        data[:1] == compact[:1],
        (
            f"{encoding.name}: {message} begins with {data[:1].hex()}, and the type is "
            f"{compact[:1].hex()}"
        ),
    )
    match message:
        case rsio.Subscribe():
            other = encoding.encode_subscribe(message.publisher, message.subscriber, message.demand)
        case rsio.Request():
            other = encoding.encode_request(message.subscriber, message.demand)
        case rsio.Cancel():
            other = encoding.encode_cancel(message.subscriber)
        case rsio.OnSubscribe():
            other = encoding.encode_on_subscribe(message.subscriber, message.element_size)
        case rsio.OnComplete():
            other = encoding.encode_on_complete(message.subscriber)
        case rsio.OnNext():
            other = encoding.next_header(message.subscriber, len(message.element)) + message.element
        case rsio.OnNextPacked():
            other = (
                encoding.packed_header(message.subscriber, message.count, len(message.elements))
                + message.elements
            )
        case rsio.OnNextPart() | rsio.OnNextLastPart():
            last = isinstance(message, rsio.OnNextLastPart)
            other = (
                encoding.part_header(
                    message.subscriber, message.element, len(message.data), last=last
                )
                + message.data
            )
        case rsio.ExtensionMessage():
            other = encoding.extension_header(message.type, len(message.body)) + message.body
        case _:
            return
    _require(
        other == data,
        (
            f"{encoding.name}: encode() makes {data.hex()} of {message}, and the function for it "
            f"{other.hex()}"
        ),
    )


def _check_cuts(encoding: rsio.Encoding, message: rsio.Message) -> None:
    """Decode a message that is cut in two at each byte."""
    # An element can be decoded only on a stream that has begun.
    begin: list[rsio.Message] = []
    if isinstance(message, rsio.OnNext | rsio.OnNextPacked | rsio.OnNextPart | rsio.OnNextLastPart):
        size = 4 if isinstance(message, rsio.OnNextPacked) else 0
        begin = [rsio.OnSubscribe(subscriber=message.subscriber, element_size=size)]
    head, data = b"".join(map(encoding.encode, begin)), encoding.encode(message)
    for cut in range(1, len(data)):
        _check_equal(
            decoded(encoding, head + data[:cut], data[cut:]),
            [*begin, message],
            f"cut at byte {cut}",
        )


def _check_runs(encoding: rsio.Encoding, stream_id: int) -> None:
    one_length = [bytes([n]) * 64 for n in range(100)]
    lengths = [bytes([n]) * (n * 7 % 300) for n in range(100)]
    for elements in (
        one_length[:1],
        one_length,
        lengths,
        [b""] * 50,
        [b"x" * 128] * 50,
        one_length[:9] + lengths[:9] + one_length[:9],
    ):
        messages = [rsio.OnNext(subscriber=stream_id, element=element) for element in elements]
        data = b"".join(map(encoding.encode, messages))
        _require(
            bytes(encoding.join_run(stream_id, elements)) == data,
            f"{encoding.name}: join_run() differs from single elements",
        )
        begin: list[rsio.Message] = [rsio.OnSubscribe(subscriber=stream_id)]
        head = encoding.encode(begin[0])
        _check_equal(
            decoded(encoding, head + data), [*begin, *messages], f"a run on stream {stream_id}"
        )
        _check_equal(
            decoded(encoding, head + data[:-1], data[-1:]),
            [*begin, *messages],
            f"a run on stream {stream_id} without its end",
        )


def _check_equal(seen: Sequence[rsio.Message], sent: Sequence[rsio.Message], how: str) -> None:
    for one, other in zip(seen, sent, strict=False):
        _require(
            one == other, f"{how}: {attrs.asdict(other)} of {type(other).__name__} arrived as {one}"
        )
    _require(
        len(seen) == len(sent), f"{how}: {len(sent)} messages were sent, and {len(seen)} arrived"
    )


def _require(holds: bool, text: str) -> None:  # noqa: FBT001  # as an assert, which python -O would leave out
    if not holds:
        raise AssertionError(text)
