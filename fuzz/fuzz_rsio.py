"""RS.io: its decoder in the three encodings, and a session that receives what a peer sends."""

from support import decode_in_pieces, expect_equal, fuzz, instrumented, pieces_of, play

with instrumented():
    from penstock_msgpack import MsgpackEncoding
    from penstock_protobuf import ProtobufEncoding

    from penstock.extensions import Auth, Content, Drain, Keepalive, Position
    from penstock.protocols import rsio
    from penstock.session import DialectSettings
    from penstock.testing import MessageList

ENCODINGS = (rsio.COMPACT, MsgpackEncoding(), ProtobufEncoding())
EXTENSIONS = (Keepalive.id, Content.id, Drain.id, Auth.id, Position.id)
LIMITS = rsio.WireLimits(frame=64, element=100, name=16, text=20, reason=20, extensions=8)
MESSAGES = (
    *(rsio.OnSubscribe(subscriber=0), rsio.OnSubscribe(subscriber=1, element_size=4)),
    *(rsio.OnNext(subscriber=0, element=b"item"), rsio.OnComplete(subscriber=0)),
    rsio.OnNextPacked(subscriber=1, count=3, elements=bytes(12)),
    rsio.OnNextPart(subscriber=0, element=0, data=b"aa"),
    rsio.OnNextLastPart(subscriber=0, element=0, data=b"b"),
    *(rsio.OnError(subscriber=0, error="boom"), rsio.ExtensionMessage(type=0x40, body=b"hi")),
    *(rsio.Request(subscriber=0, demand=128), rsio.Cancel(subscriber=0)),
    rsio.Subscribe(publisher="ticks", subscriber=300, demand=2**63 - 1),
    *(rsio.SwitchEncoding(extension=16), rsio.Goodbye(reason="bye")),
)
HELLOS = (rsio.ServerHello(extensions=EXTENSIONS), rsio.ClientHello(extensions=EXTENSIONS))


def _session(data: bytes, choice: int, *, is_server: bool) -> None:
    extensions = [Keepalive(), Content(), Drain(), Position()]
    if is_server:
        extensions.append(Auth(authenticate=lambda *_: True))
    settings = DialectSettings(extensions=extensions)
    play(
        lambda session: rsio.RsioDialect(session, settings),
        is_server=is_server,
        opening=rsio.encode(HELLOS[is_server]),
        pieces=pieces_of(data, choice),
    )


def _decoder(data: bytes, choice: int, encoding: rsio.Encoding) -> None:
    def make() -> tuple[object, list[rsio.Message]]:
        found = MessageList()
        return encoding.decoder(found, found.streams, LIMITS), found.messages

    whole = decode_in_pieces(make, [data])
    expect_equal(whole, decode_in_pieces(make, pieces_of(data, choice)))


def TestOneInput(data: bytes) -> None:
    """The first byte chooses what is fed, the second how it is cut."""
    if len(data) < 2:
        return
    kind, choice, rest = data[0] % 5, data[1], data[2:]
    if kind < 2:
        _session(rest, choice, is_server=bool(kind))
    else:
        _decoder(rest, choice or 1, ENCODINGS[kind - 2])


def _all(encoding: rsio.Encoding) -> bytes:
    return b"".join(map(encoding.encode, MESSAGES))


SEEDS = (
    *(bytes([kind, 1]) + rsio.encode(each) for kind in (0, 1) for each in MESSAGES),
    *(bytes([kind, 5]) + _all(rsio.COMPACT) for kind in (0, 1)),
    *(bytes([kind + 2, 7]) + _all(each) for kind, each in enumerate(ENCODINGS)),
    *(
        bytes([kind + 2, 1]) + encoding.encode(each)
        for kind, encoding in enumerate(ENCODINGS)
        for each in (*HELLOS, *MESSAGES)
    ),
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
