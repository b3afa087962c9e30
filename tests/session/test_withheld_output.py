"""Requests of this side that wait:
for an extension that speaks first, or while the encoding of elements is negotiated.
"""

from penstock.api import Model, Request
from penstock.protocols import reactivesocket as rs
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.protocols.reactivesocket._pair import RawSocket, RsDelegate, RsPair
from tests.session._outside_extension import Meeting, Outsider
from tests.session._pair import Pair, RawPeer, RecordingSubscriber, Role


def test_a_client_says_nothing_between_its_hello_and_the_first_word_of_the_extension() -> None:
    """Its subscribes, requests and cancels follow in their order
    when the extension lets the peer in.
    """
    here = Meeting(holds=True)
    raw = RawPeer(Role.CLIENT, extensions=[here])
    first, second = RecordingSubscriber(1), RecordingSubscriber(2)
    raw.session.subscribe("a", first)
    raw.session.subscribe("b", second)
    first.request(3)
    second.cancel()
    assert raw.receive() == [rsio.ClientHello(extensions=(200,))]
    raw.send(rsio.ServerHello(extensions=(200,)))
    here.link.send(0x60, b"first word")
    assert raw.receive() == [rsio.ExtensionMessage(type=0x60, body=b"first word")]
    here.link.admit()
    assert raw.receive() == [
        rsio.Subscribe(publisher="a", subscriber=0, demand=1),
        rsio.Subscribe(publisher="b", subscriber=1, demand=2),
        rsio.Request(subscriber=0, demand=3),
        rsio.Cancel(subscriber=1),
    ]
    assert raw.session.state is ConnectionState.OPEN


def test_what_was_held_back_is_never_sent_if_the_connection_ends() -> None:
    """The goodbye goes out, and the streams end with an error."""
    raw = RawPeer(Role.CLIENT, extensions=[Meeting(holds=True)])
    subscriber = RecordingSubscriber(1)
    raw.session.subscribe("a", subscriber)
    raw.session.close("")
    assert raw.receive() == [rsio.ClientHello(extensions=(200,)), rsio.Goodbye(reason="")]
    assert len(subscriber.ends) == 1


def test_elements_that_are_held_hold_requests_back_too() -> None:
    """Their data is changed when it is sent."""
    here = Outsider()
    pair = Pair(extensions=[here], server_extensions=[Outsider()])
    pair.settle()
    here.link.hold_elements()
    pair.subscribe("s", 1)
    pair.settle()
    assert pair.server.served == []
    here.link.resume_elements()
    pair.settle()
    assert len(pair.server.served) == 1


def flip(data: bytes) -> bytes:
    return bytes(letter ^ 0x5A for letter in data)


def test_the_data_of_reactivesocket_requests_is_changed() -> None:
    """In each shape of request. The clear text is nowhere on the wire."""
    here, there = Outsider(), Outsider()
    pair = RsPair(extensions=[here], server_extensions=[there])
    pair.settle()
    here.link.hold_elements()
    for model in (Model.RESPONSE, Model.STREAM, Model.SUBSCRIPTION):
        pair.client.session.subscribe(Request(model, b"secret"), RecordingSubscriber(1))
    pair.client.session.streams.fire(Request(Model.FIRE_AND_FORGET, b"secret"))
    assert not pair.client.session.take()
    there.link.change_elements(incoming=flip)
    here.link.change_elements(outgoing=flip)
    here.link.resume_elements()
    sent = bytes(pair.client.session.take())
    assert b"secret" not in sent
    assert sent.count(flip(b"secret")) == 4
    pair.server.session.receive(sent, 0.0)
    assert [str(stream.target) for stream in pair.server.served] == [
        "RESPONSE secret",
        "STREAM secret",
        "SUBSCRIPTION secret",
    ]
    assert [request.data for request in pair.server.fired_targets] == [b"secret"]


def test_an_extension_introduces_its_reactivesocket_client_and_examines_the_setup() -> None:
    """The server's extension holds the client, so that the service is asked after it; the
    extension is not announced.
    """
    here, there = Meeting(), Meeting(holds=True)
    pair = RsPair(extensions=[here], server_extensions=[there])
    pair.client.session.take()
    setup = rs.encode(rs.Setup(data=here.introduction()))
    request = rs.encode(rs.RequestStream(stream_id=1, demand=1, data=b"s"))
    pair.server.session.receive(setup + request, 0.0)
    assert there.named("meet") == [(b"it is me",)]
    assert pair.server.session.state is ConnectionState.EXAMINING
    assert pair.server.introductions == []
    there.link.admit("alice")
    pair.server.session.receive(b"", 0.0)
    assert pair.server.principal == "alice"
    assert pair.server.introductions == [b"it is me"]
    assert len(pair.server.served) == 1


def test_the_setup_has_the_introduction_of_an_extension_unless_the_program_gives_data() -> None:
    """`setup=` of the program goes first."""
    assert RawSocket(Role.CLIENT, extensions=[Meeting()]).receive() == [rs.Setup(data=b"it is me")]
    mine = RsDelegate(Role.CLIENT, extensions=[Meeting()], setup=b"mine")
    assert bytes(mine.session.take()) == rs.encode(rs.Setup(data=b"mine"))
