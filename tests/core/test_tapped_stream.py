"""The stage before a tap passes everything on, and shows it first."""

from collections.abc import Sequence
from typing import Any

from penstock.api import Positions, SignalKind, Subscriber, Subscription
from penstock.core import PositionedStream, TappedStream, size_of


class _Rows:
    each_signal = False

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int]] = []

    def record(
        self, kind: SignalKind, n: int, size: int, first: int, last: int, longest: int, /
    ) -> None:
        self.rows.append((kind.name, n, size))


class _Plain(Subscriber[Any]):
    """Takes elements one by one."""

    def __init__(self) -> None:
        self.signals: list[Any] = []

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription

    def on_next(self, element: Any, /) -> None:
        self.signals.append(element)

    def on_error(self, error: BaseException, /) -> None:
        self.signals.append(error)

    def on_complete(self, /) -> None:
        self.signals.append("complete")


class _Batching(_Plain):
    """Takes batches and packed elements whole, and tells what it holds."""

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self.signals.append(list(elements))

    def on_element_size(self, size: int, /) -> None:
        self.signals.append(("size", size))

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        self.signals.append((count, elements))

    def held(self) -> int:
        return 77


class _Upstream(Subscription):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def request(self, n: int, /) -> None:
        self.calls.append(n)

    def cancel(self, /) -> None:
        self.calls.append("cancel")


def _tapped(subscriber: Subscriber[Any]) -> tuple[TappedStream, _Rows, _Upstream]:
    stage, rows, upstream = TappedStream(subscriber), _Rows(), _Upstream()
    stage.begin(rows)
    stage.on_subscribe(upstream)
    return stage, rows, upstream


def test_batches_are_passed_on_whole() -> None:
    """To a subscriber that takes them."""
    subscriber = _Batching()
    stage, rows, _ = _tapped(subscriber)
    stage.on_element_size(2)
    stage.on_next_many([b"a", b"bcd"])
    stage.on_next_packed(2, b"xxyy")
    stage.on_next(b"z")
    stage.on_complete()
    assert subscriber.signals == [("size", 2), [b"a", b"bcd"], (2, b"xxyy"), b"z", "complete"]
    assert rows.rows == [("ON_SUBSCRIBE", 0, 0), ("ON_NEXT", 5, 9), ("ON_COMPLETE", 0, 0)]
    assert stage.held() == 0  # the subscriber is gone


def test_a_plain_subscriber_gets_single_elements() -> None:
    """Each is counted once."""
    subscriber = _Plain()
    stage, rows, _ = _tapped(subscriber)
    stage.on_element_size(2)
    stage.on_next_many([b"a", b"b"])
    stage.on_next_packed(2, b"xxyy")
    stage.on_error(ValueError("x"))
    assert subscriber.signals[:4] == [b"a", b"b", b"xx", b"yy"]
    assert rows.rows == [("ON_SUBSCRIBE", 0, 0), ("ON_NEXT", 4, 6), ("ON_ERROR", 0, 0)]


def test_the_bytes_that_a_decoder_tells_are_not_added_up() -> None:
    """A subscriber that takes no batches gets single elements, which are counted one by one."""
    subscriber = _Batching()
    stage, rows, _ = _tapped(subscriber)
    stage.on_next_sized([b"a", b"b"], 1000)
    stage.on_complete()
    assert (subscriber.signals, rows.rows[1]) == ([[b"a", b"b"], "complete"], ("ON_NEXT", 2, 1000))
    plain = _Plain()
    stage, rows, _ = _tapped(plain)
    stage.on_next_sized([b"a", b"b"], 1000)
    stage.on_complete()
    assert (plain.signals, rows.rows[1]) == ([b"a", b"b", "complete"], ("ON_NEXT", 2, 2))


def test_requests_and_the_cancel_are_shown_before_they_are_passed_on() -> None:
    """A request with an illegal demand is shown unchanged; nothing follows the cancel."""
    subscriber = _Batching()
    stage, rows, upstream = _tapped(subscriber)
    assert subscriber.subscription is stage
    stage.request(5)
    stage.request(-1)
    assert stage.held() == 77
    stage.cancel()
    stage.cancel()
    stage.on_next(b"late")
    stage.on_complete()
    assert upstream.calls == [5, -1, "cancel"]
    assert subscriber.signals == []
    assert rows.rows == [
        ("ON_SUBSCRIBE", 0, 0),
        ("REQUEST", 5, 0),
        ("REQUEST", -1, 0),
        ("CANCEL", 0, 0),
    ]


def test_signals_before_the_tap_is_known_are_shown_when_it_is() -> None:
    """The subscription and the demand."""
    stage, rows, upstream = TappedStream(_Plain()), _Rows(), _Upstream()
    stage.on_subscribe(upstream)
    stage.request(5)
    stage.request(6)
    stage.begin(rows)
    assert not stage.is_passed_by
    assert rows.rows == [("ON_SUBSCRIBE", 0, 0), ("REQUEST", 11, 0)]


def test_without_a_tap_nothing_is_counted() -> None:
    """All signals pass through."""
    subscriber, upstream = _Batching(), _Upstream()
    stage = TappedStream(subscriber)
    stage.on_subscribe(upstream)
    stage.begin(None)
    assert stage.is_passed_by
    stage.request(3)
    stage.on_next(b"a")
    stage.on_next_many([b"b"])
    stage.on_next_packed(1, b"c")
    stage.cancel()
    assert subscriber.signals == [b"a", [b"b"], (1, b"c")]
    assert upstream.calls == [3, "cancel"]


def test_only_bytes_have_a_size() -> None:
    """Other elements count 0: their size is not known."""
    assert size_of([b"ab", b"c"]) == 3
    assert size_of([bytearray(b"ab"), memoryview(b"cd"), "text", 5]) == 4
    assert size_of([b"ab", "text", bytearray(b"c"), memoryview(b"de")]) == 5
    assert size_of([b"ab", memoryview(b"abcd")[::2], bytes(100_000)]) == 100_004
    assert size_of([bytes(100_000), b"c"]) == 100_001
    assert size_of([]) == 0


def test_a_fact_passes_and_is_no_signal() -> None:
    """The subscriber learns it, if it takes facts; the tap does not see it."""
    stream: PositionedStream[bytes] = PositionedStream()
    stage, rows, _ = _tapped(stream)
    stage.on_fact(Positions(500))
    assert stream.position == 500
    other, others, _ = _tapped(_Plain())
    other.on_fact(Positions(500))
    assert rows.rows[:1] == others.rows == [("ON_SUBSCRIBE", 0, 0)]
