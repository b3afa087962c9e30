"""A sending stream: its publisher, its failures and its end, seen from the publisher and on the wire."""

from penstock.api import AlreadySubscribed, PublicError, PublisherFailed
from penstock.session._reasons import PRIVATE, TAKEN, explain_stream_end
from tests.session._pair import Pair, limits_with, open_stream


def test_a_lazy_publisher_is_attached_with_the_first_demand() -> None:
    """An idle stream of a generator costs an object, not a subscription."""
    pair = Pair()
    source, subscriber = open_stream(pair, 0, idle_until_demand=True)
    assert source.subscriber is None
    subscriber.request(1)
    pair.settle()
    assert source.demand == 1


def test_only_the_text_of_a_public_error_is_sent() -> None:
    """The delegate gets the exception itself."""
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


def test_a_publisher_that_had_its_one_subscriber_sends_a_token() -> None:
    """The text of the error names an object of the program, and stays there."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    refusal = AlreadySubscribed("read_secrets has a subscriber")
    source.fail(refusal)
    pair.settle()
    assert str(subscriber.ends[0]) == explain_stream_end(TAKEN)
    assert pair.server.failures == [refusal]


def test_an_element_that_is_not_bytes_fails_its_stream_only() -> None:
    """A publisher without a serializer must publish bytes, a bytearray or a memoryview."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    source.emit(bytearray(b"a"), memoryview(b"b"))
    source.emit("text")
    pair.settle()
    assert subscriber.elements == [b"a", b"b"]
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert "serializer" in str(pair.server.failures[0])
    assert source.cancels == 1


def test_signals_after_the_end_are_not_sent() -> None:
    """Rule 1.7, also for an element of the last one's length."""
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


def test_an_element_above_max_element_fails_its_stream() -> None:
    """It fails on this side, before a byte is sent."""
    pair = Pair(limits=limits_with(max_element=100))
    source, subscriber = open_stream(pair, 5)
    source.emit(bytes(101))
    pair.settle()
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert "101 bytes" in str(pair.server.failures[0])


def test_a_publisher_that_subscribes_after_the_end_is_cancelled() -> None:
    """The peer cancelled while the publisher was being attached."""
    pair = Pair()
    source, subscriber = open_stream(pair, 0)
    subscriber.cancel()
    pair.settle()
    before = source.cancels
    pair.server.served[0].on_subscribe(source)
    assert source.cancels == before + 1
