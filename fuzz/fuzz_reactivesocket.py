"""ReactiveSocket: its decoder, and a session that receives what a peer sends."""

from support import decode_in_pieces, expect_equal, fuzz, instrumented, pieces_of, play

with instrumented():
    from penstock.protocols import reactivesocket as rs
    from penstock.session import DialectSettings
    from penstock.testing import FrameList

FRAMES = (
    *(rs.Setup(data=b"cap"), rs.RequestResponse(stream_id=1, data=b"hello")),
    *(rs.RequestFnf(stream_id=3, data=b"f"), rs.RequestStream(stream_id=5, demand=4, data=b"s")),
    rs.RequestSub(stream_id=7, demand=2**63 - 1, data=b"u"),
    *(rs.RequestN(stream_id=5, demand=2), rs.Cancel(stream_id=5)),
    *(rs.Response(stream_id=1, data=b"item"), rs.Response(stream_id=1, end=False, data=b"aa")),
    rs.Response(stream_id=1, begin=False, data=b"c"),
    rs.Response(stream_id=1, complete=True, data=b"done"),
    *(rs.Error(stream_id=1, data=b"boom"), rs.Ext(stream_id=0, ignore=True, ext_type=7, data=b"x")),
)


def _session(data: bytes, choice: int, *, is_server: bool) -> None:
    play(
        lambda session: rs.ReactiveSocketDialect(session, DialectSettings()),
        is_server=is_server,
        opening=rs.encode(rs.Setup()) if is_server else b"",
        pieces=pieces_of(data, choice),
    )


def _decoder(data: bytes, choice: int, streams: tuple[int, ...]) -> None:
    def make() -> tuple[object, list[rs.Frame]]:
        found = FrameList()
        for each in streams:
            found.open(each)
        decoder = rs.ReactiveSocketDecoder(found, found.streams, max_frame=200)
        return decoder, found.frames

    whole = decode_in_pieces(make, [data])
    expect_equal(whole, decode_in_pieces(make, pieces_of(data, choice)))


def TestOneInput(data: bytes) -> None:
    """The first byte chooses what is fed, the second how it is cut."""
    if len(data) < 2:
        return
    kind, choice, rest = data[0] % 4, data[1], data[2:]
    if kind < 2:
        _session(rest, choice, is_server=bool(kind))
    else:
        _decoder(rest, choice or 1, (1, 5) if kind == 2 else ())


_ALL = b"".join(map(rs.encode, FRAMES))
SEEDS = (
    *(bytes([kind, 7]) + _ALL for kind in range(4)),
    *(bytes([kind, 1]) + rs.encode(each) for kind in (0, 1, 3) for each in FRAMES),
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
