"""An outbound stream: demand, splitting, packing, the end; seen from the publisher, and on the wire."""

from penstock.api import PublicError, PublisherFailed
from penstock.session._reasons import PRIVATE, explain_stream_end
from tests.session._pair import Pair, limits_with, open_stream


def test_a_publisher_that_nobody_asks_is_not_even_attached() -> None:
    """An idle stream of a generator costs an object, not a subscription."""
    pair = Pair()
    source, subscriber = open_stream(pair, 0, idle_until_demand=True)
    assert source.subscriber is None
    subscriber.request(1)
    pair.settle()
    assert source.demand == 1


def test_failures_of_publishers_keep_their_text_at_home() -> None:
    """Only a PublicError's text crosses the wire; the owner is told everything."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    secret = ValueError("the password is 123")
    source.fail(secret)
    pair.settle()
    assert str(subscriber.ends[0]) == explain_stream_end(PRIVATE)
    assert pair.server.failures == [secret]
    source, subscriber = open_stream(pair)
    source.fail(PublicError("no such symbol"))
    pair.settle()
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert str(subscriber.ends[0]) == "no such symbol"


def test_a_type_that_is_not_bytes_fails_its_stream_only() -> None:
    """A publisher without a serializer must publish bytes; bytes-like is enough."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    source.emit(bytearray(b"a"), memoryview(b"b"))
    source.emit("text")
    pair.settle()
    assert subscriber.elements == [b"a", b"b"]
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert "serializer" in str(pair.server.failures[0])
    assert source.cancels == 1


def test_what_a_publisher_says_after_the_end_is_not_sent() -> None:
    """Rule 1.7, also for an element as long as the last one: the id may be somebody else's by then."""
    pair = Pair()
    source, subscriber = open_stream(pair, 10)
    source.emit(b"abc")
    pair.settle()
    subscriber.cancel()
    pair.settle()
    source.emit(b"abc", b"abcd")
    source.complete()
    source.fail(ValueError())
    assert bytes(pair.server.session.take()) == b""


def test_an_element_that_no_peer_would_take_fails_its_stream() -> None:
    """Here, before it has crossed."""
    pair = Pair(limits=limits_with(max_element=100))
    source, subscriber = open_stream(pair, 5)
    source.emit(bytes(101))
    pair.settle()
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert "101 bytes" in str(pair.server.failures[0])


def test_a_publisher_that_comes_after_the_end_is_let_go() -> None:
    """The peer cancelled before the publisher was there."""
    pair = Pair()
    source, subscriber = open_stream(pair, 0)
    subscriber.cancel()
    pair.settle()
    before = source.cancels
    pair.server.served[0].on_subscribe(source)
    assert source.cancels == before + 1
