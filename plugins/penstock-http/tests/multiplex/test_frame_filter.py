"""The gate before h2: slices of whole frames, and frames that are refused by their header alone."""

import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    ExtensionFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from penstock_http.multiplex import _floods as floods
from penstock_http.multiplex._frame_filter import (
    FRAMES_PER_SLICE,
    MAX_HEADER_BLOCK,
    MAX_HEADER_FRAMES,
    MAX_SETTINGS,
    PREFACE,
    FrameFilter,
)


def _gate(*, is_server: bool = False, max_frame: int = 16384) -> FrameFilter:
    return FrameFilter(floods.Floods(), is_server=is_server, max_frame=max_frame)


def _data(size: int, *flags: str) -> bytes:
    return DataFrame(1, b"x" * size, flags=flags).serialize()


def _feed(gate: FrameFilter, data: bytes, now: float = 0.0) -> list[bytes]:
    return [bytes(piece) for piece in gate.slices(data, now)]


def test_all_bytes_pass_in_their_order_wherever_they_are_cut() -> None:
    """A header that arrives in parts, a body that arrives in parts, and the preface."""
    whole = (
        PREFACE
        + SettingsFrame(0).serialize()
        + _data(5)
        + PingFrame(0, b"12345678").serialize()
        + _data(0, "END_STREAM")
    )
    for cut in range(len(whole) + 1):
        gate = _gate(is_server=True)
        assert b"".join(_feed(gate, whole[:cut]) + _feed(gate, whole[cut:])) == whole
        assert gate.unfinished is None


def test_a_slice_has_a_bounded_number_of_frames() -> None:
    """Other tasks run between two slices."""
    pieces = _feed(_gate(), _data(1) * (2 * FRAMES_PER_SLICE + 1))
    assert [len(piece) // len(_data(1)) for piece in pieces] == [
        FRAMES_PER_SLICE,
        FRAMES_PER_SLICE,
        1,
    ]


def test_a_slice_ends_behind_a_goaway() -> None:
    """The body of the GOAWAY may arrive in parts."""
    goaway, more = GoAwayFrame(0, last_stream_id=1).serialize(), _data(3)
    assert _feed(_gate(), goaway + more) == [goaway, more]
    gate = _gate()
    assert _feed(gate, goaway[:12]) + _feed(gate, goaway[12:] + more) == [
        goaway[:12],
        goaway[12:],
        more,
    ]


def test_a_frame_is_refused_by_its_header() -> None:
    """Its body need not have come. The frames before it are passed on first."""
    gate = _gate()
    pieces = gate.slices(_data(3) + b"\x00\x40\x01\x00\x00\x00\x00\x00\x01", 0.0)
    assert bytes(next(pieces)) == _data(3)
    with pytest.raises(floods.RuleBroken, match="16385 bytes; 16384 are allowed") as caught:
        next(pieces)
    assert caught.value.code == ErrorCodes.FRAME_SIZE_ERROR


def test_a_settings_frame_has_a_bounded_number_of_settings() -> None:
    """h2 would keep each of them."""
    assert _feed(_gate(), SettingsFrame(0, settings=dict.fromkeys(range(1, 33), 1)).serialize())
    with pytest.raises(floods.RuleBroken, match="33 settings in one frame") as caught:
        _feed(_gate(), SettingsFrame(0, settings=dict.fromkeys(range(1, 34), 1)).serialize())
    assert MAX_SETTINGS == 32 * 6
    assert caught.value.code == ErrorCodes.ENHANCE_YOUR_CALM


def _headers(size: int, *flags: str) -> bytes:
    return HeadersFrame(1, b"x" * size, flags=flags).serialize()


def _continuation(size: int, *flags: str) -> bytes:
    return ContinuationFrame(1, b"x" * size, flags=flags).serialize()


def test_headers_are_bounded_in_bytes_and_in_frames() -> None:
    """Over all frames of one block; the next block begins anew."""
    half = MAX_HEADER_BLOCK // 2
    allowed = _headers(half) + _continuation(half, "END_HEADERS")
    gate = _gate()
    assert b"".join(_feed(gate, allowed * 2)) == allowed * 2
    with pytest.raises(floods.RuleBroken, match=f"more than {MAX_HEADER_BLOCK} bytes"):
        _feed(gate, _headers(half) + _continuation(half) + _continuation(1))
    gate = _gate()
    _feed(gate, _headers(1) + _continuation(1) * (MAX_HEADER_FRAMES - 1))
    with pytest.raises(floods.RuleBroken, match=f"more than {MAX_HEADER_FRAMES} frames"):
        _feed(gate, _continuation(0, "END_HEADERS"))


def test_what_is_unfinished_has_the_number_of_the_frame_that_began_it() -> None:
    """A frame that has arrived in part, and a header block without its end, in any frames."""
    gate = _gate()
    _feed(gate, _data(3) + _data(3)[:5])
    assert gate.unfinished == 1
    _feed(gate, _data(3)[5:11])
    assert gate.unfinished == 2
    _feed(gate, _data(3)[11:])
    assert gate.unfinished is None
    _feed(gate, _headers(1))
    assert gate.unfinished == 3
    _feed(gate, _continuation(1))
    assert gate.unfinished == 3
    _feed(gate, _continuation(1, "END_HEADERS"))
    assert gate.unfinished is None


KINDS = {
    floods.PINGS: PingFrame(0, b"12345678"),
    floods.SETTINGS: SettingsFrame(0, settings={4: 1}),
    floods.PRIORITIES: PriorityFrame(1, depends_on=3),
    floods.RESETS: RstStreamFrame(1),
    floods.UPDATES: WindowUpdateFrame(1, window_increment=1),
    floods.EMPTY: DataFrame(1),
    floods.UNKNOWN: ExtensionFrame(type=0xFB, stream_id=0, flag_byte=0, body=b""),
    floods.REQUESTS: HeadersFrame(1, b"x", flags=["END_HEADERS"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_frame_has_a_budget(kind: str) -> None:
    """As many as its burst at once; a second later as many as its rate."""
    frame: Frame = KINDS[kind]
    burst, rate = floods.BUDGETS[kind]
    one, gate = frame.serialize(), _gate()
    _feed(gate, one * int(burst), 100.0)
    _feed(gate, one * int(rate), 101.0)
    with pytest.raises(floods.RuleBroken, match=f"too many {kind}") as caught:
        _feed(gate, one, 101.0)
    assert caught.value.code == ErrorCodes.ENHANCE_YOUR_CALM


def test_data_earns_window_updates() -> None:
    """A peer that gets much data answers with many of them."""
    budgets = floods.Floods()
    gate = FrameFilter(budgets, is_server=False, max_frame=16384)
    one = KINDS[floods.UPDATES].serialize()
    _feed(gate, one * 1000, 0.0)
    budgets.on_data_sent()
    _feed(gate, one * floods.UPDATES_EARNED, 0.0)
    with pytest.raises(floods.RuleBroken):
        _feed(gate, one, 0.0)


def test_data_that_ends_a_stream_may_be_empty() -> None:
    """A stream ends in this way."""
    _feed(_gate(), _data(0, "END_STREAM") * 1000)
