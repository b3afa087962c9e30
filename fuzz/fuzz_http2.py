"""HTTP/2: the filter of frames before h2, and h2 behind it, as a server and as a client."""

from support import expect_equal, fuzz, instrumented, pieces_of

with instrumented():
    from hpack import Encoder
    from hyperframe.frame import (
        DataFrame,
        GoAwayFrame,
        HeadersFrame,
        PingFrame,
        RstStreamFrame,
        SettingsFrame,
        WindowUpdateFrame,
    )
    from penstock_http.multiplex._floods import Floods, RuleBroken
    from penstock_http.multiplex._frame_filter import PREFACE, FrameFilter
    from penstock_http.multiplex._protocol import Http2Protocol

MOST_SENT = 1 << 20
"""Bytes that a connection may want to send in answer to an input of these sizes."""


def _filter(pieces: list[bytes]) -> tuple[bytes, bool]:
    """Return what passes, and whether a frame was refused."""
    gate = FrameFilter(Floods(), is_server=False, max_frame=16_384)
    passed = bytearray()
    try:
        for number, piece in enumerate(pieces):
            for each in gate.slices(piece, number * 0.01):
                passed += each
    except RuleBroken:
        return bytes(passed), True
    return bytes(passed), False


def _protocol(pieces: list[bytes], *, is_client: bool) -> None:
    core = Http2Protocol(is_client=is_client)
    core.begin()
    core.take()
    try:
        for number, piece in enumerate(pieces):
            for _ in core.receive(piece, number * 0.01):
                assert len(core.take()) < MOST_SENT
    except RuleBroken:
        assert len(core.take()) < MOST_SENT


def TestOneInput(data: bytes) -> None:
    """The first byte chooses what is fed, the second how it is cut."""
    if len(data) < 2:
        return
    kind, choice, rest = data[0] % 4, data[1], data[2:]
    if kind == 0:
        passed, is_refused = _filter([rest])
        assert rest.startswith(passed)
        assert is_refused or passed == rest
        expect_equal(is_refused, _filter(pieces_of(rest, choice or 1))[1])
    else:
        # A client, and a server before and after its preface.
        opening = [PREFACE + SettingsFrame(0).serialize()] if kind == 2 else []
        _protocol([*opening, *pieces_of(rest, choice)], is_client=kind == 1)


def _frames() -> tuple[bytes, ...]:
    request = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", "/")]
    answer = [(":status", "200"), ("content-type", "a/b")]
    return (
        HeadersFrame(1, Encoder().encode(request), flags=["END_HEADERS"]).serialize(),
        HeadersFrame(1, Encoder().encode(answer), flags=["END_HEADERS"]).serialize(),
        DataFrame(1, b"data").serialize(),
        DataFrame(1, b"", flags=["END_STREAM"]).serialize(),
        RstStreamFrame(1, 8).serialize(),
        SettingsFrame(0, {4: 65_535, 8: 1}).serialize(),
        SettingsFrame(0, flags=["ACK"]).serialize(),
        PingFrame(0, bytes(8)).serialize(),
        WindowUpdateFrame(0, 1000).serialize(),
        GoAwayFrame(0, last_stream_id=1, error_code=0).serialize(),
    )


SEEDS = (
    *(bytes([kind, 1]) + each for kind in range(3) for each in _frames()),
    *(bytes([kind, 9]) + b"".join(_frames()) for kind in range(3)),
    b"\x03\1" + PREFACE + b"".join(_frames()),
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
