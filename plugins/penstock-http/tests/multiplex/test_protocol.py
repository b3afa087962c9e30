"""One connection without input and output, beside h2 as its peer."""

from random import Random

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, RequestReceived
from hpack import Encoder
from hyperframe.frame import DataFrame, ExtensionFrame, GoAwayFrame, HeadersFrame, SettingsFrame
from penstock_http.multiplex import _floods as floods
from penstock_http.multiplex._protocol import (
    CONNECTION_WINDOW,
    FIRST_FRAME,
    FIRST_WINDOW,
    MAX_FRAME,
    STREAM_WINDOW,
    Http2Protocol,
)

REQUEST = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", "/")]


def _events(core: Http2Protocol, data: bytes, now: float = 0.0) -> list[Event]:
    return [event for events in core.receive(data, now) for event in events]


def _pair() -> tuple[Http2Protocol, H2Connection]:
    """A server's core and a client of h2, with one request."""
    core, client = Http2Protocol(is_client=False), H2Connection(H2Configuration(client_side=True))
    core.begin()
    client.initiate_connection()
    client.send_headers(1, REQUEST)
    assert any(isinstance(event, RequestReceived) for event in _events(core, client.data_to_send()))
    client.receive_data(core.take())
    _events(core, client.data_to_send())
    return core, client


def test_a_stranger_gets_the_first_window_and_small_frames() -> None:
    """For its streams together. A peer that has said hello gets more, and
    so does the server of a client at once.
    """
    core, client = _pair()
    assert client.local_flow_control_window(1) == FIRST_WINDOW
    assert client.max_outbound_frame_size == FIRST_FRAME
    core.widen(1)
    client.receive_data(core.take())
    assert client.local_flow_control_window(1) == STREAM_WINDOW
    assert client.outbound_flow_control_window == CONNECTION_WINDOW
    assert client.max_outbound_frame_size == MAX_FRAME
    own, server = Http2Protocol(is_client=True), H2Connection(H2Configuration(client_side=False))
    own.begin()
    server.receive_data(own.take())
    assert server.outbound_flow_control_window == CONNECTION_WINDOW
    assert server.max_outbound_frame_size == MAX_FRAME
    assert not server.remote_settings.enable_push
    assert server.remote_settings.initial_window_size == STREAM_WINDOW


def test_a_frame_larger_than_that_of_a_stranger_is_accepted_after_the_hello() -> None:
    """The new size counts from the frame that announces it."""
    core, client = _pair()
    core.widen(1)
    client.receive_data(core.take())
    client.send_data(1, bytes(MAX_FRAME))
    [event] = [
        event for event in _events(core, client.data_to_send()) if isinstance(event, DataReceived)
    ]
    assert len(event.data) == MAX_FRAME
    core, client = _pair()
    with pytest.raises(floods.RuleBroken, match="a frame of 16385 bytes"):
        _events(core, DataFrame(1, bytes(FIRST_FRAME + 1)).serialize())


def test_credit_goes_back_when_bytes_were_taken_and_not_before() -> None:
    """A half of the window at a time."""
    core, client = _pair()
    for _ in range(3):
        client.send_data(1, bytes(FIRST_FRAME))
    _events(core, client.data_to_send())
    assert core.take() == b""
    core.acknowledge(1, 3 * FIRST_FRAME)
    client.receive_data(core.take())
    assert client.local_flow_control_window(1) == FIRST_WINDOW


def test_a_peer_that_sends_beyond_its_window_is_refused() -> None:
    """The connection ends with the code FLOW_CONTROL_ERROR."""
    core, client = _pair()
    client.outbound_flow_control_window = client.streams[1].outbound_flow_control_window = 1 << 20
    for _ in range(5):
        client.send_data(1, bytes(FIRST_FRAME))
    with pytest.raises(floods.RuleBroken) as caught:
        _events(core, client.data_to_send())
    assert caught.value.code == ErrorCodes.FLOW_CONTROL_ERROR


def test_streams_go_on_behind_a_goaway_that_was_received() -> None:
    """h2 alone would refuse the frames of its streams from then on, in both directions."""
    core, client = _pair()
    client.send_data(1, b"before")
    before = client.data_to_send()
    client.send_data(1, b"after", end_stream=True)
    data = before + GoAwayFrame(0, last_stream_id=0).serialize() + client.data_to_send()
    assert [event.data for event in _events(core, data) if isinstance(event, DataReceived)] == [
        b"before",
        b"after",
    ]
    core.send_headers(1, [(":status", "200")])
    core.send_data(1, memoryview(b"answer"))
    assert b"answer" in core.take()


def test_streams_go_on_behind_a_goaway_that_was_sent() -> None:
    """It names the last stream that is served."""
    core, client = _pair()
    core.go_away()
    assert core.take() == GoAwayFrame(0, last_stream_id=1).serialize()
    client.send_data(1, b"more")
    assert any(isinstance(event, DataReceived) for event in _events(core, client.data_to_send()))


def test_bytes_that_wait_are_not_lost_to_a_goaway() -> None:
    """h2 drops what it has made, so it is taken before the peer is read."""
    core, _ = _pair()
    core.send_headers(1, [(":status", "200")])
    core.go_away()
    waiting = core.take()
    _events(core, GoAwayFrame(0, last_stream_id=0).serialize())
    assert waiting.endswith(GoAwayFrame(0, last_stream_id=1).serialize())
    assert len(waiting) > len(GoAwayFrame(0).serialize())


def test_a_goaway_with_an_error_is_the_end() -> None:
    """h2's own state stays."""
    core, client = _pair()
    client.send_data(1, b"x")
    with pytest.raises(floods.RuleBroken):
        _events(
            core, GoAwayFrame(0, last_stream_id=0, error_code=2).serialize() + client.data_to_send()
        )


def test_a_rule_that_the_gate_finds_broken_has_its_goaway() -> None:
    """With a text, for people."""
    core, _ = _pair()
    with pytest.raises(floods.RuleBroken):
        _events(core, SettingsFrame(0, settings={2: 0}).serialize() * 200)
    assert b"too many SETTINGS frames" in core.take()


def test_settings_of_unknown_numbers_are_bounded() -> None:
    """h2 keeps each of them; 65,536 of them hold 45 MB."""
    core, _ = _pair()
    frames = [
        SettingsFrame(0, settings=dict.fromkeys(range(start, start + 30), 1)).serialize()
        for start in (100, 200, 300)
    ]
    _events(core, frames[0])
    with pytest.raises(floods.RuleBroken, match="more than 64 different settings"):
        _events(core, frames[1] + frames[2])


def test_a_frame_of_padding_alone_is_an_empty_one() -> None:
    """Its budget is that of the empty frames; data with padding costs nothing."""
    core, _ = _pair()
    padded = DataFrame(1, b"x", flags=["PADDED"], pad_length=3).serialize()
    _events(core, padded * 300)
    core.take()
    alone = DataFrame(1, b"", flags=["PADDED"], pad_length=3).serialize()
    with pytest.raises(floods.RuleBroken, match="too many empty DATA frames"):
        _events(core, alone * 201)


def test_headers_that_grow_when_they_are_decompressed_are_refused() -> None:
    """One field of 4 kB in the table, and an index of one byte for each copy of it."""
    core, _ = _pair()
    encoder = Encoder()
    block = encoder.encode([*REQUEST, ("x", "y" * 4000)])
    bomb = block + encoder.encode([("x", "y" * 4000)]) * 100
    assert len(bomb) < 5000
    with pytest.raises(floods.RuleBroken) as caught:
        _events(core, HeadersFrame(3, bomb, flags=["END_HEADERS"]).serialize())
    assert caught.value.code == ErrorCodes.ENHANCE_YOUR_CALM


def test_an_error_of_h2_has_its_code() -> None:
    """Its GOAWAY waits to be sent."""
    core, _ = _pair()
    with pytest.raises(floods.RuleBroken) as caught:
        _events(core, HeadersFrame(3, b"\xff\xff\xff\xff", flags=["END_HEADERS"]).serialize())
    assert caught.value.code in {ErrorCodes.PROTOCOL_ERROR, ErrorCodes.COMPRESSION_ERROR}
    assert core.take()[3] == 7


def test_a_reset_of_a_stream_that_is_over_does_nothing() -> None:
    """The peer may have reset it just before."""
    core, client = _pair()
    client.reset_stream(1)
    _events(core, client.data_to_send())
    core.reset(1, ErrorCodes.CANCEL)
    assert core.take() == b""


def _conversation(*, of_client: bool) -> bytes:
    """Return the bytes of one side, with a frame of each type."""
    client, server = (
        H2Connection(H2Configuration(client_side=True)),
        H2Connection(H2Configuration(client_side=False)),
    )
    client.initiate_connection()
    server.initiate_connection()
    client.send_headers(1, [*REQUEST, ("content-type", "application/x-rsio")])
    asked = client.data_to_send()
    server.receive_data(asked)
    server.send_headers(1, [(":status", "200"), ("a", "b")])
    speaker = client if of_client else server
    speaker.send_data(1, b"hello" * 10)
    speaker.send_data(1, b"x", pad_length=5)
    speaker.ping(b"12345678")
    speaker.increment_flow_control_window(100)
    speaker.increment_flow_control_window(5, 1)
    if of_client:
        speaker.prioritize(3, weight=5)
        speaker.send_headers(3, REQUEST)
        speaker.reset_stream(3)
    speaker.send_headers(1, [("t", "u")], end_stream=True)
    rest = (
        GoAwayFrame(0, last_stream_id=1).serialize() + ExtensionFrame(0xFB, 0, 0, b"zz").serialize()
    )
    return (asked if of_client else b"") + speaker.data_to_send() + rest


@pytest.mark.parametrize("of_client", [True, False])
def test_any_bytes_are_frames_or_a_broken_rule(of_client: bool) -> None:
    """A conversation with changed, missing and doubled bytes, cut anywhere:
    `receive` raises nothing but RuleBroken.
    """
    whole = _conversation(of_client=of_client)
    outcomes = set()
    for seed in range(500):
        random = Random(seed)
        data = bytearray(whole)
        for _ in range(random.choice((1, 1, 2, 8))):
            place = random.randrange(24, len(data))
            match random.randrange(4):
                case 0:
                    data[place] = random.randrange(256)
                case 1:
                    data[place] ^= 1 << random.randrange(8)
                case 2:
                    del data[place : place + random.randrange(1, 20)]
                case _:
                    other = random.randrange(24, len(data))
                    data[place:place] = data[other : other + random.randrange(60)]
        core = Http2Protocol(is_client=not of_client)
        core.begin()
        if not of_client:
            core.send_headers(1, REQUEST)
        cut = random.randrange(len(data))
        try:
            _events(core, bytes(data[:cut]))
            _events(core, bytes(data[cut:]))
        except floods.RuleBroken as error:
            outcomes.add(error.code)
        else:
            outcomes.add(ErrorCodes.NO_ERROR)
    assert {ErrorCodes.NO_ERROR, ErrorCodes.PROTOCOL_ERROR, ErrorCodes.FRAME_SIZE_ERROR} <= outcomes
