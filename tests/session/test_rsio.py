"""RS.io as a dialect: the handshake, versions, ids, and extensions negotiated by the rules of the draft."""

from penstock.api import ExtensionLink, Rejected, Role
from penstock.session import ConnectionState
from penstock.wire import rsio
from tests.session._pair import Owner, Pair, RawPeer, Reader, Script


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
    assert source.demand == 2
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
