"""The interface of an encoding, and the change of encoding on a connection."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from penstock.api import PluginError, Role
from penstock.protocols import rsio
from penstock.protocols.rsio import RsioDialect
from penstock.protocols.rsio._encoding import EncodingSwitch, make_encoding
from penstock.session import DialectSettings, Session
from penstock.spi import Factory
from penstock.testing import MessageList, check_encoding
from tests.protocols.rsio._masked_encoding import ID, MaskedEncoding
from tests.session._pair import Pair, RecordingDelegate, ScriptedPublisher

# --- the interface


def test_the_compact_encoding_is_the_codec() -> None:
    """Its functions are those of the codec themselves: no call stands between."""
    assert rsio.COMPACT.encode_request is rsio.encode_request
    assert rsio.COMPACT.join_run is rsio.join_run
    assert rsio.COMPACT.packed_header(1, 3, 12) == rsio.packed_header(1, 3)
    check_encoding(rsio.COMPACT)


def test_an_encoding_with_the_abstract_methods_alone_is_complete() -> None:
    """Messages that belong to every stream, and runs, are made of the others."""
    check_encoding(MaskedEncoding())


def test_the_compact_encoding_has_the_extension_s_header_of_its_messages() -> None:
    """The header is type and length, before the body."""
    assert rsio.COMPACT.extension_header(0x60, 300) == b"\x60\xac\x02"


# --- the change on a connection


MASKED = Factory(name="masked", id=ID, make=MaskedEncoding)
OTHER = Factory(name="other", id=201, make=MaskedEncoding)
SWITCH = rsio.encode(rsio.SwitchEncoding(extension=ID))


def use(delegate: RecordingDelegate, role: Role, **settings: Any) -> Session:
    """Give a delegate a session with these settings of its dialect."""
    delegate.session = Session(
        delegate,
        lambda session: RsioDialect(session, DialectSettings(**settings)),
        role=role,
        limits=delegate.session.channel.limits,
        random=lambda: 0.5,
    )
    delegate.session.start(0.0)
    return delegate.session


def pair(of_client: Mapping[str, Any], of_server: Mapping[str, Any]) -> Pair:
    sides = Pair()
    use(sides.client, Role.CLIENT, **of_client)
    use(sides.server, Role.SERVER, **of_server)
    return sides


def decoded(
    encoding: rsio.Encoding, data: bytes, *, streams: Sequence[int] = ()
) -> list[rsio.Message]:
    sink = MessageList()
    for each in streams:
        sink.receive_on_subscribe(each, 0)
    sink.messages.clear()
    encoding.decoder(sink, sink.streams, rsio.WireLimits()).feed(data)
    return sink.messages


@pytest.mark.parametrize("cut", [1, 2, 7, 1 << 30])
@pytest.mark.parametrize(
    ("of_client", "of_server"),
    [
        ({"encodings": (MASKED,)}, {"encodings": (MASKED,)}),
        ({"encodings": (MASKED,)}, {}),
        ({}, {"encodings": (MASKED,)}),
        ({"encoding": MASKED}, {"encoding": MASKED}),
    ],
    ids=["agreed", "the client alone", "the server alone", "outside the stream"],
)
def test_elements_arrive_in_every_combination(
    of_client: Mapping[str, Any], of_server: Mapping[str, Any], cut: int
) -> None:
    """Small ones, large ones in parts, and the end, however the bytes are cut."""
    sides = pair(of_client, of_server)
    script = sides.server.publishers["ticks"] = ScriptedPublisher()
    subscriber = sides.subscribe("ticks", demand=10)
    sides.settle(cut=cut)
    elements = [b"small", bytes(100_000), b"", b"last"]
    script.emit(*elements)
    script.complete()
    sides.settle(cut=cut)
    assert (subscriber.elements, subscriber.ends) == (elements, ["complete"])
    assert (
        sides.client.session.close_reason == sides.server.session.close_reason == ("closed", None)
    )


def test_both_sides_change_behind_the_handshake() -> None:
    """The hellos and the marker are compact, and everything behind the marker is not."""
    sides = pair({"encodings": (OTHER, MASKED)}, {"encodings": (MASKED,)})
    sides.subscribe("early", demand=1)
    first = bytes(sides.client.session.take())
    assert decoded(rsio.COMPACT, first) == [
        rsio.ClientHello(extensions=(201, ID)),
        rsio.Subscribe(publisher="early", subscriber=0, demand=1),
    ]
    sides.server.session.receive(first, 0.0)
    answer = bytes(sides.server.session.take())
    hello = rsio.encode(rsio.ServerHello(extensions=(ID,)))
    assert answer.startswith(hello + SWITCH)
    assert decoded(MaskedEncoding(), answer[len(hello + SWITCH) :]) == [
        rsio.OnError(subscriber=0, error="no such publisher")
    ]
    sides.client.session.receive(answer, 0.0)
    sides.subscribe("late")
    behind = bytes(sides.client.session.take())
    assert behind.startswith(SWITCH)
    assert decoded(MaskedEncoding(), behind[len(SWITCH) :]) == [
        rsio.Subscribe(publisher="late", subscriber=1, demand=0)
    ]


@pytest.mark.parametrize(
    ("of_client", "of_server", "chosen"),
    [
        ((1, 201, ID), (ID, 201), 201),
        ((ID, 201), (201, ID), ID),
        ((ID,), (201,), None),
        ((), (ID,), None),
        ((7, 7, ID), (7, ID), ID),
    ],
)
def test_the_first_of_the_client_that_the_server_has_is_agreed_on(
    of_client: tuple[int, ...], of_server: tuple[int, ...], chosen: int | None
) -> None:
    """The order of the server's list means nothing, and ids that are not encodings are passed over."""
    agreed = EncodingSwitch((MASKED, OTHER)).agree(of_client, of_server)
    assert (None if agreed is None else agreed[0]) == chosen


def server(
    *, encodings: Sequence[Factory] = (MASKED,), hello: tuple[int, ...] = (ID,)
) -> RecordingDelegate:
    """A server that has agreed on the encoding, if both lists have it."""
    delegate = RecordingDelegate(Role.SERVER)
    use(delegate, Role.SERVER, encodings=encodings).receive(
        rsio.encode(rsio.ClientHello(extensions=hello)), 0.0
    )
    delegate.session.take()
    return delegate


BAD: dict[str, tuple[Callable[[], RecordingDelegate], bytes, str]] = {
    "without an encoding": (lambda: server(encodings=()), SWITCH, "protocol:switch 200"),
    "not agreed on": (lambda: server(hello=()), SWITCH, "protocol:switch 200"),
    "another one": (server, rsio.encode(rsio.SwitchEncoding(extension=16)), "protocol:switch 16"),
    "a second one": (
        server,
        SWITCH + MaskedEncoding().encode(rsio.SwitchEncoding(extension=ID)),
        "protocol:switch 200",
    ),
}


@pytest.mark.parametrize(("make", "data", "reason"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("size", [1, 100])
def test_a_change_that_is_not_allowed_ends_the_connection(
    make: Callable[[], RecordingDelegate], data: bytes, reason: str, size: int
) -> None:
    """With the goodbye ``protocol:switch`` and the id, in the encoding
    that the direction of the goodbye has.
    """
    delegate = make()
    for at in range(0, len(data), size):
        delegate.session.receive(data[at : at + size], 0.0)
    assert delegate.session.close_reason[0] == reason
    sent = bytes(delegate.session.take())
    encoding = MaskedEncoding() if make is server else rsio.COMPACT
    assert decoded(encoding, sent) == [rsio.Goodbye(reason=reason)]


def test_a_change_is_refused_if_the_encoding_was_chosen_outside_the_stream() -> None:
    """There the hello is in the encoding, and lists no encoding."""
    delegate, encoding = RecordingDelegate(Role.SERVER), MaskedEncoding()
    session = use(delegate, Role.SERVER, encoding=MASKED, encodings=(MASKED,))
    session.receive(encoding.encode(rsio.ClientHello(extensions=(ID,))), 0.0)
    assert decoded(encoding, bytes(session.take())) == [rsio.ServerHello()]
    session.receive(encoding.encode(rsio.SwitchEncoding(extension=ID)), 0.0)
    assert session.close_reason[0] == "protocol:switch 200"


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("size", [1, 100])
def test_a_second_hello_is_refused_in_the_agreed_encoding_too(role: Role, size: int) -> None:
    """By either side, and with the reason for it: a decoder for each encoding does not know what
    the one before it has read.
    """
    kind = rsio.ServerHello if role is Role.CLIENT else rsio.ClientHello
    hello = kind(extensions=(ID,))
    delegate = RecordingDelegate(role)
    session = use(delegate, role, encodings=(MASKED,))
    data = rsio.encode(hello) + SWITCH + MaskedEncoding().encode(hello)
    for at in range(0, len(data), size):
        session.receive(data[at : at + size], 0.0)
    assert session.close_reason[0] == "protocol:hello"


def test_a_marker_may_stand_between_two_parts_of_an_element() -> None:
    """The element is joined from a compact part and one in the other encoding."""
    delegate = RecordingDelegate(Role.CLIENT)
    sides = Pair()
    sides.client = delegate
    session = use(delegate, Role.CLIENT, encodings=(MASKED,))
    subscriber = sides.subscribe("ticks", demand=1)
    parts = rsio.encode(rsio.OnSubscribe(subscriber=0)) + rsio.encode(
        rsio.OnNextPart(subscriber=0, element=0, data=b"one ")
    )
    rest = MaskedEncoding().encode(rsio.OnNextLastPart(subscriber=0, element=0, data=b"two"))
    session.receive(rsio.encode(rsio.ServerHello(extensions=(ID,))) + parts + SWITCH + rest, 0.0)
    assert subscriber.elements == [b"one two"]


def test_a_peer_need_not_change() -> None:
    """Each direction is read as its sender writes it."""
    delegate = server()
    delegate.session.receive(rsio.encode(rsio.Subscribe(publisher="none", subscriber=5)), 0.0)
    assert decoded(MaskedEncoding(), bytes(delegate.session.take())) == [
        rsio.OnError(subscriber=5, error="no such publisher")
    ]


def test_a_peer_s_goodbye_behind_its_marker_is_read_while_closing() -> None:
    """The goodbye of this side was sent before the marker came."""
    delegate = server()
    delegate.session.close("shutdown")
    delegate.session.receive(SWITCH + MaskedEncoding().encode(rsio.Goodbye(reason="bye")), 0.0)
    assert delegate.ended


def test_messages_behind_the_marker_count_as_messages_of_the_chunk() -> None:
    """With a bound on messages the rest waits, and is decoded by the next calls."""
    delegate = server()
    requests = b"".join(
        MaskedEncoding().encode(rsio.Subscribe(publisher=f"p{n}", subscriber=n)) for n in range(3)
    )
    more, calls = delegate.session.receive(SWITCH + requests, 0.0, most=1), 1
    while more:
        more, calls = delegate.session.receive(b"", 0.0, most=1), calls + 1
    assert [stream.target for stream in delegate.served] == ["p0", "p1", "p2"]
    assert calls >= 3


def raises() -> object:
    raise ValueError("no luck")


@pytest.mark.parametrize(
    ("make", "why"),
    [(raises, "raised when it was made"), (object, "return a penstock.protocols.rsio.Encoding")],
)
def test_a_broken_offer_ends_the_connections_that_need_it(
    make: Callable[[], object], why: str
) -> None:
    """The peer is told no more than that;
    an encoding that was chosen outside fails the making of the dialect.
    """
    offer = Factory(name="broken", id=ID, make=make)
    delegate = RecordingDelegate(Role.SERVER)
    use(delegate, Role.SERVER, encodings=(offer,)).receive(
        rsio.encode(rsio.ClientHello(extensions=(ID,))), 0.0
    )
    assert delegate.session.close_reason[0] == "internal"
    assert why in str(delegate.session.close_reason[1])
    with pytest.raises(PluginError, match=why):
        make_encoding(offer)
