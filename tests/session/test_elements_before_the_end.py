"""The end of a publisher follows the elements that it gave: a completion, and an error too."""

import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import (
    ConnectionLost,
    LimitExceeded,
    Model,
    NotAvailable,
    PublicError,
    PublisherFailed,
)
from penstock.protocols import rsio
from penstock.session import SendingEvent
from tests.protocols.reactivesocket._pair import RsPair
from tests.session._pair import (
    Pair,
    RawPeer,
    RecordingSubscriber,
    ScriptedPublisher,
    open_stream,
)

SPLIT = 20_000
"""Bytes of an element that goes in parts."""

FAILURE = PublicError("out of paper")


def elements_of(*sizes: int) -> list[bytes]:
    """Return elements of these sizes, each of another letter."""
    return [bytes([65 + index % 26]) * size for index, size in enumerate(sizes)]


def texts(subscriber: RecordingSubscriber) -> list[str]:
    """Return the ends that have come, as texts."""
    return [str(end) for end in subscriber.ends]


def over_rsio(element_size: int = 0) -> tuple[Any, ScriptedPublisher, RecordingSubscriber]:
    """Return a pair that speaks RS.io, and its stream without demand."""
    pair = Pair()
    return pair, *open_stream(pair, 0, element_size=element_size)


def over_reactivesocket(
    element_size: int = 0,
) -> tuple[Any, ScriptedPublisher, RecordingSubscriber]:
    """Return the same in the other protocol, which packs no elements."""
    pair = RsPair()
    return pair, *pair.ask(Model.STREAM, demand=0, element_size=element_size)


PROTOCOLS = pytest.mark.parametrize("opened", [over_rsio, over_reactivesocket])


@PROTOCOLS
@pytest.mark.parametrize(
    "sizes",
    [(16_385,) * 4, (SPLIT, SPLIT, 5, 5), (5, SPLIT, 5), (200_000, 5), (SPLIT,), (5, 5), ()],
    ids=str,
)
def test_elements_arrive_before_the_error_that_follows_them(
    opened: Callable[..., Any], sizes: tuple[int, ...]
) -> None:
    """Elements that go in parts are held for turns of the writer; the error waits for them."""
    pair, source, subscriber = opened()
    subscriber.request(20)
    pair.settle()
    # Requested one by one: the size of the next element is not known, or may be large.
    elements = elements_of(*sizes)
    for element in elements:
        while source.demand == 0:
            pair.settle()
        source.emit(element)
    source.fail(FAILURE)
    pair.settle()
    assert (subscriber.elements, texts(subscriber)) == (elements, ["out of paper"])
    assert pair.server.failures == [FAILURE]
    assert not pair.server.session.streams.serving


def test_an_error_waits_for_the_demand_of_a_block() -> None:
    """Elements of a fixed size may come in blocks, of which demand permits a part."""
    pair, source, subscriber = over_rsio(element_size=2)
    subscriber.request(2)
    pair.settle()
    source.emit(b"aabbccdd")
    source.fail(FAILURE)
    pair.settle()
    assert (subscriber.elements, subscriber.ends) == ([b"aa", b"bb"], [])
    assert pair.server.failures == [FAILURE]
    subscriber.request(1)
    pair.settle()
    assert (subscriber.elements, subscriber.ends) == ([b"aa", b"bb", b"cc"], [])
    subscriber.request(5)
    pair.settle()
    assert (subscriber.elements[3:], texts(subscriber)) == ([b"dd"], ["out of paper"])


@PROTOCOLS
def test_an_element_that_cannot_be_sent_fails_the_stream_after_those_before_it(
    opened: Callable[..., Any],
) -> None:
    """The publisher's mistake is a failure of the publisher, which is cancelled."""
    pair, source, subscriber = opened()
    subscriber.request(5)
    pair.settle()
    source.emit(*elements_of(SPLIT, 5))
    source.emit("text")
    pair.settle()
    assert subscriber.elements == elements_of(SPLIT, 5)
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert source.cancels == 1


@PROTOCOLS
def test_a_publisher_that_a_limit_of_this_side_ends_has_failed(opened: Callable[..., Any]) -> None:
    """`LimitExceeded` reaches the stream from an operator or a topic: its elements go first."""
    pair, source, subscriber = opened()
    subscriber.request(5)
    pair.settle()
    source.emit(*elements_of(SPLIT, 5))
    source.fail(LimitExceeded("too slow", limit="max_hold_up", value=1.0))
    pair.settle()
    assert subscriber.elements == elements_of(SPLIT, 5)
    assert isinstance(subscriber.ends[0], PublisherFailed)


@PROTOCOLS
def test_a_name_that_is_denied_after_elements_is_their_error(opened: Callable[..., Any]) -> None:
    """`NotAvailable` after an element is a failure as any other."""
    pair, source, subscriber = opened()
    subscriber.request(5)
    pair.settle()
    source.emit(*elements_of(SPLIT, 5))
    source.fail(NotAvailable())
    pair.settle()
    assert subscriber.elements == elements_of(SPLIT, 5)
    assert len(subscriber.ends) == 1
    assert len(pair.server.refusals) == 1


def test_a_failed_publisher_has_ended() -> None:
    """Rules 1.7 and 2.4: until the error is sent, its signals do nothing, and it gets no call."""
    pair, source, subscriber = over_rsio()
    subscriber.request(5)
    pair.settle()
    asked = source.demand
    source.emit(*elements_of(SPLIT))
    source.fail(FAILURE)
    source.emit(b"late", "text")
    source.complete()
    source.fail(ValueError("second"))
    subscriber.request(7)
    pair.settle()
    assert (subscriber.elements, texts(subscriber)) == (elements_of(SPLIT), ["out of paper"])
    assert (source.demand, source.cancels) == (asked, 0)
    assert pair.server.failures == [FAILURE]


def held(pair: Pair, source: ScriptedPublisher) -> tuple[Any, list[SendingEvent]]:
    """Let a publisher fail whose element is held. Return its stream, and how it ends."""
    stream, outcomes = pair.server.served[0], list[SendingEvent]()
    stream.when_over = lambda _, event: outcomes.append(event)
    source.emit(*elements_of(SPLIT, SPLIT))
    source.fail(FAILURE)
    assert outcomes == []
    return stream, outcomes


def test_a_cancel_ends_the_wait_of_an_error() -> None:
    """Nothing more is sent, and the publisher, which has ended, is not cancelled."""
    pair, source, subscriber = over_rsio()
    subscriber.request(5)
    pair.settle()
    _, outcomes = held(pair, source)
    subscriber.cancel()
    pair.server.session.receive(bytes(pair.client.session.take()), 0.0)
    assert bytes(pair.server.session.take()) == b""
    assert (outcomes, source.cancels) == ([SendingEvent.FAILED], 0)
    assert not pair.server.session.streams.serving


def test_the_end_of_the_connection_ends_the_wait_of_an_error() -> None:
    """The reader gets the end of the connection: an element is missing, so not the error alone."""
    pair, source, subscriber = over_rsio()
    subscriber.request(5)
    pair.settle()
    _, outcomes = held(pair, source)
    pair.client.session.receive(bytes(pair.server.session.take())[:SPLIT], 0.0)
    pair.server.session.end_of_input()
    pair.client.session.end_of_input()
    assert outcomes == [SendingEvent.FAILED]
    assert isinstance(subscriber.ends[0], ConnectionLost)


def test_a_breach_of_the_contract_cuts_a_stream_at_once() -> None:
    """The error of a peer's mistake does not wait: held elements are dropped."""
    peer = RawPeer().handshake()
    source = peer.delegate.publishers["s"] = ScriptedPublisher()
    peer.send(rsio.Subscribe(publisher="s", subscriber=1, demand=5))
    source.emit(*elements_of(SPLIT))
    peer.send(rsio.Request(subscriber=1, demand=0))
    kinds = [type(message) for message in peer.receive()]
    assert kinds == [rsio.OnSubscribe, rsio.OnError]
    assert source.cancels == 1


SIZES = st.sampled_from([0, 1, 7, 300, 16_383, 16_384, 16_385, SPLIT, 70_000])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("emit"), SIZES),
        st.tuples(st.just("emit"), SIZES),
        st.tuples(st.just("request"), st.integers(1, 4)),
        st.tuples(st.sampled_from(["up", "down", "part"]), st.integers(1, 40_000)),
    ),
    max_size=40,
)


class Wire:
    """A stream between two sessions, whose bytes move when the test says so."""

    def __init__(self, opened: Callable[..., Any], size: int, *, is_changed: bool) -> None:
        self.pair, self.source, self.reader = opened(element_size=size)
        self.size = size
        self.demand = 0
        self.given: list[bytes] = []
        self._pulls = 0  # that the publisher has answered
        self._down = bytearray()
        if is_changed:  # as an extension that compresses
            self.pair.server.session.streams.change_outgoing(zlib.compress)
            self.pair.client.session.channel.incoming = zlib.decompress

    def step(self, step: str, n: int) -> None:
        """Take one step; then the reader has no more than it requested."""
        server, client = self.pair.server.session, self.pair.client.session
        if step == "request":
            self.demand += n
            self.reader.request(n)
        elif step == "emit":
            self._emit(n)
        elif step == "up":
            server.receive(bytes(client.take()), 0.0)
        else:
            self._down += server.take() if step == "down" else b""
            client.receive(bytes(self._down[:n]), 0.0)
            del self._down[:n]
        assert len(self.reader.elements) <= self.demand
        assert self.reader.elements == self.given[: len(self.reader.elements)]

    def _emit(self, n: int) -> None:
        if self._pulls >= self.source.demand:
            return
        self._pulls += 1
        letter = bytes([65 + len(self.given) % 26])
        if self.size:
            block = [letter * self.size] * (1 + n % 5)
            self.source.emit(b"".join(block))
            self.given += block
        else:
            self.source.emit(letter * n)
            self.given.append(letter * n)

    def finish(self) -> None:
        """Move all bytes, and request what is missing."""
        for _ in range(3):
            self.pair.client.session.receive(bytes(self._down), 0.0)
            self._down.clear()
            self.pair.settle()
            if not self.reader.ends:
                self.step("request", len(self.given) + 1)


@given(
    steps=STEPS,
    ending=st.sampled_from(["complete", "fail", "bad"]),
    size=st.sampled_from([0, 0, 3, 5_000]),
    is_changed=st.booleans(),
)
@PROTOCOLS
def test_all_that_was_given_arrives_before_the_end(
    opened: Callable[..., Any],
    steps: list[tuple[str, int]],
    ending: str,
    size: int,
    is_changed: bool,
) -> None:
    """Random sizes, requests, cuts and turns of the writer; demand may come after the end."""
    wire = Wire(opened, size, is_changed=is_changed and not size)
    wire.step("request", 1)
    for step, n in steps:
        wire.step(step, n)
    if wire.source.subscriber is None:
        wire.finish()
    if ending == "complete":
        wire.source.complete()
    elif ending == "fail":
        wire.source.fail(FAILURE)
    else:
        wire.source.emit("text")
    wire.finish()
    assert wire.reader.elements == wire.given
    (end,) = wire.reader.ends
    assert (end == "complete") == (ending == "complete")
    assert not wire.pair.server.session.streams.serving
    assert wire.pair.server.session.outbox.is_empty
