"""RS.io as a dialect: the handshake, versions, ids, and extensions negotiated by the rules of the draft."""

from typing import Any

import pytest

from penstock.api import ConnectionLost, ExtensionLink, PluginError, ProtocolError, Rejected, Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import Owner, Pair, RawPeer, Reader, Script, limited


def test_a_client_speaks_on_without_waiting() -> None:
    """False start: hello, subscribe and demand are one piece of bytes."""
    pair = Pair()
    source = pair.server.publishers["s"] = Script()
    pair.subscribe("s", 3)
    assert bytes(pair.client.session.take()) == bytes.fromhex("010000 1001730003")
    del source


def test_a_server_says_nothing_before_it_has_heard_the_client() -> None:
    """It must not speak a version that the client does not have."""
    assert bytes(Owner(Role.SERVER).session.take()) == b""


def test_a_server_of_another_version_has_discarded_everything() -> None:
    """The client says goodbye, and asking again is safe."""
    raw = RawPeer(Role.CLIENT)
    reader = Reader(1)
    raw.session.subscribe("s", reader)
    raw.hear()
    raw.say(rsio.ServerHello(version=1))
    assert raw.reason() == "version 0"
    assert isinstance(reader.ends[0], Rejected)
    assert not reader.ends[0].processed


def test_a_message_before_the_hello_ends_the_connection() -> None:
    """Whoever does not say hello first speaks something else."""
    raw = RawPeer()
    raw.say(rsio.Subscribe(publisher="s", subscriber=0))
    assert raw.reason() == "protocol:hello"


def test_a_name_that_is_no_text_is_refused() -> None:
    """The message's end is known, so the connection goes on."""
    raw = RawPeer().greet()
    raw.say(b"\x10\x02\xff\xfe\x05\x00")
    assert raw.hear() == [rsio.OnError(subscriber=5, error="the publisher's name is no UTF-8")]
    assert raw.session.state is ConnectionState.OPEN


def test_ids_are_never_used_again() -> None:
    """An element that is late must find the size of the stream it belongs to."""
    raw = RawPeer(Role.CLIENT).greet()
    readers = [Reader() for _ in range(3)]
    for reader in readers:
        raw.session.subscribe("s", reader)
        reader.cancel()
    ids = [message.subscriber for message in raw.hear() if isinstance(message, rsio.Subscribe)]
    assert ids == [0, 1, 2]


class Reversed:
    """An extension that changes what onNext means: elements go backwards, once one side has declared it and the other acknowledged."""

    id = 200
    name = "reversed"
    codes = frozenset({0x60, 0x61})

    def open(self, link: ExtensionLink, now: float, /) -> "Reversed.Active":
        return self.Active(link)

    class Active:
        def __init__(self, link: ExtensionLink) -> None:
            self._link = link
            if link.role is Role.SERVER:
                link.hold_elements()
                link.send(0x60, b"")

        def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
            if type == 0x60:
                self._link.change_elements(incoming=lambda element: element[::-1])
                self._link.send(0x61, b"")
            else:
                self._link.change_elements(outgoing=lambda element: element[::-1])
                self._link.resume_elements()

        def heard(self, now: float, /) -> None: ...

        def tick(self, now: float, /) -> float | None:
            return None


def test_an_extension_that_changes_elements_waits_for_the_acknowledgement() -> None:
    """Declared by the server, acknowledged by the client; no element is asked for before that, and every one arrives as it was."""
    pair = Pair(extensions=[Reversed()])
    source = pair.server.publishers["s"] = Script()
    reader = pair.subscribe("s", 2)
    pair.server.session.receive(bytes(pair.client.session.take()), 0.0)
    assert source.requests == []
    pair.client.session.receive(bytes(pair.server.session.take()), 0.0)
    pair.server.session.receive(bytes(pair.client.session.take()), 0.0)
    assert source.demand == 1  # one, until the size of elements is known
    source.emit(b"abc")
    data = bytes(pair.server.session.take())
    assert data.endswith(b"cba")
    pair.client.session.receive(data, 0.0)
    assert reader.elements == [b"abc"]


def test_an_extension_of_one_side_only_stays_silent() -> None:
    """A peer that knows no extension works with us."""
    pair = Pair(extensions=[Reversed()], theirs=[])
    source = pair.server.publishers["s"] = Script()
    reader = pair.subscribe("s", 1)
    pair.settle()
    source.emit(b"abc")
    pair.settle()
    assert reader.elements == [b"abc"]


class Faulty(Reversed):
    """An extension of somebody's that raises where it is told to."""

    def __init__(self, where: str, error: Exception) -> None:
        self.where = where
        self.error = error

    def open(self, link: ExtensionLink, now: float, /) -> Any:
        if self.where == "open":
            raise self.error
        active = Reversed.Active(link)
        setattr(active, self.where, self._raise)
        return active

    def _raise(self, *_: object) -> None:
        raise self.error


@pytest.mark.parametrize("where", ["open", "received", "heard", "tick"])
def test_an_extension_that_raises_ends_its_connection_and_nothing_else(where: str) -> None:
    """Nothing gets out of the session; the peer learns no more than that, and who reads here is told whose fault it was."""
    raw = RawPeer(extensions=[Faulty(where, KeyError("a secret"))])
    raw.say(rsio.ClientHello(extensions=(200,)))
    raw.say(rsio.ExtensionMessage(type=0x61, body=b""))
    raw.session.tick(0.0)
    assert raw.reason() == "internal"
    raw.session.end_of_input()
    assert isinstance(raw.owner.ended[0], PluginError)


def test_a_fault_of_the_peers_that_an_extension_finds_is_the_peers() -> None:
    """A ProtocolError from an extension keeps its reason."""
    raw = RawPeer(extensions=[Faulty("received", ProtocolError("bad", reason="protocol:mine"))])
    raw.say(rsio.ClientHello(extensions=(200,)), rsio.ExtensionMessage(type=0x61, body=b""))
    assert raw.reason() == "protocol:mine"


def test_messages_of_extensions_come_out_of_the_budget_of_control_messages() -> None:
    """A ping costs the peer little and this side an answer."""
    raw = RawPeer(extensions=[Reversed()], limits=limited(control_burst=1, control_rate=1))
    raw.say(rsio.ClientHello(extensions=(200,)), *[rsio.ExtensionMessage(type=0x61, body=b"")] * 2)
    assert raw.reason() == "limit:control"


def test_an_extension_sends_no_code_but_its_own() -> None:
    """What it might break is another one's; its own connection ends for it."""
    raw = RawPeer(extensions=[Stranger()])
    raw.say(rsio.ClientHello(extensions=(201,)))
    assert raw.reason() == "internal"


class Stranger(Reversed):
    """Sends what it has not registered."""

    id = 201
    codes = frozenset({0x70})


@pytest.mark.parametrize("code", [each for each in range(256) if each not in (rsio.CLIENT_HELLO, rsio.GOODBYE)])
def test_what_begins_with_no_hello_is_refused_on_its_first_byte(code: int) -> None:
    """Another protocol, a request, the other side's hello: nobody waits for the rest of it."""
    raw = RawPeer()
    raw.say(bytes([code]))
    assert raw.reason() == "protocol:hello"


def test_a_client_wants_the_hello_of_a_server() -> None:
    """Two clients that meet both hang up."""
    raw = RawPeer(Role.CLIENT)
    raw.hear()
    raw.say(bytes([rsio.CLIENT_HELLO]))
    assert raw.reason() == "protocol:hello"


def test_a_goodbye_may_come_instead_of_a_hello() -> None:
    """A refusal needs no hello."""
    raw = RawPeer()
    raw.say(rsio.Goodbye(reason="not today"))
    assert raw.hear() == [rsio.Goodbye()]
    assert raw.session.state.is_over


def test_a_server_that_refuses_the_version_instead_of_greeting_has_discarded_everything() -> None:
    """It has no hello of our version to send; asking again elsewhere is safe. After its hello the word would mean nothing of the kind."""
    for before, kind in (((), Rejected), ((rsio.ServerHello(),), ConnectionLost)):
        raw = RawPeer(Role.CLIENT)
        reader = Reader(1)
        raw.session.subscribe("s", reader)
        raw.say(*before, rsio.Goodbye(reason="version 7"))
        assert type(reader.ends[0]) is kind
        assert not getattr(reader.ends[0], "processed", False)
        assert "7" in str(reader.ends[0])


def test_a_hello_of_another_version_is_answered_on_its_version() -> None:
    """How it goes on is that version's business: it may be longer than anything that is taken here."""
    raw = RawPeer()
    raw.say(b"\x01\x09")
    assert raw.reason() == "version 0"
    raw.say(b"\xff" * 5000)
    assert raw.hear() == []
