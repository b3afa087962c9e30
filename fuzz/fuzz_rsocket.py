"""RSocket: its frames, its metadata, and a session that receives what a peer sends."""

from support import expect_equal, fuzz, instrumented, pieces_of, play

with instrumented():
    import penstock_rsocket as rsocket

    from penstock.api import ProtocolError, UsageError
    from penstock.session import DialectSettings

META = rsocket.encode_composite(
    [
        (rsocket.ROUTING, rsocket.encode_route("a")),
        (rsocket.TRACING, b"\xfe" + bytes(24)),
        ("application/x.own", b"x"),
    ]
)
FRAMES = (
    rsocket.RequestResponse(stream_id=1, metadata=META, data=b"data"),
    rsocket.RequestFnf(stream_id=3, metadata=META, data=b"data", follows=True),
    rsocket.RequestStream(stream_id=5, demand=7, metadata=META, data=b"data"),
    rsocket.RequestChannel(stream_id=7, demand=2, metadata=META, data=b"a", complete=True),
    *(rsocket.RequestN(stream_id=5, demand=2), rsocket.Cancel(stream_id=5)),
    rsocket.Payload(stream_id=1, next=True, complete=True, metadata=b"m", data=b"d"),
    rsocket.Payload(stream_id=1, next=True, follows=True, data=b"d" * 70),
    *(rsocket.Error(stream_id=1, code=0x201, data=b"x"), rsocket.Error(stream_id=0, code=0x101)),
    *(rsocket.Keepalive(respond=True, data=b"d"), rsocket.Lease(ttl=1000, requests=5)),
    *(rsocket.MetadataPush(metadata=META), rsocket.ResumeOk(received=7)),
    rsocket.Ext(stream_id=0, extended_type=3, ignore=True, data=b"x"),
    rsocket.Setup(
        keepalive=1000, lifetime=1000, metadata_type=rsocket.COMPOSITE, data_type="a/b", data=b"d"
    ),
)
SETUP = rsocket.encode(
    rsocket.Setup(
        keepalive=1000,
        lifetime=1000,
        leases=True,
        metadata_type=rsocket.COMPOSITE,
        data_type="a/b",
    )
)


def _session(data: bytes, choice: int, *, is_server: bool, leases: bool) -> None:
    settings = DialectSettings(setup=rsocket.SetupData(leases=leases))
    play(
        lambda session: rsocket.RsocketDialect(session, settings),
        is_server=is_server,
        opening=SETUP if is_server else rsocket.encode(rsocket.Keepalive()),
        pieces=pieces_of(data, choice),
    )


def _frame(data: bytes) -> None:
    try:
        frame = rsocket.decode(data)
        again = rsocket.encode(frame, framed=True)
    except (ProtocolError, UsageError):  # UsageError: a number that may be read, and not be sent
        return
    expect_equal(frame, rsocket.decode(again))


def _metadata(data: bytes) -> None:
    try:
        for _, content in rsocket.entries_of(data):
            _parts(content)
    except ProtocolError:
        pass
    _parts(data)


def _parts(content: bytes) -> None:
    for decode in (
        *(rsocket.decode_route, rsocket.decode_types),
        *(rsocket.decode_credentials, rsocket.decode_trace),
    ):
        try:
            decode(content)
        except ProtocolError:
            pass


def TestOneInput(data: bytes) -> None:
    """The first byte chooses what is fed, the second how it is cut."""
    if len(data) < 2:
        return
    kind, choice, rest = data[0] % 6, data[1], data[2:]
    if kind < 4:
        _session(rest, choice, is_server=bool(kind & 1), leases=kind > 1)
    elif kind == 4:
        _frame(rest)
    else:
        _metadata(rest)


_ALL = b"".join(map(rsocket.encode, FRAMES))
SEEDS = (
    *(bytes([kind, 7]) + _ALL for kind in range(4)),
    *(bytes([kind, 1]) + rsocket.encode(each) for kind in (0, 1) for each in FRAMES),
    *(b"\x04\0" + rsocket.encode(each, framed=True) for each in FRAMES),
    *(b"\x05\0" + each for each in (META, rsocket.encode_route("a"), b"\x84\4user12")),
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
