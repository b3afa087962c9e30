"""An extension decides on streams, annotates them, and sees their lives:
on RS.io and on ReactiveSocket.
"""

from typing import Any

import pytest

from penstock.api import HOLD, Model, PluginError, ProtocolError, Request
from penstock.protocols import rsio
from penstock.session import ConnectionState, ReceivingStream
from tests.protocols.reactivesocket._pair import RsPair
from tests.session._outside_extension import Outsider
from tests.session._pair import Pair, RawPeer, RecordingSubscriber, ScriptedPublisher

CALLS = ("check_subscribe", "before_accept", "on_begun")


def pair_with(protocol: str, here: Outsider, there: Outsider) -> Any:
    kind: Any = Pair if protocol == "rsio" else RsPair
    pair = kind(extensions=[here], server_extensions=[there])
    pair.settle()
    return pair


def ask(pair: Any, **script: Any) -> Any:
    if isinstance(pair, RsPair):
        return pair.ask(Model.STREAM, **script)
    source = pair.server.publishers["s"] = ScriptedPublisher(**script)
    subscriber = pair.subscribe("s", 5)
    pair.settle()
    return source, subscriber


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
def test_an_extension_sees_the_life_of_a_stream_on_both_sides(protocol: str) -> None:
    """The ids, the target, the acceptance, the beginning and the end."""
    here, there = Outsider(), Outsider()
    pair = pair_with(protocol, here, there)
    source, subscriber = ask(pair)
    source.emit(b"element")
    pair.settle()
    source.complete()
    pair.settle()
    (stream_id, _), target = here.named("before_subscribe")[0], there.named("check_subscribe")[0][1]
    assert target.endswith("s")
    assert here.named("on_accepted") == [(stream_id, 0)]
    assert here.named("on_ended") == [(stream_id, False)]
    assert there.named("before_accept") == [(stream_id, 0)]
    assert there.named("on_begun") == [(stream_id,)]
    assert there.named("on_ended") == [(stream_id, True)]
    assert subscriber.ends == ["complete"]


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
def test_a_cancelled_stream_has_ended_on_both_sides(protocol: str) -> None:
    """It has ended once on each side: the answer to the cancel is not a second end."""
    here, there = Outsider(), Outsider()
    pair = pair_with(protocol, here, there)
    source, subscriber = ask(pair)
    subscriber.cancel()
    pair.settle()
    assert source.cancels == 1
    assert len(here.named("on_ended")) == len(there.named("on_ended")) == 1


def test_a_request_for_one_value_ends_for_the_extension_that_asked() -> None:
    """On ReactiveSocket the value and the end come in one frame, by a shorter way."""
    here, there = Outsider(), Outsider()
    pair = RsPair(extensions=[here], server_extensions=[there])
    pair.settle()
    source, subscriber = pair.ask(Model.RESPONSE, demand=1)
    source.emit(b"value")
    source.complete()
    pair.settle()
    assert subscriber.elements == [b"value"]
    assert len(here.named("on_ended")) == 1


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
def test_an_extension_refuses_a_stream_with_its_own_text(protocol: str) -> None:
    """The service is not asked."""
    there = Outsider()
    there.answer = "not on a Sunday"
    pair = pair_with(protocol, Outsider(), there)
    _, subscriber = ask(pair)
    assert pair.server.served == []
    assert "not on a Sunday" in str(subscriber.ends[0])


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
@pytest.mark.parametrize("refusal", [None, "too late"])
def test_an_extension_holds_a_stream_and_decides_later(protocol: str, refusal: str | None) -> None:
    """Its demand stays with it. A second decision does nothing."""
    there = Outsider()
    there.answer = HOLD
    pair = pair_with(protocol, Outsider(), there)
    source, subscriber = ask(pair)
    assert pair.server.served == []
    stream_id = there.named("check_subscribe")[0][0]
    there.link.decide(stream_id, refusal)
    there.link.decide(stream_id)
    pair.settle()
    assert len(pair.server.served) == (refusal is None)
    if refusal is None:
        assert source.demand + pair.server.served[0].available == 5
    else:
        assert "too late" in str(subscriber.ends[0])


def test_a_held_stream_that_was_cancelled_is_not_decided_on() -> None:
    """The decision may come after the cancel."""
    there = Outsider()
    there.answer = HOLD
    pair = pair_with("rsio", Outsider(), there)
    _, subscriber = ask(pair)
    subscriber.cancel()
    pair.settle()
    there.link.decide(0)
    assert pair.server.served == []


def test_an_annotation_goes_right_before_the_message_of_the_stream() -> None:
    """The onSubscribe of a server and the subscribe of a client, also
    if elements of other streams wait.
    """
    raw = RawPeer(extensions=[Outsider(annotates=True)])
    raw.send(rsio.ClientHello(extensions=(200,)))
    raw.receive()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.Subscribe(publisher="s", subscriber=0, demand=1))
    assert raw.receive() == [
        rsio.ExtensionMessage(type=0x60, body=b"before accept"),
        rsio.OnSubscribe(subscriber=0, element_size=0),
    ]
    raw.session.subscribe("t", Subscriber())
    assert raw.receive() == [
        rsio.ExtensionMessage(type=0x60, body=b"before subscribe"),
        rsio.Subscribe(publisher="t", subscriber=0, demand=0),
    ]


class Subscriber:
    """A subscriber that does nothing."""

    def on_subscribe(self, subscription: Any, /) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name in {"on_next", "on_error", "on_complete"}:
            return lambda *_: None
        raise AttributeError(name)


@pytest.mark.parametrize(
    "name", ["check_subscribe", "before_accept", "on_begun", "on_ended", "closed"]
)
def test_an_extension_that_raises_ends_its_connection_and_nothing_else(name: str) -> None:
    """In each of its methods, at a server."""
    there = Outsider(raises=name)
    pair = pair_with("rsio", Outsider(), there)
    source, _ = ask(pair)
    if source.subscriber is not None:
        source.complete()
    pair.server.session.close("shutdown")
    pair.settle()
    assert len(pair.server.ended) == 1
    if name == "closed":
        assert "RuntimeError" in str(pair.server.warnings[0])
    else:
        assert pair.server.session.close_reason[0] == "internal"
    assert there.named("closed") == [()]


@pytest.mark.parametrize("name", ["before_subscribe", "on_accepted", "on_ended"])
def test_an_extension_of_a_client_that_raises_ends_its_connection(name: str) -> None:
    """In each of the methods that a client calls."""
    here = Outsider(raises=name)
    pair = pair_with("rsio", here, Outsider())
    _, subscriber = ask(pair)
    subscriber.cancel()
    pair.settle()
    assert pair.client.session.close_reason[0] == "internal"


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
def test_a_request_is_not_sent_behind_the_goodbye_of_an_extension(protocol: str) -> None:
    """The extension ends the connection when it is told of the stream.
    Only the goodbye goes out.
    """
    pair = pair_with(protocol, Outsider(raises="before_subscribe"), Outsider())
    session, reader = pair.client.session, RecordingSubscriber(1)
    target: Any = "s" if protocol == "rsio" else Request(Model.RESPONSE, b"s")
    session.streams.ask(
        target, lambda channel, stream_id: ReceivingStream(channel, stream_id, reader, 1)
    )
    sent = bytes(session.take())
    assert [type(end) for end in reader.ends] == [PluginError]
    assert sent.endswith(b"internal"), sent
    pair.server.session.receive(sent, 0.0)
    assert pair.server.served == []


def test_a_fault_of_the_peer_that_an_extension_finds_has_its_own_reason() -> None:
    """A ProtocolError is told to the peer."""

    class Strict(Outsider):
        def check_subscribe(self, stream_id: int, target: Any, /) -> None:
            raise ProtocolError("a name with a blank", reason="protocol:blank")

    pair = pair_with("rsio", Outsider(), Strict())
    ask(pair)
    assert pair.server.session.close_reason[0] == "protocol:blank"


def test_closed_is_called_once_for_a_connection_that_is_lost() -> None:
    """Streams that end with the connection are not told one by one."""
    there = Outsider()
    pair = pair_with("rsio", Outsider(), there)
    ask(pair)
    pair.server.session.end_of_input()
    assert pair.server.session.state is ConnectionState.LOST
    assert there.named("closed") == [()]
    assert there.named("on_ended") == []


def test_a_connection_without_such_extensions_has_no_observers() -> None:
    """It pays one comparison for each stream, and no object."""
    pair = Pair()
    pair.settle()
    assert pair.server.session.streams.observers is None
