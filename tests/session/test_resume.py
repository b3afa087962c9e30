"""The messages of *resume* between two sessions, without a runtime: acknowledgements, the bound,
a cut at every byte of both directions.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.api import Limits
from penstock.protocols import rsio
from penstock.session import ActiveResume, Resume, Resuming, RetainedBytes, Takeover, retain, rewind
from penstock.session._resume import ACKNOWLEDGE_BYTES, ACKNOWLEDGE_SECONDS
from tests.session._pair import (
    LIMITS,
    Pair,
    RawPeer,
    RecordingDelegate,
    RecordingSubscriber,
    ScriptedPublisher,
    limits_with,
)

BOUND = 1 << 20
TOKEN = bytes(range(32))


class Owner:
    """The part of a connection that an active resume calls."""

    is_awaiting = False

    def __init__(self) -> None:
        self.active: ActiveResume | None = None
        self.tokens: list[tuple[bytes, float]] = []
        self.inputs = 0

    def bind(self, active: ActiveResume) -> None:
        self.active = active

    def on_token(self, token: bytes, seconds: float) -> None:
        self.tokens.append((token, seconds))

    def on_input(self) -> None:
        self.inputs += 1

    def start(self, side: RecordingDelegate, token: bytes | None) -> None:
        assert self.active is not None
        self.active.start(side.session, token, 60.0)


class ResumedPair(Pair):
    """Two sessions with resume, whose bytes can be cut anywhere."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.owners = Owner(), Owner()
        client, server = self.owners
        super().__init__(
            limits=limits, extensions=[Resume(client)], server_extensions=[Resume(server)]
        )
        for side in (self.client, self.server):
            retain(side.session.outbox, RetainedBytes(BOUND, 4 * BOUND))
        self.settle()
        client.start(self.client, None)
        server.start(self.server, TOKEN)
        self.settle()

    def deliver(self, to_server: int, to_client: int) -> None:
        """Take what both sides send, and deliver that many bytes of it;
        the rest is lost with the link.
        """
        sent = [bytes(side.session.take()) for side in (self.client, self.server)]
        for data, most, other in (
            (sent[0], to_server, self.server),
            (sent[1], to_client, self.client),
        ):
            if data[:most]:
                other.session.receive(data[:most], self.now)

    def resume(self) -> None:
        """Let both sides tell their counts, and go on from there."""
        counts = [side.session.received_bytes for side in (self.client, self.server)]
        rewind(self.client.session.outbox, counts[1])
        rewind(self.server.session.outbox, counts[0])
        for owner in self.owners:
            assert owner.active is not None
            owner.active.note_acknowledged()

    def tick(self, seconds: float) -> None:
        self.now += seconds
        for side in (self.client, self.server):
            side.session.tick(self.now)


def converse(pair: ResumedPair) -> tuple[list[ScriptedPublisher], list[RecordingSubscriber]]:
    """Open a stream in each direction, and let both publish:
    elements of different lengths, one of them in parts.
    """
    sources, subscribers = [], []
    for publishing, reading in ((pair.server, pair.client), (pair.client, pair.server)):
        source = publishing.publishers["s"] = ScriptedPublisher()
        subscriber = RecordingSubscriber(20)
        reading.session.subscribe("s", subscriber)
        sources.append(source)
        subscribers.append(subscriber)
    pair.settle()
    for source in sources:
        source.emit(*ELEMENTS)
        source.complete()
    return sources, subscribers


ELEMENTS = [b"", b"a", b"bc" * 30, b"d" * 250, b"efg"]
SPLITTING = limits_with(split_outbound_at=100)


def places() -> Iterator[tuple[int, int]]:
    """Return each place of the bytes that both sides send, one direction after the other
    and both at once.
    """
    pair = ResumedPair(SPLITTING)
    converse(pair)
    lengths = [len(side.session.take()) for side in (pair.client, pair.server)]
    assert min(lengths) > 320
    for place in range(max(lengths) + 1):
        yield from ((place, 1 << 20), (1 << 20, place), (place, place))


def test_a_cut_at_every_byte_loses_nothing_and_repeats_nothing() -> None:
    """Both sides go on in the middle of a message, and of an element."""
    runs = 0
    for to_server, to_client in places():
        pair = ResumedPair(SPLITTING)
        _, subscribers = converse(pair)
        pair.deliver(to_server, to_client)
        pair.resume()
        pair.settle()
        for subscriber in subscribers:
            assert (subscriber.elements, subscriber.ends) == (ELEMENTS, ["complete"]), (
                to_server,
                to_client,
            )
        runs += 1
    assert runs > 900


def test_cuts_in_a_row_lose_nothing() -> None:
    """Each link carries 7 bytes in each direction, and is cut."""
    pair = ResumedPair(SPLITTING)
    _, subscribers = converse(pair)
    for _ in range(80):
        pair.deliver(7, 7)
        pair.resume()
    pair.settle()
    assert [subscriber.elements for subscriber in subscribers] == [ELEMENTS, ELEMENTS]


def test_the_client_gets_the_token_and_its_time() -> None:
    """With the first message behind the hellos."""
    pair = ResumedPair()
    assert pair.owners[0].tokens == [(TOKEN, 60.0)]
    assert pair.owners[1].tokens == []


def test_what_has_come_is_acknowledged_after_a_while_and_idle_sides_are_silent() -> None:
    """Acknowledgements are not acknowledged: two idle sides would answer each other without end."""
    pair = ResumedPair()
    converse(pair)
    pair.settle()
    for side in (pair.client, pair.server):
        assert side.session.outbox.retained is not None
        assert side.session.outbox.retained.held > 300
    pair.tick(ACKNOWLEDGE_SECONDS)
    assert 0 < pair.settle() < 40
    for side in (pair.client, pair.server):
        assert side.session.outbox.retained is not None
        assert side.session.outbox.retained.sent - side.session.outbox.retained.acknowledged < 20
    for _ in range(20):
        pair.tick(ACKNOWLEDGE_SECONDS)
        assert pair.settle() == 0


def test_much_is_acknowledged_at_once() -> None:
    """A fast stream need not wait for the clock."""
    pair = ResumedPair()
    source = pair.server.publishers["s"] = ScriptedPublisher()
    subscriber = pair.subscribe("s", 100)
    pair.settle()
    source.emit(*[bytes(10_000)] * (ACKNOWLEDGE_BYTES // 10_000 + 1))
    pair.settle()
    assert len(subscriber.elements) > 20
    retained = pair.server.session.outbox.retained
    assert retained is not None
    assert retained.held < ACKNOWLEDGE_BYTES / 2


def test_publishers_are_held_back_at_the_bound_and_go_on_behind_an_acknowledgement() -> None:
    """`Limits.resume_bytes` bounds what is kept:
    the outbox has no room then, and no call is started.
    """
    pair = ResumedPair()
    outbox = pair.server.session.outbox
    retain(outbox, RetainedBytes(1000, 100_000))
    source = pair.server.publishers["s"] = ScriptedPublisher()
    pair.subscribe("s", 1000)
    pair.settle()
    source.emit(*[bytes(100)] * 21)
    outbox.take()
    asked = source.demand
    source.emit(*[b"short"] * (asked - 21))
    outbox.take()
    assert outbox.room() == 0
    assert not outbox.may_start()
    assert source.demand == asked
    assert outbox.retained is not None
    wakes = pair.server.wakes
    assert pair.owners[1].active is not None
    pair.owners[1].active.received(0x49, outbox.retained.sent.to_bytes(8), 0.0)
    assert pair.server.wakes > wakes
    assert outbox.needs_turn
    outbox.take_turn()
    assert source.demand > asked
    assert outbox.may_start()
    assert not outbox.needs_turn or outbox.asked > 0


def test_a_peer_that_reads_and_acknowledges_nothing_is_cut() -> None:
    """The bound holds back elements; answers go on, and a peer that takes them must acknowledge."""
    owner = Owner()
    raw = RawPeer(extensions=[Resume(owner)])
    retain(raw.session.outbox, RetainedBytes(1000, 5000))
    raw.send(rsio.ClientHello(extensions=(5,)))
    owner.start(raw.delegate, TOKEN)
    for number in range(400):
        raw.send(rsio.Subscribe(publisher="unknown", subscriber=number, demand=1))
        if raw.session.state.is_closing:
            break
        raw.session.take()
    assert raw.session.close_reason[0] == "slow-reader"
    assert raw.session.outbox.retained is not None
    assert raw.session.outbox.retained.held < 5100


def test_acknowledgements_cost_no_control_token_and_do_not_keep_a_connection_open() -> None:
    """A fast stream would use the tokens up. One that says nothing new costs a glitch."""
    limits = limits_with(controls=3, per_second=1.0, glitches=50)
    owner = Owner()
    raw = RawPeer(extensions=[Resume(owner)], limits=limits)
    retain(raw.session.outbox, RetainedBytes(BOUND, BOUND))
    raw.send(rsio.ClientHello(extensions=(5,)))
    owner.start(raw.delegate, TOKEN)
    raw.receive()
    assert raw.session.outbox.retained is not None
    raw.session.tick(0.0)
    for position in range(raw.session.outbox.retained.sent):
        raw.send(rsio.ExtensionMessage(type=0x49, body=(position + 1).to_bytes(8)))
    assert not raw.session.state.is_closing
    assert not raw.session.streams.use.is_noted
    for _ in range(60):
        raw.send(rsio.ExtensionMessage(type=0x49, body=(1).to_bytes(8)))
    assert raw.goodbye_reason() == "limit:glitches"


def test_a_position_that_was_never_sent_ends_the_connection() -> None:
    """The goodbye has the position, and the error both figures."""
    owner = Owner()
    raw = RawPeer(extensions=[Resume(owner)])
    retain(raw.session.outbox, RetainedBytes(BOUND, BOUND))
    raw.send(rsio.ClientHello(extensions=(5,)))
    owner.start(raw.delegate, TOKEN)
    sent = len(bytes(raw.session.take()))
    raw.send(rsio.ExtensionMessage(type=0x49, body=(sent + 1).to_bytes(8)))
    assert raw.goodbye_reason() == f"protocol:resume {sent + 1}"
    assert f"received {sent + 1} bytes; this side has sent {sent}," in str(
        raw.session.close_reason[1]
    )


@pytest.mark.parametrize("session_of", ["client", "server"])
def test_one_side_alone_speaks_of_no_tokens(session_of: str) -> None:
    """A peer without the extension gets none of its messages."""
    extensions: list[Any] = [Resume(Owner())]
    pair = Pair(
        extensions=extensions if session_of == "client" else [],
        server_extensions=extensions if session_of == "server" else [],
    )
    pair.settle()
    assert pair.client.is_open
    assert pair.server.is_open


def test_a_question_and_its_answer() -> None:
    """Neither side is let in before it was said;
    then each knows the token and the count of the other.
    """
    asked, answered = Takeover(question=(TOKEN, 7)), Takeover()
    pair = Pair(extensions=[Resuming(asked)], server_extensions=[Resuming(answered)])
    pair.settle()
    assert answered.said == (TOKEN, 7)
    assert pair.server.is_open
    assert not pair.client.is_open
    answered.answer(TOKEN[::-1], 9)
    pair.settle()
    assert asked.said == (TOKEN[::-1], 9)
    assert pair.client.is_open


def test_a_server_without_the_extension_resumes_nothing() -> None:
    """The client says goodbye, and its streams get the reason."""
    pair = Pair(extensions=[Resuming(Takeover(question=(TOKEN, 7)))], server_extensions=[])
    pair.settle()
    assert pair.client.session.close_reason[0] == "resume"
    assert "resumes no connections" in str(pair.client.session.close_reason[1])


def test_a_question_comes_once_and_from_the_client() -> None:
    """Another message of the extension ends the connection."""
    for wrong in (0x4B, 0x4A):
        raw = RawPeer(extensions=[Resuming(Takeover())])
        raw.send(rsio.ClientHello(extensions=(8,)))
        raw.send(rsio.ExtensionMessage(type=0x4A, body=bytes(40)))
        raw.send(rsio.ExtensionMessage(type=wrong, body=bytes(40)))
        assert raw.goodbye_reason() == "protocol:resume"
