"""Extensions: negotiated by the rules of the draft, active only where both sides have them."""

from typing import Any

from penstock.api import ConnectionLost, ExtensionLink, Role
from penstock.builtin._keepalive import PING, PONG, Keepalive
from penstock.session import ConnectionState
from penstock.wire import rsio
from tests.session._pair import Pair, RawPeer, Script, limited


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

        def received(self, type: int, body: bytes, now: float, /) -> None:
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
    pair = Pair(extensions=[Keepalive(), Reversed()], theirs=[])
    source = pair.server.publishers["s"] = Script()
    reader = pair.subscribe("s", 1)
    pair.settle()
    source.emit(b"abc")
    pair.settle()
    assert reader.elements == [b"abc"]


def _kept_alive(**limits: Any) -> RawPeer:
    raw = RawPeer(Role.SERVER, limits=limited(**limits), extensions=[Keepalive()])
    raw.say(rsio.ClientHello(extensions=(1, 1, 99)))
    assert raw.hear() == [rsio.ServerHello(extensions=(1,))]
    return raw


def test_a_silent_peer_is_asked_and_then_given_up() -> None:
    """One ping after the interval, and the end when it is not answered."""
    raw = _kept_alive(keepalive=20, keepalive_timeout=10)
    assert raw.session.tick(0.0) == 20.0
    assert raw.session.tick(20.0) == 30.0
    assert raw.hear() == [rsio.ExtensionMessage(type=PING, body=bytes(7) + b"\x01")]
    raw.session.tick(30.0)
    assert raw.reason() == "keepalive"
    assert raw.session.state is ConnectionState.LEAVING


def test_any_sign_of_life_will_do() -> None:
    """A pong, or anything else, begins the silence anew."""
    raw = _kept_alive(keepalive=20, keepalive_timeout=10)
    raw.session.tick(20.0)
    raw.now = 25.0
    raw.say(rsio.Cancel(subscriber=1))
    assert raw.session.tick(26.0) == 45.0


def test_a_ping_is_answered_with_its_own_body() -> None:
    """Whatever it says."""
    raw = _kept_alive()
    raw.say(rsio.ExtensionMessage(type=PING, body=b"hello"))
    assert raw.hear() == [rsio.ExtensionMessage(type=PONG, body=b"hello")]


def test_pinging_too_often_spends_the_budget() -> None:
    """A ping flood ends the connection."""
    raw = _kept_alive(glitch_burst=3, glitch_rate=0.001)
    for _ in range(4):
        raw.say(rsio.ExtensionMessage(type=PING, body=b""))
    raw.hear()
    raw.say(rsio.ExtensionMessage(type=PING, body=b""))
    assert raw.reason() == "limit:glitches"


def test_a_ping_that_is_too_long_ends_the_connection() -> None:
    """125 bytes are enough for anything."""
    raw = _kept_alive()
    raw.say(rsio.ExtensionMessage(type=PING, body=bytes(126)))
    assert raw.reason() == "protocol:ping"
    raw.session.end_of_input()
    assert isinstance(raw.owner.ended[0], ConnectionLost)
