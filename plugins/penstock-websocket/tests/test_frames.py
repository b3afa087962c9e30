"""Frames without a connection, and the byte at which each fault is judged."""

from collections.abc import Callable

import pytest
from penstock_websocket._frames import (
    CONTROL_BURST,
    EMPTY_BURST,
    MAX_FRAMES,
    Close,
    Data,
    Ping,
    Pong,
    RuleBroken,
    WebSocketReader,
    WebSocketWriter,
)

Frame = Callable[..., bytes]
MOST = 1000


def _reader() -> WebSocketReader:
    return WebSocketReader(client=False, max_message=MOST)


def _code_of(data: bytes) -> int:
    """Feed `data`, read all events, and return the code of the rule that is broken."""
    reader = _reader()
    reader.feed(data, 1.0)
    with pytest.raises(RuleBroken) as caught:
        list(iter(reader.next_event, None))
    return caught.value.code


def test_a_frame_is_refused_by_its_header_alone(frame: Frame) -> None:
    """Its length is judged together with the message so far, before a byte of the body has come.
    The largest message is accepted.
    """
    reader = _reader()
    reader.feed(frame(b"", length=MOST), 1.0)
    assert reader.next_event() is None
    assert _code_of(frame(b"", length=MOST + 1)) == 1009
    assert _code_of(frame(bytes(MOST), fin=False) + frame(b"", opcode=0, length=1)) == 1009


def test_a_second_message_has_the_whole_bound_again(frame: Frame) -> None:
    """The end of a message resets the count."""
    reader = _reader()
    reader.feed(frame(bytes(MOST)) * 2, 1.0)
    assert [reader.next_event(), reader.next_event(), reader.next_event()] == [
        Data(bytes(MOST), True),
        Data(bytes(MOST), True),
        None,
    ]


def test_the_frames_of_a_message_are_bounded(frame: Frame) -> None:
    """1,024 are accepted, the next one is refused, and so is the frame
    that would end the message.
    """
    fragments = frame(b"x", fin=False) + frame(b"x", opcode=0, fin=False) * (MAX_FRAMES - 1)
    reader = WebSocketReader(client=False, max_message=MAX_FRAMES * 2)
    reader.feed(fragments, 1.0)
    assert sum(reader.next_event() is not None for _ in range(MAX_FRAMES)) == MAX_FRAMES
    reader.feed(frame(b"x", opcode=0), 1.0)
    with pytest.raises(RuleBroken, match="more than 1024 frames"):
        reader.next_event()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"payload": b"text", "opcode": 1}, 1003),
        ({"payload": b"", "opcode": 1, "fin": False}, 1003),
        ({"payload": b"x", "masked": False}, 1002),
        ({"payload": b"x", "rsv": 0x40}, 1002),
        ({"payload": b"x", "opcode": 3}, 1002),
        ({"payload": b"x", "opcode": 11}, 1002),
        ({"payload": b"x", "opcode": 0}, 1002),
        ({"payload": b"x", "opcode": 9, "fin": False}, 1002),
        ({"payload": bytes(126), "opcode": 9}, 1002),
        ({"payload": b"\x03", "opcode": 8}, 1002),
        ({"payload": b"\x03\xed", "opcode": 8}, 1002),
        ({"payload": b"\x03\xe7", "opcode": 8}, 1002),
        ({"payload": b"\x07\xd0", "opcode": 8}, 1002),
        ({"payload": b"\x03\xe8\xff", "opcode": 8}, 1007),
    ],
    ids=str,
)
def test_each_broken_rule_has_its_code(frame: Frame, data: dict[str, object], code: int) -> None:
    """Text 1003, a reason that is not UTF-8 1007, all others 1002."""
    assert _code_of(frame(**data)) == code


def test_a_message_within_a_message_is_a_broken_rule(frame: Frame) -> None:
    """A fragment must be followed by a continuation."""
    assert _code_of(frame(b"x", fin=False) + frame(b"x")) == 1002


def test_lengths_must_be_as_short_as_possible() -> None:
    """RFC 6455, 5.2; and no length has the highest of its 64 bits."""
    assert _code_of(bytes([0x82, 0xFE, 0, 5])) == 1002
    assert _code_of(bytes([0x82, 0xFF]) + (5).to_bytes(8)) == 1002
    assert _code_of(bytes([0x82, 0xFF]) + (1 << 63).to_bytes(8)) == 1002


def test_pings_and_pongs_have_a_bucket(frame: Frame) -> None:
    """100 at once, and 10 a second."""
    reader = _reader()
    reader.feed(frame(b"x", opcode=9) + frame(b"", opcode=10) * (CONTROL_BURST - 1), 1.0)
    assert reader.next_event() == Ping(b"x")
    assert [reader.next_event() for _ in range(CONTROL_BURST - 1)] == [Pong()] * (CONTROL_BURST - 1)
    reader.feed(frame(b"", opcode=10) * 11, 2.0)
    assert [reader.next_event() for _ in range(10)] == [Pong()] * 10
    with pytest.raises(RuleBroken, match="pings and pongs") as caught:
        reader.next_event()
    assert caught.value.code == 1008


def test_empty_messages_have_a_bucket(frame: Frame) -> None:
    """Of 1,000 at once; full messages cost nothing."""
    reader = _reader()
    reader.feed(frame(b"") * EMPTY_BURST + frame(b"x"), 1.0)
    assert (
        sum(isinstance(reader.next_event(), Data) for _ in range(EMPTY_BURST + 1))
        == EMPTY_BURST + 1
    )
    reader.feed(frame(b""), 1.0)
    with pytest.raises(RuleBroken, match="empty frames") as caught:
        reader.next_event()
    assert caught.value.code == 1008


@pytest.mark.parametrize("client", [True, False])
def test_what_one_side_writes_the_other_reads_cut_at_any_byte(client: bool) -> None:
    """Messages, pings, pongs and a Close frame, in both directions."""
    writer = WebSocketWriter(client=client)
    data = bytes(
        writer.message(b"abc")
        + writer.ping()
        + writer.pong(b"p")
        + writer.message(memoryview(bytes(300)))
        + writer.close(1001, "bye")
    )
    for cut in range(len(data)):
        reader = WebSocketReader(client=not client, max_message=MOST)
        events = []
        for part in (data[:cut], data[cut:]):
            reader.feed(part, 1.0)
            while (event := reader.next_event()) is not None:
                events.append(event)
                if isinstance(event, Close):
                    break
        assert b"".join(
            event.payload for event in events if isinstance(event, Data)
        ) == b"abc" + bytes(300)
        assert [event for event in events if not isinstance(event, Data)] == [
            Ping(b""),
            Pong(),
            Close(1001, "bye"),
        ]
