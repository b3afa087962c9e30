"""A frame whose body is above `Limits.max_frame` ends the stream that it names. Its body is dropped
as it arrives, like that of a frame to ignore.
"""

import pytest

from penstock.api import Limits, Model, ProtocolError, PublisherFailed, Request, Role
from penstock.protocols import reactivesocket as wire
from penstock.session import ConnectionState
from tests.protocols.reactivesocket._pair import RawSocket
from tests.session._pair import RecordingSubscriber, ScriptedPublisher, limits_with

MOST = 1000
LIMITS = limits_with(max_frame=MOST)
LONG = bytes(MOST + 1)
CUTS = [1, 7, 15, 16, 17, 400, 1 << 20]
"""Sizes of the chunks that a frame arrives in:
within its length, its header, its body, and all at once.
"""


def client(
    model: Model = Model.STREAM,
) -> tuple[RawSocket, RecordingSubscriber, RecordingSubscriber]:
    """Return a client with the streams 1 and 3, of which the server has answered neither."""
    raw = RawSocket(Role.CLIENT, limits=LIMITS)
    readers = RecordingSubscriber(5), RecordingSubscriber(5)
    for reader in readers:
        raw.session.subscribe(Request(model, b"s"), reader)
    raw.receive()
    return raw, *readers


def server() -> RawSocket:
    return RawSocket(Role.SERVER, limits=LIMITS).handshake()


def send_in_pieces(raw: RawSocket, data: bytes, size: int) -> None:
    for start in range(0, len(data), size):
        raw.send(data[start : start + size])


@pytest.mark.parametrize("size", CUTS)
@pytest.mark.parametrize("model", [Model.STREAM, Model.RESPONSE, Model.SUBSCRIPTION])
def test_a_response_that_is_too_long_ends_its_stream_alone(model: Model, size: int) -> None:
    """The peer gets a CANCEL, the subscriber a ProtocolError, and the other stream its element."""
    raw, ended, other = client(model)
    send_in_pieces(
        raw,
        wire.encode(wire.Response(stream_id=1, data=LONG))
        + wire.encode(wire.Response(stream_id=3, data=b"e")),
        size,
    )
    (error,) = ended.ends
    assert isinstance(error, ProtocolError)
    assert error.reason == "limit:frame 1001 > 1000"
    assert "Limits.max_frame" in str(error)
    assert raw.receive() == [wire.Cancel(stream_id=1)]
    assert other.elements == [b"e"]
    assert raw.session.state is ConnectionState.OPEN


def test_the_body_is_not_held() -> None:
    """A body of 256 MiB costs no more than the chunk that it comes in."""
    raw, ended, _ = client()
    raw.send((16 + (1 << 28)).to_bytes(4) + wire.encode(wire.Response(stream_id=1, data=b""))[4:])
    assert len(ended.ends) == 1
    held = raw.session.held()
    for _ in range(1 << 12):
        raw.send(bytes(1 << 16))
        assert raw.session.held() == held
    assert raw.session.state is ConnectionState.OPEN
    raw.send(wire.Response(stream_id=3, data=b"e"))
    assert raw.session.state is ConnectionState.OPEN


def test_a_longer_body_ends_the_connection() -> None:
    """Its length is more likely the first bytes of another protocol."""
    raw, _, _ = client()
    raw.send((17 + (1 << 28)).to_bytes(4))
    assert raw.receive() == [wire.Error(stream_id=0, data=b"limit:frame 268435457 > 1000")]


def test_an_error_that_is_too_long_ends_its_stream_as_an_error_does() -> None:
    """The stream has ended on the other side, so no CANCEL goes out. The text was not read."""
    raw, ended, _ = client()
    raw.send(wire.Error(stream_id=1, data=LONG))
    assert [type(error) for error in ended.ends] == [PublisherFailed]
    assert raw.receive() == []


@pytest.mark.parametrize("kind", [wire.RequestStream, wire.RequestSub])
def test_a_request_that_is_too_long_is_refused(
    kind: type[wire.RequestStream] | type[wire.RequestSub],
) -> None:
    """With an ERROR on its id. The publisher with the first bytes of its data as a name is not
    asked.
    """
    raw = server()
    raw.send(kind(stream_id=1, demand=1, data=LONG))
    assert raw.receive() == [wire.Error(stream_id=1, data=b"too long")]
    assert raw.delegate.served == []
    raw.send(wire.RequestResponse(stream_id=3, data=LONG))
    assert raw.receive() == [wire.Error(stream_id=3, data=b"too long")]
    assert raw.session.state is ConnectionState.OPEN


def long_frame(kind: int, stream_id: int, flags: int = 0) -> bytes:
    return (
        (16 + len(LONG)).to_bytes(4)
        + bytes((0, flags))
        + kind.to_bytes(2)
        + stream_id.to_bytes(8)
        + LONG
    )


def test_demand_and_cancel_that_are_too_long_end_their_stream() -> None:
    """A CANCEL has its meaning in its header. A demand cannot be read."""
    for kind, answer in (
        (wire.FrameType.CANCEL, []),
        (wire.FrameType.REQUEST_N, [wire.Error(stream_id=1, data=b"too long")]),
    ):
        raw = server()
        source = raw.delegate.publishers["STREAM s"] = ScriptedPublisher()
        raw.send(wire.RequestStream(stream_id=1, demand=1, data=b"s"))
        raw.receive()
        raw.send(long_frame(kind, 1))
        assert source.cancels == 1
        assert raw.receive() == answer


IGNORED = {
    "message without an answer": long_frame(wire.FrameType.REQUEST_FNF, 1),
    "second SETUP": long_frame(wire.FrameType.SETUP, 0),
    "response to nothing": long_frame(wire.FrameType.RESPONSE, 9),
    "error to nothing": long_frame(wire.FrameType.ERROR, 9),
    "demand for nothing": long_frame(wire.FrameType.REQUEST_N, 9),
    "request on stream 0": long_frame(wire.FrameType.REQUEST_STREAM, 0),
    "unknown type that may be ignored": long_frame(0x30, 1, flags=0x80),
    "extension that may be ignored": long_frame(wire.FrameType.EXT, 0, flags=0x80),
}


@pytest.mark.parametrize("frame", IGNORED.values(), ids=IGNORED)
def test_other_frames_that_are_too_long_are_ignored(frame: bytes) -> None:
    """They name no stream that could end.
    Each costs a token, so a flood of them ends the connection.
    """
    raw = server()
    raw.send(frame)
    assert raw.receive() == []
    raw.send(frame * 1100)
    assert raw.session.state.is_closing


FATAL = {
    "an extension that may not be ignored": long_frame(wire.FrameType.EXT, 0),
    "an error of the connection": long_frame(wire.FrameType.ERROR, 0),
}


@pytest.mark.parametrize("frame", FATAL.values(), ids=FATAL)
def test_a_frame_about_the_connection_ends_the_connection(frame: bytes) -> None:
    """Its meaning cannot be read, and it may not be ignored."""
    raw = server()
    raw.send(frame)
    assert raw.receive() == [wire.Error(stream_id=0, data=b"limit:frame 1001 > 1000")]


def test_before_setup_a_frame_that_is_too_long_ends_the_connection() -> None:
    """On its length: the client is unknown."""
    raw = RawSocket(Role.SERVER, limits=LIMITS)
    raw.send((16 + MOST + 1).to_bytes(4))
    assert raw.receive() == [wire.Error(stream_id=0, data=b"limit:frame 1001 > 1000")]


def test_a_short_extension_that_may_be_ignored_is_skipped() -> None:
    """Its type is missing, so no side can know it."""
    for size in range(4):
        raw = server()
        raw.send((16 + size).to_bytes(4) + bytes.fromhex("0080ffff") + bytes(8) + bytes(size))
        assert raw.receive() == []
        assert raw.session.state is ConnectionState.OPEN


TO_IGNORE = {
    "extension": wire.encode(wire.Ext(stream_id=0, ignore=True, ext_type=9, data=bytes(MOST - 4))),
    "type": (16 + MOST).to_bytes(4) + bytes((0, 0x80)) + (0x30).to_bytes(2) + bytes(8 + MOST),
}
"""Frames of the greatest length that `Limits.max_frame` permits.
Nothing of version 0 knows them.
"""


@pytest.mark.parametrize("frame", TO_IGNORE.values(), ids=TO_IGNORE)
def test_a_frame_to_ignore_is_dropped_as_it_arrives(frame: bytes) -> None:
    """After the header and the extended type nothing of it is held, and the next frame is read."""
    raw = server()
    for position in range(len(frame)):
        raw.send(frame[position : position + 1])
        assert raw.session.held() <= 20
    raw.send(wire.RequestStream(stream_id=1, demand=1, data=b"s"))
    assert [each.stream_id for each in raw.receive() if isinstance(each, wire.Error)] == [1]
    assert raw.session.state is ConnectionState.OPEN


@pytest.mark.parametrize("size", CUTS)
@pytest.mark.parametrize(
    ("name", "limits", "reason"),
    [
        (
            "extension",
            limits_with(max_frame=MOST, control_burst=3, control_rate=1e-6),
            b"limit:control",
        ),
        ("type", limits_with(max_frame=MOST, glitch_burst=3, glitch_rate=1e-6), b"limit:glitches"),
    ],
    ids=["extension", "type"],
)
def test_a_frame_to_ignore_costs_one_token_in_chunks_of_any_size(
    name: str, limits: Limits, reason: bytes, size: int
) -> None:
    """A flood of them ends the connection, and not sooner because they are cut."""
    raw = RawSocket(Role.SERVER, limits=limits).handshake()
    send_in_pieces(raw, TO_IGNORE[name] * 3, size)
    assert raw.session.state is ConnectionState.OPEN
    send_in_pieces(raw, TO_IGNORE[name], size)
    assert raw.receive() == [wire.Error(stream_id=0, data=reason)]


def test_an_unknown_extension_that_may_not_be_ignored_ends_the_connection_before_its_body() -> None:
    """Its extended type and one more byte are enough."""
    raw = server()
    raw.send(wire.encode(wire.Ext(stream_id=0, ignore=False, ext_type=9, data=bytes(900)))[:21])
    assert raw.receive() == [wire.Error(stream_id=0, data=b"protocol:extension 9")]


@pytest.mark.parametrize("frame", TO_IGNORE.values(), ids=TO_IGNORE)
def test_before_setup_a_frame_to_ignore_ends_the_connection_before_its_body(frame: bytes) -> None:
    """The client is unknown, and a SETUP comes first."""
    raw = RawSocket(Role.SERVER, limits=LIMITS)
    raw.send(frame[:21])
    assert raw.receive() == [wire.Error(stream_id=0, data=b"protocol:setup")]
